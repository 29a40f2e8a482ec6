// Reading of dataset files: rows/s and bytes/s of batches, compared with plain reading of the same (cached) file.
//
//   reader_bench [ROWS [NAME]]
//
// Label, 13 dense values and 26 one-hot slots, as in Criteo's data. NAME selects the lines of one format ("raw"). Every
// line shows the bytes of the files per second,
// also as a percentage of the rate of plain reading in the same run.
#include <benchmark/benchmark.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/data/batch_reader.h"
#include "tercel/data/formats/norm_format.h"
#include "tercel/data/formats/raw_format.h"
#include "tercel/data/formats/rawasync_format.h"
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

struct Case {
  std::string name;
  std::shared_ptr<const DatasetFormat> format;
  uint64_t empty = 0;       // of every 1000 bags, those without a key, which make the files ragged
  bool logarithms = false;  // dense values are those of counts
};

Dataset make_dataset(const std::string& folder, int64_t rows, const Case& which) {
  Dataset dataset;
  dataset.folder = folder;
  dataset.format = which.format;
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
    for (int64_t i = 0; i < kDense; ++i) {
      const uint32_t bits = random(base + 1 + static_cast<uint64_t>(i)).word[0];
      dense[static_cast<size_t>(i)] =
          which.logarithms ? std::log(static_cast<float>(bits % 1000) + 1.0f) : uniform_f32(bits);
    }
    for (int64_t s = 0; s < kSlots; ++s) {
      const PhiloxBlock block = random(base + 20 + static_cast<uint64_t>(s));
      nnz[static_cast<size_t>(s)] = block.word[1] % 1000 < which.empty ? 0 : 1;
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

void run(const std::string& folder, int64_t rows, const Case& which) {
  const Dataset dataset = make_dataset(folder, rows, which);
  const int64_t bytes = dataset.train.bytes();
  std::vector<char> buffer(1 << 20);
  const Rate plain = best_of(bytes, [&] {
    for (const DataFile& described : dataset.train.files) {
      File file = File::open_read(dataset.path_of(described));
      while (file.read_some(buffer.data(), buffer.size()) > 0) benchmark::DoNotOptimize(buffer.data());
    }
  });
  const char* name = which.name.c_str();
  std::printf("%-18s plain reading                                 %6.2f GB/s\n", name, plain.wall * 1e-9);
  struct Way {
    int64_t batch_size, workers;
    bool shuffle;
  };
  for (const Way& way : {Way{256, 1, false}, Way{4096, 1, false}, Way{65536, 1, false}, Way{4096, 4, false},
                         Way{256, 1, true}, Way{4096, 1, true}, Way{65536, 1, true}, Way{4096, 4, true}}) {
    ReaderOptions options;
    options.batch_size = way.batch_size;
    options.num_workers = way.workers;
    options.shuffle = way.shuffle;
    BatchReader reader(dataset, PartName::Train, options);
    Batch batch;
    const Rate rate = best_of(rows, [&] {
      reader.rewind();
      while (reader.next(batch)) benchmark::DoNotOptimize(batch.rows);
    });
    const double file_rate = rate.wall * static_cast<double>(bytes) / static_cast<double>(rows);
    std::printf(
        "%-18s batch %5lld %-9s %lld workers  %6.2f M rows/s  %6.2f GB/s  %3.0f %% of plain  "
        "%6.2f M rows per cpu second\n",
        name, static_cast<long long>(way.batch_size), way.shuffle ? "shuffled" : "in order",
        static_cast<long long>(way.workers), rate.wall * 1e-6, file_rate * 1e-9, 100 * file_rate / plain.wall,
        rate.cpu * 1e-6);
  }
}

int run_all(int64_t rows, std::string_view wanted) {
  std::string folder = (std::filesystem::temp_directory_path() / "tercel_bench_XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return std::perror("mkdtemp"), 4;
  for (const Case& which : {Case{"norm i64 sum", norm_format({KeyType::I64, CheckMode::Sum})},
                            Case{"norm i64 none", norm_format({KeyType::I64, CheckMode::None})},
                            Case{"norm u32 sum", norm_format({KeyType::U32, CheckMode::Sum})},
                            Case{"norm u32 none", norm_format({KeyType::U32, CheckMode::None})},
                            Case{"norm i64 ragged", norm_format({KeyType::I64, CheckMode::Sum}), 50},
                            Case{"raw float", raw_format({true, SlotOffsets::None})},
                            Case{"raw integer", raw_format({false, SlotOffsets::Add}), 0, true},
                            Case{"rawasync u32", rawasync_format({true, KeyType::U32, SlotOffsets::None})},
                            Case{"rawasync i64", rawasync_format({true, KeyType::I64, SlotOffsets::None})}})
    if (wanted.empty() || which.format->name() == wanted) run(folder, rows, which);
  std::filesystem::remove_all(folder);
  return 0;
}

}  // namespace
}  // namespace tercel::data

int main(int argc, char** argv) {
  const int64_t rows = argc > 1 ? std::atoll(argv[1]) : 1'000'000;
  if (rows <= 0) return std::fprintf(stderr, "usage: reader_bench [ROWS [NAME]]\n"), 2;
  return tercel::data::run_all(rows, argc > 2 ? argv[2] : "");
}
