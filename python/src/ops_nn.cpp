// Functions of network layers; losses are in ops_loss.cpp.
#include "python/src/op.h"
#include "python/src/out.h"
#include "tercel/nn/init_functions.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/embedding/batched_embedding_bag.h"
#include "tercel/ops/embedding/embedding.h"
#include "tercel/ops/embedding/embedding_bag.h"
#include "tercel/ops/nn/batch_norm.h"
#include "tercel/ops/nn/conv.h"
#include "tercel/ops/nn/dropout.h"
#include "tercel/ops/nn/grid_sample.h"
#include "tercel/ops/nn/interaction.h"
#include "tercel/ops/nn/interpolate.h"
#include "tercel/ops/nn/linear.h"
#include "tercel/ops/nn/pool.h"
#include "tercel/ops/nn/similarity.h"
#include "tercel/ops/nn/unpool.h"

namespace tercel::python {

namespace {

NamedPadding padding_of(std::string_view name) {
  for (const auto& [value, text] : enum_names(NamedPadding{}))
    if (text == name) return value;
  throw_error<RuntimeError>({"Invalid padding string: '", name, "'"});
}
InterpolateMode interpolate_mode_of(std::string_view name) {
  for (const auto& [value, text] : enum_names(InterpolateMode{}))
    if (text == name) return value;
  throw_error<NotImplementedError>({"Input Error: there is no mode '", name, "' of interpolation"});
}
GridMode grid_mode_of(std::string_view name) {
  for (const auto& [value, text] : enum_names(GridMode{}))
    if (text == name) return value;
  throw_error<ValueError>(
      {"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but "
       "got: '",
       name, "'"});
}
GridPadding grid_padding_of(std::string_view name) {
  for (const auto& [value, text] : enum_names(GridPadding{}))
    if (text == name) return value;
  throw_error<ValueError>(
      {"nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or "
       "'reflection', but got: '",
       name, "'"});
}
BagMode bag_mode_of(std::string_view name) {
  for (const auto& [value, text] : enum_names(BagMode{}))
    if (text == name) return value;
  throw_error<ValueError>({"mode has to be one of sum, mean or max, not ", name});
}

#define TERCEL_FRACTIONAL_ENTRY(n)                                                                   \
  entry(                                                                                             \
      "_fractional_max_pool" #n "d(Tensor input, int[" #n "] kernel_size, int[" #n                   \
      "] output_size, Tensor? samples=None)",                                                        \
      [](const Tensor& x, const DimVector& kernel, const DimVector& size, const Tensor& samples) {   \
        const ValuesAndIndices r = fractional_max_pool##n##d_with_indices(x, kernel, size, samples); \
        return std::vector<Tensor>{r.values, r.indices};                                             \
      },                                                                                             \
      kNn)

/** Padding by name. */
#define TERCEL_CONV_ENTRY(n)                                                                                           \
  entry(                                                                                                               \
      "conv" #n "d(Tensor input, Tensor weight, Tensor? bias=None, int[" #n                                            \
      "] stride=1, str padding=\"valid\", int[" #n "] dilation=1, int groups=1)",                                      \
      [](const Tensor& x, const Tensor& weight, const Tensor& bias, const DimVector& stride, std::string_view padding, \
         const DimVector& dilation,                                                                                    \
         int64_t groups) { return conv##n##d(x, weight, bias, stride, padding_of(padding), dilation, groups); },       \
      kFunction | kNn)

}  // namespace

Span<Entry> nn_ops() {
  static const Entry table[] = {
      TERCEL_CONV_ENTRY(1),
      TERCEL_CONV_ENTRY(2),
      TERCEL_CONV_ENTRY(3),
      entry(
          "dropout(Tensor input, float p=0.5, bool training=True)",
          [](const Tensor& x, double p, bool training) { return dropout(x, p, training); }, kFunction | kNn),
      entry(
          "alpha_dropout(Tensor input, float p, bool train)",
          [](const Tensor& x, double p, bool train) { return alpha_dropout(x, p, train); }, kFunction),
      entry(
          "feature_dropout(Tensor input, float p, bool train)",
          [](const Tensor& x, double p, bool train) { return feature_dropout(x, p, train); }, kFunction),
      entry(
          "feature_alpha_dropout(Tensor input, float p, bool train)",
          [](const Tensor& x, double p, bool train) { return feature_alpha_dropout(x, p, train); }, kFunction),
      entry(
          "embedding(Tensor input, Tensor weight, int? padding_idx=None, bool scale_grad_by_freq=False, bool "
          "sparse=False)",
          [](const Tensor& indices, const Tensor& weight, std::optional<int64_t> padding, bool by_freq, bool sparse) {
            return embedding(weight, indices, padding, sparse, by_freq);
          },
          kNn),
      entry(
          "embedding(Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False, bool "
          "sparse=False)",
          [](const Tensor& weight, const Tensor& indices, int64_t padding, bool by_freq, bool sparse) {
            return embedding(weight, indices, padding < 0 ? std::nullopt : std::optional(padding), sparse, by_freq);
          },
          kFunction),
      entry(
          "embedding_renorm_(Tensor input, Tensor indices, float max_norm, float norm_type)",
          [](const Tensor& weight, const Tensor& indices, double max_norm, double norm_type) -> Tensor {
            return embedding_renorm_(weight, indices, max_norm, norm_type);
          },
          kFunction),
      entry(
          "embedding_bag(Tensor input, Tensor weight, Tensor? offsets=None, str mode=\"mean\", bool "
          "scale_grad_by_freq=False, bool sparse=False, Tensor? per_sample_weights=None, bool "
          "include_last_offset=False, int? padding_idx=None)",
          [](const Tensor& indices, const Tensor& weight, const Tensor& offsets, std::string_view mode, bool by_freq,
             bool sparse, const Tensor& weights, bool last, std::optional<int64_t> padding) {
            const EmbeddingBagOptions options{bag_mode_of(mode), last, padding, sparse, by_freq};
            if (!offsets.defined()) return embedding_bag(weight, indices, options, weights);
            return embedding_bag(weight, indices, offsets, options, weights);
          },
          kNn),
      entry(
          "batch_norm(Tensor input, Tensor? running_mean, Tensor? running_var, Tensor? weight=None, Tensor? "
          "bias=None, bool training=False, float momentum=0.1, float eps=1e-5)",
          [](const Tensor& x, const Tensor& mean, const Tensor& var, const Tensor& weight, const Tensor& bias,
             bool training, double momentum, double eps) {
            return batch_norm(x, mean, var, weight, bias, {training, momentum, eps});
          },
          kNn),
      entry(
          "_interpolate(Tensor input, int[] size, float[] scale_factor, str mode, bool? align_corners, bool "
          "recompute_scale_factor, bool antialias)",
          [](const Tensor& x, const DimVector& size, const std::vector<double>& factors, std::string_view mode,
             std::optional<bool> align, bool recompute, bool antialias) {
            // Mode "area" of volumes is adaptive_avg_pool3d(), which autocast runs in float32.
            return interpolate(
                mode == "area" && x.dim() == 5 ? autocast_float32(x) : x,
                {{size.begin(), size.end()}, factors, interpolate_mode_of(mode), align, recompute, antialias});
          },
          kNn),
      entry(
          "grid_sample(Tensor input, Tensor grid, str mode=\"bilinear\", str padding_mode=\"zeros\", bool? "
          "align_corners=None)",
          [](const Tensor& x, const Tensor& grid, std::string_view mode, std::string_view padding,
             std::optional<bool> align) {
            return grid_sample(x, grid, grid_mode_of(mode), grid_padding_of(padding), align.value_or(false));
          },
          kNn),
      entry(
          "affine_grid(Tensor theta, int[] size, bool? align_corners=None)",
          [](const Tensor& theta, const DimVector& size, std::optional<bool> align) {
            return affine_grid(theta, size, align.value_or(false));
          },
          kNn),
      entry(
          "unfold(Tensor input, int[2] kernel_size, int[2] dilation=1, int[2] padding=0, int[2] stride=1)",
          [](const Tensor& x, const DimVector& kernel, const DimVector& dilation, const DimVector& padding,
             const DimVector& stride) { return im2col(x, kernel, dilation, padding, stride); },
          kNn),
      entry(
          "fold(Tensor input, int[2] output_size, int[2] kernel_size, int[2] dilation=1, int[2] padding=0, int[2] "
          "stride=1)",
          [](const Tensor& x, const DimVector& size, const DimVector& kernel, const DimVector& dilation,
             const DimVector& padding,
             const DimVector& stride) { return col2im(x, size, kernel, dilation, padding, stride); },
          kNn),
      TERCEL_FRACTIONAL_ENTRY(2),
      TERCEL_FRACTIONAL_ENTRY(3),
      entry(
          "normalize(Tensor input, float p=2.0, int dim=1, float eps=1e-12, Tensor out=None)",
          [](const Tensor& x, double p, int64_t dim, double eps, const Tensor& out) {
            return into("normalize", out, normalize(x, p, dim, eps));
          },
          kNn),
      entry(
          "_trunc_normal_(Tensor tensor, float mean, float std, float a, float b)",
          [](const Tensor& x, double mean, double std, double a, double b) {
            return nn::init::trunc_normal_(x, mean, std, a, b);
          },
          kNn),
      entry(
          "_orthogonal_(Tensor tensor, float gain)",
          [](const Tensor& x, double gain) { return nn::init::orthogonal_(x, gain); }, kNn),
      entry(
          "_dirac_(Tensor tensor, int groups)",
          [](const Tensor& x, int64_t groups) { return nn::init::dirac_(x, groups); }, kNn),
      entry(
          "dot_interaction(Tensor? mlp, Tensor emb, bool pad=False)",
          [](const Tensor& mlp, const Tensor& emb, bool pad) { return dot_interaction(mlp, emb, pad); }, kNn),
      entry(
          "batched_embedding_bag(Tensor weight, Tensor keys, Tensor row_offsets, int slots, str mode=\"sum\")",
          [](const Tensor& weight, const Tensor& keys, const Tensor& offsets, int64_t slots, std::string_view mode) {
            return batched_embedding_bag(weight, keys, offsets, slots, bag_mode_of(mode));
          },
          kNn),
  };
  return table;
}

}  // namespace tercel::python
