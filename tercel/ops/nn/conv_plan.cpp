// Convolutions by matrix products.
//
// Note [Convolution loops]
//   for each tile of output positions:   a matrix of patches that fits the L2 cache is gathered, then multiplied:
//     channels first:  y [outputs][positions] = weight [outputs][channels * window] patches [channels *
//     window][positions]; a forward pass with many outputs gathers patches directly into the product's packed panels
//     channels last:   y [positions][outputs] = patches [positions][window * channels] weight^T
// Tiles run on different threads; with fewer tiles than threads the products themselves use several. A window of one
// pixel needs no patches. The gradient of x is the reverse: a product gives patches, which are then added to the image.
// The gradient of the weight sums products over tiles, with one sum per thread.
//
// Channels first is slow if an image has few positions (one product per image); the caller then converts to channels
// last, where the positions of all images are rows of one matrix.
//
// Channels-last depthwise convolutions do not use products: vectors hold channels, and taps are accumulated
// (depthwise.cpp).
#include "tercel/ops/nn/conv_plan_impl.h"

#include <algorithm>
#include <cstring>

#include "tercel/ops/linalg/gemm_impl.h"
#include "tercel/ops/nn/depthwise_impl.h"
#include "tercel/util/ceil_div.h"
#include "tercel/util/parallel.h"

namespace tercel {

namespace {

constinit const KernelTable<PatchFn> gather_kernels = TERCEL_CPU_KERNELS(gather_patches);
constinit const KernelTable<PatchPanelsFn> panel_kernels = TERCEL_CPU_KERNELS(gather_panels);
constinit const KernelTable<PatchFn> scatter_kernels = TERCEL_CPU_KERNELS(scatter_patches);

// Bytes of a tile's patches: with packed operands they fit an L2 cache of 1 MiB.
constexpr int64_t kTileBytes = 768 << 10;
constexpr int64_t kLeastPositions = 96;
// Maximum size of a padded image. Beyond it (large strides, much padding) patches are gathered directly.
constexpr int64_t kMaxPadded = 1 << 24;
// Minimum number of outputs for which patches are gathered as packed panels.
constexpr int64_t kPanelOutputs = 32;

template <class T>
class Convolution {
 public:
  explicit Convolution(const ConvPlan& plan) : plan_(plan) {
    group_channels_ = plan.channels / plan.groups;
    group_outputs_ = plan.outputs / plan.groups;
    loop_ = loop_of<PatchLoop>(plan, sizeof(T) == 8, group_channels_);
    loop_.channels_last = plan.channels_last;
    loop_.pixel = plan.channels;
    plain_ = plan.window() == 1;
    for (int d = 0; d < 3; ++d) plain_ = plain_ && plan.sees_all_once(d);
    depth_ = group_channels_ * plan.window();
    const int64_t fitting = kTileBytes / std::max<int64_t>(1, depth_ * static_cast<int64_t>(sizeof(T)));
    const int64_t all = plan.channels_last ? plan.n * plan.out_pixels() : plan.out_pixels();
    // At least one tile per thread, if there are enough positions.
    const int64_t share = ceil_div(plan.channels_last ? all : plan.n * all, num_threads());
    tile_ = std::max(std::min(fitting, share) / 16 * 16, kLeastPositions);
    tile_ = std::min(tile_, std::max<int64_t>(all, 1));
    // Tiles have equal sizes.
    tiles_ = std::max<int64_t>(1, ceil_div(all, tile_));
    tile_ = ceil_div(std::max<int64_t>(all, 1), tiles_);
    panels_ = !plain_ && !plan.channels_last && group_outputs_ >= kPanelOutputs && is_plane() && plan.out[2] <= tile_ &&
              padded_image_is_small();
    if (panels_) tile_ = std::min(ceil_div(tile_, panel_.columns) * panel_.columns, std::max<int64_t>(all, 1));
    tiles_ = std::max<int64_t>(1, ceil_div(all, tile_));
    // Channels-last tiles span images.
    tasks_ = plan.channels_last ? tiles_ : plan.n * tiles_;
  }

