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

TERCEL_DECLARE_KERNELS(PatchFn, gather_patches)
TERCEL_DECLARE_KERNELS(PatchFn, scatter_patches)

}  // namespace tercel
