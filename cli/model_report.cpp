#include "cli/model_report.h"

#include "cli/console.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::cli {

void report_model(const CommonOptions& common, const recsys::LoadedModel& model) {
  for (const std::string& warning : model.warnings) print_warning(common, warning);
  if (model.step < model.last_step)
    print_note(common, str_cat({"the checkpoint of step ", format_count(model.step),
                                " is used; the last one of the run is of step ", format_count(model.last_step)}));
}

}  // namespace tercel::cli