  void forward(const T* x, const T* weight, const T* bias, T* y) const {
    parallel_for(0, tasks_, 1, [&](int64_t begin, int64_t end) {
      const ConvBuffer<T> patches(plain_    ? 0
                                  : panels_ ? ceil_div(tile_, panel_.columns) * panel_step()
                                            : depth_ * tile_);
      const ConvBuffer<T> padded(panels_ ? most_padded() : 0);
      for (int64_t task = begin; task < end; ++task)
        for (int64_t group = 0; group < plan_.groups; ++group) {
          const Tile t = tile(task, group);
          Gemm<T> g;
          const T* matrix = panels_ ? gather_as_panels(t, x, padded.get(), patches.get()) : gather(t, x, patches.get());
          const T* w = weight + group * group_outputs_ * depth_;
          g.k = depth_;
          if (plan_.channels_last) {
            g.m = t.count;
            g.n = group_outputs_;
            g.a = matrix;
            g.lda = plain_ ? plan_.channels : depth_;
            g.b = w;
            g.ldb = depth_;
            g.trans_b = true;
            g.c = y + t.y;
            g.ldc = plan_.outputs;
            g.bias = bias ? bias + group * group_outputs_ : nullptr;
          } else {
            g.m = group_outputs_;
            g.n = t.count;
            g.a = w;
            g.lda = depth_;
            g.b = matrix;
            g.ldb = plain_ ? plan_.out_pixels() : t.count;
            g.b_panel_step = panels_ ? panel_step() : 0;
            g.c = y + t.y;
            g.ldc = plan_.out_pixels();
            if (bias) {
              g.beta = 1;
              for (int64_t o = 0; o < group_outputs_; ++o)
                std::fill_n(g.c + o * g.ldc, t.count, bias[group * group_outputs_ + o]);
            }
          }
          gemm(g);
        }
    });
  }

  void input(const T* y, const T* weight, T* x) const {
    // Images are independent; the patches of an image overlap.
    parallel_for(0, plan_.n, 1, [&](int64_t begin, int64_t end) {
      const ConvBuffer<T> patches(plain_ ? 0 : depth_ * tile_);
      if (!plain_) std::fill_n(x + begin * image_size(), (end - begin) * image_size(), T(0));
      for (int64_t image = begin; image < end; ++image) {
        for (int64_t first = 0; first < plan_.out_pixels(); first += tile_) {
          for (int64_t group = 0; group < plan_.groups; ++group) {
            const Tile t = piece(image, first, std::min(tile_, plan_.out_pixels() - first), group);
            const T* w = weight + group * group_outputs_ * depth_;
            T* to = plain_ ? x + t.x + (plan_.channels_last ? first * plan_.channels : first) : patches.get();
            Gemm<T> g;
            g.k = group_outputs_;
            g.c = to;
            if (plan_.channels_last) {
              g.m = t.count;
              g.n = depth_;
              g.a = y + t.y;
              g.lda = plan_.outputs;
              g.b = w;
              g.ldb = depth_;
              g.ldc = plain_ ? plan_.channels : depth_;
            } else {
              g.m = depth_;
              g.n = t.count;
              g.a = w;
              g.lda = depth_;
              g.trans_a = true;
              g.b = y + t.y;
              g.ldb = plan_.out_pixels();
              g.ldc = plain_ ? plan_.out_pixels() : t.count;
            }
            gemm(g);
            if (!plain_) scatter_kernels[kCpu](loop_, x + t.x, to, first, first + t.count);
          }
        }
      }
    });
  }

  void weight(const T* x, const T* y, T* weight) const {
    const int64_t size = plan_.outputs * depth_;
    if (tasks_ == 0 || plan_.n == 0) {
      std::fill_n(weight, size, T(0));
      return;
    }
    const Partition partition(0, tasks_, 1);
    const ConvBuffer<T> others((partition.chunks() - 1) * size);
    partition.run([&](int64_t chunk, int64_t begin, int64_t end) {
      const ConvBuffer<T> patches(plain_ ? 0 : depth_ * tile_);
      T* sum = chunk == 0 ? weight : others.get() + (chunk - 1) * size;
      for (int64_t task = begin; task < end; ++task)
        for (int64_t group = 0; group < plan_.groups; ++group) {
          const Tile t = tile(task, group);
          const T* matrix = gather(t, const_cast<T*>(x), patches.get());
          Gemm<T> g;
          g.m = group_outputs_;
          g.n = depth_;
          g.k = t.count;
          g.a = y + t.y;
          g.b = matrix;
          g.c = sum + group * group_outputs_ * depth_;
          g.ldc = depth_;
          g.beta = task == begin ? T(0) : T(1);
          if (plan_.channels_last) {
            g.lda = plan_.outputs;
            g.trans_a = true;
            g.ldb = plain_ ? plan_.channels : depth_;
          } else {
            g.lda = plan_.out_pixels();
            g.ldb = plain_ ? plan_.out_pixels() : t.count;
            g.trans_b = true;
          }
          gemm(g);
        }
    });
    for (int64_t chunk = 1; chunk < partition.chunks(); ++chunk) {
      const T* part = others.get() + (chunk - 1) * size;
      for (int64_t i = 0; i < size; ++i) weight[i] += part[i];
    }
  }

