// Memory of training and conversion: it does not grow with the data.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>

#include "tercel/util/sanitizers_impl.h"
#include "tests/cli/program.h"
#include "tests/util/temporary_folder.h"

namespace tercel::cli {
namespace {

using test::Outcome;
using test::run;
using test::TemporaryFolder;

constexpr int64_t kMegabyte = 1'000'000;
constexpr int64_t kBatch = 2048;
constexpr int64_t kEvalBatch = 1000;
// The formula of docs/guide/training.md for DLRM's preset; R and A are of 13 dense values and 26 slots of one key.
constexpr int64_t kPrefetch = 2;
constexpr int64_t kR = 4 * (1 + 13) + 8 * 26;
constexpr int64_t kA = 13 + (256 + 128 + 16) + 26 * 16 + (27 * 26 / 2 + 16 + 1) + (256 + 128 + 1);

struct Training {
  int64_t rows = 0, test_rows = 0, parameter_bytes = 0, peak_bytes = 0;
};

/** Generates data, trains DLRM with one checkpoint, and returns the peak memory. */
Training train(int64_t rows) {
  const TemporaryFolder root;
  const Outcome made = run({"generate", root / "data", "--rows", std::to_string(rows), "--seed", "1"});
  EXPECT_EQ(made.code, 0) << made.err;
  const Outcome trained = run(test::one_pass({"train", root / "data", "--out", root / "run", "--threads", "2",
                                              "--quiet", "--set", "solver.batchsize=" + std::to_string(kBatch), "--set",
                                              "solver.batchsize_eval=" + std::to_string(kEvalBatch)}));
  EXPECT_EQ(trained.code, 0) << trained.err;
  Training out{rows, rows / 10, 0, trained.peak_bytes};
  for (const auto& [name, content] : root.tree())
    if (name.ends_with(".safetensors")) out.parameter_bytes += static_cast<int64_t>(content.size());
  return out;
}

TEST(Memory, TrainingTakesWhatTheModelAndAFewBatchesNeed) {
#if TERCEL_ADDRESS_SANITIZER || TERCEL_THREAD_SANITIZER
  GTEST_SKIP() << "sanitizers need additional memory";
#endif
  const Training small = train(10'000), large = train(100'000);
  for (const Training& r : {small, large}) {
    const int64_t formula = 25 * kMegabyte + r.parameter_bytes + 8 * r.test_rows +
                            kBatch * (8 * kA + (kPrefetch + 1) * kR) + kEvalBatch * (6 * kA + (kPrefetch + 1) * kR);
    // Tolerance for other page sizes and libraries than where it was measured.
    const int64_t most = formula + 20 * kMegabyte;
    EXPECT_LE(r.peak_bytes, most) << r.rows << " rows, of which parameters and states " << r.parameter_bytes;
  }
  // The larger dataset is 36 MB longer; only the list of evaluated rows may grow, with a tolerance for thread timing.
  const int64_t growth = large.peak_bytes - small.peak_bytes,
                parameters = large.parameter_bytes - small.parameter_bytes,
                evaluated = 8 * (large.test_rows - small.test_rows);
  EXPECT_LE(growth, parameters + evaluated + 12 * kMegabyte);
}

/** Peak memory of the conversion of a table whose categories repeat after a while. */
int64_t convert_table(int64_t rows, const char* threads) {
  const TemporaryFolder root;
  {
    // In pieces: the memory of this process when it starts the program would count.
    std::ofstream file(root / "t.csv");
    file << "y,c,d\n";
    for (int64_t row = 0; row < rows; ++row) file << row % 2 << ",c" << row % 5000 << ",\"a, " << row % 3000 << "\"\n";
  }
  const Outcome made = run({"convert", "csv", root / "t.csv", root / "data", "--label", "y", "--categorical", "c,d",
                            "--threads", threads, "--quiet"});
  EXPECT_EQ(made.code, 0) << made.err;
  return made.peak_bytes;
}

TEST(Memory, ConversionTakesWhatItsVocabularyAndAFewBlocksNeed) {
#if TERCEL_ADDRESS_SANITIZER || TERCEL_THREAD_SANITIZER
  GTEST_SKIP() << "sanitizers need additional memory";
#endif
  for (const char* threads : {"1", "2"}) {
    const int64_t small = convert_table(50'000, threads), large = convert_table(500'000, threads);
    EXPECT_LE(large - small, 4 * kMegabyte) << "the text is 7 MB longer";
  }
}

/** A graph with a table for each of Criteo's 26 fields, of a type; hashed ones may have so many keys. */
std::string graph_of_tables(const std::string& table_type, int64_t capacity, int64_t width) {
  std::string inputs, layers, names;
  for (int i = 0; i < 26; ++i) {
    const std::string n = std::to_string(i);
    inputs += (i == 0 ? "" : ", ") + std::string(R"({"top": "s)") + n + R"(", "slot_num": 1})";
    layers += R"({"type": "DistributedSlotSparseEmbeddingHash", "bottom": "s)" + n + R"(", "top": "e)" + n +
              R"(", "sparse_embedding_hparam": {"table_type": ")" + table_type + R"(", "embedding_vec_size": )" +
              std::to_string(width) + R"(, "max_vocabulary_size_global": )" + std::to_string(capacity) +
              R"(}}, {"type": "Reshape", "bottom": "e)" + n + R"(", "top": "f)" + n + R"("}, )";
    names += R"("f)" + n + R"(", )";
  }
  return R"({"optimizer": {"type": "Adam"}, "layers": [{"type": "Data", "label": {"top": "label"},
          "dense": {"top": "dense"}, "sparse": [)" +
         inputs + "]}, " + layers + R"({"type": "Concat", "bottom": [)" + names + R"("dense"], "top": "all"},
          {"type": "InnerProduct", "bottom": "all", "top": "logit", "fc_param": {"num_output": 1}},
          {"type": "BinaryCrossEntropyLoss", "bottom": ["logit", "label"], "top": "loss"}]})";
}

