// How a tensor's elements are stored.
#pragma once

#include <cstdint>
#include <string_view>

#include "tercel/util/export.h"

namespace tercel {

/** Opaque is a library's own blocked order, accepted only by ops that support it. */
enum class Layout : uint8_t { Strided = 0, Coo = 1, Csr = 2, Opaque = 3 };
constexpr int kNumLayouts = 4;
/** The name, as in PyTorch without "torch.". */
TERCEL_API std::string_view to_string(Layout layout);
/** NotImplementedError "op: not implemented for layout sparse_coo". */
[[noreturn]] TERCEL_API void refuse_layout(std::string_view op, Layout layout);

/** Order of dimensions in memory. Preserve keeps a dense input's order. */
enum class MemoryFormat : uint8_t { Contiguous = 0, Preserve = 1, ChannelsLast = 2, ChannelsLast3d = 3 };
/** The name, as in PyTorch without "torch.". */
TERCEL_API std::string_view to_string(MemoryFormat format);

}  // namespace tercel
