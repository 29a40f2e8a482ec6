// Functions of network layers; losses are in ops_loss.cpp.
#include "python/src/op.h"
#include "python/src/out.h"
#include "tercel/nn/init_functions.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/embedding/batched_embedding_bag.h"
#include "tercel/ops/embedding/embedding.h"
#include "tercel/ops/embedding/embedding_bag.h"
#include "tercel/ops/nn/attention.h"
#include "tercel/ops/nn/batch_norm.h"
#include "tercel/ops/nn/conv.h"
#include "tercel/ops/nn/dropout.h"
#include "tercel/ops/nn/grid_sample.h"
#include "tercel/ops/nn/interaction.h"
#include "tercel/ops/nn/interpolate.h"
#include "tercel/ops/nn/linear.h"
#include "tercel/ops/nn/norm.h"
#include "tercel/ops/nn/pool.h"
#include "tercel/ops/nn/similarity.h"
#include "tercel/ops/nn/softmax.h"
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

#define TERCEL_UNPOOL_ENTRY(n)                                                                                     \
  entry(                                                                                                           \
      "max_unpool" #n "d(Tensor input, Tensor indices, int[" #n "] kernel_size, int[" #n "]? stride=None, int[" #n \
      "] padding=0, int[]? output_size=None)",                                                                     \
      [](const Tensor& x, const Tensor& indices, const DimVector& kernel, const std::optional<DimVector>& stride,  \
         const DimVector& padding, const std::optional<DimVector>& size) {                                         \
        return max_unpool##n##d(x, indices, kernel, stride.value_or(DimVector()), padding,                         \
                                size.value_or(DimVector()));                                                       \
      },                                                                                                           \
      kNn)
#define TERCEL_FRACTIONAL_ENTRY(n)                                                                   \
  entry(                                                                                             \
      "_fractional_max_pool" #n "d(Tensor input, int[" #n "] kernel_size, int[" #n                   \
      "] output_size, Tensor? samples=None)",                                                        \
      [](const Tensor& x, const DimVector& kernel, const DimVector& size, const Tensor& samples) {   \
        const ValuesAndIndices r = fractional_max_pool##n##d_with_indices(x, kernel, size, samples); \
        return std::vector<Tensor>{r.values, r.indices};                                             \
      },                                                                                             \
      kNn)