TEST(Memory, TablesThatGrowShareLimitedAddresses) {
#if TERCEL_ADDRESS_SANITIZER || TERCEL_THREAD_SANITIZER
  GTEST_SKIP() << "sanitizers take all addresses";
#endif
  const TemporaryFolder root;
  ASSERT_EQ(run({"generate", root / "data", "--rows", "6000", "--quiet"}).code, 0);
  root.put("small.json", graph_of_tables("hashed", 40'000'000, 16));
  // 26 tables of 40 M keys, each of three tensors and an index, of which a few rows are used.
  test::ProgramOptions limits;
  limits.address_bytes = 1'000 * kMegabyte;
  const Outcome trained = run(
      test::one_pass({"train", root / "data", "--model", root / "small.json", "--out", root / "run", "--threads", "1"}),
      limits);
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_NE(trained.out.find("table e25: "), std::string::npos) << trained.out;
}

TEST(Memory, TablesThatDoNotFitAreAnError) {
#if TERCEL_ADDRESS_SANITIZER || TERCEL_THREAD_SANITIZER
  GTEST_SKIP() << "sanitizers take all addresses";
#endif
  const TemporaryFolder root;
  ASSERT_EQ(run({"generate", root / "data", "--rows", "6000", "--quiet"}).code, 0);
  root.put("large.json", graph_of_tables("static", 40'000'000, 4096));
  test::ProgramOptions limits;
  limits.address_bytes = 1'000 * kMegabyte;
  const Outcome trained =
      run({"train", root / "data", "--model", root / "large.json", "--out", root / "run", "--threads", "1"}, limits);
  test::expect_error(trained, 5, {"memory", "\"table_type\": \"hashed\" has rows only for keys that occur"});
  EXPECT_FALSE(std::filesystem::exists(root / "run"));
}

}  // namespace
}  // namespace tercel::cli
