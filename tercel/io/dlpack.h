// DLPack 1.1: exchange of tensors with other libraries in this process, without a copy.
//
// The structs are those of https://github.com/dmlc/dlpack, with their names, layout and meaning; a pointer to ours may
// be cast to one of theirs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tercel/core/tensor.h"
#include "tercel/io/copy_mode.h"
#include "tercel/util/export.h"

namespace tercel::io {

enum DLDeviceType : int32_t { kDLCPU = 1, kDLCUDA = 2, kDLCUDAHost = 3 };

enum DLDataTypeCode : uint8_t {
  kDLInt = 0,
  kDLUInt = 1,
  kDLFloat = 2,
  kDLOpaqueHandle = 3,
  kDLBfloat = 4,
  kDLComplex = 5,
  kDLBool = 6,
};

struct DLDevice {
  int32_t device_type;
  int32_t device_id;
};

struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;  ///< in elements; null is row-major
  uint64_t byte_offset;
};

/** What producers made before DLPack 1.0: a capsule "dltensor". */
struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);
};

struct DLPackVersion {
  uint32_t major;
  uint32_t minor;
};

constexpr uint64_t kDLFlagReadOnly = 1;
constexpr uint64_t kDLFlagIsCopied = 2;
constexpr uint64_t kDLFlagSubbytePadded = 4;

/** A capsule "dltensor_versioned". */
struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned* self);
  uint64_t flags;
  DLTensor dl_tensor;
};

static_assert(sizeof(DLTensor) == 48 && offsetof(DLTensor, shape) == 24 && offsetof(DLTensor, byte_offset) == 40);
static_assert(sizeof(DLManagedTensor) == 64 && offsetof(DLManagedTensor, deleter) == 56);
static_assert(sizeof(DLManagedTensorVersioned) == 80 && offsetof(DLManagedTensorVersioned, dl_tensor) == 32);

/**
 * Exports a tensor to another library, which calls the deleter once when it is done; until then the elements stay
 * valid. RuntimeError for a tensor that is not strided and on the CPU, or requires a gradient; TypeError for a dtype
 * that DLPack lacks.
 */
TERCEL_API DLManagedTensor* to_dlpack(const Tensor& tensor);
/** The same for DLPack 1.0 and later. A copy (CopyMode::Always) is row-major and marked as a copy. */
TERCEL_API DLManagedTensorVersioned* to_dlpack_versioned(const Tensor& tensor, CopyMode copy = CopyMode::IfNeeded);

/**
 * Imports a tensor of another library and takes ownership: the deleter is called once, when the last user of the tensor
 * is gone, when the elements have been copied, or when this throws. So rename the capsule before. Strides may be null,
 * and the data need not be aligned. RuntimeError for other devices than the CPU, unsupported dtypes, vectors (lanes),
 * negative strides and sizes, sizes that overflow, and null data of a tensor that has elements.
 */
TERCEL_API Tensor from_dlpack(DLManagedTensor* managed, CopyMode copy = CopyMode::IfNeeded);
/**
 * The same for DLPack 1.0 and later. Read-only data is copied, as tensors are writable; with CopyMode::Never it is an
 * error. RuntimeError for another major version, of which only the deleter is read.
 */
TERCEL_API Tensor from_dlpack(DLManagedTensorVersioned* managed, CopyMode copy = CopyMode::IfNeeded);

}  // namespace tercel::io
