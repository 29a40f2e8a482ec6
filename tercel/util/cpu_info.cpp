#include "tercel/util/cpu_info.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tercel/util/format.h"

namespace tercel {

namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

// ---- instruction sets

#if defined(__x86_64__)

uint64_t enabled_states() {
  uint32_t low = 0, high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t{high} << 32) | low;
}

constexpr bool has_all(uint32_t value, uint32_t mask) { return (value & mask) == mask; }

// 3 or 4: the x86-64 level that both the CPU and the operating system support; 2 for anything below.
int detect_level() {
  uint32_t a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return 2;
  constexpr uint32_t kOsXsave = 1u << 27;
  if (!has_all(c, kOsXsave | bit_AVX | bit_FMA | bit_F16C | bit_MOVBE)) return 2;
  const auto states = static_cast<uint32_t>(enabled_states());
  constexpr uint32_t kYmm = 0x06, kZmm = 0xe6;
  if (!has_all(states, kYmm)) return 2;
  uint32_t extended = 0;
  if (!__get_cpuid(0x80000001, &a, &b, &extended, &d) || !has_all(extended, bit_ABM)) return 2;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !has_all(b, bit_AVX2 | bit_BMI | bit_BMI2)) return 2;
  constexpr uint32_t kAvx512 = bit_AVX512F | bit_AVX512BW | bit_AVX512CD | bit_AVX512DQ | bit_AVX512VL;
  return has_all(states, kZmm) && has_all(b, kAvx512) ? 4 : 3;
}

std::string detect_model() {
  char name[49] = {};
  for (uint32_t i = 0; i < 3; ++i) {
    uint32_t words[4];
    if (!__get_cpuid(0x80000002 + i, &words[0], &words[1], &words[2], &words[3])) return "unknown";
    std::memcpy(name + 16 * i, words, sizeof words);
  }
  const std::string_view text(name);
  const size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return "unknown";
  return std::string(text.substr(first, text.find_last_not_of(' ') + 1 - first));
}

#else

int detect_level() { return 0; }
std::string detect_model() { return "unknown"; }

#endif

int cpu_level() {
  static const int level = detect_level();
  return level;
}

// ---- files of /proc and /sys

/** The first integer in the text, or `missing`. */
int64_t leading_int(std::string_view text, int64_t missing) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  int64_t value = 0;
  return std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc() ? value : missing;
}

/** The integer after `name` at the start of a line, or `missing`. */
int64_t named_int(std::string_view text, std::string_view name, int64_t missing) {
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    const std::string_view line = text.substr(start, end - start);
    if (line.size() > name.size() && line.starts_with(name) && (line[name.size()] == ' ' || line[name.size()] == ':'))
      return leading_int(line.substr(name.size() + 1), missing);
    start = end + 1;
  }
  return missing;
}

// ---- cgroups

/** Directories that limit this process for one controller, innermost first; v2 and v1 together. */
struct CgroupFolders {
  std::vector<std::string> v2, v1;
};

// Inside a container the path in /proc/self/cgroup may be the host's; what does not exist then reads as "no limit",
// and the root of the mount, always the last, is the container's own group.
std::vector<std::string> with_ancestors(const std::string& mount, std::string_view path) {
  std::vector<std::string> folders;
  while (!path.empty() && path != "/") {
    folders.push_back(mount + std::string(path));
    path = path.substr(0, path.rfind('/'));
  }
  folders.push_back(mount);
  return folders;
}

CgroupFolders cgroup_folders(const std::string& root, std::string_view controller) {
  CgroupFolders result;
  const std::string mount = root + "/sys/fs/cgroup";
  const std::string text = read_system_file(root + "/proc/self/cgroup");
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    const std::string_view line = std::string_view(text).substr(start, end - start);
    start = end + 1;
    // hierarchy-ID:controller-list:path
    const size_t first = line.find(':');
    const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string_view path = line.substr(second + 1);
    if (controllers.empty()) {
      result.v2 = with_ancestors(mount, path);
      const std::vector<std::string> hybrid = with_ancestors(mount + "/unified", path);
      result.v2.insert(result.v2.end(), hybrid.begin(), hybrid.end());
      continue;
    }
    const std::string list = "," + std::string(controllers) + ",";
    if (list.find("," + std::string(controller) + ",") == std::string::npos) continue;
    result.v1 = with_ancestors(mount + "/" + std::string(controllers), path);
    const std::vector<std::string> alone = with_ancestors(mount + "/" + std::string(controller), path);
    result.v1.insert(result.v1.end(), alone.begin(), alone.end());
  }
  return result;
}

int64_t affinity_cpus() {
  for (size_t cpus = 1024; cpus <= size_t{1} << 20; cpus *= 2) {
    cpu_set_t* set = CPU_ALLOC(cpus);
    if (set == nullptr) break;
    const size_t bytes = CPU_ALLOC_SIZE(cpus);
    const int status = sched_getaffinity(0, bytes, set);
    const int64_t count = status == 0 ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (count > 0) return count;
  }
  return std::max<int64_t>(sysconf(_SC_NPROCESSORS_ONLN), 1);
}

