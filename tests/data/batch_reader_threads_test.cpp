// The threads of a reader do not change results, and end correctly. These suites also run under ThreadSanitizer.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tercel/data/batch_reader.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tercel/util/file_hook.h"
#include "tercel/util/sanitizers_impl.h"
#include "tests/data/norm_data.h"
#include "tests/support/errors.h"

namespace tercel::data::test {
namespace {

struct Case {
  TemporaryFolder folder;
  Schema schema = make_schema(2, {1, 3});
  Rows rows;
  Dataset dataset;

  explicit Case(bool ragged, const std::vector<int64_t>& file_rows = {400, 300, 300}, CheckMode mode = CheckMode::Sum) {
    int64_t count = 0;
    for (const int64_t n : file_rows) count += n;
    rows = make_rows(schema, count, ragged);
    dataset = put_dataset(folder, schema, rows, KeyType::I64, mode, file_rows);
  }
};

ReaderOptions options_of(int64_t batch_size, int64_t num_workers, int64_t prefetch, bool shuffle) {
  ReaderOptions options;
  options.batch_size = batch_size;
  options.num_workers = num_workers;
  options.prefetch = prefetch;
  options.shuffle = shuffle;
  options.shuffle_window = 128;
  options.shuffle_block = 16;
  options.epochs = 3;
  return options;
}

TEST(BatchReaderThreads, NumberOfWorkersAndPrefetchChangeNothing) {
  for (const bool ragged : {false, true}) {
    Case data(ragged);
    for (const bool shuffle : {false, true}) {
      for (const int64_t batch_size : {7, 300, 5000}) {
        const Rows expected = read_all(data.dataset, options_of(batch_size, 1, 1, shuffle));
        EXPECT_EQ(expected.count, 3000);
        for (const int64_t num_workers : {1, 2, 8})  // more than there are files
          for (const int64_t prefetch : {1, 5})
            ASSERT_EQ(read_all(data.dataset, options_of(batch_size, num_workers, prefetch, shuffle)), expected)
                << ragged << shuffle << " " << batch_size << " " << num_workers << " " << prefetch;
      }
    }
  }
}

// ThreadSanitizer does not support fork() with several threads, and the allocator of AddressSanitizer does not release
// in the child the locks that other threads of the parent hold.
#if !TERCEL_THREAD_SANITIZER && !TERCEL_ADDRESS_SANITIZER

TEST(BatchReaderThreads, AForkedChildIsToldThatTheReaderIsItsParents) {
  Case data(false);
  auto reader = std::make_unique<BatchReader>(data.dataset, PartName::Train, options_of(7, 2, 3, false));
  Batch batch;
  ASSERT_TRUE(reader->next(batch));
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    int refused = 0;
    const std::function<void()> uses[] = {[&] { reader->next(batch); }, [&] { reader->seek(reader->position()); },
                                          [&] { reader->ready_within(1); }, [&] { reader->set_end(999); }};
    for (const auto& use : uses) {
      try {
        use();
      } catch (const RuntimeError& error) {
        refused += std::string(error.what()).find("forked") != std::string::npos ? 1 : 0;
      }
    }
    reader.reset();
    const bool another_reads = read_all(data.dataset, options_of(7, 2, 3, false)).count == 3000;
    _exit(refused == 4 && another_reads ? 0 : 3);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << "a signal means that the child waits for threads that do not exist in it";
  EXPECT_TRUE(reader->next(batch));
}

#endif

TEST(BatchReaderThreads, ManyMoreWorkersThanRows) {
  Case data(true, {3});
  ReaderOptions options = options_of(1, 64, 2, false);
  options.epochs = 1;
  EXPECT_EQ(read_all(data.dataset, options), data.rows);
}

// With batches of one row, threads synchronize at every step.
TEST(BatchReaderThreads, RowsOneByOneUnderContention) {
  Case data(false, {500});
  for (const bool shuffle : {false, true}) {
    ReaderOptions options = options_of(1, 4, 3, shuffle);
    options.epochs = 4;
    options.shuffle_window = 4;
    options.shuffle_block = 2;
    const Rows rows = read_all(data.dataset, options);
    EXPECT_EQ(rows.count, 2000);
    options.num_workers = 1;
    EXPECT_EQ(rows, read_all(data.dataset, options));
  }
}

TEST(BatchReaderThreads, ReadersEndAtAnyTime) {
  Case data(true);
  for (int64_t taken = 0; taken < 40; ++taken) {
    ReaderOptions options = options_of(16, 1 + taken % 4, 1 + taken % 3, taken % 2 == 0);
    options.epochs = 0;
    BatchReader reader(data.dataset, PartName::Train, options);
    Batch batch;
    for (int64_t i = 0; i < taken; ++i) ASSERT_TRUE(reader.next(batch));
  }
}

TEST(BatchReaderThreads, SeekingRestartsAnywhere) {
  Case data(true);
  for (const bool shuffle : {false, true}) {
    const ReaderOptions options = options_of(50, 3, 2, shuffle);
    BatchReader reader(data.dataset, PartName::Train, options);
    std::vector<Rows> batches;
    std::vector<ReaderPosition> positions;
    Batch batch;
    for (;;) {
      const ReaderPosition position = reader.position();
      if (!reader.next(batch)) break;
      positions.push_back(position);
      batches.emplace_back();
      append_batch(batches.back(), batch, data.schema);
    }
    ASSERT_EQ(batches.size(), 60u);
    for (size_t i = 0; i < 60; ++i) {
      const size_t target = i * 37 % 60;
      reader.seek(positions[target]);
      ASSERT_TRUE(reader.next(batch));
      Rows rows;
      append_batch(rows, batch, data.schema);
      ASSERT_EQ(rows, batches[target]);
    }
  }
}

// A batch is correct or an error, for every number of workers; the error is permanent.
TEST(BatchReaderThreads, ErrorsComeInThePlaceOfTheirBatch) {
  for (const bool ragged : {false, true}) {
    for (const int64_t bad_row : {0, 399, 400, 555, 999}) {
      Case data(ragged);
      const int64_t file = bad_row < 400 ? 0 : bad_row < 700 ? 1 : 2;
      const int64_t record = bad_row - (file == 0 ? 0 : file == 1 ? 400 : 700);
      const std::vector<std::string> records =
          encode_records(data.schema, data.rows, KeyType::I64, CheckMode::Sum, bad_row - record, bad_row);
      size_t offset = 69;
      for (const std::string& r : records) offset += r.size();
      const std::string name = std::to_string(file) + ".data";
      std::string content = data.folder.get(name);
      content[offset + 10] = static_cast<char>(content[offset + 10] ^ 4);
      data.folder.put(name, content);
      std::string first_message;
      for (const int64_t num_workers : {1, 2, 5}) {
        BatchReader reader(data.dataset, PartName::Train, options_of(64, num_workers, 3, false));
        Rows rows;
        Batch batch;
        std::string message;
        try {
          while (reader.next(batch)) append_batch(rows, batch, data.schema);
        } catch (const DataError& error) {
          message = error.what();
        }
        EXPECT_EQ(rows.count, bad_row / 64 * 64);
        EXPECT_NE(message.find(name + ": record " + std::to_string(record) + ": byte "), std::string::npos) << message;
        if (first_message.empty()) first_message = message;
        EXPECT_EQ(message, first_message);
        TERCEL_EXPECT_THROW(reader.next(batch), DataError, message);
        EXPECT_EQ(reader.position().row, bad_row / 64 * 64);
        // Another part of the data can still be read.
        reader.rewind();
        if (bad_row >= 64) {
          ASSERT_TRUE(reader.next(batch));
          EXPECT_EQ(batch.row, 0);
        }
      }
    }
  }
}

TEST(BatchReaderThreads, ErrorsOfShuffledRowsDoNotDependOnWorkers) {
  for (const bool ragged : {false, true}) {
    Case data(ragged);
    std::string content = data.folder.get("1.data");
    content[content.size() / 2] = static_cast<char>(content[content.size() / 2] ^ 4);
    data.folder.put("1.data", content);
    std::string first_message;
    int64_t first_rows = -1;
    for (const int64_t num_workers : {1, 2, 5}) {
      BatchReader reader(data.dataset, PartName::Train, options_of(64, num_workers, 2, true));
      Batch batch;
      int64_t rows = 0;
      std::string message;
      try {
        while (reader.next(batch)) rows += batch.rows;
      } catch (const DataError& error) {
        message = error.what();
      }
      EXPECT_NE(message.find("1.data: record "), std::string::npos) << message;
      if (first_rows < 0) first_rows = rows;
      if (first_message.empty()) first_message = message;
      EXPECT_EQ(rows, first_rows);
      EXPECT_EQ(message, first_message);
    }
  }
}

/** Runs `change` when the n-th read of a reader's life happens. */
class ChangeWhileReading : public FileHook {
 public:
  template <class Change>
  ChangeWhileReading(int64_t nth, const Change& change) : nth_(nth), change_(change), scope_(*this) {}

