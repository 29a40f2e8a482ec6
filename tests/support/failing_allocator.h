// An allocator that runs out of memory on demand.
#pragma once

#include <atomic>
#include <memory>

#include "tercel/core/allocator.h"
#include "tercel/util/error.h"

namespace tercel::test {

/** Uses the CPU allocator, fails the n-th call, counts live blocks. Any thread may use it. */
class FailingAllocator final : public Allocator {
 public:
  DataPtr allocate(size_t nbytes) override {
    if (++calls_ == fail_at_)
      throw_error<OutOfMemoryError>({"out of memory: this was call ", fail_at_.load(), ", which a test wants to fail"});
    auto block = std::make_unique<Block>(*this, cpu_allocator().allocate(nbytes));
    void* const data = block->memory.get();
    ++alive_;
    return DataPtr(data, block.release(), &give_back, kCpu);
  }

  /** The n-th call from now on throws OutOfMemoryError, and only that; 0: none. */
  void fail_call(int64_t n) {
    calls_ = 0;
    fail_at_ = n;
  }
  int64_t calls() const { return calls_; }
  /** Blocks allocated and not yet freed. */
  int64_t alive() const { return alive_; }

 private:
  struct Block {
    Block(FailingAllocator& from, DataPtr taken) : source(from), memory(std::move(taken)) {}
    FailingAllocator& source;
    DataPtr memory;
  };
  static void give_back(void* context) {
    const std::unique_ptr<Block> block(static_cast<Block*>(context));
    --block->source.alive_;
  }

  std::atomic<int64_t> calls_{0}, fail_at_{0}, alive_{0};
};

/** Memory of the host that is said to be that of a device, for tests of where tensors are. */
class HostAllocator final : public Allocator {
 public:
  explicit HostAllocator(Device device) : device_(device) {}
  DataPtr allocate(size_t nbytes) override {
    DataPtr block = cpu_allocator().allocate(nbytes);
    void* const data = block.get();
    const DataPtr::Deleter deleter = block.deleter();
    return DataPtr(data, block.release_context(), deleter, device_);
  }

 private:
  Device device_;
};

/** Makes an allocator that of new tensors on a device for a scope; it must outlive them. */
class ScopedAllocator {
 public:
  explicit ScopedAllocator(Allocator& allocator, DeviceType device = DeviceType::Cpu)
      : device_(device), old_(set_allocator(device, &allocator)) {}
  ~ScopedAllocator() { set_allocator(device_, old_); }
  ScopedAllocator(const ScopedAllocator&) = delete;
  ScopedAllocator& operator=(const ScopedAllocator&) = delete;

 private:
  DeviceType device_;
  Allocator* old_;
};

}  // namespace tercel::test
