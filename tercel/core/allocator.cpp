#include "tercel/core/allocator.h"

#include <atomic>

#include "tercel/util/error.h"

namespace tercel {

DataPtr::Deleter Allocator::raw_deleter() const { return nullptr; }

void* Allocator::raw_allocate(size_t nbytes) {
  TERCEL_CHECK(raw_deleter(), RuntimeError, "raw_allocate: this allocator's blocks have a separate context");
  return allocate(nbytes).release_context();
}

void Allocator::raw_deallocate(void* block) {
  const DataPtr::Deleter deleter = raw_deleter();
  TERCEL_CHECK(deleter, RuntimeError, "raw_deallocate: this allocator's blocks have a separate context");
  if (block) deleter(block);
}

namespace {

constinit std::atomic<Allocator*> g_allocators[kNumDeviceTypes];  // null: the built-in one

[[noreturn, gnu::cold, gnu::noinline]] void refuse_device(DeviceType device) {
  throw_error<NotImplementedError>({"no allocator for device ", to_string(device), " in this build"});
}

}  // namespace

Allocator& get_allocator(DeviceType device) {
  Allocator* allocator = g_allocators[static_cast<int>(device)].load(std::memory_order_acquire);
  if (allocator) [[unlikely]]
    return *allocator;
  if (device == DeviceType::Cpu) [[likely]]
    return cpu_allocator();
  refuse_device(device);
}

Allocator* set_allocator(DeviceType device, Allocator* allocator) {
  Allocator* old = g_allocators[static_cast<int>(device)].exchange(allocator, std::memory_order_acq_rel);
  return !old && device == DeviceType::Cpu ? &cpu_allocator() : old;
}

}  // namespace tercel
