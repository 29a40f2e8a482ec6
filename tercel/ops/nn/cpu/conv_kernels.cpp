// Patches of images, for convolutions and unfold.
//
//   channels first:  for row (c, kd, kh, kw) of the matrix:  for run of positions in one row of the output:
//                      matrix[row][p] = image[c][pixel of position p at tap (kd, kh, kw)]
//   panels:          the input rows that positions read are copied with padding; then for each panel, for
//                    each of its rows (c, kh, kw):  copies of runs of pixels, without border checks
//   channels last:   for position p:  for (kd, kh):  matrix[p][kd][kh][all kw] = a run of pixels
#include "tercel/ops/nn/conv_kernels.h"

#include <cstring>

#include "tercel/ops/common/cpu/simd.h"
#include "tercel/util/ceil_div.h"
#include "tercel/util/macros.h"

namespace tercel::TERCEL_ISA {

namespace {

int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

// Positions [first, last) of an output row whose tap is inside the image.
struct Inside {
  int64_t first, last;
};
Inside inside(int64_t in, int64_t out, int64_t stride, int64_t shift) {
  // 0 <= o * stride + shift < in
  const int64_t first = shift >= 0 ? 0 : ceil_div(-shift, stride);
  const int64_t last = in <= shift ? 0 : ceil_div(in - shift, stride);
  return {least(first, out), most(least(first, out), least(last, out))};
}

/** An inline copy for a few vectors, which is faster than a call. */
template <class T>
TERCEL_ALWAYS_INLINE void copy_run(T* to, const T* from, int64_t count) {
  constexpr int64_t kFew = 8 * kLanes<T>;
  if (count > kFew || count < kLanes<T>) {
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof(T));
    return;
  }
  for (int64_t i = 0; i + kLanes<T> < count; i += kLanes<T>) store(to + i, load(from + i));
  store(to + count - kLanes<T>, load(from + count - kLanes<T>));
}

template <class T, bool kGather>
TERCEL_ALWAYS_INLINE void move_run(T* image, T* matrix, int64_t count, int64_t stride) {
  if (kGather) {
    if (stride == 1)
      copy_run(matrix, image, count);
    else if (stride == 2)
      for (int64_t i = 0; i < count; ++i) matrix[i] = image[2 * i];
    else
      for (int64_t i = 0; i < count; ++i) matrix[i] = image[i * stride];
  } else {
    if (stride == 1) {
#pragma GCC ivdep
      for (int64_t i = 0; i < count; ++i) image[i] += matrix[i];
    } else {
      for (int64_t i = 0; i < count; ++i) image[i * stride] += matrix[i];
    }
  }
}

template <class T, bool kGather>
void first(const PatchLoop& l, T* image, T* matrix, int64_t begin, int64_t end) {
  const int64_t plane = l.in[0] * l.in[1] * l.in[2], columns = end - begin;
  for (int64_t c = 0; c < l.channels; ++c) {
    for (int64_t kd = 0; kd < l.kernel[0]; ++kd) {
      for (int64_t kh = 0; kh < l.kernel[1]; ++kh) {
        for (int64_t kw = 0; kw < l.kernel[2]; ++kw, matrix += columns) {
          const int64_t shift = kw * l.dilation[2] - l.padding[2];
          const Inside valid = inside(l.in[2], l.out[2], l.stride[2], shift);
          int64_t p = begin, ow = begin % l.out[2];
          int64_t oh = begin / l.out[2] % l.out[1], od = begin / l.out[2] / l.out[1];
          while (p < end) {
            const int64_t count = least(l.out[2] - ow, end - p);
            const int64_t id = od * l.stride[0] + kd * l.dilation[0] - l.padding[0];
            const int64_t ih = oh * l.stride[1] + kh * l.dilation[1] - l.padding[1];
            T* to = matrix + (p - begin);
            if (id < 0 || id >= l.in[0] || ih < 0 || ih >= l.in[1]) {
              if (kGather)
                for (int64_t i = 0; i < count; ++i) to[i] = 0;
            } else {
              const int64_t from = most(least(valid.first, ow + count), ow);
              const int64_t until = most(least(valid.last, ow + count), from);
              if (kGather) {
                for (int64_t i = ow; i < from; ++i) to[i - ow] = 0;
                for (int64_t i = until; i < ow + count; ++i) to[i - ow] = 0;
              }
              if (until > from)
                move_run<T, kGather>(image + (id * l.in[1] + ih) * l.in[2] + from * l.stride[2] + shift,
                                     to + (from - ow), until - from, l.stride[2]);
            }
            p += count;
            ow = 0;
            if (++oh == l.out[1]) {
              oh = 0;
              ++od;
            }
          }
        }
      }
    }
    image += plane;
  }
}

template <class T, bool kGather>
void last(const PatchLoop& l, T* image, T* matrix, int64_t begin, int64_t end) {
  const int64_t row = l.kernel[2] * l.channels;
  const bool whole_rows = l.dilation[2] == 1 && l.pixel == l.channels;
  for (int64_t p = begin; p < end; ++p) {
    const int64_t ow = p % l.out[2], oh = p / l.out[2] % l.out[1], od = p / l.out[2] / l.out[1];
    const int64_t iw = ow * l.stride[2] - l.padding[2];
    for (int64_t kd = 0; kd < l.kernel[0]; ++kd) {
      const int64_t id = od * l.stride[0] + kd * l.dilation[0] - l.padding[0];
      for (int64_t kh = 0; kh < l.kernel[1]; ++kh, matrix += row) {
        const int64_t ih = oh * l.stride[1] + kh * l.dilation[1] - l.padding[1];
        if (id < 0 || id >= l.in[0] || ih < 0 || ih >= l.in[1]) {
          if (kGather) std::memset(matrix, 0, static_cast<size_t>(row) * sizeof(T));
          continue;
        }
        T* line = image + (id * l.in[1] + ih) * l.in[2] * l.pixel;
        if (whole_rows) {
          const int64_t from = least(most(0, -iw), l.kernel[2]), until = most(least(l.kernel[2], l.in[2] - iw), from);
          if (kGather && until - from < l.kernel[2]) {
            std::memset(matrix, 0, static_cast<size_t>(from * l.channels) * sizeof(T));
            std::memset(matrix + until * l.channels, 0, static_cast<size_t>(row - until * l.channels) * sizeof(T));
          }
          move_run<T, kGather>(line + (iw + from) * l.pixel, matrix + from * l.channels, (until - from) * l.channels,
                               1);
          continue;
        }
        for (int64_t kw = 0; kw < l.kernel[2]; ++kw) {
          const int64_t at = iw + kw * l.dilation[2];
          T* to = matrix + kw * l.channels;
          if (at >= 0 && at < l.in[2])
            move_run<T, kGather>(line + at * l.pixel, to, l.channels, 1);
          else if (kGather)
            std::memset(to, 0, static_cast<size_t>(l.channels) * sizeof(T));
        }
      }
    }
  }
}

/**
 * The rows that panels are gathered from, padded with zeros. With a stride, columns 0, stride, 2 stride, ... come
 * first, then columns 1, 1 + stride, ...: so the pixels of one tap are contiguous.
 */
template <class T>
void pad_rows(const PatchLoop& l, const PatchPanels& to, const T* image) {
  T* row = static_cast<T*>(to.padded);
  const int64_t stride = l.stride[2], left = l.padding[2], part = to.width / stride;
  const auto zeros = [&row](int64_t first, int64_t last) {
    std::memset(row + first, 0, static_cast<size_t>(last - first) * sizeof(T));
  };
  for (int64_t c = 0; c < l.channels; ++c) {
    for (int64_t r = to.first_row; r < to.first_row + to.rows; ++r, row += to.width) {
      const int64_t ih = r - l.padding[1];
      if (ih < 0 || ih >= l.in[1]) {
        zeros(0, to.width);
        continue;
      }
      const T* line = image + (c * l.in[1] + ih) * l.in[2];
      if (stride == 1) {
        zeros(0, left);
        std::memcpy(row + left, line, static_cast<size_t>(l.in[2]) * sizeof(T));
        zeros(left + l.in[2], to.width);
        continue;
      }
      zeros(0, to.width);
      for (int64_t i = 0; i < least(stride, l.in[2]); ++i) {
        T* columns = row + (left + i) % stride * part + (left + i) / stride;
        for (int64_t j = i; j < l.in[2]; j += stride) *columns++ = line[j];
      }
    }
  }
  zeros(0, patch_slack(to.columns));
}

constexpr int64_t kMaxColumns = 64;

/** Runs of a panel's positions, each within one output row. */
struct Runs {
  int64_t count = 0;
  int64_t to[kMaxColumns], from[kMaxColumns], length[kMaxColumns];

