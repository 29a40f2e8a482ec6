// The program: one line per subcommand.
#include "cli/command.h"

namespace tercel::cli {

CommandFunction run_config;
CommandFunction run_convert;
CommandFunction run_doctor;
CommandFunction run_eval;
CommandFunction run_export;
CommandFunction run_generate;
CommandFunction run_import;
CommandFunction run_info;
CommandFunction run_plan;
CommandFunction run_predict;
CommandFunction run_report;
CommandFunction run_train;
CommandFunction run_tune;
CommandFunction run_verify;

namespace {

constexpr Command kCommands[] = {
    {"generate", "write a synthetic click log whose best possible AUC is known", run_generate},
    {"convert", "make a dataset of text, of other tools' files or of a dataset", run_convert},
    {"train", "train a model on a dataset", run_train},
    {"plan", "estimate a step of several ranks: where tables are, bytes, memory, time", run_plan},
    {"tune", "search for good options by validation", run_tune},
    {"eval", "evaluate a trained model on a dataset", run_eval},
    {"predict", "predict click probabilities for a dataset or raw text", run_predict},
    {"export", "write a trained model for HugeCTR or PyTorch", run_export},
    {"import", "make a run of a model of HugeCTR or PyTorch", run_import},
    {"report", "write an HTML page that shows runs and compares them", run_report},
    {"info", "describe a dataset, a run or a checkpoint", run_info},
    {"verify", "check every checksum and every row of a dataset", run_verify},
    {"config", "show the options of a configuration and of its layers", run_config},
    {"doctor", "show CPU, memory and settings of this machine", run_doctor},
};

}  // namespace

}  // namespace tercel::cli

int main(int argc, char** argv) {
  using namespace tercel::cli;  // NOLINT(google-build-using-namespace)
  return run_program("tercel", "train click-through-rate models", kCommands, argc, argv);
}
