// Small checkpoints for tests, with the expected content of each step.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tercel/recsys/checkpoint.h"
#include "tests/support/tensors.h"
#include "tests/util/temporary_folder.h"

namespace tercel::recsys::test {

using tercel::test::make;
using tercel::test::TemporaryFolder;
using tercel::test::values_of;
using Names = std::vector<std::string>;

constexpr const char* kFingerprint = "0123456789abcdef";

/** The content of a checkpoint: every element is the step. */
inline std::vector<CheckpointFile> files_of(int64_t step) {
  const auto value = static_cast<double>(step);
  return {{"dense", {{"a", make({2}, kFloat32, {value, value})}, {"b", make({1, 3}, kFloat32, {value, value, value})}}},
          {"table-0", {{"t", make({2, 2}, kFloat32, {value, value, value, value})}}}};
}

inline RunIdentity identity() {
  RunIdentity run;
  run.config.model_name = "small";
  run.config.layers = R"([{"type": "Data"}])";
  run.data.schema.slots = {{"slot", 4, 0, 1}};
  run.data.parts = {{data::PartName::Train, {{"train/0", 10, 2, "00112233445566aa"}}}};
  run.instruction_set = "avx2";
  run.tercel_version = "0.0.9";
  return run;
}

inline Evaluation evaluation_of(double auc, const std::string& rows = "0011223344556677") {
  return {rows, {{"auc", auc}, {"log_loss", 1 - auc}}};
}

inline void save(CheckpointStore& store, int64_t step, double metric = -1) {
  store.save({step, kFingerprint}, identity(), "{\"step\":" + std::to_string(step) + "}", files_of(step));
  if (metric >= 0) store.note_evaluation(step, evaluation_of(metric));
}

/** The best checkpoint of a folder. */
inline std::string best(const std::string& folder) { return rank_checkpoints(folder).at(0); }

/** Opens a checkpoint and checks its content for its step; returns the step. */
inline int64_t verify(const std::string& folder) {
  const Checkpoint checkpoint(folder);
  const int64_t step = checkpoint.info().step;
  EXPECT_EQ(checkpoint.state(), "{\"step\":" + std::to_string(step) + "}");
  checkpoint.check_fingerprint(kFingerprint);
  const std::vector<CheckpointFile> found = files_of(0), expected = files_of(step);
  for (size_t f = 0; f < found.size(); ++f) {
    checkpoint.read(found[f]);
    for (size_t t = 0; t < found[f].tensors.size(); ++t)
      EXPECT_EQ(values_of(found[f].tensors[t].tensor), values_of(expected[f].tensors[t].tensor));
  }
  return step;
}

inline Names names_in(const std::string& folder) {
  Names names;
  if (std::filesystem::exists(folder))
    for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

inline std::string name_of(int64_t step) {
  const std::string digits = std::to_string(step);
  return "step-" + std::string(12 - digits.size(), '0') + digits;
}

}  // namespace tercel::recsys::test
