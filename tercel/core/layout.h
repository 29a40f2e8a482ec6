// How a tensor's elements are stored.
#pragma once

#include <cstdint>
#include <string_view>

#include "tercel/util/export.h"

namespace tercel {

/**
 * Strided tensors have a storage; those of a sparse layout have parts instead (sparse_data.h). Opaque is the order of
 * prepacked weights, accepted only by ops that support it.
 */
enum class Layout : uint8_t { Strided, SparseCoo, SparseCsr, SparseCsc, SparseBsr, SparseBsc, Opaque };
constexpr int kNumLayouts = 7;
/** CSR, CSC, BSR or BSC: one dimension's indices are compressed to offsets. */
constexpr bool is_compressed(Layout layout) { return layout >= Layout::SparseCsr && layout <= Layout::SparseBsc; }
/** COO or a compressed one. */
constexpr bool is_sparse(Layout layout) { return layout >= Layout::SparseCoo && layout <= Layout::SparseBsc; }
/** The name, as in PyTorch without "torch.". */
TERCEL_API std::string_view to_string(Layout layout);
/** NotImplementedError "op: not implemented for layout sparse_coo". */
[[noreturn]] TERCEL_API void refuse_layout(std::string_view op, Layout layout);

/** Order of dimensions in memory. Preserve keeps a dense input's order. */
enum class MemoryFormat : uint8_t { Contiguous = 0, Preserve = 1, ChannelsLast = 2, ChannelsLast3d = 3 };
/** The name, as in PyTorch without "torch.". */
TERCEL_API std::string_view to_string(MemoryFormat format);

}  // namespace tercel
