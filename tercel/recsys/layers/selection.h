// Layers that pick positions of a dimension.
#pragma once

#include <vector>

#include "tercel/recsys/layers/layer.h"
#include "tercel/util/options.h"

namespace tercel::recsys {

/** The positions `indices` of one dimension of the only input, in their order; a position may come several times. */
class SelectionLayer : public Layer {
 public:
  void allocate(const TensorOptions& place) override;
  void forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) override;

 protected:
  /** ConfigError unless there is one input with this dimension, 1 being the first behind the batch, and the positions.
   */
  SelectionLayer(int64_t dim, std::vector<int64_t> indices, const BuildContext& context);
  /** The last dimension of the first input; 0 if there is none. */
  static int64_t last_dim(const BuildContext& context);

 private:
  int64_t dim_;
  std::vector<int64_t> indices_;
  bool is_range_ = false;  // the positions follow one another: the top is a view
  Tensor index_;
};

struct SelectOptions {
  int64_t dim = 1;
  std::vector<int64_t> index;

  static constexpr auto fields() {
    return option_list(
        option_field<&SelectOptions::dim>("dim", "dimension to pick from, 0 being the batch", at_least(1), required()),
        option_field<&SelectOptions::index>("index", "positions to keep, in this order", at_least(0), required()));
  }
};

/** Positions of any dimension but the batch: [B, 10, 4] with dim 1 and index [9, 0] -> [B, 2, 4]. */
class Select final : public SelectionLayer {
 public:
  using Options = SelectOptions;
  Select(const Options& options, BuildContext& context) : SelectionLayer(options.dim, options.index, context) {}
};

struct GatherOptions {
  std::vector<int64_t> indices;

  static constexpr auto fields() {
    return option_list(
        option_field<&GatherOptions::indices>("indices", "columns to keep, in this order", at_least(0), required()));
  }
};

/** Columns, positions of the last dimension: [B, n] with 3 indices -> [B, 3]. */
class Gather final : public SelectionLayer {
 public:
  using Options = GatherOptions;
  Gather(const Options& options, BuildContext& context) : SelectionLayer(last_dim(context), options.indices, context) {}
};

}  // namespace tercel::recsys
