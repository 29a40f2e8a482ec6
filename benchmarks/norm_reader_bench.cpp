// Reading of Norm files: rows/s and bytes/s of batches, compared with plain reading of the same (cached) file.
//
//   norm_reader_bench [ROWS]
//
// Label, 13 dense values and 26 one-hot slots, as in Criteo's data. Every line shows the bytes of the files per second,
// also as a percentage of the rate of plain reading in the same run.
#include <benchmark/benchmark.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tercel/data/batch_reader.h"
#include "tercel/data/formats/norm_format.h"
#include "tercel/util/file.h"
#include "tercel/util/philox.h"

namespace tercel::data {
namespace {

constexpr int kRepeats = 5;
constexpr int64_t kSlots = 26;
constexpr int64_t kDense = 13;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// `empty` of every 1000 bags have no key, which makes the files ragged.
Dataset make_dataset(const std::string& folder, int64_t rows, KeyType key_type, CheckMode check_mode, uint64_t empty) {
  Dataset dataset;
  dataset.folder = folder;
  dataset.format = norm_format({key_type, check_mode});
  dataset.schema.dense_dim = kDense;
  for (int64_t s = 0; s < kSlots; ++s) dataset.schema.slots.push_back({"C" + std::to_string(s), 100000, 0, 1});
  dataset.schema.set_consecutive_keys();
  WriterOptions options;
  options.folder = folder;
  const std::unique_ptr<DatasetWriter> writer = dataset.format->create_writer(dataset.schema, options);
  const Philox random{42, 0};
  std::vector<float> dense(kDense);
  std::vector<int32_t> nnz(kSlots);
  std::vector<int64_t> keys;
  for (int64_t row = 0; row < rows; ++row) {
    keys.clear();
    const auto base = static_cast<uint64_t>(row) * 64;
    const float label = random(base).word[0] % 4 == 0 ? 1.0f : 0.0f;
    for (int64_t i = 0; i < kDense; ++i)
      dense[static_cast<size_t>(i)] = uniform_f32(random(base + 1 + static_cast<uint64_t>(i)).word[0]);
    for (int64_t s = 0; s < kSlots; ++s) {
      const PhiloxBlock block = random(base + 20 + static_cast<uint64_t>(s));
      nnz[static_cast<size_t>(s)] = block.word[1] % 1000 < empty ? 0 : 1;
      if (nnz[static_cast<size_t>(s)] == 1) keys.push_back(s * 100000 + block.word[0] % 100000);
    }
    writer->write({1, &label, dense.data(), nnz.data(), keys.data()});
  }
  dataset.train = writer->finish();
  return dataset;
}

struct Rate {
  double wall = 0, cpu = 0;  // best, per second
};

template <class Body>
Rate best_of(int64_t amount, Body&& body) {
  Rate best;
  for (int i = 0; i < kRepeats; ++i) {
    const double cpu = cpu_seconds();
    const double start = now();
    body();
    best.wall = std::max(best.wall, static_cast<double>(amount) / (now() - start));
    best.cpu = std::max(best.cpu, static_cast<double>(amount) / (cpu_seconds() - cpu));
  }
  return best;
}

void run(const std::string& folder, const char* name, int64_t rows, KeyType key_type, CheckMode check_mode,
         uint64_t empty) {
  const Dataset dataset = make_dataset(folder, rows, key_type, check_mode, empty);
  const int64_t bytes = dataset.train.bytes();
  std::vector<char> buffer(1 << 20);
  const Rate plain = best_of(bytes, [&] {
    for (const DataFile& described : dataset.train.files) {
      File file = File::open_read(dataset.path_of(described));
      while (file.read_some(buffer.data(), buffer.size()) > 0) benchmark::DoNotOptimize(buffer.data());
    }
  });
  std::printf("%-12s plain reading                       %6.2f GB/s\n", name, plain.wall * 1e-9);
  for (const bool shuffle : {false, true}) {
    for (const int64_t batch_size : {256, 4096, 65536}) {
      ReaderOptions options;
      options.batch_size = batch_size;
      options.shuffle = shuffle;
      BatchReader reader(dataset, PartName::Train, options);
      Batch batch;
      const Rate rate = best_of(rows, [&] {
        reader.rewind();
        while (reader.next(batch)) benchmark::DoNotOptimize(batch.rows);
      });
      const double file_rate = rate.wall * static_cast<double>(bytes) / static_cast<double>(rows);
      std::printf("%-12s batch %5lld %-9s %6.2f M rows/s  %6.2f GB/s  %3.0f %% of plain  %6.2f M rows per cpu second\n",
                  name, static_cast<long long>(batch_size), shuffle ? "shuffled" : "in order", rate.wall * 1e-6,
                  file_rate * 1e-9, 100 * file_rate / plain.wall, rate.cpu * 1e-6);
    }
  }
}

int run_all(int64_t rows) {
  std::string folder = (std::filesystem::temp_directory_path() / "tercel_bench_XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return std::perror("mkdtemp"), 4;
  run(folder, "i64 sum", rows, KeyType::I64, CheckMode::Sum, 0);
  run(folder, "i64 none", rows, KeyType::I64, CheckMode::None, 0);
  run(folder, "u32 sum", rows, KeyType::U32, CheckMode::Sum, 0);
  run(folder, "u32 none", rows, KeyType::U32, CheckMode::None, 0);
  run(folder, "i64 ragged", rows, KeyType::I64, CheckMode::Sum, 50);
  std::filesystem::remove_all(folder);
  return 0;
}

}  // namespace
}  // namespace tercel::data

int main(int argc, char** argv) {
  const int64_t rows = argc > 1 ? std::atoll(argv[1]) : 1'000'000;
  if (rows <= 0) return std::fprintf(stderr, "usage: norm_reader_bench [ROWS]\n"), 2;
  return tercel::data::run_all(rows);
}