 private:
  // Positions of one group: their offset in y, and the offset of their image in x.
  struct Tile {
    int64_t image, first, count, x, y;
  };

  int64_t image_size() const { return plan_.channels * plan_.in_pixels(); }

  Tile piece(int64_t image, int64_t first, int64_t count, int64_t group) const {
    Tile t{image, first, count, image * image_size(), image * plan_.outputs * plan_.out_pixels()};
    t.x += group * group_channels_ * (plan_.channels_last ? 1 : plan_.in_pixels());
    t.y += plan_.channels_last ? first * plan_.outputs + group * group_outputs_
                               : group * group_outputs_ * plan_.out_pixels() + first;
    return t;
  }
  Tile tile(int64_t task, int64_t group) const {
    if (!plan_.channels_last) {
      const int64_t first = task % tiles_ * tile_;
      return piece(task / tiles_, first, std::min(tile_, plan_.out_pixels() - first), group);
    }
    const int64_t first = task * tile_, pixels = plan_.out_pixels();
    Tile t = piece(first / pixels, first % pixels, 0, group);
    t.count = std::min(tile_, plan_.n * pixels - first);
    return t;
  }

  // Gathers the patches of a tile into `patches`, unless they can be read in place.
  const T* gather(const Tile& t, const T* x, T* patches) const {
    T* image = const_cast<T*>(x) + t.x;
    if (plain_) return image + (plan_.channels_last ? t.first * plan_.channels : t.first);
    const auto kernel = gather_kernels[kCpu];
    int64_t first = t.first, done = 0;
    while (done < t.count) {
      const int64_t count = std::min(t.count - done, plan_.out_pixels() - first);
      kernel(loop_, image, patches + done * depth_, first, first + count);
      done += count;
      first = 0;
      image += image_size();
    }
    return patches;
  }

  /** Whether the first of three dimensions is trivial. */
  bool is_plane() const {
    return plan_.in[0] == 1 && plan_.kernel[0] == 1 && plan_.out[0] == 1 && plan_.padding[0] == 0;
  }
  int64_t panel_step() const { return depth_ * panel_.columns + panel_.gap; }
  bool padded_image_is_small() const {
    // Strides and padding may be so large that the product does not fit in 64 bits.
    const auto number = [](int64_t n) { return static_cast<double>(n); };
    const double rows =
        number(most_rows()) * number(plan_.stride[1]) + number(plan_.kernel[1]) * number(plan_.dilation[1]);
    const double width = number(plan_.in[2]) + 2 * number(plan_.padding[2]) + number(plan_.stride[2]);
    return number(group_channels_) * rows * width <= number(kMaxPadded);
  }
  int64_t padded_width() const {
    return ceil_div(plan_.in[2] + 2 * plan_.padding[2], plan_.stride[2]) * plan_.stride[2];
  }
  /** Rows of the padded image that are read for a number of output rows. */
  int64_t padded_rows(int64_t rows) const {
    return (rows - 1) * plan_.stride[1] + (plan_.kernel[1] - 1) * plan_.dilation[1] + 1;
  }
  /** Maximum number of output rows that a tile touches. */
  int64_t most_rows() const { return std::min(ceil_div(tile_, plan_.out[2]) + 1, plan_.out[1]); }
  int64_t most_padded() const {
    return group_channels_ * padded_rows(most_rows()) * padded_width() + patch_slack(panel_.columns);
  }
  // Gathers the patches of a tile in a product's packed layout.
  const T* gather_as_panels(const Tile& t, const T* x, T* padded, T* patches) const {
    const int64_t row = t.first / plan_.out[2], last = (t.first + t.count - 1) / plan_.out[2];
    const PatchPanels to{padded,         row * plan_.stride[1], padded_rows(last - row + 1),
                         padded_width(), panel_.columns,        panel_step()};
    panel_kernels[kCpu](loop_, to, x + t.x, patches, t.first, t.first + t.count);
    return patches;
  }

