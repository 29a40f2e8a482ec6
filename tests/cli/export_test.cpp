// tercel export and tercel import.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tercel/util/json_impl.h"
#include "tests/cli/program.h"
#include "tests/util/temporary_folder.h"

namespace tercel::cli {
namespace {

using test::expect_error;
using test::one_pass;
using test::Outcome;
using test::run;
using test::TemporaryFolder;

Json json_of(const Outcome& outcome) {
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return parse_json(outcome.out, "stdout", JsonErrors::Data);
}

TEST(ExportCommand, ModelsGoOutAndIn) {
  const TemporaryFolder root;
  ASSERT_EQ(run({"generate", root / "data", "--preset", "small", "--rows", "2000"}).code, 0);
  ASSERT_EQ(run(one_pass({"train", root / "data", "--model", "deepfm", "--out", root / "run"})).code, 0);
  const Json expected = json_of(run({"eval", root / "run", root / "data", "--json"}));
  for (const char* name : {"m.safetensors", "m.pt", "hugectr"}) {
    const Json exported = json_of(run({"export", root / "run", root / name, "--json"}));
    EXPECT_GT(exported["parameters"], 1000);
    EXPECT_EQ(exported["format"], name == std::string("m.pt")      ? "state_dict"
                                  : name == std::string("hugectr") ? "hugectr"
                                                                   : "safetensors");
    const std::string model = name == std::string("hugectr") ? root / "hugectr/graph.json" : root / "run/config.json";
    const std::string out = root / (std::string(name) + "-run");
    const Outcome imported = run({"import", root / name, out, "--data", root / "data", "--model", model});
    ASSERT_EQ(imported.code, 0) << imported.err;
    EXPECT_NE(imported.out.find("rows of tables; "), std::string::npos) << imported.out;
    const Json found = json_of(run({"eval", out, root / "data", "--json"}));
    EXPECT_EQ(found["auc"], expected["auc"]);
    EXPECT_EQ(found["log_loss"], expected["log_loss"]);
    const Outcome next =
        run(one_pass({"train", root / "data", "--model", "deepfm", "--out", out + "-next", "--init-from", out}));
    EXPECT_EQ(next.code, 0) << next.err;
    EXPECT_NE(next.out.find("; 0 rows are new"), std::string::npos) << next.out;
    expect_error(run({"export", root / "run", root / name}), 4, {"but it exists"});
    expect_error(run({"import", root / name, out, "--data", root / "data", "--model", model}), 2,
                 {"already contains a run"});
  }
  expect_error(run({"import", root / "m.pt", root / "x", "--data", root / "data"}), 2, {"expected --model"});
  expect_error(run({"import", root / "m.pt", root / "x", "--model", "dlrm"}), 2, {"expected --data"});
  expect_error(run({"export", root / "run", root / "x", "--format", "onnx"}), 2,
               {"--format: expected hugectr, safetensors or state_dict, found 'onnx'"});
  expect_error(run({"import", root / "m.pt", root / "x", "--data", root / "data", "--model", "dcn"}), 3,
               {"m.pt: expected a tensor '", "found none of that name"});
  EXPECT_FALSE(std::filesystem::exists(root / "x"));
}

}  // namespace
}  // namespace tercel::cli
