#include "tercel/io/dlpack.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tercel/core/alignment.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel::io {
namespace {

using test::bytes_of;
using test::make;
using test::Sizes;
using test::values_of;

/** A tensor of another library, which counts calls of its deleter. */
template <class Managed>
struct Foreign {
  Managed managed{};
  std::vector<float> data = {0, 1, 2, 3, 4, 5};
  std::vector<int64_t> shape = {2, 3}, strides = {3, 1};
  int deleted = 0;

  Foreign() {
    DLTensor& t = managed.dl_tensor;
    t.data = data.data();
    t.device = {kDLCPU, 0};
    t.ndim = 2;
    t.dtype = {kDLFloat, 32, 1};
    t.shape = shape.data();
    t.strides = strides.data();
    managed.manager_ctx = this;
    managed.deleter = [](Managed* self) { ++static_cast<Foreign*>(self->manager_ctx)->deleted; };
    if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned>) managed.version = {1, 0};
  }
};

template <class Managed>
void deletes_once() {
  Foreign<Managed> foreign;
  {
    const Tensor t = from_dlpack(&foreign.managed);
    const Tensor again = t;
    EXPECT_EQ(t.data_ptr(), foreign.data.data());
    EXPECT_EQ(values_of(t), (std::vector<double>{0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(foreign.deleted, 0);
  }
  EXPECT_EQ(foreign.deleted, 1);
}

TEST(Dlpack, ImportIsGivenBackOnce) {
  deletes_once<DLManagedTensor>();
  deletes_once<DLManagedTensorVersioned>();
}

TEST(Dlpack, ImportWithoutDeleter) {
  Foreign<DLManagedTensor> foreign;
  foreign.managed.deleter = nullptr;
  EXPECT_EQ(from_dlpack(&foreign.managed).numel(), 6);
}

TEST(Dlpack, ImportOfEveryGeometry) {
  Foreign<DLManagedTensor> foreign;
  DLTensor& t = foreign.managed.dl_tensor;
  t.strides = nullptr;
  EXPECT_EQ(values_of(from_dlpack(&foreign.managed)), (std::vector<double>{0, 1, 2, 3, 4, 5}));
  foreign.shape = {3, 2};
  foreign.strides = {1, 3};
  t.strides = foreign.strides.data();
  EXPECT_EQ(values_of(from_dlpack(&foreign.managed)), (std::vector<double>{0, 3, 1, 4, 2, 5}));
  foreign.shape = {2, 2};
  foreign.strides = {0, 1};
  t.byte_offset = 16;
  EXPECT_EQ(values_of(from_dlpack(&foreign.managed)), (std::vector<double>{4, 5, 4, 5}));
  foreign.shape = {1, 2};
  foreign.strides = {-77, 1};  // of a size-1 dimension: ignored
  EXPECT_EQ(values_of(from_dlpack(&foreign.managed)), (std::vector<double>{4, 5}));
  t.ndim = 0;
  t.shape = t.strides = nullptr;
  EXPECT_EQ(values_of(from_dlpack(&foreign.managed)), std::vector<double>{4});
  t.ndim = 2;
  foreign.shape = {0, 5};
  t.shape = foreign.shape.data();
  t.data = nullptr;
  EXPECT_EQ(from_dlpack(&foreign.managed).sizes().to_vector(), (Sizes{0, 5}));
  EXPECT_EQ(foreign.deleted, 6);
}

TEST(Dlpack, UnalignedData) {
  Foreign<DLManagedTensor> foreign;
  std::vector<char> bytes(32);
  std::memcpy(bytes.data() + 3, foreign.data.data(), 24);
  foreign.managed.dl_tensor.data = bytes.data();
  foreign.managed.dl_tensor.byte_offset = 3;
  const Tensor t = from_dlpack(&foreign.managed);
  EXPECT_EQ(values_of(t), (std::vector<double>{0, 1, 2, 3, 4, 5}));
  EXPECT_TRUE(is_aligned(t.data_ptr(), t.dtype())) << "copied, since elements cannot lie there";
  EXPECT_EQ(foreign.deleted, 1);
  TERCEL_EXPECT_THROW(from_dlpack(&foreign.managed, CopyMode::Never), RuntimeError,
                      "cannot be imported without a copy");
  EXPECT_EQ(foreign.deleted, 2);
}

TEST(Dlpack, ReadOnlyIsCopied) {
  Foreign<DLManagedTensorVersioned> foreign;
  foreign.managed.flags = kDLFlagReadOnly;
  const Tensor t = from_dlpack(&foreign.managed);
  EXPECT_EQ(foreign.deleted, 1) << "a copy was made, so the original is released";
  EXPECT_NE(t.data_ptr(), foreign.data.data());
  EXPECT_EQ(values_of(t), (std::vector<double>{0, 1, 2, 3, 4, 5}));
  TERCEL_EXPECT_THROW(from_dlpack(&foreign.managed, CopyMode::Never), RuntimeError,
                      "from_dlpack: a read-only tensor cannot be imported without a copy");
  EXPECT_EQ(foreign.deleted, 2);
  foreign.managed.flags = 0;
  EXPECT_NE(from_dlpack(&foreign.managed, CopyMode::Always).data_ptr(), foreign.data.data());
  EXPECT_EQ(from_dlpack(&foreign.managed, CopyMode::Never).data_ptr(), foreign.data.data());
}

TEST(Dlpack, ImportRefuses) {
  struct Case {
    void (*spoil)(Foreign<DLManagedTensorVersioned>&);
    const char* message;
  };
  using F = Foreign<DLManagedTensorVersioned>;
  const Case cases[] = {
      {[](F& f) {
         f.managed.version = {2, 7};
       },
       "expected DLPack 1 but got version 2.7"},
      {[](F& f) {
         f.managed.dl_tensor.device = {kDLCUDA, 0};
       },
       "on the CPU (device type 1) but got device type 2"},
      {[](F& f) { f.managed.dl_tensor.dtype.lanes = 4; }, "one lane but got 4"},
      {[](F& f) { f.managed.dl_tensor.dtype.lanes = 0; }, "one lane but got 0"},
      {[](F& f) { f.managed.dl_tensor.dtype.bits = 4; }, "no dtype for elements of code 2 and 4 bits"},
      {[](F& f) { f.managed.dl_tensor.dtype.code = 99; }, "code 99"},
      {[](F& f) { f.managed.dl_tensor.ndim = -1; }, "0 to 64 dimensions but got -1"},
      {[](F& f) { f.managed.dl_tensor.ndim = 65; }, "0 to 64 dimensions but got 65"},
      {[](F& f) { f.managed.dl_tensor.shape = nullptr; }, "a shape of 2 sizes but got null"},
      {[](F& f) { f.managed.dl_tensor.data = nullptr; }, "no data for sizes [2, 3]"},
      {[](F& f) { f.shape[0] = -2; }, "-2"},
      {[](F& f) {
         f.shape = {INT64_C(1) << 62, 4};
       },
       "4611686018427387904, 4]"},
      {[](F& f) {
         f.shape = {0, INT64_C(1) << 62, 4}, f.managed.dl_tensor.ndim = 3, f.managed.dl_tensor.shape = f.shape.data();
       },
       "4611686018427387904, 4]"},
      {[](F& f) {
         f.strides = {-3, 1};
       },
       "strides [-3, 1] have a negative one"},
      {[](F& f) {
         f.strides = {INT64_C(1) << 62, 1};
       },
       "Storage size calculation overflowed"},
      {[](F& f) { f.managed.dl_tensor.byte_offset = UINT64_MAX; }, "reach beyond 64 bits"},
  };
  for (const Case& c : cases) {
    F foreign;
    c.spoil(foreign);
    TERCEL_EXPECT_THROW(from_dlpack(&foreign.managed), RuntimeError, c.message);
    EXPECT_EQ(foreign.deleted, 1) << c.message;
  }
  TERCEL_EXPECT_THROW(from_dlpack(static_cast<DLManagedTensor*>(nullptr)), RuntimeError, "but got null");
}

TEST(Dlpack, ExportKeepsTheElementsUntilItIsGivenBack) {
  Tensor t = test::placed(make({2, 3}, kFloat32, {0, 1, 2, 3, 4, 5}), test::Placement::Transposed);
  const Storage storage = t.storage();
  DLManagedTensor* legacy = to_dlpack(t);
  DLManagedTensorVersioned* versioned = to_dlpack_versioned(t);
  const uint32_t before = storage.use_count();
  t.reset();
  EXPECT_EQ(storage.use_count(), before - 1);
  EXPECT_EQ(versioned->version.major, 1u);
  EXPECT_EQ(versioned->flags, 0u);
  EXPECT_EQ(legacy->dl_tensor.strides[1], 2);
  EXPECT_EQ(legacy->dl_tensor.data, versioned->dl_tensor.data);
  legacy->deleter(legacy);
  versioned->deleter(versioned);
  EXPECT_EQ(storage.use_count(), 1u);
}

TEST(Dlpack, ExportKeepsTheElementsWhateverTheTensorBecomes) {
  const Tensor t = make({2}, kFloat32, {1, 2}), other = make({2}, kFloat32, {3, 4});
  const Storage storage = t.storage();
  DLManagedTensor* exported = to_dlpack(t);
  t.impl().shallow_copy_from(other.impl());
  TERCEL_EXPECT_THROW(storage->resize_bytes(0), RuntimeError, "not resizable");
  EXPECT_EQ(storage.use_count(), 2u);
  EXPECT_EQ(static_cast<float*>(exported->dl_tensor.data)[1], 2);
  exported->deleter(exported);
  EXPECT_EQ(storage.use_count(), 1u);
}

TEST(Dlpack, RoundTripOfEveryDtype) {
  for (const ScalarType dtype : {kBool, kUInt8, kInt8, kInt16, kInt32, kInt64, kFloat16, kBFloat16, kFloat32, kFloat64})
    for (const Sizes& sizes : {Sizes{}, Sizes{3, 0}, Sizes{2, 3}}) {
      const Tensor t = test::random(sizes, dtype, 0, 1, 1);
      for (const bool copy : {false, true}) {
        const Tensor back = from_dlpack(to_dlpack_versioned(t, copy ? CopyMode::Always : CopyMode::IfNeeded));
        EXPECT_EQ(back.dtype(), dtype);
        EXPECT_EQ(back.sizes(), t.sizes());
        EXPECT_EQ(bytes_of(back), bytes_of(t));
        EXPECT_EQ(back.data_ptr() == t.data_ptr(), !copy || t.numel() == 0);
      }
      EXPECT_EQ(from_dlpack(to_dlpack(t)).data_ptr(), t.data_ptr());
    }
  DLManagedTensorVersioned* copied = to_dlpack_versioned(make({1}, kInt8, {1}), CopyMode::Always);
  EXPECT_EQ(copied->flags, kDLFlagIsCopied);
  EXPECT_EQ(copied->dl_tensor.dtype.bits, 8);
  copied->deleter(copied);
}

TEST(Dlpack, ExportRefuses) {
  TERCEL_EXPECT_THROW(to_dlpack(Tensor()), RuntimeError, "to_dlpack: expected a strided tensor on the CPU");
  Tensor t = make({1}, kFloat32, {1});
  t.impl().set_requires_grad_flag(true);
  TERCEL_EXPECT_THROW(to_dlpack(t), RuntimeError, "Can't export tensors that require gradient, use tensor.detach()");
  TERCEL_EXPECT_THROW(to_dlpack_versioned(t), RuntimeError, "Can't export tensors that require gradient");
}

}  // namespace
}  // namespace tercel::io