  int before(const FileCall& call, size_t&) override {
    if (call.op == FileOp::Read && ++reads_ == nth_) change_();
    return 0;
  }

 private:
  int64_t nth_;
  std::function<void()> change_;
  std::atomic<int64_t> reads_{0};
  ScopedFileHook scope_;
};

TEST(BatchReaderThreads, FilesThatChangeWhileTheyAreReadAreNoticed) {
  for (const bool ragged : {false, true}) {
    for (const bool shuffle : {false, true}) {
      for (const int kind : {0, 1, 2, 3}) {
        Case data(ragged, {400, 300, 300}, CheckMode::None);
        const ReaderOptions options = options_of(64, 2, 2, shuffle);
        BatchReader reader(data.dataset, PartName::Train, options);
        const std::string path = data.folder / "1.data";
        const std::string content = data.folder.get("1.data");
        const ChangeWhileReading hook(2, [&] {
          if (kind == 0) ::unlink(path.c_str());
          if (kind == 1) data.folder.put("1.data", content + "more");
          if (kind == 2) data.folder.put("1.data", content.substr(0, content.size() / 2));
          if (kind == 3) {
            // The same content under the same name, in another file.
            data.folder.put("new", content);
            ::rename((data.folder / "new").c_str(), path.c_str());
          }
        });
        std::string message;
        try {
          read_rest(reader);
        } catch (const DataError& error) {
          message = error.what();
        } catch (const IoError& error) {
          message = error.what();  // it was not open yet
        }
        EXPECT_NE(message.find("1.data: "), std::string::npos) << ragged << shuffle << kind << message;
        const char* const found[] = {"removed", "bytes instead of", "bytes instead of", "replaced"};
        EXPECT_TRUE(message.find(found[kind]) != std::string::npos ||
                    (kind == 0 && message.find("open: ") != std::string::npos))
            << message;
      }
    }
  }
}

// A call that fails in a reader's thread is an error in the consumer; for every call, nothing hangs or leaks.
TEST(BatchReaderThreads, FailingCallsReachTheConsumer) {
  for (const bool ragged : {false, true}) {
    Case data(ragged);
    for (int64_t nth = 1; nth < 60; ++nth) {
      int64_t rows = 0;
      bool failed = false;
      {
        const ScopedFault fault({FileOp::Any, nth, FaultKind::Error, 5});
        try {
          BatchReader reader(data.dataset, PartName::Train, options_of(100, 2, 2, nth % 2 == 0));
          Batch batch;
          while (reader.next(batch)) rows += batch.rows;
        } catch (const Error& error) {
          failed = true;
          EXPECT_TRUE(error.kind() == "IoError" || error.kind() == "DataError") << error.what();
        }
        // Closing a file that was read may fail harmlessly.
        EXPECT_TRUE(failed || rows == 3000) << nth;
      }
    }
  }
}

TEST(BatchReaderThreads, ShortReadsAreContinued) {
  Case data(true);
  for (int64_t nth = 1; nth < 30; ++nth) {
    const ScopedFault fault({FileOp::Read, nth, FaultKind::Short});
    ReaderOptions options = options_of(100, 2, 2, false);
    options.epochs = 1;
    EXPECT_EQ(read_all(data.dataset, options), data.rows);
  }
}

/** Makes all reads except the first ones slow. */
class SlowReads : public FileHook {
 public:
  SlowReads(int64_t fast, std::chrono::milliseconds time) : fast_(fast), time_(time), scope_(*this) {}
  int before(const FileCall& call, size_t&) override {
    if (call.op == FileOp::Read && ++reads_ > fast_) std::this_thread::sleep_for(time_);
    return 0;
  }

