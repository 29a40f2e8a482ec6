#pragma once

#include <cstdint>

#include "tercel/core/dispatch.h"

namespace tercel {

/**
 * Patches of one image, as columns or rows of a matrix. There are always three spatial dimensions; missing ones have
 * size 1. A patch is the kernel's window at one output position; positions are numbered in row-major order.
 */
struct PatchLoop {
  bool wide;           ///< double, else float
  bool channels_last;  ///< selects the matrix layout, see PatchFn
  int64_t channels;    ///< channels in the matrix
  int64_t pixel;       ///< channels_last: elements from one pixel to the next
  int64_t in[3], kernel[3], out[3], stride[3], padding[3], dilation[3];
};

/**
 * The patches of positions [begin, end). Channels first: matrix [channels * window][end - begin], image
 * [channels][pixels]. Channels last: matrix [end - begin][window][channels], image [pixels][pixel]. Gathering writes
 * zeros for padding; scattering adds the matrix to the image.
 */
using PatchFn = void(const PatchLoop& loop, void* image, void* matrix, int64_t begin, int64_t end);

/** Scratch for the patches of several output rows, and the panel layout of the matrix product. */
struct PatchPanels {
  /// [channels][rows][width] of the padded image, starting at row first_row, and patch_slack() more elements.
  void* padded;
  int64_t first_row, rows;
  int64_t width;    ///< a multiple of the stride
  int64_t columns;  ///< of a panel
  int64_t step;     ///< elements from one panel to the next, with a gap of a vector or more
};

/** Elements that gathering may read past the padded rows. */
constexpr int64_t patch_slack(int64_t columns) { return columns + 16; }

/**
 * The patches of positions [begin, end), channels first, as panels [channels * window][columns]; elements past `end` in
 * the last panel are unspecified. For planes only: sizes and taps of the first dimension are 1.
 */
using PatchPanelsFn = void(const PatchLoop& loop, const PatchPanels& panels, const void* image, void* matrix,
                           int64_t begin, int64_t end);

TERCEL_DECLARE_KERNELS(PatchPanelsFn, gather_panels)
TERCEL_DECLARE_KERNELS(PatchFn, gather_patches)
TERCEL_DECLARE_KERNELS(PatchFn, scatter_patches)

}  // namespace tercel
