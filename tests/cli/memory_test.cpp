// How much memory training takes: it does not grow with the data.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "tests/cli/program.h"
#include "tests/util/temporary_folder.h"

namespace tercel::cli {
namespace {

using test::Outcome;
using test::run;
using test::TemporaryFolder;

constexpr int64_t kMegabyte = 1'000'000;
constexpr int64_t kBatch = 2048;
/** Of Norm with 13 dense values and 26 slots of one key: less than that. */
constexpr int64_t kRowBytes = 400;
/** Floats of a row in DLRM's preset: dense, bottom, embeddings, pairs, top; and as many for their gradients. */
constexpr int64_t kRowFloats = 2 * (13 + (256 + 128 + 16) + 26 * 16 + (27 * 26 / 2 + 16 + 1) + (256 + 128 + 1));

struct Training {
  int64_t rows = 0, test_rows = 0, parameter_bytes = 0, peak_bytes = 0;
};

/** Generates, trains DLRM with one checkpoint, and says what that took. */
Training train(int64_t rows) {
  const TemporaryFolder root;
  const Outcome made = run({"generate", root / "data", "--rows", std::to_string(rows), "--seed", "1"});
  EXPECT_EQ(made.code, 0) << made.err;
  const Outcome trained = run({"train", root / "data", "--out", root / "run", "--threads", "2", "--quiet", "--set",
                               "solver.batchsize=" + std::to_string(kBatch), "--set", "solver.batchsize_eval=1000"});
  EXPECT_EQ(trained.code, 0) << trained.err;
  Training out{rows, rows / 10, 0, trained.peak_bytes};
  for (const auto& [name, content] : root.tree())
    if (name.ends_with(".safetensors")) out.parameter_bytes += static_cast<int64_t>(content.size());
  return out;
}

TEST(Memory, TrainingTakesWhatTheModelAndAFewBatchesNeed) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers keep memory of their own";
#endif
  const Training small = train(10'000), large = train(100'000);
  for (const Training& r : {small, large}) {
    const int64_t most =
        r.parameter_bytes + kBatch * kRowFloats * 4 + 3 * kBatch * kRowBytes + 8 * r.test_rows + 150 * kMegabyte;
    EXPECT_LE(r.peak_bytes, most) << r.rows << " rows, of which parameters and states " << r.parameter_bytes;
  }
  // The larger dataset is 36 MB longer; what may grow is the list of evaluated rows, and what the threads happen to do.
  const int64_t growth = large.peak_bytes - small.peak_bytes,
                parameters = large.parameter_bytes - small.parameter_bytes,
                evaluated = 8 * (large.test_rows - small.test_rows);
  EXPECT_LE(growth, parameters + evaluated + 12 * kMegabyte);
}

}  // namespace
}  // namespace tercel::cli
