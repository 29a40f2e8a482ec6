#include "tercel/ops/nn/unpool.h"

#include <algorithm>

#include "tercel/autograd/grad_mode.h"
#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/index/scatter.h"
#include "tercel/ops/random/random.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/cat.h"
#include "tercel/ops/views/views.h"

namespace tercel {

namespace {

/** Expands a list to one number per dimension; RuntimeError for a list of another length. */
DimVector each(const char* op, const char* name, IntSpan list, size_t dims) {
  TERCEL_CHECK(list.size() == 1 || list.size() == dims, RuntimeError, op, ": ", name, " must be one number or ", dims,
               " but got ", list);
  DimVector out;
  for (size_t d = 0; d < dims; ++d) out.push_back(list[list.size() == 1 ? 0 : d]);
  return out;
}

std::string with_times(IntSpan sizes) {
  std::string out;
  for (const int64_t size : sizes) out += str_cat({out.empty() ? "" : "x", size});
  return out;
}

DimVector with_sizes(IntSpan lead, IntSpan sizes) {
  DimVector out(lead);
  for (const int64_t size : sizes) out.push_back(size);
  return out;
}

// ---- max unpooling

/** The sizes before pooling: what the windows span, or given sizes with the same windows. */
DimVector unpooled_sizes(const char* op, IntSpan pooled, const DimVector& kernel, const DimVector& stride,
                         IntSpan padding_list, IntSpan given) {
  const size_t dims = kernel.size();
  const DimVector padding = each(op, "padding", padding_list, dims);
  DimVector least;
  for (size_t d = 0; d < dims; ++d)
    least.push_back((pooled[pooled.size() - dims + d] - 1) * stride[d] - 2 * padding[d] + kernel[d]);
  if (given.empty()) return least;
  if (given.size() == dims + 2) given = given.subspan(2, dims);
  TERCEL_CHECK(given.size() == dims, ValueError, "output_size should be a sequence containing ", dims, " or ", dims + 2,
               " elements, but it has a length of '", given.size(), "'");
  for (size_t d = 0; d < dims; ++d)
    TERCEL_CHECK(least[d] - stride[d] < given[d] && given[d] < least[d] + stride[d], ValueError,
                 "invalid output_size \"", given, "\" (dim ", d, " must be between ", least[d] - stride[d], " and ",
                 least[d] + stride[d], ")");
  return DimVector(given);
}

Tensor max_unpool(const char* op, size_t dims, const Tensor& x, const Tensor& indices, IntSpan kernel_size,
                  IntSpan stride_list, IntSpan padding, IntSpan output_size) {
  check_strided(op, x, "input");
  check_strided(op, indices, "indices");
  const DimVector kernel = each(op, "kernel_size", kernel_size, dims),
                  stride = each(op, "stride", stride_list.empty() ? kernel_size : stride_list, dims);
  TERCEL_CHECK(*std::min_element(stride.begin(), stride.end()) > 0, RuntimeError,
               "strides should be greater than zero, but got stride: ", IntSpan(stride));
  TERCEL_CHECK(indices.dtype() == kInt64, RuntimeError,
               "elements in indices should be type int64 but got: ", scalar_type_word(indices.dtype()));
  const auto rank = static_cast<size_t>(x.dim());
  TERCEL_CHECK(rank == dims + 1 || rank == dims + 2, RuntimeError, "Input to max_unpooling", dims, "d should be a ",
               dims + 1, "d or ", dims + 2, "d Tensor, but got a tensor with ", rank, " dimensions.");
  TERCEL_CHECK(indices.sizes() == x.sizes(), RuntimeError,
               "Expected shape of indices to be same as that of the input tensor (", x.sizes(),
               ") but got indices tensor with shape: ", indices.sizes());
  const DimVector sizes = unpooled_sizes(op, x.sizes(), kernel, stride, padding, output_size);
  const IntSpan lead = x.sizes().subspan(0, rank - dims);
  const int64_t pixels = numel_of(sizes), first = -static_cast<int64_t>(dims);
  const Tensor at = flatten(indices, first);
  if (at.numel() > 0) {
    const int64_t least = min(at).item<int64_t>(), most = max(at).item<int64_t>();
    TERCEL_CHECK(least >= 0 && most < pixels, RuntimeError,
                 "Found an invalid max index: ", most >= pixels ? most : least, " (output volumes are of size ",
                 with_times(sizes), ")");
  }
  const Tensor blank = zeros(with_sizes(lead, {pixels}), TensorOptions(x.dtype(), x.device()));
  return view(scatter(blank, -1, at, flatten(x, first)), with_sizes(lead, sizes));
}

// ---- fractional max pooling

void check_fractional(const char* op, const Tensor& x, const DimVector& window, const DimVector& out) {
  const auto dims = static_cast<int64_t>(window.size());
  TERCEL_CHECK(x.dim() == dims + 1 || x.dim() == dims + 2, RuntimeError, op, "(): Expected ", dims + 1, "D or ",
               dims + 2, "D tensor, but got: ", x.sizes());
  for (int64_t d = x.dim() - dims - 1; d < x.dim(); ++d)
    TERCEL_CHECK(x.size(d) != 0, RuntimeError, op,
                 "(): Expected input to have non-zero size for non-batch dimensions, but got", x.sizes(),
                 " with dimension ", d, " being empty.");
  TERCEL_CHECK(*std::min_element(window.begin(), window.end()) > 0, RuntimeError, op,
               "(): kernel size should be greater than zero, but got ", with_times(window));
  TERCEL_CHECK(*std::min_element(out.begin(), out.end()) > 0, RuntimeError, op,
               "(): output size should be greater than zero, but got ", with_times(out));
  constexpr const char* kSides[] = {"time", "height", "width"};
  for (int64_t d = 0; d < dims; ++d) {
    const auto i = static_cast<size_t>(d);
    TERCEL_CHECK(out[i] + window[i] - 1 <= x.size(d - dims), RuntimeError, op, "(): pool ", kSides[3 - dims + d], " ",
                 window[i], " too large relative to input ", kSides[3 - dims + d], " ", x.size(d - dims));
  }
}

void check_samples(const Tensor& x, const Tensor& samples, int64_t n, int64_t dims) {
  TERCEL_CHECK(samples.dtype() == x.dtype(), RuntimeError, "Expect _random_samples to have the same dtype as input");
  TERCEL_CHECK(samples.dim() == 3, RuntimeError, "Expect _random_samples to have 3 dimensions, got ", samples.dim());
  TERCEL_CHECK(samples.size(0) >= n, RuntimeError, "Expect _random_samples.size(0) no less than input batch size.");
  TERCEL_CHECK(samples.size(1) == x.size(-dims - 1), RuntimeError,
               "Expect _random_samples.size(1) equals to input channel size.");
  TERCEL_CHECK(samples.size(2) == dims, RuntimeError, "Expect _random_samples.size(2) equals to ", dims, "; got ",
               samples.size(2), ".");
}

/** Start of each window of a dimension [n, channels, out], from one number in [0, 1) per channel. */
Tensor window_starts(const Tensor& samples, int64_t size, int64_t out, int64_t window) {
  const Tensor last = full(with_sizes(samples.sizes(), {1}), size - window, kInt64);
  if (out == 1) return last;
  const double step = static_cast<double>(size - window) / static_cast<double>(out - 1);
  const Tensor shift = unsqueeze(samples, -1), at = add(arange(0, out - 1, 1, samples.dtype()), shift);
  return cat({sub(to(mul(at, step), kInt64), to(mul(shift, step), kInt64)), last}, -1);
}

/** The pixels of every window: [n, channels, windows, pixels per window]. */
Tensor pixels_of_windows(const Tensor& samples, IntSpan sizes, const DimVector& out, const DimVector& window) {
  const size_t dims = window.size();
  const int64_t n = samples.size(0), channels = samples.size(1);
  Tensor at = zeros({n, channels, 1, 1}, kInt64);
  for (size_t d = 0; d < dims; ++d) {
    // PyTorch's order of the numbers: in two dimensions the width comes first.
    const Tensor number = select(samples, 2, static_cast<int64_t>(dims == 2 ? 1 - d : d));
    const Tensor starts = window_starts(number, sizes[d], out[d], window[d]);
    const Tensor places = add(unsqueeze(starts, -1), arange(window[d]));
    const Tensor rows = unsqueeze(unsqueeze(mul(at, sizes[d]), 3), 5);
    at = reshape(add(rows, unsqueeze(unsqueeze(places, 2), 4)),
                 {n, channels, at.size(2) * out[d], at.size(3) * window[d]});
  }
  return at;
}

ValuesAndIndices fractional(const char* op, size_t dims, const Tensor& x, IntSpan kernel_size, IntSpan output_size,
                            Tensor samples) {
  check_strided(op, x, "input");
  const DimVector window = each(op, "kernel_size", kernel_size, dims), out = each(op, "output_size", output_size, dims);
  check_fractional(op, x, window, out);
  const auto count = static_cast<int64_t>(dims);
  const int64_t channels = x.size(-count - 1), n = x.dim() == count + 2 ? x.size(0) : 1;
  if (!samples.defined()) samples = rand({n, channels, count}, TensorOptions(x.dtype(), x.device()));
  check_samples(x, samples, n, count);
  const IntSpan sizes = x.sizes().subspan(x.sizes().size() - dims, dims);
  const Tensor flat = reshape(x, {n, channels, numel_of(sizes)});
  Tensor indices;
  {
    const NoRecordGuard no_record;
    const Tensor at = pixels_of_windows(slice(samples, 0, 0, n), sizes, out, window);
    const Tensor values = view(gather(flat, -1, flatten(at, -2)), at.sizes());
    indices = squeeze(gather(at, -1, argmax(values, -1, true)), -1);
  }
  const DimVector shape = with_sizes(x.sizes().subspan(0, x.sizes().size() - dims), out);
  return {view(gather(flat, -1, indices), shape), view(indices, shape)};
}

}  // namespace

#define TERCEL_MAX_UNPOOL(n)                                                                           \
  Tensor max_unpool##n##d(const Tensor& x, const Tensor& indices, IntSpan kernel_size, IntSpan stride, \
                          IntSpan padding, IntSpan output_size) {                                      \
    return max_unpool("max_unpool" #n "d", n, x, indices, kernel_size, stride, padding, output_size);  \
  }
#define TERCEL_FRACTIONAL(n)                                                                                         \
  ValuesAndIndices fractional_max_pool##n##d_with_indices(const Tensor& x, IntSpan kernel_size, IntSpan output_size, \
                                                          const Tensor& random_samples) {                            \
    return fractional("fractional_max_pool" #n "d", n, x, kernel_size, output_size, random_samples);                 \
  }                                                                                                                  \
  Tensor fractional_max_pool##n##d(const Tensor& x, IntSpan kernel_size, IntSpan output_size,                        \
                                   const Tensor& random_samples) {                                                   \
    return fractional_max_pool##n##d_with_indices(x, kernel_size, output_size, random_samples).values;               \
  }
TERCEL_MAX_UNPOOL(1)
TERCEL_MAX_UNPOOL(2)
TERCEL_MAX_UNPOOL(3)
TERCEL_FRACTIONAL(2)
TERCEL_FRACTIONAL(3)
#undef TERCEL_MAX_UNPOOL
#undef TERCEL_FRACTIONAL

}  // namespace tercel
