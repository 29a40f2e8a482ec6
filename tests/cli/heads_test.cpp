// A model with two heads, from the command line.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tercel/io/npy.h"
#include "tercel/util/json_impl.h"
#include "tests/cli/program.h"
#include "tests/recsys/two_heads.h"
#include "tests/util/temporary_folder.h"

namespace tercel::cli {
namespace {

using test::Outcome;
using test::run;
using test::TemporaryFolder;

TEST(HeadsCommands, TrainEvalInfoAndPredictShowEveryHead) {
  const TemporaryFolder root;
  recsys::test::two_labels_dataset(root / "data", 200);
  root.put("model.json", std::string(recsys::test::kTwoHeads));
  const Outcome trained = run({"train", root / "data", "--model", root / "model.json", "--out", root / "run"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_NE(trained.out.find("  auc/buy_loss "), std::string::npos) << trained.out;

  const Outcome evaluated = run({"eval", root / "run", root / "data", "--json"});
  ASSERT_EQ(evaluated.code, 0) << evaluated.err;
  const Json json = parse_json(evaluated.out, "eval", JsonErrors::Data);
  const double mean = (json.at("auc/click_loss").get<double>() + 0.5 * json.at("auc/buy_loss").get<double>()) / 1.5;
  EXPECT_NEAR(json.at("auc").get<double>(), mean, 1e-9);
  EXPECT_TRUE(json.contains("log_loss/click_loss")) << evaluated.out;

  const Outcome info = run({"info", root / "run"});
  ASSERT_EQ(info.code, 0) << info.err;
  for (const std::string& text :
       {std::string("heads:\n"), std::string("click_loss: logits click_logit, label click, weight 1.0\n"),
        std::string("buy_loss: logits buy_logit, label buy, weight 0.5\n"),
        "auc/buy_loss: " + json.at("auc/buy_loss").dump() + "\n"})
    EXPECT_NE(info.out.find(text), std::string::npos) << text << info.out;

  const Outcome csv = run({"predict", root / "run", root / "data"});
  ASSERT_EQ(csv.code, 0) << csv.err;
  EXPECT_TRUE(csv.out.starts_with("probability/click_loss,probability/buy_loss\n0.")) << csv.out.substr(0, 80);
  EXPECT_EQ(std::count(csv.out.begin(), csv.out.end(), '\n'), 201);
  EXPECT_EQ(std::count(csv.out.begin(), csv.out.end(), ','), 201);
  const Outcome npy = run({"predict", root / "run", root / "data", "--out", root / "p.npy", "--json"});
  ASSERT_EQ(npy.code, 0) << npy.err;
  EXPECT_NE(npy.out.find("\"rows\":200"), std::string::npos) << npy.out;
  const Tensor probabilities = io::load_npy(root / "p.npy");
  ASSERT_EQ(probabilities.sizes(), IntSpan({200, 2}));
  const std::string first = csv.out.substr(csv.out.find('\n') + 1);
  EXPECT_FLOAT_EQ(probabilities.data<float>()[0], std::stof(first));
  EXPECT_FLOAT_EQ(probabilities.data<float>()[1], std::stof(first.substr(first.find(',') + 1)));
}

TEST(HeadsCommands, AWeightOfOneHeadIsShown) {
  const TemporaryFolder root;
  recsys::test::two_labels_dataset(root / "data", 100);
  std::string model(recsys::test::kTwoHeads);
  const size_t second = model.find(R"(,
    {"type": "InnerProduct", "bottom": "shared", "top": "buy_logit")");
  ASSERT_NE(second, std::string::npos);
  for (const bool weighted : {false, true}) {
    const std::string name = weighted ? "weighted" : "plain";
    std::string one = model.substr(0, second);
    if (weighted) one.insert(one.rfind('}'), R"(, "weight": 0.5)");
    root.put(name + ".json", one + "]}");
    const Outcome trained = run({"train", root / "data", "--model", root / (name + ".json"), "--out", root / name});
    ASSERT_EQ(trained.code, 0) << trained.err;
    const Outcome info = run({"info", root / name});
    ASSERT_EQ(info.code, 0) << info.err;
    const size_t found = info.out.find("click_loss: logits click_logit, label click, weight 0.5\n");
    EXPECT_EQ(found != std::string::npos, weighted) << info.out;
    EXPECT_EQ(info.out.find("heads:") != std::string::npos, weighted) << info.out;
  }
}

TEST(HeadsCommands, LineFeedsInNamesDoNotEndLines) {
  const TemporaryFolder root;
  recsys::test::two_labels_dataset(root / "data", 100);
  std::string model(recsys::test::kTwoHeads);
  for (const std::string& name : {std::string("\"buy_loss\""), std::string("\"two_heads\"")})
    model.insert(model.find(name) + 4, "\\n");
  root.put("model.json", model);
  const Outcome trained = run({"train", root / "data", "--model", root / "model.json", "--out", root / "run"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_NE(trained.out.find("training two\\n_heads on "), std::string::npos) << trained.out;
  EXPECT_NE(trained.out.find("  auc/buy\\n_loss "), std::string::npos) << trained.out;
  const Outcome evaluated = run({"eval", root / "run", root / "data"});
  EXPECT_NE(evaluated.out.find("  auc/buy\\n_loss "), std::string::npos) << evaluated.out << evaluated.err;
  const Outcome info = run({"info", root / "run"});
  for (const char* text : {"model: two\\n_heads\n", "BinaryCrossEntropyLoss buy\\n_loss -> scalar\n",
                           "buy\\n_loss: logits buy_logit, label buy, weight 0.5\n", "auc/buy\\n_loss: "})
    EXPECT_NE(info.out.find(text), std::string::npos) << text << "\n" << info.out;
}

}  // namespace
}  // namespace tercel::cli