  Runs(const PatchLoop& l, const PatchPanels& panels, int64_t begin, int64_t end) {
    int64_t row = begin / l.out[2], column = begin % l.out[2];
    for (int64_t done = 0; done < panels.columns; ++count, ++row, column = 0) {
      const int64_t most = panels.columns - done, left = l.out[2] - column;
      to[count] = done;
      from[count] = (row * l.stride[1] - panels.first_row) * panels.width + column;
      // The last run continues past the end.
      length[count] = begin + done + left >= end ? most : least(left, most);
      done += length[count];
    }
  }
};

template <class T>
void panels(const PatchLoop& l, const PatchPanels& p, const T* image, T* matrix, int64_t begin, int64_t end) {
  pad_rows(l, p, image);
  const int64_t part = p.width / l.stride[2];
  for (int64_t first = begin; first < end; first += p.columns, matrix += p.step) {
    const Runs runs(l, p, first, end);
    T* row = matrix;
    for (int64_t c = 0; c < l.channels; ++c) {
      const T* plane = static_cast<const T*>(p.padded) + c * p.rows * p.width;
      for (int64_t kh = 0; kh < l.kernel[1]; ++kh) {
        for (int64_t kw = 0; kw < l.kernel[2]; ++kw, row += p.columns) {
          const int64_t shift = kw * l.dilation[2];
          const T* tap = plane + kh * l.dilation[1] * p.width + shift % l.stride[2] * part + shift / l.stride[2];
          for (int64_t r = 0; r < runs.count; ++r) {
            const T* from = tap + runs.from[r];
            T* to = row + runs.to[r];
            const int64_t length = runs.length[r];
            // Whole vectors: excess elements are overwritten by the next run or row, or go to the gap.
            for (int64_t i = 0; i < length; i += kLanes<T>) store(to + i, load(from + i));
          }
        }
      }
    }
  }
}

template <class T, bool kGather>
void run(const PatchLoop& loop, void* image, void* matrix, int64_t begin, int64_t end) {
  if (loop.channels_last)
    last<T, kGather>(loop, static_cast<T*>(image), static_cast<T*>(matrix), begin, end);
  else
    first<T, kGather>(loop, static_cast<T*>(image), static_cast<T*>(matrix), begin, end);
}

}  // namespace

void gather_panels(const PatchLoop& loop, const PatchPanels& to, const void* image, void* matrix, int64_t begin,
                   int64_t end) {
  if (loop.wide)
    return panels<double>(loop, to, static_cast<const double*>(image), static_cast<double*>(matrix), begin, end);
  panels<float>(loop, to, static_cast<const float*>(image), static_cast<float*>(matrix), begin, end);
}
void gather_patches(const PatchLoop& loop, void* image, void* matrix, int64_t begin, int64_t end) {
  if (loop.wide) return run<double, true>(loop, image, matrix, begin, end);
  run<float, true>(loop, image, matrix, begin, end);
}
void scatter_patches(const PatchLoop& loop, void* image, void* matrix, int64_t begin, int64_t end) {
  if (loop.wide) return run<double, false>(loop, image, matrix, begin, end);
  run<float, false>(loop, image, matrix, begin, end);
}

}  // namespace tercel::TERCEL_ISA
