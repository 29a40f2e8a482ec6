// Layers that concatenate, slice and reshape.
#pragma once

#include "tercel/recsys/layers/layer.h"
#include "tercel/util/options.h"

namespace tercel::recsys {

struct ConcatOptions {
  int64_t axis = 1;

  static constexpr auto fields() {
    return option_list(option_field<&ConcatOptions::axis>(
        "axis", "dimension along which inputs are joined, 0 being the batch", at_least(1)));
  }
};

/** Concatenates inputs along an axis; all other sizes must agree. */
class Concat final : public Layer {
 public:
  using Options = ConcatOptions;
  Concat(const Options& options, BuildContext& context);
  void forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) override;

 private:
  int64_t axis_;
};

struct ReshapeOptions {
  int64_t leading_dim = 0;
  int64_t time_step = 0;
  std::vector<int64_t> shape;
  std::vector<int64_t> selected;

  static constexpr auto fields() {
    return option_list(option_field<&ReshapeOptions::leading_dim>(
                           "leading_dim", "size of the last dimension of the output", at_least(0)),
                       option_field<&ReshapeOptions::time_step>(
                           "time_step", "size of the dimension before it, 0 for none", at_least(0)),
                       option_field<&ReshapeOptions::shape>("shape", "sizes of the output; -1 for the rows"),
                       option_field<&ReshapeOptions::selected>(
                           "selected", "slots of a [batch, slots, n] input to keep, in this order", at_least(0)));
  }
};

/**
 * [B, ...] -> [rows, leading_dim], [rows, time_step, leading_dim], or the given shape; without options, or with
 * selected slots: [B, n]. The number of rows follows from that of elements: fewer elements in a row fold the input into
 * more rows than it has, more unfold it. Samples stay apart: the elements of an output row must divide those of a
 * sample. ConfigError otherwise, for both leading_dim and a shape, and for a time_step without leading_dim.
 */
class Reshape final : public Layer {
 public:
  using Options = ReshapeOptions;
  Reshape(const Options& options, BuildContext& context);
  void forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) override;

 private:
  std::vector<int64_t> selected_;
};

struct SliceOptions {
  std::vector<std::vector<int64_t>> ranges;

  static constexpr auto fields() {
    return option_list(option_field<&SliceOptions::ranges>("ranges", "[first, last + 1] of each output's columns",
                                                           at_least(0), required()));
  }
};

/** Columns [first, end) of the last dimension, one output for each range; ranges may overlap. */
class Slice final : public Layer {
 public:
  using Options = SliceOptions;
  Slice(const Options& options, BuildContext& context);
  void forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) override;

 private:
  std::vector<std::vector<int64_t>> ranges_;
};

}  // namespace tercel::recsys
