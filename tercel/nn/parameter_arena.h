// Dense parameters of a model: all weights in one block of memory, all gradients in another.
//
// Note [Arenas]
// A model first reserves every parameter, then allocates once, on a device and in a dtype. Each parameter is a view of
// the weights, and its gradient a permanent view of the gradients, so an optimizer's update is one kernel over all
// parameters, and an all-reduce one call. Parameters start at cache lines (multiples of 16 elements); the padding stays
// zero.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tercel/core/tensor.h"
#include "tercel/nn/init.h"

namespace tercel::nn {

class TERCEL_API ParameterArena {
 public:
  struct Entry {
    std::string name;  ///< in checkpoints, "fc1.weight"
    DimVector sizes;
    Init init;
    int64_t offset = 0;  ///< in elements
    Tensor tensor;       ///< undefined until allocate()
  };

  /** Reserves a parameter; returns its index. RuntimeError for a duplicate name, or after allocate(). */
  size_t reserve(std::string name, IntSpan sizes, Init init);
  /** Allocates everything and fills each parameter by its Init, in the order of reservation. */
  void allocate(Generator& generator, const TensorOptions& place = {});
  /** Allocates everything, filled with zeros, for values that are loaded. */
  void allocate(const TensorOptions& place = {});

  /** The parameter: a leaf that requires a gradient. */
  const Tensor& operator[](size_t index) const { return entries_[index].tensor; }
  const std::vector<Entry>& entries() const { return entries_; }
  /** All weights [size()], and all gradients in the same order. */
  const Tensor& weights() const { return weights_; }
  const Tensor& gradients() const { return gradients_; }
  int64_t size() const { return size_; }
  /** Sets every gradient to zero. */
  void zero_gradients();

 private:
  std::vector<Entry> entries_;
  int64_t size_ = 0;
  Tensor weights_, gradients_;
};

}  // namespace tercel::nn
