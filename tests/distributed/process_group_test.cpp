// Groups whose ranks are threads: every collective against what it means, with any sizes.
#include "tercel/distributed/process_group.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tercel/core/tensor.h"
#include "tercel/distributed/collectives_impl.h"
#include "tercel/distributed/error.h"
#include "tests/distributed/thread_ranks.h"
#include "tests/support/errors.h"

namespace tercel::distributed {
namespace {

using tercel::test::message_of;
using test::run_ranks;
using Numbers = std::vector<float>;

Tensor tensor_of(const Numbers& values) {
  Tensor x = empty({static_cast<int64_t>(values.size())}, kFloat32);
  std::copy(values.begin(), values.end(), x.data<float>());
  return x;
}

Numbers numbers(const Tensor& x) { return {x.data<float>(), x.data<float>() + x.numel()}; }

/** Element i of rank r: sums of these depend on the order of the addends. */
float value(int64_t r, int64_t i) {
  return std::ldexp(1.0F + static_cast<float>((i * 37 + r * 11) % 97) / 97, static_cast<int>((r * 7 + i) % 20));
}
Numbers values_of(int64_t r, int64_t count) {
  Numbers values;
  for (int64_t i = 0; i < count; ++i) values.push_back(value(r, i));
  return values;
}
/** The sum in the order of the ranks. */
Numbers sums(int64_t size, int64_t count) {
  Numbers sum = values_of(0, count);
  for (int64_t r = 1; r < size; ++r)
    for (int64_t i = 0; i < count; ++i) sum[static_cast<size_t>(i)] += value(r, i);
  return sum;
}

/** Goes through the phases of a collective. */
void complete(Exchange& exchange, const std::function<bool(int64_t)>& begin) {
  for (int64_t phase = 0; begin(phase); ++phase)
    while (!exchange.poll()) std::this_thread::sleep_for(std::chrono::microseconds(20));
}

const ReduceFunction& add() {
  static const ReduceFunction function([](void* out, Span<const void*> parts, int64_t count) {
    auto* const to = static_cast<float*>(out);
    for (int64_t i = 0; i < count; ++i) {
      float sum = static_cast<const float*>(parts[0])[i];
      for (size_t p = 1; p < parts.size(); ++p) sum += static_cast<const float*>(parts[p])[i];
      to[i] = sum;
    }
  });
  return function;
}

class CollectivesOnThreads : public ::testing::TestWithParam<int64_t> {};

TEST_P(CollectivesOnThreads, SumsAreInTheOrderOfTheRanks) {
  const int64_t size = GetParam();
  // Nothing, less than a rank each, few bytes, and so many that parts of them travel.
  for (const int64_t count : {0, 1, 3, 1000, 100'003}) {
    run_ranks(size, [&](ProcessGroup& group) {
      const Tensor x = tensor_of(values_of(group.rank(), count));
      group.all_reduce(x, add()).wait();
      EXPECT_EQ(numbers(x), sums(size, count)) << "rank " << group.rank() << " of " << count;
      const Tensor all = tensor_of(values_of(group.rank(), count * size)), part = tensor_of(Numbers(count));
      group.reduce_scatter(part, all, add()).wait();
      const Numbers expected = sums(size, count * size);
      const auto begin = expected.begin() + group.rank() * count;
      EXPECT_EQ(numbers(part), Numbers(begin, begin + count));
    });
  }
}

TEST_P(CollectivesOnThreads, ValuesOfOneRankReachAll) {
  const int64_t size = GetParam();
  for (int64_t root = 0; root < size; ++root)
    run_ranks(size, [&](ProcessGroup& group) {
      const Tensor x = tensor_of(values_of(group.rank(), 1000));
      group.broadcast(x, root).wait();
      EXPECT_EQ(numbers(x), values_of(root, 1000));
      group.barrier().wait();
    });
}

TEST_P(CollectivesOnThreads, PartsOfAnySizeAreGatheredAndExchanged) {
  const int64_t size = GetParam();
  // From rank r to rank q: some none.
  const auto count = [](int64_t r, int64_t q) { return (r * 5 + q * 3) % 4 * 100; };
  run_ranks(size, [&](ProcessGroup& group) {
    const int64_t me = group.rank();
    std::vector<int64_t> to, from, own;
    Numbers sent, expected, all;
    for (int64_t q = 0; q < size; ++q) {
      to.push_back(count(me, q));
      from.push_back(count(q, me));
      own.push_back(count(q, q));
      for (int64_t i = 0; i < to.back(); ++i) sent.push_back(value(me, q * 1000 + i));
      for (int64_t i = 0; i < from.back(); ++i) expected.push_back(value(q, me * 1000 + i));
      const Numbers of_rank = values_of(q, own.back());
      all.insert(all.end(), of_rank.begin(), of_rank.end());
    }
    const Tensor out = tensor_of(Numbers(expected.size()));
    group.all_to_all(out, tensor_of(sent), from, to).wait();
    EXPECT_EQ(numbers(out), expected);
    const Tensor gathered = tensor_of(Numbers(all.size()));
    group.all_gather(gathered, tensor_of(values_of(me, own[static_cast<size_t>(me)])), own).wait();
    EXPECT_EQ(numbers(gathered), all);

    const Tensor equal = tensor_of(values_of(me, 3 * size)), swapped = tensor_of(Numbers(3 * size));
    group.all_to_all(swapped, equal).wait();
    for (int64_t q = 0; q < size; ++q)
      for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(swapped.data<float>()[q * 3 + i], value(q, me * 3 + i));
    const Tensor stacked = tensor_of(Numbers(2 * size));
    group.all_gather(stacked, tensor_of({static_cast<float>(me), 7})).wait();
    for (int64_t q = 0; q < size; ++q) EXPECT_EQ(stacked.data<float>()[2 * q], static_cast<float>(q));
  });
}

TEST_P(CollectivesOnThreads, CallsAreWorkedOnInTheirOrder) {
  run_ranks(GetParam(), [](ProcessGroup& group) {
    const auto size = static_cast<float>(group.size());
    const Tensor x = tensor_of(Numbers(50'000, 1)), y = tensor_of(Numbers(10, 1));
    std::vector<Work> works;
    for (int i = 0; i < 5; ++i) {
      works.push_back(group.all_reduce(x, add()));
      works.push_back(group.all_reduce(y, add()));
    }
    works.back().wait();
    EXPECT_TRUE(works.front().is_done());
    EXPECT_TRUE(works.front().wait_for(0));
    EXPECT_EQ(x.data<float>()[49'999], std::pow(size, 5.0F));
    EXPECT_EQ(y.data<float>()[9], std::pow(size, 5.0F));
  });
}

TEST_P(CollectivesOnThreads, SeveralThreadsMayWait) {
  run_ranks(GetParam(), [](ProcessGroup& group) {
    constexpr int64_t kCalls = 40;
    std::vector<Tensor> all;
    std::vector<Work> works;
    for (int64_t i = 0; i < kCalls; ++i) {
      all.push_back(tensor_of({static_cast<float>(i), 1}));
      works.push_back(group.all_reduce(all.back(), add()));
    }
    std::vector<std::thread> threads;
    for (size_t t = 0; t < 3; ++t)
      threads.emplace_back([&, t] {
        for (size_t i = t; i < works.size(); i += 3) works[works.size() - 1 - i].wait();
      });
    for (std::thread& thread : threads) thread.join();
    const auto ranks = static_cast<float>(group.size());
    for (int64_t i = 0; i < kCalls; ++i)
      EXPECT_EQ(numbers(all[static_cast<size_t>(i)]), (Numbers{static_cast<float>(i) * ranks, ranks}));
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, CollectivesOnThreads, ::testing::Values(1, 2, 3, 4, 7));

TEST(ProcessGroup, ACallerWorksOnItsCalls) {
  const std::unique_ptr<ProcessGroup> group = single_group();
  int64_t by_caller = 0;
  const ReduceFunction copy(
      [&, caller = std::this_thread::get_id()](void* out, Span<const void*> parts, int64_t count) {
        if (std::this_thread::get_id() == caller) ++by_caller;
        std::memcpy(out, parts[0], static_cast<size_t>(count) * sizeof(float));
      });
  for (int i = 0; i < 100; ++i) {
    const Tensor out = tensor_of({0});
    group->await([&] { return group->reduce_scatter(out, tensor_of({7}), copy); });
    EXPECT_EQ(numbers(out), Numbers{7});
  }
  EXPECT_GT(by_caller, 50);  // the group's thread has the turn now and then
  group->close();
}

TEST(ProcessGroup, RefusesWrongArguments) {
  const std::unique_ptr<ProcessGroup> group = single_group();
  EXPECT_EQ(group->backend(), "single");
  EXPECT_EQ(group->rank(), 0);
  EXPECT_EQ(group->size(), 1);
  const Tensor x = tensor_of({1, 2, 3, 4}), out = tensor_of({0, 0, 0});
  const auto refused = [](auto&& f, const std::string& expected) { EXPECT_EQ(message_of<ValueError>(f), expected); };
  refused([&] { static_cast<void>(group->broadcast(x, 1)); }, "broadcast: expected a rank from 0 to 0, found 1");
  refused([&] { static_cast<void>(group->all_gather(out, x)); }, "all_gather: expected counts from 0 to 3, found 4");
  refused([&] { static_cast<void>(group->all_gather(x, out, {4})); }, "all_gather: expected 4 elements in x, found 3");
  refused(
      [&] {
        static_cast<void>(group->all_gather(x, out, {2, 2}));
      },
      "all_gather: expected 1 counts, one for each rank, found 2");
  refused([&] { static_cast<void>(group->reduce_scatter(out, x, add())); },
          "reduce_scatter: expected 3 elements in x, found 4");
  refused([&] { static_cast<void>(group->all_to_all(out, x)); }, "all_to_all: expected 4 elements in out, found 3");
  refused([&] { static_cast<void>(group->all_to_all(x, x)); }, "all_to_all: expected out and x to be different memory");
  refused([&] { static_cast<void>(group->all_reduce({}, add())); },
          "all_reduce: expected x to be a contiguous tensor on the CPU");
  refused([&] { static_cast<void>(group->all_gather(empty({4}, kInt64), x)); },
          "all_gather: expected tensors of one dtype, found int64 and float32");
  group->close();
  EXPECT_EQ(message_of<DistributedError>([&] { static_cast<void>(group->barrier()); }), "barrier: the group is closed");
  EXPECT_EQ(message_of<ConfigError>([] {
              ProcessGroup([]() -> std::unique_ptr<Transport> { throw DistributedError("unused"); },
                           {.silence_seconds = 1});
            }),
            "[distributed] option 'silence_seconds': expected at least 3, found 1");
}

TEST(ProcessGroup, RefusesATensorWhoseStorageIsTooSmall) {
  const std::unique_ptr<ProcessGroup> group = single_group();
  const Tensor x = tensor_of({1, 2, 3, 4});
  x.storage()->resize_bytes(8);
  EXPECT_EQ(message_of<ValueError>([&] { static_cast<void>(group->broadcast(x, 0)); }),
            "broadcast: expected a storage of at least 16 bytes of x, found 8");
}

TEST(ProcessGroup, ErrorsOfItsThreadReachTheCaller) {
  EXPECT_EQ(message_of<DistributedError>(
                [] { ProcessGroup([]() -> std::unique_ptr<Transport> { throw DistributedError("no network"); }); }),
            "no network");
  const std::unique_ptr<ProcessGroup> group = single_group();
  // One rank has nothing to reduce in all_reduce.
  const ReduceFunction failing([](void*, Span<const void*>, int64_t) { throw ValueError("not these"); });
  const Tensor x = tensor_of({1});
  const Work failed = group->reduce_scatter(tensor_of({0}), x, failing);
  EXPECT_EQ(message_of<ValueError>([&] { failed.wait(); }), "not these");
  EXPECT_EQ(message_of<ValueError>([&] { group->all_reduce(x, add()).wait(); }), "not these")
      << "the ranks may be out of step";
}

TEST(ProcessGroup, OtherSizesOnAnotherRankAreErrors) {
  const auto different = [](Transport& transport) {
    Exchange exchange(transport, {});
    exchange.begin("all_gather", "all_gather");
    std::vector<char> out(20);
    const PartBounds bounds = transport.rank() == 0 ? PartBounds{0, 4, 8} : PartBounds{0, 4, 9};
    complete(exchange, [&](int64_t phase) { return all_gather(exchange, phase, out.data(), bounds, out.data()); });
  };
  EXPECT_EQ(message_of<DistributedError>([&] { test::run_transports(2, different); }),
            "all_gather: rank 1: expected 4 bytes, found 5");
}

TEST(ProcessGroup, ARankThatDoesNotComeIsNamed) {
  std::atomic<int> ready = 0;
  const auto late = [&](Transport& transport) {
    if (transport.rank() > 1) return;
    GroupOptions options;
    options.timeout_seconds = 0.5;
    Exchange exchange(transport, options);
    for (++ready; ready < 2;) std::this_thread::yield();  // these two come in time on a busy machine, too
    exchange.begin("all_reduce", "all_reduce");
    float x = 1;
    complete(exchange, [&](int64_t phase) { return all_reduce(exchange, phase, &x, {1, 4, add()}); });
  };
  EXPECT_EQ(message_of<DistributedError>([&] { test::run_transports(4, late); }),
            "all_reduce: expected all ranks within 0.5 s, but ranks [2, 3] have not answered");
}

TEST(ProcessGroup, OtherCallsOfAnotherRankAreErrors) {
  const std::pair<std::string, std::string> calls[] = {{"all_reduce(float32)", "close"},
                                                       {"broadcast(int64, root 0)", "broadcast(int64, root 1)"}};
  for (const auto& [first, second] : calls) {
    std::atomic<bool> is_found = false;
    const auto other = [&, &first = first, &second = second](Transport& transport) {
      Exchange exchange(transport, {});
      exchange.begin("barrier", "barrier");
      complete(exchange, [&](int64_t phase) { return barrier(exchange, phase); });
      try {
        exchange.begin("call", transport.rank() == 0 ? first : second);
        for (int i = 0; i < 3000 && !is_found; ++i) {
          exchange.watch();
          std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
      } catch (...) {
        is_found = true;
        throw;
      }
    };
    // Whichever rank hears of it first.
    const std::string message = message_of<DistributedError>([&] { test::run_transports(2, other); }),
                      end = ": all ranks must make the same calls";
    EXPECT_TRUE(message == "collective 2 is " + first + " on rank 0, and " + second + " on rank 1" + end ||
                message == "collective 2 is " + second + " on rank 1, and " + first + " on rank 0" + end)
        << message;
  }
}

TEST(ProcessGroup, ARankThatEndsTheJobIsNamedByAllOthers) {
  std::mutex mutex;
  using End = std::pair<std::string, int>;
  std::map<int64_t, End> found;
  const auto end = [&](Transport& transport) {
    Exchange exchange(transport, {});
    exchange.begin("barrier", "barrier");
    if (transport.rank() == 2) return exchange.tell_end(5);
    try {
      complete(exchange, [&](int64_t phase) { return barrier(exchange, phase); });
    } catch (const JobEndedError& error) {
      const std::lock_guard lock(mutex);
      found[transport.rank()] = {error.what(), static_cast<int>(error.exit_code())};
    }
    exchange.tell_end(7);
  };
  test::run_transports(4, end);
  const End end_of_2 = {"rank 2 has ended the job", 5};
  EXPECT_EQ(found, (std::map<int64_t, End>{{0, end_of_2}, {1, end_of_2}, {3, end_of_2}}));
}

TEST(ProcessGroup, ASilentRankIsNamed) {
  const auto silent = [](Transport& transport) {
    if (transport.rank() == 1) return;
    GroupOptions options;
    options.silence_seconds = 0.3;
    Exchange exchange(transport, options);
    for (;;) {
      exchange.watch();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  };
  EXPECT_EQ(message_of<DistributedError>([&] { test::run_transports(2, silent); }),
            "rank 1 has given no sign of life for 0.3 s: it is stopped, or its machine is");
}

}  // namespace
}  // namespace tercel::distributed
