#include "tercel/core/cuda_allocators.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "tests/support/errors.h"

namespace tercel {
namespace {

#ifndef TERCEL_CUDA

TEST(CudaAllocators, BuildWithoutCudaSaysWhatIsMissing) {
  TERCEL_EXPECT_THROW(cuda_allocator(), NotImplementedError,
                      "cuda_allocator: this build of Tercel has no CUDA; configure it with -DTERCEL_CUDA=ON, which "
                      "needs nvcc");
  TERCEL_EXPECT_THROW(cuda_managed_allocator(), NotImplementedError, "cuda_managed_allocator: this build");
  TERCEL_EXPECT_THROW(cuda_host_allocator(), NotImplementedError, "cuda_host_allocator: this build");
}

#else

bool has_gpu() { return std::filesystem::exists("/dev/nvidiactl"); }

TEST(CudaAllocators, WithoutADeviceOneLineSaysSo) {
  if (has_gpu()) GTEST_SKIP() << "there is a device";
  TERCEL_EXPECT_THROW(cuda_allocator().allocate(100), RuntimeError,
                      "cuda_allocator: there is no CUDA device to allocate 100 bytes for: ");
  TERCEL_EXPECT_THROW(cuda_managed_allocator().allocate(100), RuntimeError, "cuda_managed_allocator: there is no CUDA");
  TERCEL_EXPECT_THROW(cuda_host_allocator().allocate(100), RuntimeError, "cuda_host_allocator: there is no CUDA");
}

TEST(CudaAllocators, BlocksAreOnTheirDevices) {
  if (!has_gpu()) GTEST_SKIP() << "there is no device";
  EXPECT_EQ(cuda_allocator().allocate(100).device(), Device(DeviceType::Cuda, 0));
  EXPECT_EQ(cuda_allocator().allocate(0).device(), Device(DeviceType::Cuda, 0));
  EXPECT_EQ(cuda_allocator().allocate(0).get(), nullptr);
  const DataPtr managed = cuda_managed_allocator().allocate(1000), pinned = cuda_host_allocator().allocate(1000);
  EXPECT_EQ(managed.device(), Device(DeviceType::Cuda, 0));
  EXPECT_EQ(pinned.device(), kCpu);
  std::memset(managed.get(), 7, 1000);
  std::memset(pinned.get(), 7, 1000);
  EXPECT_EQ(std::memcmp(managed.get(), pinned.get(), 1000), 0);
  for (Allocator* allocator : {&cuda_allocator(), &cuda_managed_allocator(), &cuda_host_allocator()})
    allocator->raw_deallocate(allocator->raw_allocate(64));
}

TEST(CudaAllocators, MoreThanTheDeviceHasIsOutOfMemory) {
  if (!has_gpu()) GTEST_SKIP() << "there is no device";
  TERCEL_EXPECT_THROW(cuda_allocator().allocate(size_t{1} << 50), OutOfMemoryError,
                      "out of memory: cuda_allocator cannot allocate 1125899906842624 bytes");
  EXPECT_TRUE(cuda_allocator().allocate(1 << 20));
}

#endif

}  // namespace
}  // namespace tercel