/** Entries for one, two and three dimensions; n is their number, and the length of integer lists. */
#define TERCEL_SPATIAL_ENTRIES(n)                                                                                      \
  entry(                                                                                                               \
      "conv" #n "d(Tensor input, Tensor weight, Tensor? bias=None, int[" #n "] stride=1, int[" #n                      \
      "] padding=0, int[" #n "] dilation=1, int groups=1)",                                                            \
      [](const Tensor& x, const Tensor& weight, const Tensor& bias, const DimVector& stride, const DimVector& padding, \
         const DimVector& dilation,                                                                                    \
         int64_t groups) { return conv##n##d(x, weight, bias, stride, padding, dilation, groups); },                   \
      kFunction | kNn),                                                                                                \
      entry(                                                                                                           \
          "conv" #n "d(Tensor input, Tensor weight, Tensor? bias=None, int[" #n                                        \
          "] stride=1, str padding=\"valid\", int[" #n "] dilation=1, int groups=1)",                                  \
          [](const Tensor& x, const Tensor& weight, const Tensor& bias, const DimVector& stride,                       \
             std::string_view padding, const DimVector& dilation,                                                      \
             int64_t groups) { return conv##n##d(x, weight, bias, stride, padding_of(padding), dilation, groups); },   \
          kFunction | kNn),                                                                                            \
      entry(                                                                                                           \
          "conv_transpose" #n "d(Tensor input, Tensor weight, Tensor? bias=None, int[" #n "] stride=1, int[" #n        \
          "] padding=0, int[" #n "] output_padding=0, int groups=1, int[" #n "] dilation=1)",                          \
          [](const Tensor& x, const Tensor& weight, const Tensor& bias, const DimVector& stride,                       \
             const DimVector& padding, const DimVector& more, int64_t groups, const DimVector& dilation) {             \
            return conv_transpose##n##d(x, weight, bias, stride, padding, more, groups, dilation);                     \
          },                                                                                                           \
          kFunction | kNn),                                                                                            \
      TERCEL_MAX_POOL_ENTRY(n, ), TERCEL_MAX_POOL_ENTRY(n, _with_indices), TERCEL_ADAPTIVE_POOL_ENTRY(n, avg),         \
      TERCEL_ADAPTIVE_POOL_ENTRY(n, max),
#define TERCEL_MAX_POOL_ENTRY(n, form)                                                                 \
  entry(                                                                                               \
      "max_pool" #n "d" #form "(Tensor input, int[" #n "] kernel_size, int[" #n "] stride=(), int[" #n \
      "] padding=0, int[" #n "] dilation=1, bool ceil_mode=False)",                                    \
      [](const Tensor& x, const DimVector& kernel, const DimVector& stride, const DimVector& padding,  \
         const DimVector& dilation,                                                                    \
         bool ceil) { return max_pool##n##d##form(x, kernel, stride, padding, dilation, ceil); },      \
      kFunction | kNn)
#define TERCEL_ADAPTIVE_POOL_ENTRY(n, kind)                                    \
  entry(                                                                       \
      "adaptive_" #kind "_pool" #n "d(Tensor input, int[" #n "] output_size)", \
      [](const Tensor& x, const DimVector& size) { return adaptive_##kind##_pool##n##d(x, size); }, kFunction | kNn)

}  // namespace

Span<Entry> nn_ops() {
  static const Entry table[] = {
      TERCEL_SPATIAL_ENTRIES(1) TERCEL_SPATIAL_ENTRIES(2) TERCEL_SPATIAL_ENTRIES(3) entry(
          "avg_pool1d(Tensor input, int[1] kernel_size, int[1] stride=(), int[1] padding=0, bool ceil_mode=False, bool "
          "count_include_pad=True)",
          [](const Tensor& x, const DimVector& kernel, const DimVector& stride, const DimVector& padding, bool ceil,
             bool count_pad) { return avg_pool1d(x, kernel, stride, padding, ceil, count_pad); },
          kFunction | kNn),
      entry(
          "avg_pool2d(Tensor input, int[2] kernel_size, int[2] stride=(), int[2] padding=0, bool ceil_mode=False, "
          "bool count_include_pad=True, int? divisor_override=None, *, Tensor out=None)",
          [](const Tensor& x, const DimVector& kernel, const DimVector& stride, const DimVector& padding, bool ceil,
             bool count_pad, std::optional<int64_t> divisor, const Tensor& out) {
            return into("avg_pool2d", out, avg_pool2d(x, kernel, stride, padding, ceil, count_pad, divisor));
          },
          kFunction | kNn),
      entry(
          "avg_pool3d(Tensor input, int[3] kernel_size, int[3] stride=(), int[3] padding=0, bool ceil_mode=False, "
          "bool count_include_pad=True, int? divisor_override=None, *, Tensor out=None)",
          [](const Tensor& x, const DimVector& kernel, const DimVector& stride, const DimVector& padding, bool ceil,
             bool count_pad, std::optional<int64_t> divisor, const Tensor& out) {
            return into("avg_pool3d", out, avg_pool3d(x, kernel, stride, padding, ceil, count_pad, divisor));
          },
          kFunction | kNn),
      entry(
          "softmax(Tensor input, int dim, dtype dtype=None, *, Tensor out=None)",
          [](const Tensor& x, int64_t dim, std::optional<ScalarType> type, const Tensor& out) {
            return into("softmax", out, softmax(x, dim, type.value_or(ScalarType::Undefined)));
          },
          kBoth | kNn),
      entry(
          "log_softmax(Tensor input, int dim, dtype dtype=None, *, Tensor out=None)",
          [](const Tensor& x, int64_t dim, std::optional<ScalarType> type, const Tensor& out) {
            return into("log_softmax", out, log_softmax(x, dim, type.value_or(ScalarType::Undefined)));
          },
          kBoth | kNn),
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
          "linear(Tensor input, Tensor weight, Tensor bias=None, *, Tensor out=None)",
          [](const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& out) {
            return into("linear", out, linear(x, weight, bias));
          },
          kNn),
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
          "layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-5)",
          [](const Tensor& x, const DimVector& shape, const Tensor& weight, const Tensor& bias, double eps) {
            return layer_norm(x, shape, weight, bias, eps);
          },
          kFunction | kNn),
      entry(
          "rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None)",
          [](const Tensor& x, const DimVector& shape, const Tensor& weight, std::optional<double> eps) {
            return rms_norm(x, shape, weight, eps);
          },
          kFunction | kNn),
      entry(
          "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-5)",
          [](const Tensor& x, int64_t groups, const Tensor& weight, const Tensor& bias, double eps) {
            return group_norm(x, groups, weight, bias, eps);
          },
          kFunction | kNn),
      entry(
          "instance_norm(Tensor input, Tensor? running_mean=None, Tensor? running_var=None, Tensor? weight=None, "
          "Tensor? bias=None, bool use_input_stats=True, float momentum=0.1, float eps=1e-5)",
          [](const Tensor& x, const Tensor& mean, const Tensor& var, const Tensor& weight, const Tensor& bias,
             bool use_input_stats, double momentum,
             double eps) { return instance_norm(x, mean, var, weight, bias, use_input_stats, momentum, eps); },
          kNn),
      entry(
          "local_response_norm(Tensor input, int size, float alpha=1e-4, float beta=0.75, float k=1.0)",
          [](const Tensor& x, int64_t size, double alpha, double beta, double k) {
            return local_response_norm(x, size, alpha, beta, k);
          },
          kNn),
      entry(
          "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float "
          "dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False)",
          [](const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask, double p, bool causal,
             std::optional<double> scale, bool enable_gqa) {
            return scaled_dot_product_attention(query, key, value, mask, p, causal, scale, enable_gqa);
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
          "pixel_shuffle(Tensor input, int upscale_factor)",
          [](const Tensor& x, int64_t factor) { return pixel_shuffle(x, factor); }, kFunction | kNn),
      entry(
          "pixel_unshuffle(Tensor input, int downscale_factor)",
          [](const Tensor& x, int64_t factor) { return pixel_unshuffle(x, factor); }, kFunction | kNn),
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
      TERCEL_UNPOOL_ENTRY(1),
      TERCEL_UNPOOL_ENTRY(2),
      TERCEL_UNPOOL_ENTRY(3),
      TERCEL_FRACTIONAL_ENTRY(2),
      TERCEL_FRACTIONAL_ENTRY(3),
      entry(
          "cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-8)",
          [](const Tensor& a, const Tensor& b, int64_t dim, double eps) { return cosine_similarity(a, b, dim, eps); },
          kFunction | kNn),
      entry(
          "pairwise_distance(Tensor x1, Tensor x2, float p=2.0, float eps=1e-6, bool keepdim=False)",
          [](const Tensor& a, const Tensor& b, double p, double eps, bool keepdim) {
            return pairwise_distance(a, b, p, eps, keepdim);
          },
          kFunction | kNn),
      entry(
          "normalize(Tensor input, float p=2.0, int dim=1, float eps=1e-12, Tensor out=None)",
          [](const Tensor& x, double p, int64_t dim, double eps, const Tensor& out) {
            return into("normalize", out, normalize(x, p, dim, eps));
          },
          kNn),
      entry(
          "glu(Tensor input, int dim=-1)", [](const Tensor& x, int64_t dim) { return glu(x, dim); }, kNn),
      entry(
          "one_hot(Tensor tensor, int num_classes=-1)",
          [](const Tensor& x, int64_t classes) { return one_hot(x, classes); }, kNn),
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
          "fm_order2(Tensor input, int dim)", [](const Tensor& x, int64_t dim) { return fm_order2(x, dim); }, kNn),
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
