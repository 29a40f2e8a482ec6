// tercel config.
#include <gtest/gtest.h>

#include <string>

#include "tercel/recsys/layers/layers_impl.h"
#include "tercel/recsys/model/config.h"
#include "tests/cli/program.h"

namespace tercel::cli {
namespace {

using test::expect_error;
using test::Outcome;
using test::run;

std::string shown(const std::vector<std::string>& words) {
  const Outcome outcome = run(words);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  return outcome.out;
}

TEST(ConfigCommand, ShowsTheSectionsAndNamesTheLayers) {
  const std::string text = shown({"config"});
  for (const char* part :
       {"solver\n  seed ", "  batchsize  ", "(integer, at least 1 and at most 16777216; default 2048)", "\noptimizer, ",
        "\ndata\n  ", "  shuffle  ", "  DistributedSlotSparseEmbeddingHash"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  for (const recsys::LayerEntry& layer : recsys::layer_entries())
    EXPECT_NE(text.find("  " + std::string(layer.type)), std::string::npos) << layer.type;
  const std::string help = shown({"help", "config"});
  EXPECT_NE(help.find("usage: tercel config [TOPIC]"), std::string::npos) << help;
  EXPECT_TRUE(help.ends_with(text)) << help;
}

TEST(ConfigCommand, ShowsOneTopic) {
  EXPECT_TRUE(shown({"config", "solver"}).starts_with("solver\n  seed "));
  EXPECT_EQ(shown({"config", "solver"}).find("\noptimizer"), std::string::npos);
  const std::string embedding = shown({"config", "LocalizedSlotSparseEmbeddingHash"});
  EXPECT_NE(embedding.find("\n  embedding_vec_size "), std::string::npos) << embedding;
  EXPECT_NE(shown({"config", "InnerProduct"}).find("fc_param.num_output"), std::string::npos);
  EXPECT_NE(shown({"config", "layers"}).find("\nlayer InnerProduct\n"), std::string::npos);
}

TEST(ConfigCommand, ShowsWhatTheShippedModelsAre) {
  const std::string all = shown({"config", "models"});
  for (const std::string_view name : recsys::preset_names()) {
    const std::string text = shown({"config", std::string(name)});
    EXPECT_TRUE(text.starts_with("model " + std::string(name) + "\n  paper: ")) << text;
    EXPECT_NE(text.find("\n  parameters: "), std::string::npos) << text;
    EXPECT_NE(all.find(text), std::string::npos) << text;
  }
}

TEST(ConfigCommand, AnUnknownTopicIsAnError) {
  expect_error(run({"config", "solvr"}), 2,
               {"config: unknown section, type of layers or model 'solvr'", "did you mean 'solver'"});
  expect_error(run({"config", "solver", "data"}), 2, {"config: "});
}

}  // namespace
}  // namespace tercel::cli
