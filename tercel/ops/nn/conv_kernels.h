#pragma once

#include <cstdint>

#include "tercel/core/dispatch.h"

namespace tercel {

/**
 * Patches of one image, as the columns or rows of a matrix. Spatial dimensions are always three, the missing ones of
 * size 1. A patch is what the kernel's window sees at one output position; positions count in row-major order.
 */
struct PatchLoop {
  bool wide;           ///< double, else float
  bool channels_last;  ///< which of the two matrices, see PatchFn
  int64_t channels;    ///< that the matrix has
  int64_t pixel;       ///< channels_last: elements from one pixel to the next
  int64_t in[3], kernel[3], out[3], stride[3], padding[3], dilation[3];
};

/**
 * The patches of positions [begin, end). Channels first: matrix [channels * window][end - begin], image
 * [channels][pixels]. Channels last: matrix [end - begin][window][channels], image [pixels][pixel]. Gathering writes
 * zeros for the padding; scattering adds the matrix to the image.
 */
using PatchFn = void(const PatchLoop& loop, void* image, void* matrix, int64_t begin, int64_t end);

/** Where patches of several rows of outputs are cut from, and the panels that a product takes. */
struct PatchPanels {
  /// [channels][rows][width] of the padded image, from row first_row on, and patch_slack() elements more.
  void* padded;
  int64_t first_row, rows;
  int64_t width;    ///< a multiple of the stride
  int64_t columns;  ///< of a panel
  int64_t step;     ///< elements from one panel to the next, with a gap of a vector or more
};

/** Elements behind the padded rows that gathering reads. */
constexpr int64_t patch_slack(int64_t columns) { return columns + 16; }

/**
 * The patches of positions [begin, end), channels first, as panels [channels * window][columns]; what stands behind the
 * end in the last of them has no meaning. Of one plane: sizes and taps of the first dimension are 1.
 */
using PatchPanelsFn = void(const PatchLoop& loop, const PatchPanels& panels, const void* image, void* matrix,
                           int64_t begin, int64_t end);

TERCEL_DECLARE_KERNELS(PatchPanelsFn, gather_panels)
TERCEL_DECLARE_KERNELS(PatchFn, gather_patches)
TERCEL_DECLARE_KERNELS(PatchFn, scatter_patches)

}  // namespace tercel
