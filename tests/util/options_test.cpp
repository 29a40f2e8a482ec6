#include "tercel/util/options.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tercel/util/error.h"
#include "tercel/util/options_impl.h"
#include "tests/support/errors.h"

namespace tercel {
namespace {

enum class Combiner : uint8_t { Sum, Mean };
constexpr auto enum_names(Combiner) {
  return std::to_array<EnumName<Combiner>>(
      {{Combiner::Sum, "sum"}, {Combiner::Mean, "mean"}, {Combiner::Mean, "average"}});
}

struct SolverOptions {
  double lr = 0.001;
  uint64_t seed = 0;
  int64_t batch_size = 256;
  static constexpr auto fields() {
    return option_list(option_field<&SolverOptions::lr>("lr", "learning rate", above(0)),
                       option_field<&SolverOptions::seed>("seed", "random seed"),
                       option_field<&SolverOptions::batch_size>("batch_size", "rows per step", at_least(1)));
  }
};

struct SlotOptions {
  std::string name;
  int64_t size = 1;
  static constexpr auto fields() {
    return option_list(option_field<&SlotOptions::name>("name", "name of the slot", required()),
                       option_field<&SlotOptions::size>("size", "number of keys", at_least(1)));
  }
};

struct TrainOptions {
  bool shuffle = true;
  std::string out = "run";
  Combiner combiner = Combiner::Sum;
  double dropout = 0.5;
  std::vector<int64_t> units = {256, 128};
  std::vector<double> weights;
  std::vector<std::string> names;
  std::vector<Combiner> combiners;
  std::vector<std::vector<int64_t>> ranges;
  std::vector<SlotOptions> slots;
  SolverOptions solver;
  static constexpr auto fields() {
    return option_list(option_field<&TrainOptions::shuffle>("shuffle", "mix the rows"),
                       option_field<&TrainOptions::out>("out", "folder of the run"),
                       option_field<&TrainOptions::combiner>("combiner", "how rows join"),
                       option_field<&TrainOptions::dropout>("dropout", "share of zeros", at_least(0), below(1)),
                       option_field<&TrainOptions::units>("units", "sizes of the layers", at_least(1), required()),
                       option_field<&TrainOptions::weights>("weights", "weights of the labels"),
                       option_field<&TrainOptions::names>("names", "names of the labels"),
                       option_field<&TrainOptions::combiners>("combiners", "one for each slot"),
                       option_field<&TrainOptions::ranges>("ranges", "first and last columns"),
                       option_field<&TrainOptions::slots>("slots", "the slots"),
                       option_field<&TrainOptions::solver>("solver", "how to train"));
  }
};

struct MultiCrossOptions {
  int64_t num_layers = 3;
  int64_t projection_dim = 0;
  bool use_bias = true;
  static constexpr auto fields() {
    return option_list(
        option_field<&MultiCrossOptions::num_layers>("num_layers", "number of cross layers", at_least(1)),
        option_field<&MultiCrossOptions::projection_dim>("projection_dim", "rank, 0 for full", at_least(0)),
        option_field<&MultiCrossOptions::use_bias>("use_bias", "add a bias"));
  }
};

struct NoOptions {
  static constexpr auto fields() { return option_list(); }
};

template <class S = TrainOptions>
S read(const std::string& text, S options = {}) {
  Json json = parse_json(text, "test", JsonErrors::Config);
  if (std::is_same_v<S, TrainOptions> && json.is_object() && !json.contains("units")) json["units"] = {1};
  read_options(json, options, "train");
  return options;
}

TEST(Options, ReadsEveryKind) {
  const TrainOptions o = read(R"({
    "shuffle": false, "out": "here", "combiner": "mean", "dropout": 0, "units": [4, 2e1], "weights": [1, 0.5],
    "names": ["a", "b"], "combiners": ["sum", "average"], "ranges": [[0, 3], [], [4]],
    "slots": [{"name": "x", "size": 9}, {"name": "y"}], "solver": {"lr": 1, "seed": 18446744073709551615}})");
  EXPECT_FALSE(o.shuffle);
  EXPECT_EQ(o.out, "here");
  EXPECT_EQ(o.combiner, Combiner::Mean);
  EXPECT_EQ(o.dropout, 0);
  EXPECT_EQ(o.units, (std::vector<int64_t>{4, 20}));
  EXPECT_EQ(o.weights, (std::vector<double>{1, 0.5}));
  EXPECT_EQ(o.names, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(o.combiners, (std::vector<Combiner>{Combiner::Sum, Combiner::Mean}));
  EXPECT_EQ(o.ranges, (std::vector<std::vector<int64_t>>{{0, 3}, {}, {4}}));
  ASSERT_EQ(o.slots.size(), 2u);
  EXPECT_EQ(o.slots[0].size, 9);
  EXPECT_EQ(o.slots[1].name, "y");
  EXPECT_EQ(o.solver.lr, 1.0);
  EXPECT_EQ(o.solver.seed, UINT64_MAX);
  EXPECT_EQ(o.solver.batch_size, 256) << "options that are not given keep their values";
}

TEST(Options, OneValueStandsForAListOfOne) {
  EXPECT_EQ(read(R"({"units": 7})").units, std::vector<int64_t>{7});
  TERCEL_EXPECT_THROW(read(R"({"ranges": [0, 3]})"), ConfigError,
                      "[train] option 'ranges[0]': expected a list, found 0");
  TERCEL_EXPECT_THROW(read(R"({"ranges": 3})"), ConfigError, "[train] option 'ranges': expected a list, found 3");
}

TEST(Options, AnObjectStandsForAListOfPairs) {
  for (const bool as_text : {false, true}) {
    TrainOptions options;
    const std::string text = R"({"a": 3, "b": 4})";
    if (as_text)
      set_option(options, "train", "slots", text);
    else
      read_options(Json{{"slots", parse_json(text, "test", JsonErrors::Config)}, {"units", {1}}}, options, "train");
    ASSERT_EQ(options.slots.size(), 2u);
    EXPECT_EQ(options.slots[0].name, "a");
    EXPECT_EQ(options.slots[1].size, 4);
  }
  TrainOptions options;
  TERCEL_EXPECT_THROW(set_option(options, "train", "slots", R"({"a": "x"})"), ConfigError,
                      "option 'slots[0].size': expected an integer, found \"x\"");
  TERCEL_EXPECT_THROW(set_option(options, "train", "slots", R"({"a": 0})"), ConfigError, "slots[0].size");
}

TEST(Options, WritesAndReadsBack) {
  TrainOptions o = read(R"({"ranges": [[1]], "slots": [{"name": "x"}], "combiner": "average", "names": ["p,q"]})");
  o.solver.lr = 0.1;
  const Json json = write_options(o);
  EXPECT_EQ(dump_json_line(json),
            R"({"shuffle":true,"out":"run","combiner":"mean","dropout":0.5,"units":[1],"weights":[],"names":["p,q"],)"
            R"("combiners":[],"ranges":[[1]],"slots":[{"name":"x","size":1}],)"
            R"("solver":{"lr":0.1,"seed":0,"batch_size":256}})");
  TrainOptions back;
  read_options(json, back, "train");
  EXPECT_EQ(write_options(back), json);
  o.solver.lr = std::nan("");
  TERCEL_EXPECT_THROW(write_options(o), ConfigError, "option 'solver.lr': expected a finite number, found nan");
  EXPECT_EQ(write_options(NoOptions{}), Json::object());
}

TEST(Options, UnknownNames) {
  MultiCrossOptions cross;
  try {
    read_options(Json{{"num_layer", 2}}, cross, "MultiCross");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "[MultiCross] unknown option 'num_layer'; did you mean 'num_layers'? known: num_layers, "
                 "projection_dim, use_bias");
  }
  TERCEL_EXPECT_THROW(read(R"({"solver": {"learning": 1}})"), ConfigError,
                      "[train] unknown option 'solver.learning'; known: lr, seed, batch_size");
  TERCEL_EXPECT_THROW(read(R"({"slots": [{"name": "a"}, {"nam": "b"}]})"), ConfigError,
                      "[train] unknown option 'slots[1].nam'; did you mean 'name'? known: name, size");
  NoOptions none;
  TERCEL_EXPECT_THROW(read_options(Json{{"x", 2}}, none, "Relu"), ConfigError,
                      "[Relu] unknown option 'x'; there are none");
}

TEST(Options, KeysOfOthersAreLeftAlone) {
  MultiCrossOptions cross;
  read_options(Json{{"type", "MultiCross"}, {"num_layers", 2}}, cross, "MultiCross", {"type", "bottom"});
  EXPECT_EQ(cross.num_layers, 2);
  TERCEL_EXPECT_THROW(read_options(Json{{"botom", 1}}, cross, "MultiCross", {"type", "bottom"}), ConfigError,
                      "did you mean 'bottom'? known: num_layers, projection_dim, use_bias, type, bottom");
}

TEST(Options, WrongTypes) {
  const auto expect = [](const char* text, const char* message) {
    TERCEL_EXPECT_THROW(read(text), ConfigError, message);
  };
  expect(R"([1])", "[train] options: expected an object, found a list");
  expect(R"({"shuffle": 1})", "[train] option 'shuffle': expected true or false, found 1");
  expect(R"({"out": 1})", "[train] option 'out': expected a string, found 1");
  expect(R"({"dropout": "0.5"})", "[train] option 'dropout': expected a number, found \"0.5\"");
  expect(R"({"dropout": null})", "[train] option 'dropout': expected a number, found null");
  expect(R"({"units": [1, "three"]})", "[train] option 'units[1]': expected an integer, found \"three\"");
  expect(R"({"units": [1.5]})", "expected an integer, found 1.5");
  expect(R"({"units": [1e300]})", "expected an integer, found 1e+300, which is too large");
  expect(R"({"units": [9223372036854775808]})", "expected an integer of 64 bits, found 9223372036854775808");
  expect(R"({"solver": {"seed": -1}})",
         "[train] option 'solver.seed': expected an integer that is not negative, found -1");
  expect(R"({"solver": 3})", "[train] option 'solver': expected an object, found 3");
  expect(R"({"combiner": "meen"})",
         "[train] option 'combiner': expected one of sum, mean, average, found \"meen\"; did you mean 'mean'?");
  expect(R"({"combiner": 1})", "[train] option 'combiner': expected one of sum, mean, average, found 1");
  expect(R"({"units": {"a": 1}})", "[train] option 'units': expected an integer, found an object");
}

TEST(Options, RulesHold) {
  const auto expect = [](const char* text, const char* message) {
    TERCEL_EXPECT_THROW(read(text), ConfigError, message);
  };
  expect(R"({"solver": {"lr": 0}})", "[train] option 'solver.lr': expected above 0, found 0");
  expect(R"({"dropout": 1})", "[train] option 'dropout': expected at least 0 and below 1, found 1");
  expect(R"({"dropout": -0.1})", "found -0.1");
  expect(R"({"units": [3, 0]})", "[train] option 'units[1]': expected at least 1, found 0");
  expect(R"({"units": []})", "[train] option 'units': expected a list that is not empty, found an empty one");
  expect(R"({"slots": [{"size": 2}]})", "[train] option 'slots[0].name': expected a string, found nothing");
  expect(R"({"slots": [{"name": ""}]})",
         "[train] option 'slots[0].name': expected a string that is not empty, found an empty one");
  EXPECT_NO_THROW(read(R"({"dropout": 0.999})"));
  TrainOptions missing;
  TERCEL_EXPECT_THROW(read_options(Json::object(), missing, "train"), ConfigError,
                      "option 'units': expected a list, found nothing");
}

TEST(Options, ValuesSetInCppAreChecked) {
  TrainOptions o;
  EXPECT_NO_THROW(check_options(o, "train"));
  o.solver.batch_size = -5;
  TERCEL_EXPECT_THROW(check_options(o, "train"), ConfigError,
                      "[train] option 'solver.batch_size': expected at least 1, found -5");
  o = {};
  o.dropout = std::numeric_limits<double>::quiet_NaN();
  TERCEL_EXPECT_THROW(check_options(o, "train"), ConfigError, "option 'dropout': expected a finite number, found nan");
  o = {};
  o.combiner = static_cast<Combiner>(77);
  TERCEL_EXPECT_THROW(check_options(o, "train"), ConfigError, "option 'combiner': expected one of sum, mean");
  o = {};
  o.slots.resize(1);
  TERCEL_EXPECT_THROW(check_options(o, "train"), ConfigError,
                      "option 'slots[0].name': expected a string that is not empty");
}

TEST(Options, SetsFromText) {
  TrainOptions o;
  for (const char* const assignment : {"solver.lr=0.25", "solver.seed=18446744073709551615", "solver.batch_size=1e3",
                                       "shuffle=false", "out=a=b", "combiner=mean", "units=64,32,16", "weights=[0.5]",
                                       "names=x,,y", "combiners=sum,mean", "ranges=[[1,2]]", R"(slots=[{"name":"n"}])"})
    set_option(o, "train", assignment);
  EXPECT_EQ(o.solver.lr, 0.25);
  EXPECT_EQ(o.solver.seed, UINT64_MAX);
  EXPECT_EQ(o.solver.batch_size, 1000);
  EXPECT_FALSE(o.shuffle);
  EXPECT_EQ(o.out, "a=b");
  EXPECT_EQ(o.combiner, Combiner::Mean);
  EXPECT_EQ(o.units, (std::vector<int64_t>{64, 32, 16}));
  EXPECT_EQ(o.weights, std::vector<double>{0.5});
  EXPECT_EQ(o.names, (std::vector<std::string>{"x", "", "y"}));
  EXPECT_EQ(o.combiners.size(), 2u);
  EXPECT_EQ(o.ranges, (std::vector<std::vector<int64_t>>{{1, 2}}));
  EXPECT_EQ(o.slots.at(0).name, "n");
  set_option(o, "train", "names=");
  EXPECT_TRUE(o.names.empty());
  set_option(o, "train", "out", "");
  EXPECT_EQ(o.out, "");
  set_option(o, "train", R"(solver={"lr": 2})");
  EXPECT_EQ(o.solver.lr, 2);
}

TEST(Options, WrongTextIsRefused) {
  TrainOptions o;
  const auto expect = [&](const char* text, const char* message) {
    TERCEL_EXPECT_THROW(set_option(o, "--set", text), ConfigError, message);
  };
  expect("solver.lr", "[--set] expected NAME=VALUE, found 'solver.lr'");
  expect("=3", "[--set] expected NAME=VALUE, found '=3'");
  expect("solver.lr=", "[--set] option 'solver.lr': expected a number, found \"\"");
  expect("solver.lr=0.1x", "[--set] option 'solver.lr': expected a number, found \"0.1x\"");
  expect("solver.lr=inf", "[--set] option 'solver.lr': expected a number, found \"inf\"");
  expect("solver.lr=1e999", "[--set] option 'solver.lr': expected a number, found \"1e999\"");
  expect("solver.lr=0,1", "[--set] option 'solver.lr': expected a number, found \"0,1\"");
  expect("solver.lr=-1", "[--set] option 'solver.lr': expected above 0, found -1");
  expect("solver.batch_size=2.5", "expected an integer, found 2.5");
  expect("shuffle=maybe", "[--set] option 'shuffle': expected true or false, found \"maybe\"");
  expect("units=1,x", "[--set] option 'units[1]': expected an integer, found \"x\"");
  expect("units=[1,", "[--set] option 'units': line 1, column 3: syntax error");
  expect("ranges=1,2", "[--set] option 'ranges': expected a list, found \"1,2\"");
  expect("solver=3", "[--set] option 'solver': expected an object, found \"3\"");
  expect("solver.lrr=1", "[--set] unknown option 'solver.lrr'; did you mean 'lr'? known: lr, seed, batch_size");
  expect("out=\xff", "[--set] option 'out': expected a string in UTF-8, found \"\\xff\"");
  expect("lr=1", "[--set] unknown option 'lr'; did you mean 'solver.lr'?");
  expect("shufle=1", "[--set] unknown option 'shufle'; did you mean 'shuffle'? known: shuffle, out,");
  expect("out.x=1", "[--set] option 'out': expected no name after it, as it is not an object, found 'out.x'");
  expect("solver..lr=1", "[--set] unknown option 'solver.'");
}

TEST(Options, NamesAndTypes) {
  EXPECT_EQ(option_names(option_table<MultiCrossOptions>()),
            (std::vector<std::string>{"num_layers", "projection_dim", "use_bias"}));
  EXPECT_EQ(option_names(option_table<TrainOptions>()).back(), "solver.batch_size");
  const auto type_of = [](std::string_view name) {
    for (const OptionField& field : option_table<TrainOptions>())
      if (field.name == name) return option_type_text(field);
    return std::string();
  };
  EXPECT_EQ(option_type_text(MultiCrossOptions::fields()[0]), "integer, at least 1");
  EXPECT_EQ(option_type_text(MultiCrossOptions::fields()[2]), "true|false");
  EXPECT_EQ(type_of("combiner"), "sum|mean|average");
  EXPECT_EQ(type_of("units"), "list of integers, required, at least 1");
  EXPECT_EQ(type_of("names"), "list of strings");
  EXPECT_EQ(option_type_text(SolverOptions::fields()[0]), "number, above 0");
}

TEST(Options, TextOfAValueSetsItAgain) {
  TrainOptions o =
      read(R"({"units": [3, 4], "names": ["a,b"], "out": "x y", "combiner": "mean", "slots": [{"name": "s"}]})");
  o.dropout = 1.0 / 3;
  TrainOptions copy;
  for (const OptionField& field : option_table<TrainOptions>())
    set_option(copy, "copy", field.name, option_text(field, &o));
  EXPECT_EQ(write_options(copy), write_options(o));
}

TEST(Options, HostileKeysAreShownSafely) {
  MultiCrossOptions cross;
  TERCEL_EXPECT_THROW(read_options(Json{{"a\n\x1b[31m", 2}}, cross, "x"), ConfigError,
                      "unknown option 'a\\n\\x1b[31m'");
  TERCEL_EXPECT_THROW(read_options(Json{{std::string(100'000, 'k'), 2}}, cross, "x"), ConfigError, "kkk...'");
}

}  // namespace
}  // namespace tercel
