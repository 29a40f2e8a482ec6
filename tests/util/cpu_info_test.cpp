#include "tercel/util/cpu_info.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <limits>

#include "tercel/util/sanitizers_impl.h"
#include "tests/util/temporary_folder.h"

namespace tercel {
namespace {

constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
constexpr int64_t kGiB = int64_t{1} << 30;

TEST(CpuInfo, InstructionSetsAgreeWithTheCompilersRuntime) {
#if defined(__x86_64__)
  // libgcc makes the same checks for CPUID and xgetbv.
  EXPECT_EQ(has_avx2(),
            __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"));
  EXPECT_EQ(has_avx512(), __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                              __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                              __builtin_cpu_supports("avx512vl"));
#endif
  EXPECT_LE(has_avx512(), has_avx2());
  EXPECT_FALSE(cpu_model_name().empty());
}

TEST(CpuInfo, AffinityCounts) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  const int64_t cpus = usable_cpus();
  EXPECT_GE(cpus, 1);
  EXPECT_LE(cpus, CPU_COUNT(&before));
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++i)
    if (CPU_ISSET(i, &before)) CPU_SET(i, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(usable_cpus(), 1);
  sched_setaffinity(0, sizeof before, &before);
}

TEST(CpuInfo, CgroupV2QuotaOfAnyAncestorCounts) {
  const test::TemporaryFolder root;
  EXPECT_EQ(detail::cgroup_cpus(root.path()), kNone) << "no cgroups at all";
  root.put("proc/self/cgroup", "0::/pod/job\n");
  root.put("sys/fs/cgroup/pod/job/cpu.max", "max 100000\n");
  EXPECT_EQ(detail::cgroup_cpus(root.path()), kNone);
  root.put("sys/fs/cgroup/pod/cpu.max", "250000 100000\n");
  EXPECT_EQ(detail::cgroup_cpus(root.path()), 3) << "2.5 CPUs round up";
  root.put("sys/fs/cgroup/pod/job/cpu.max", "10000 100000\n");
  EXPECT_EQ(detail::cgroup_cpus(root.path()), 1);
}

TEST(CpuInfo, ContainerSeesItsGroupAtTheMountsRoot) {
  const test::TemporaryFolder root;
  root.put("proc/self/cgroup", "0::/docker/0123456789ab\n");  // the host's path, which is not mounted here
  root.put("sys/fs/cgroup/cpu.max", "200000 100000\n");
  EXPECT_EQ(detail::cgroup_cpus(root.path()), 2);
}

TEST(CpuInfo, CgroupV1) {
  const test::TemporaryFolder root;
  root.put("proc/self/cgroup", "5:memory:/job\n4:cpu,cpuacct:/job\n1:name=systemd:/\n");
  root.put("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "400000\n");
  root.put("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(detail::cgroup_cpus(root.path()), 4);
  root.put("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(detail::cgroup_cpus(root.path()), kNone);

  root.put("proc/meminfo", "MemTotal:       67108864 kB\nMemFree:  1 kB\nMemAvailable:   33554432 kB\n");
  root.put("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(detail::memory_info(root.path()).total, 64 * kGiB);
  root.put("sys/fs/cgroup/memory/job/memory.limit_in_bytes", std::to_string(8 * kGiB));
  root.put("sys/fs/cgroup/memory/job/memory.usage_in_bytes", std::to_string(6 * kGiB));
  root.put("sys/fs/cgroup/memory/job/memory.stat", "inactive_file 1\ntotal_inactive_file " + std::to_string(2 * kGiB) +
                                                       "\ntotal_active_file " + std::to_string(kGiB) + "\n");
  const MemoryInfo memory = detail::memory_info(root.path());
  EXPECT_EQ(memory.total, 8 * kGiB);
  EXPECT_EQ(memory.available, 5 * kGiB) << "page cache counts as free";
}

TEST(CpuInfo, CgroupV2Memory) {
  const test::TemporaryFolder root;
  root.put("proc/meminfo", "MemTotal:       67108864 kB\nMemAvailable:   33554432 kB\n");
  MemoryInfo memory = detail::memory_info(root.path());
  EXPECT_EQ(memory.total, 64 * kGiB);
  EXPECT_EQ(memory.available, 32 * kGiB);
  root.put("proc/self/cgroup", "0::/a\n");
  root.put("sys/fs/cgroup/a/memory.max", "max\n");
  EXPECT_EQ(detail::memory_info(root.path()).total, 64 * kGiB);
  root.put("sys/fs/cgroup/memory.max", std::to_string(4 * kGiB));
  root.put("sys/fs/cgroup/memory.current", std::to_string(5 * kGiB));
  memory = detail::memory_info(root.path());
  EXPECT_EQ(memory.total, 4 * kGiB);
  EXPECT_EQ(memory.available, 0) << "over the limit, never negative";
}

TEST(CpuInfo, BrokenSystemFilesMeanNoLimit) {
  const test::TemporaryFolder root;
  root.put("proc/self/cgroup", "nonsense\n::\n0:\n\n0::/a");
  root.put("sys/fs/cgroup/cpu.max", "x y");
  root.put("sys/fs/cgroup/memory.max", "");
  root.put("proc/meminfo", "MemTotal: 1048576 kB\nMemAvailable: 1048576 kB");
  EXPECT_EQ(detail::cgroup_cpus(root.path()), kNone);
  EXPECT_EQ(detail::memory_info(root.path()).total, kGiB);
}

TEST(CpuInfo, MemoryIsKnownWithoutProc) {
  const test::TemporaryFolder root;
  EXPECT_GT(detail::memory_info(root.path()).total, int64_t{16} << 20);
  EXPECT_GT(detail::memory_info(root.path()).available, 0);
}

TEST(CpuInfo, MemoryOfThisMachineIsSane) {
  const MemoryInfo memory = memory_info();
  EXPECT_GT(memory.total, int64_t{16} << 20);
  EXPECT_GT(memory.available, 0);
  EXPECT_LE(memory.available, memory.total);
}

#if !TERCEL_ADDRESS_SANITIZER && !TERCEL_THREAD_SANITIZER  // their shadow needs terabytes of addresses
TEST(CpuInfo, AddressSpaceLimitCounts) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const rlimit limit{static_cast<rlim_t>(3 * kGiB), static_cast<rlim_t>(3 * kGiB)};
    setrlimit(RLIMIT_AS, &limit);
    const MemoryInfo memory = memory_info();
    _exit(memory.total <= 3 * kGiB && memory.available < 3 * kGiB && memory.available > 0 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
#endif

TEST(CpuInfo, HugePageModeIsTheBracketedWord) {
  const test::TemporaryFolder root;
  const auto mode = [&](const char* text) {
    root.put("sys/kernel/mm/transparent_hugepage/enabled", text);
    return detail::huge_page_mode(root.path());
  };
  EXPECT_EQ(detail::huge_page_mode(root.path()), HugePageMode::Unknown);
  EXPECT_EQ(mode("always [madvise] never\n"), HugePageMode::Madvise);
  EXPECT_EQ(mode("[always] madvise never\n"), HugePageMode::Always);
  EXPECT_EQ(mode("always madvise [never]\n"), HugePageMode::Never);
  EXPECT_EQ(to_string(HugePageMode::Madvise), "madvise");
}

}  // namespace
}  // namespace tercel
