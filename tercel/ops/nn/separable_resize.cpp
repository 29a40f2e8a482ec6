#include "tercel/ops/nn/separable_resize_impl.h"

#include <algorithm>

#include "tercel/autograd/record.h"
#include "tercel/core/allocator.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/nn/pool_kernels.h"
#include "tercel/ops/nn/spatial_impl.h"
#include "tercel/util/parallel.h"

namespace tercel {

namespace {

constinit const KernelTable<SeparableResizeFn> separable_resize_dim_kernels = TERCEL_CPU_KERNELS(separable_resize_dim);

constexpr int64_t kGrainElements = 16384;

// A map and its transpose, shared by an op and all of its gradients.
struct MapPair {
  SpatialMap map, transposed;
};

// Whether the map sums all elements.
bool is_sum(const SpatialMap& map) {
  for (const Taps& taps : map.taps) {
    if (taps.out() != 1 || static_cast<int64_t>(taps.index.size()) != taps.in) return false;
    for (int64_t i = 0; i < taps.in; ++i)
      if (taps.index[static_cast<size_t>(i)] != i || taps.weight[static_cast<size_t>(i)] != 1) return false;
  }
  return true;
}

Tensor run(const Tensor& x, size_t dims, const SpatialMap& map) {
  const bool last = is_channels_last(x, dims);
  const Tensor input = last ? x : contiguous(x);
  DimVector sizes(x.sizes());
  SeparableResizeLoop loop{};
  loop.wide = x.dtype() == kFloat64;
  loop.inner = last ? x.size(1) : 1;
  loop.divisor = map.divisor;
  loop.whole = is_sum(map);
  std::vector<float> narrow[3];
  for (size_t d = 0; d < 3; ++d) {
    const Taps& taps = map.taps[d];
    loop.in[d] = taps.in;
    loop.out[d] = taps.out();
    loop.begin[d] = taps.begin.data();
    loop.index[d] = taps.index.data();
    loop.weight[d] = taps.weight.data();
    if (!loop.wide) {
      narrow[d].assign(taps.weight.begin(), taps.weight.end());
      loop.weight[d] = narrow[d].data();
    }
    if (d + dims >= 3) sizes[sizes.size() - 3 + d] = taps.out();
  }
  const Tensor out = last ? empty_strided(sizes, strides_for(sizes, channels_last_format(x.dim())), x.options())
                          : empty(sizes, x.options());
  if (out.numel() == 0) return out;
  loop.x = input.data_ptr();
  loop.out_values = out.data_ptr();
  const auto kernel = separable_resize_dim_kernels[x.device()];
  const int64_t width = loop.in[2] * loop.inner, out_width = loop.out[2] * loop.inner;
  const int64_t work = loop.whole ? width * loop.in[1] * loop.in[0] : std::max(width, out_width);
  parallel_for(0, out.numel() / out_width, std::max<int64_t>(1, kGrainElements / work),
               [&](int64_t begin, int64_t end) {
                 const DataPtr scratch = cpu_allocator().allocate(static_cast<size_t>(width) * sizeof(double));
                 kernel(loop, scratch.get(), begin, end);
               });
  return out;
}

Tensor separable_resize(const char* backward_name, const Tensor& x, size_t dims,
                        const std::shared_ptr<const MapPair>& maps, bool transposed) {
  Tensor out;
  {
    const NoRecordGuard no_record;
    out = run(x, dims, transposed ? maps->transposed : maps->map);
  }
  if (should_record(x))
    record(backward_name, out, {x}, [backward_name, dims, maps, transposed](BackwardCall& call) {
      call.set(0, separable_resize(backward_name, call.grad(), dims, maps, !transposed));
    });
  return out;
}

}  // namespace

Taps Taps::identity(int64_t size) {
  Taps taps;
  taps.in = size;
  for (int64_t i = 0; i < size; ++i) {
    taps.add(i, 1);
    taps.end_output();
  }
  return taps;
}

Taps Taps::transposed() const {
  Taps t;
  t.in = out();
  t.begin.assign(static_cast<size_t>(in) + 1, 0);
  for (const int64_t i : index) ++t.begin[static_cast<size_t>(i) + 1];
  for (size_t i = 1; i < t.begin.size(); ++i) t.begin[i] += t.begin[i - 1];
  t.index.resize(index.size());
  t.weight.resize(index.size());
  std::vector<int64_t> next(t.begin.begin(), t.begin.end() - 1);
  for (int64_t o = 0; o < out(); ++o)
    for (int64_t k = begin[static_cast<size_t>(o)]; k < begin[static_cast<size_t>(o) + 1]; ++k) {
      const auto at = static_cast<size_t>(next[static_cast<size_t>(index[static_cast<size_t>(k)])]++);
      t.index[at] = o;
      t.weight[at] = weight[static_cast<size_t>(k)];
    }
  return t;
}

void check_room(const Tensor& x, size_t dims, const Spatial& out) {
  DimVector sizes(x.sizes());
  std::copy_n(out.end() - static_cast<ptrdiff_t>(dims), dims, sizes.end() - static_cast<ptrdiff_t>(dims));
  empty(sizes, x.options());
}

Tensor separable_resize(const char* backward_name, const Tensor& x, size_t dims, SpatialMap map) {
  if (x.dtype() == kFloat16 || x.dtype() == kBFloat16)
    return to(separable_resize(backward_name, to(x, kFloat32), dims, std::move(map)), x.dtype());
  MapPair pair;
  pair.transposed.divisor = map.divisor;
  for (size_t d = 0; d < 3; ++d) pair.transposed.taps[d] = map.taps[d].transposed();
  pair.map = std::move(map);
  return separable_resize(backward_name, x, dims, std::make_shared<const MapPair>(std::move(pair)), false);
}

}  // namespace tercel