 private:
  int64_t fast_;
  std::chrono::milliseconds time_;
  std::atomic<int64_t> reads_{0};
  ScopedFileHook scope_;
};

// The second window has 500 blocks, each of which takes 50 ms to read.
TEST(BatchReaderThreads, EndingDoesNotWaitForAWholeWindow) {
  Case data(false, {1000});
  ReaderOptions options = options_of(10, 1, 1, true);
  options.shuffle_window = 500;
  options.shuffle_block = 1;
  const SlowReads hook(520, std::chrono::milliseconds(50));
  const auto start = std::chrono::steady_clock::now();
  {
    BatchReader reader(data.dataset, PartName::Train, options);
    Batch batch;
    ASSERT_TRUE(reader.next(batch));
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST(BatchReaderThreads, WaitsEndWhenTheyShould) {
  Case data(false, {1000});
  ReaderOptions options = options_of(500, 1, 2, true);
  options.epochs = 1;
  options.shuffle_window = 1000;
  options.shuffle_block = 500;
  const SlowReads hook(0, std::chrono::milliseconds(300));
  BatchReader reader(data.dataset, PartName::Train, options);
  EXPECT_FALSE(reader.ready_within(10)) << "a read takes 300 ms";
  EXPECT_TRUE(reader.ready_within(60'000));
  EXPECT_EQ(reader.position().row, 0) << "waiting takes no batch";
  Batch batch;
  ASSERT_TRUE(reader.next(batch));
  EXPECT_TRUE(reader.ready_within(60'000));
  ASSERT_TRUE(reader.next(batch));
  EXPECT_EQ(batch.row, 500);
  EXPECT_TRUE(reader.ready_within(0)) << "after the last batch there is nothing to wait for";
  EXPECT_FALSE(reader.next(batch));
}

TEST(BatchReaderThreads, AnErrorIsReadyLikeABatch) {
  Case data(false);
  BatchReader reader(data.dataset, PartName::Train, options_of(100, 2, 2, false));
  const ScopedFault fault({FileOp::Read, 1, FaultKind::Error, 5, true});
  Batch batch;
  for (int call = 0; call < 2; ++call) {
    EXPECT_TRUE(reader.ready_within(60'000));
    EXPECT_THROW(reader.next(batch), IoError);
  }
}

#if !TERCEL_ADDRESS_SANITIZER && !TERCEL_THREAD_SANITIZER  // which need the address space

TEST(BatchReader, ThreadsThatTheSystemDoesNotGrantAreALackOfMemory) {
  Case data(false);
  BatchReader reader(data.dataset, PartName::Train, options_of(10, 1024, 1, false));
  const pid_t child = ::fork();
  if (child == 0) {
    const auto pages = std::stoll(read_system_file("/proc/self/statm"));
    const auto most = static_cast<rlim_t>(pages * ::sysconf(_SC_PAGESIZE) + (int64_t{64} << 20));
    const struct rlimit limit = {most, most};
    ::setrlimit(RLIMIT_AS, &limit);
    Batch batch;
    const std::string text = tercel::test::message_of<OutOfMemoryError>([&] { static_cast<void>(reader.next(batch)); });
    ::_exit(text.starts_with("reader: cannot start 1025 threads: ") ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

#endif

}  // namespace
}  // namespace tercel::data::test
