#include "tercel/recsys/hugectr/general_buffer2.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/failing_allocator.h"

namespace tercel::recsys::hugectr {
namespace {

/** As the one allocator of a test. */
struct TestAllocator {
  static constexpr bool kHostAccess = true;
  static test::FailingAllocator& allocator() {
    static test::FailingAllocator instance;
    return instance;
  }
};

int64_t offset_of(const void* p, const void* start) {
  return static_cast<const std::byte*>(p) - static_cast<const std::byte*>(start);
}

TEST(GeneralBuffer2, ReservesThenAllocatesOnce) {
  const auto buffer = GeneralBuffer2<TestAllocator>::create();
  Tensor2<float> a, empty_one, d;
  Tensor2<int64_t> b;
  const size_t rows = 3;
  buffer->reserve({rows, 3}, &a);                      // 36 bytes: takes 64
  buffer->reserve(std::vector<size_t>{rows + 1}, &b);  // 32 bytes: takes 32
  buffer->reserve({0, 5}, &empty_one);
  buffer->reserve({1}, &d);  // 4 bytes: takes 32
  EXPECT_FALSE(buffer->allocated());
  EXPECT_EQ(buffer->get_size_in_bytes(), 0u);
  test::FailingAllocator& allocator = TestAllocator::allocator();
  allocator.fail_call(0);
  buffer->allocate();
  EXPECT_EQ(allocator.calls(), 1);
  EXPECT_TRUE(buffer->allocated());
  EXPECT_EQ(buffer->get_size_in_bytes(), 128u);
  EXPECT_EQ(offset_of(a.get_ptr(), buffer->get_ptr()), 0);
  EXPECT_EQ(offset_of(b.get_ptr(), buffer->get_ptr()), 64);
  EXPECT_EQ(offset_of(d.get_ptr(), buffer->get_ptr()), 96);
  EXPECT_EQ(empty_one.get_ptr(), nullptr);
  EXPECT_EQ(a.get_dimensions(), IntSpan({3, 3}));
  EXPECT_TRUE(a.tensor().is_contiguous());
  EXPECT_TRUE(a.tensor().is_alias_of(b.tensor()));
}

TEST(GeneralBuffer2, TensorsHaveSizesBeforeTheirMemory) {
  GeneralBuffer2<> buffer;
  Tensor2<float> tensor;
  buffer.reserve({2, 3}, &tensor);
  const TensorBag2 bag = tensor.shrink();  // copies made before share what allocate() gives
  EXPECT_EQ(tensor.get_dimensions(), IntSpan({2, 3}));
  EXPECT_EQ(tensor.get_num_elements(), 6);
  EXPECT_EQ(tensor.get_size_in_bytes(), 24u);
  EXPECT_EQ(bag.dtype(), kFloat32);
  EXPECT_FALSE(tensor.allocated());
  const char* const message = "Tensor2: [2, 3] float32 has no memory yet: call allocate() of its GeneralBuffer2";
  TERCEL_EXPECT_THROW(tensor.get_ptr(), RuntimeError, message);
  TERCEL_EXPECT_THROW(tensor.tensor(), RuntimeError, message);
  TERCEL_EXPECT_THROW(bag.get_ptr(), RuntimeError, message);
  TERCEL_EXPECT_THROW(buffer.get_ptr(), RuntimeError, "GeneralBuffer2::get_ptr: General buffer is not allocated yet");
  buffer.allocate();
  EXPECT_TRUE(tensor.allocated());
  EXPECT_EQ(bag.get_ptr(), buffer.get_ptr());
  EXPECT_EQ(tensor.get_ptr(), buffer.get_ptr());
}

TEST(GeneralBuffer2, MemoryLivesAsLongAsItsTensors) {
  Tensor2<int32_t> kept;
  Tensor2<int32_t> never;
  {
    GeneralBuffer2<TestAllocator> buffer, forgotten;
    buffer.reserve({4}, &kept);
    forgotten.reserve({4}, &never);
    buffer.allocate();
  }
  EXPECT_EQ(TestAllocator::allocator().alive(), 1);
  kept.get_ptr()[3] = 5;
  EXPECT_EQ(kept.tensor().data<int32_t>()[3], 5);
  kept = Tensor2<int32_t>();
  EXPECT_EQ(TestAllocator::allocator().alive(), 0);
  EXPECT_THROW(never.get_ptr(), RuntimeError);
}

TEST(GeneralBuffer2, BlockIsOneFlatTensor) {
  GeneralBuffer2<> buffer;
  Tensor2<float> before, weight, bias, after;
  buffer.reserve({3}, &before);
  const auto block = buffer.create_block<float>();
  buffer.reserve({1}, &after);
  block->reserve({2, 3}, &weight);  // also after later reservations of the buffer
  block->reserve({3}, &bias);
  Tensor2<float>& all = block->as_tensor();
  EXPECT_EQ(all.get_dimensions(), IntSpan({9}));
  EXPECT_FALSE(all.allocated());
  buffer.allocate();
  EXPECT_EQ(buffer.get_size_in_bytes(), 32u + 64u + 32u);
  EXPECT_EQ(offset_of(all.get_ptr(), buffer.get_ptr()), 32);
  EXPECT_EQ(weight.get_ptr(), all.get_ptr());
  EXPECT_EQ(bias.get_ptr(), all.get_ptr() + 6);  // without a gap
  EXPECT_EQ(offset_of(after.get_ptr(), buffer.get_ptr()), 96);
  bias.get_ptr()[2] = 7;
  EXPECT_EQ(all.get_ptr()[8], 7);
  EXPECT_EQ(block->as_tensor().get_ptr(), all.get_ptr());
}

TEST(GeneralBuffer2, BlockMayBeFlatAfterAllocation) {
  GeneralBuffer2<> buffer;
  const auto block = buffer.create_block<double>();
  const auto empty_block = buffer.create_block<float>();
  Tensor2<double> part;
  block->reserve({5}, &part);
  buffer.allocate();
  EXPECT_EQ(block->as_tensor().get_ptr(), part.get_ptr());
  EXPECT_EQ(empty_block->as_tensor().get_num_elements(), 0);
  TERCEL_EXPECT_THROW(block->reserve({1}, &part), RuntimeError, "Buffer block is finalized.");
}

TEST(GeneralBuffer2, EndsItsReservations) {
  GeneralBuffer2<> buffer;
  Tensor2<float> tensor;
  SparseTensor<int64_t> sparse;
  const auto block = buffer.create_block<float>();
  block->reserve({2}, &tensor);
  block->as_tensor();
  TERCEL_EXPECT_THROW(block->reserve({2}, &tensor), RuntimeError, "BufferBlock2::reserve: Buffer block is finalized.");
  buffer.allocate();
  TERCEL_EXPECT_THROW(buffer.reserve({2}, &tensor), RuntimeError, "General buffer is finalized.");
  TERCEL_EXPECT_THROW(buffer.reserve({2, 2}, 1, &sparse), RuntimeError, "General buffer is finalized.");
  TERCEL_EXPECT_THROW(buffer.create_block<float>(), RuntimeError, "General buffer is finalized.");
  TERCEL_EXPECT_THROW(buffer.allocate(), RuntimeError, "GeneralBuffer2::allocate: Memory has already been allocated.");
  GeneralBuffer2<> nothing;  // HugeCTR allocates an empty buffer as often as asked
  nothing.allocate();
  EXPECT_TRUE(nothing.allocated());
  EXPECT_EQ(nothing.get_ptr(), nullptr);
  TERCEL_EXPECT_THROW(nothing.allocate(), RuntimeError, "Memory has already been allocated.");
}

TEST(GeneralBuffer2, SizesThatOverflow) {
  GeneralBuffer2<> buffer;
  Tensor2<float> tensor;
  SparseTensor<int64_t> sparse;
  EXPECT_THROW(buffer.reserve({int64_t{1} << 40, int64_t{1} << 40}, &tensor), RuntimeError);
  EXPECT_THROW(buffer.reserve({SIZE_MAX}, &tensor), RuntimeError);
  EXPECT_THROW(buffer.reserve({int64_t{1} << 62, 1}, 4, &sparse), RuntimeError);
  EXPECT_THROW(buffer.reserve({int64_t{1} << 40, 0}, 1 << 20, &sparse), RuntimeError);
  EXPECT_FALSE(tensor.allocated());
  const auto block = buffer.create_block<float>();
  block->reserve({int64_t{1} << 47}, &tensor);
  TERCEL_EXPECT_THROW(block->reserve({(int64_t{1} << 47) + (int64_t{1} << 46) + (int64_t{1} << 46)}, &tensor),
                      RuntimeError, "float32 there would be more than 1125899906842624 bytes");
  EXPECT_EQ(block->as_tensor().get_num_elements(), int64_t{1} << 47);  // as it was
  Tensor2<float> second;
  buffer.reserve({int64_t{1} << 47}, &second);
  buffer.reserve({1}, &second);
  TERCEL_EXPECT_THROW(buffer.allocate(), RuntimeError, "there would be more than 1125899906842624 bytes");
}

TEST(GeneralBuffer2, FailedAllocationMayBeTriedAgain) {
  GeneralBuffer2<TestAllocator> buffer;
  Tensor2<float> tensor, late;
  const auto block = buffer.create_block<float>();
  block->reserve({2}, &tensor);
  TestAllocator::allocator().fail_call(1);
  EXPECT_THROW(buffer.allocate(), OutOfMemoryError);
  EXPECT_FALSE(buffer.allocated());
  EXPECT_FALSE(tensor.allocated());
  block->reserve({3}, &late);
  buffer.allocate();
  EXPECT_EQ(late.get_ptr(), tensor.get_ptr() + 2);
}

TEST(GeneralBuffer2, SparseTensors) {
  GeneralBuffer2<> buffer;
  SparseTensor<int32_t> sparse;
  buffer.reserve({4, 10}, 3, &sparse);  // of 4 samples with 3 slots and up to 10 keys
  EXPECT_EQ(sparse.get_dimensions(), IntSpan({4, 10}));
  EXPECT_EQ(sparse.max_nnz(), 40);
  EXPECT_EQ(sparse.rowoffset_count(), 4 * 3 + 1);
  EXPECT_EQ(sparse.nnz(), 0);
  TERCEL_EXPECT_THROW(sparse.get_value_ptr(), RuntimeError, "has no memory yet");
  buffer.allocate();
  EXPECT_EQ(sparse.get_value_ptr(), buffer.get_ptr());
  EXPECT_EQ(offset_of(sparse.get_rowoffset_ptr(), buffer.get_ptr()), 160);
  EXPECT_EQ(buffer.get_size_in_bytes(), 160u + 64u);
  GeneralBuffer2<> other;
  TERCEL_EXPECT_THROW(other.reserve({}, 1, &sparse), RuntimeError, "needs at least one size and one slot, but got []");
  TERCEL_EXPECT_THROW(other.reserve({2}, 0, &sparse), RuntimeError, "[2] and 0 slots");
}

TEST(HugectrAllocators, NameAllocators) {
  EXPECT_EQ(&HostAllocator::allocator(), &cpu_allocator());
  const DataPtr block = HostAllocator().allocate(100);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(block.get()) % 64, 0u);
#ifdef TERCEL_CUDA
  EXPECT_EQ(&CudaAllocator::allocator(), &cuda_allocator());
  EXPECT_EQ(&CudaManagedAllocator::allocator(), &cuda_managed_allocator());
  EXPECT_EQ(&CudaHostAllocator::allocator(), &cuda_host_allocator());
#else
  GeneralBuffer2<CudaHostAllocator> pinned;
  Tensor2<float> tensor;
  pinned.reserve({2}, &tensor);
  TERCEL_EXPECT_THROW(pinned.allocate(), NotImplementedError, "cuda_host_allocator: this build of Tercel has no CUDA");
  TERCEL_EXPECT_THROW(CudaAllocator().allocate(1), NotImplementedError, "cuda_allocator: this build");
  TERCEL_EXPECT_THROW(CudaManagedAllocator().allocate(1), NotImplementedError, "cuda_managed_allocator: this build");
  EXPECT_FALSE(tensor.allocated());
#endif
}

}  // namespace
}  // namespace tercel::recsys::hugectr
