#include "tercel/core/launch.h"

#include <gtest/gtest.h>

#include <mutex>
#include <set>
#include <utility>

namespace tercel {
namespace {

using Ranges = std::multiset<std::pair<int64_t, int64_t>>;

/** The ranges of the calls that launch() makes. */
Ranges launched(Device device, int64_t begin, int64_t end, int64_t grain) {
  Ranges ranges;
  std::mutex mutex;
  launch(device, begin, end, grain, [&](int64_t first, int64_t last) {
    const std::lock_guard lock(mutex);
    ranges.emplace(first, last);
  });
  return ranges;
}

/** The same of launch_partition(). */
Ranges partitioned(Device device, int64_t begin, int64_t end, int64_t grain) {
  Ranges ranges;
  std::mutex mutex;
  const Partition partition = launch_partition(device, begin, end, grain);
  partition.run([&](int64_t chunk, int64_t first, int64_t last) {
    const std::lock_guard lock(mutex);
    EXPECT_EQ(first, partition.begin(chunk));
    ranges.emplace(first, last);
  });
  EXPECT_EQ(static_cast<int64_t>(ranges.size()), partition.chunks());
  return ranges;
}

TEST(LaunchThreads, TheCpuGetsChunksAndOtherDevicesTheWholeRange) {
  const int64_t threads = num_threads();
  set_num_threads(4);
  for (const auto& ranges : {launched, partitioned}) {
    EXPECT_EQ(ranges(kCpu, 3, 43, 10), (Ranges{{3, 13}, {13, 23}, {23, 33}, {33, 43}}));
    EXPECT_EQ(ranges(kCpu, 3, 22, 10), (Ranges{{3, 22}})) << "less than two grains";
    for (const Device device : {kCuda, Device(DeviceType::Cuda, 1)}) {
      EXPECT_EQ(ranges(device, 3, 43, 10), (Ranges{{3, 43}}));
      EXPECT_EQ(ranges(device, 3, 4, 1), (Ranges{{3, 4}}));
    }
    for (const Device device : {kCpu, kCuda}) {
      EXPECT_EQ(ranges(device, 5, 5, 1), Ranges());
      EXPECT_EQ(ranges(device, 5, 4, 1), Ranges());
    }
  }
  set_num_threads(threads);
}

}  // namespace
}  // namespace tercel