  const ConvPlan& plan_;
  PatchLoop loop_{};
  GemmPanel panel_ = gemm_panel<T>();
  int64_t group_channels_ = 0, group_outputs_ = 0;
  int64_t depth_ = 0;  // elements of a patch in one group
  int64_t tile_ = 1, tiles_ = 1, tasks_ = 0;
  bool plain_ = false;   // the patches are the image itself
  bool panels_ = false;  // forward gathers patches as panels
};

/**
 * An equivalent convolution with longer lines: if windows are one pixel wide and the stride is one pixel, all lines of
 * an image are joined into one, in which a step to the next line becomes a dilation.
 */
ConvPlan with_merged_rows(ConvPlan plan) {
  for (int i = 0; i < 2 && plan.kernel[2] == 1 && plan.sees_all_once(2) && plan.stride[1] == 1; ++i) {
    const int64_t width = plan.in[2];
    int64_t dilation = 0, padding = 0;
    if (__builtin_mul_overflow(plan.dilation[1], width, &dilation) ||
        __builtin_mul_overflow(plan.padding[1], width, &padding))
      break;
    plan.in[2] = plan.in[1] * width;
    plan.out[2] = plan.out[1] * width;
    plan.kernel[2] = plan.kernel[1];
    plan.dilation[2] = dilation;
    plan.padding[2] = padding;
    plan.in[1] = plan.in[0];
    plan.out[1] = plan.out[0];
    plan.kernel[1] = plan.kernel[0];
    plan.stride[1] = plan.stride[0];
    plan.padding[1] = plan.padding[0];
    plan.dilation[1] = plan.dilation[0];
    plan.in[0] = plan.out[0] = plan.kernel[0] = plan.stride[0] = plan.dilation[0] = 1;
    plan.padding[0] = 0;
  }
  return plan;
}

/** Calls fn with the object that computes the plan. */
template <class T, class Fn>
void with_method(const ConvPlan& given, Fn fn) {
  const ConvPlan plan = with_merged_rows(given);
  if (Depthwise<T>::fits(plan))
    fn(Depthwise<T>(plan));
  else
    fn(Convolution<T>(plan));
}

template <class Fn>
void visit(ScalarType dtype, Fn&& fn) {
  visit_types<float, double>("convolution", dtype, fn);
}

void* at_image(const Tensor& t, int64_t image, int64_t size) {
  return static_cast<std::byte*>(t.data_ptr()) + image * size * static_cast<int64_t>(t.itemsize());
}

}  // namespace

void run_convolution(const ConvPlan& plan, const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y) {
  visit(x.dtype(), [&]<class T> {
    const T* of_bias = bias.defined() ? bias.data<T>() : nullptr;
    with_method<T>(plan,
                   [&](const auto& method) { method.forward(x.data<T>(), weight.data<T>(), of_bias, y.data<T>()); });
  });
}

void run_convolution_input(const ConvPlan& plan, const Tensor& y, const Tensor& weight, const Tensor& x) {
  visit(y.dtype(), [&]<class T> {
    with_method<T>(plan, [&](const auto& method) { method.input(y.data<T>(), weight.data<T>(), x.data<T>()); });
  });
}

void run_convolution_weight(const ConvPlan& plan, const Tensor& x, const Tensor& y, const Tensor& weight) {
  visit(x.dtype(), [&]<class T> {
    with_method<T>(plan, [&](const auto& method) { method.weight(x.data<T>(), y.data<T>(), weight.data<T>()); });
  });
}

void run_im2col(const ConvPlan& plan, const Tensor& x, const Tensor& columns) {
  const auto loop = loop_of<PatchLoop>(plan, x.dtype() == kFloat64, plan.channels);
  const auto kernel = gather_kernels[x.device()];
  const int64_t image = plan.channels * plan.in_pixels(), matrix = plan.channels * plan.window() * plan.out_pixels();
  parallel_for(0, plan.n, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      kernel(loop, at_image(x, i, image), at_image(columns, i, matrix), 0, plan.out_pixels());
  });
}

void run_col2im(const ConvPlan& plan, const Tensor& columns, const Tensor& x) {
  const auto loop = loop_of<PatchLoop>(plan, x.dtype() == kFloat64, plan.channels);
  const auto kernel = scatter_kernels[x.device()];
  const int64_t image = plan.channels * plan.in_pixels(), matrix = plan.channels * plan.window() * plan.out_pixels();
  parallel_for(0, plan.n, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      std::memset(at_image(x, i, image), 0, static_cast<size_t>(image) * x.itemsize());
      kernel(loop, at_image(x, i, image), at_image(columns, i, matrix), 0, plan.out_pixels());
    }
  });
}

}  // namespace tercel