void cut(MemoryInfo& memory, int64_t limit, int64_t used) {
  memory.total = std::min(memory.total, limit);
  memory.available = std::min(memory.available, std::max<int64_t>(limit - used, 0));
}

void cut_to_cgroup(MemoryInfo& memory, const std::string& folder, const char* limit_file, const char* usage_file,
                   const std::string& stat_prefix) {
  const int64_t limit = leading_int(read_system_file(folder + limit_file), kNoLimit);
  if (limit < 0 || limit >= memory.total) return;
  const int64_t usage = leading_int(read_system_file(folder + usage_file), 0);
  const std::string stat = read_system_file(folder + "/memory.stat");
  const int64_t cache =
      named_int(stat, stat_prefix + "inactive_file", 0) + named_int(stat, stat_prefix + "active_file", 0);
  cut(memory, limit, std::max<int64_t>(usage - cache, 0));
}

}  // namespace

bool has_avx2() noexcept { return cpu_level() >= 3; }

bool has_avx512() noexcept { return cpu_level() >= 4; }

std::string cpu_model_name() { return detect_model(); }

std::string_view to_string(HugePageMode mode) noexcept {
  switch (mode) {
    case HugePageMode::Unknown: return "unknown";
    case HugePageMode::Always: return "always";
    case HugePageMode::Madvise: return "madvise";
    case HugePageMode::Never: return "never";
  }
  return "unknown";
}

namespace detail {

int64_t cgroup_cpus(const std::string& root) {
  const CgroupFolders folders = cgroup_folders(root, "cpu");
  int64_t cpus = kNoLimit;
  const auto cut_to_quota = [&cpus](int64_t quota, int64_t period) {
    if (quota > 0 && period > 0) cpus = std::min(cpus, (quota - 1) / period + 1);
  };
  for (const std::string& folder : folders.v2) {
    const std::string text = read_system_file(folder + "/cpu.max");
    const size_t space = text.find(' ');
    if (space != std::string::npos)
      cut_to_quota(leading_int(text, 0), leading_int(std::string_view(text).substr(space), 0));
  }
  for (const std::string& folder : folders.v1)
    cut_to_quota(leading_int(read_system_file(folder + "/cpu.cfs_quota_us"), 0),
                 leading_int(read_system_file(folder + "/cpu.cfs_period_us"), 0));
  return cpus;
}

MemoryInfo memory_info(const std::string& root) {
  const std::string text = read_system_file(root + "/proc/meminfo");
  constexpr int64_t kKiB = 1024;
  MemoryInfo memory;
  memory.total = named_int(text, "MemTotal", 0) * kKiB;
  memory.available = named_int(text, "MemAvailable", 0) * kKiB;
  if (memory.total <= 0) {  // no /proc here
    memory.total = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
    memory.available = int64_t{sysconf(_SC_AVPHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  }
  const CgroupFolders folders = cgroup_folders(root, "memory");
  for (const std::string& folder : folders.v2) cut_to_cgroup(memory, folder, "/memory.max", "/memory.current", "");
  for (const std::string& folder : folders.v1)
    cut_to_cgroup(memory, folder, "/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_");
  return memory;
}

HugePageMode huge_page_mode(const std::string& root) {
  const std::string text = read_system_file(root + "/sys/kernel/mm/transparent_hugepage/enabled");
  for (const HugePageMode mode : {HugePageMode::Always, HugePageMode::Madvise, HugePageMode::Never})
    if (text.find("[" + std::string(to_string(mode)) + "]") != std::string::npos) return mode;
  return HugePageMode::Unknown;
}

}  // namespace detail

int64_t usable_cpus() { return std::min(affinity_cpus(), detail::cgroup_cpus("")); }

MemoryInfo memory_info() {
  MemoryInfo memory = detail::memory_info("");
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur < static_cast<rlim_t>(memory.total)) {
    const int64_t mapped_pages = leading_int(read_system_file("/proc/self/statm"), 0);
    cut(memory, static_cast<int64_t>(limit.rlim_cur), mapped_pages * sysconf(_SC_PAGESIZE));
  }
  return memory;
}

bool fits_in_memory(size_t bytes) {
  const MemoryInfo memory = memory_info();
  return memory.total == 0 || bytes <= static_cast<size_t>(memory.available);
}

void throw_out_of_memory(size_t bytes) {
  const MemoryInfo memory = memory_info();
  const auto shown = static_cast<int64_t>(std::min<size_t>(bytes, INT64_MAX));
  throw_error<OutOfMemoryError>({"out of memory: cannot allocate ", format_bytes(shown), " (", bytes, " bytes); ",
                                 format_bytes(memory.available), " of ", format_bytes(memory.total), " are available"});
}

HugePageMode huge_page_mode() { return detail::huge_page_mode(""); }

}  // namespace tercel
