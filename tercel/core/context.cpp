#include "tercel/core/context.h"

#include <atomic>

#include "tercel/util/error.h"

namespace tercel {

namespace {

constinit std::atomic<bool> g_keep_on_shrink{true};
constinit std::atomic<int64_t> g_max_keep_on_shrink_memory{INT64_MAX};
constinit std::atomic<bool> g_detach_allows_metadata_change{true};

}  // namespace

bool keep_on_shrink() { return g_keep_on_shrink.load(std::memory_order_relaxed); }
void set_keep_on_shrink(bool keep) { g_keep_on_shrink.store(keep, std::memory_order_relaxed); }

int64_t max_keep_on_shrink_memory() { return g_max_keep_on_shrink_memory.load(std::memory_order_relaxed); }
void set_max_keep_on_shrink_memory(int64_t nbytes) {
  TERCEL_CHECK(nbytes >= 0, RuntimeError, "set_max_keep_on_shrink_memory: expected a number of bytes, got ", nbytes);
  g_max_keep_on_shrink_memory.store(nbytes, std::memory_order_relaxed);
}

bool detach_allows_metadata_change() { return g_detach_allows_metadata_change.load(std::memory_order_relaxed); }
void set_detach_allows_metadata_change(bool allow) {
  g_detach_allows_metadata_change.store(allow, std::memory_order_relaxed);
}

}  // namespace tercel
