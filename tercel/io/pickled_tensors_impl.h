// The storages and tensors that a pickle describes; see Note [Unpickling] in pickle_impl.h.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tercel/core/tensor.h"
#include "tercel/io/pickle_impl.h"
#include "tercel/util/cursor.h"

namespace tercel::io {

/** Where errors of a pickle are: at the opcode that is executed. */
struct PickleErrors {
  const ByteCursor& cursor;
  int64_t at = 0;

  [[noreturn]] void fail(std::string_view expected, std::string_view found) const {
    cursor.fail_at(at, expected, found);
  }
};

struct TensorInfo {
  Layout layout = Layout::Strided;
  size_t storage = 0;
  ScalarType dtype = ScalarType::Undefined;
  int64_t offset = 0;
  DimVector sizes, strides;
  bool requires_grad = false, parameter = false;
  // Of a tensor of a sparse layout, which has no storage itself: places of its parts among the tensors. A compressed
  // layout has offsets as `indices`.
  bool coalesced = false;
  size_t indices = 0, plain_indices = 0, values = 0;
};

/** Storages are loaded when the first tensor over them is made. Every function may throw a DataError. */
class PickledTensors {
 public:
  PickledTensors(const PickleErrors& errors, LoadStorage load) : errors_(errors), load_(load) {}

  /** The place of a storage of `count` elements of a dtype, or of bytes if that is Undefined. */
  size_t add_storage(std::string_view key, int64_t count, ScalarType dtype);
  /** The place of a tensor over a storage; its dtype is that of the storage unless it has one. */
  size_t add_strided(TensorInfo info);
  /** The place of a sparse tensor; its dtype, and whether a compressed one requires a gradient, are the values'. */
  size_t add_sparse(TensorInfo info);
  /** The place of a tensor that differs from a known one in its flags. */
  size_t add(TensorInfo info);

  const TensorInfo& operator[](size_t place) const { return tensors_[place]; }
  Tensor make(size_t place);

 private:
  struct StorageInfo {
    std::string_view key;
    int64_t nbytes = 0;
    ScalarType dtype = ScalarType::Undefined;  // until a tensor determines it
    Storage loaded;
  };

  void set_dtype(StorageInfo& info, ScalarType dtype) const;
  void check_geometry(const TensorInfo& info, const StorageInfo& storage) const;
  Tensor strided(const TensorInfo& info);
  Tensor sparse(const TensorInfo& info);

  const PickleErrors& errors_;
  LoadStorage load_;
  std::vector<StorageInfo> storages_;
  std::unordered_map<std::string_view, size_t> keys_;
  std::vector<TensorInfo> tensors_;
};

}  // namespace tercel::io
