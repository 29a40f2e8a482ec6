// Width of keys in files that do not record it, for every format that has the choice.
#pragma once

#include <array>
#include <cstdint>
#include <limits>

#include "tercel/util/enum_names.h"

namespace tercel::data {

/** Width of the keys in a file. */
enum class KeyType : uint8_t { U32, I64 };

constexpr auto enum_names(KeyType) {
  return std::to_array<EnumName<KeyType>>({{KeyType::U32, "u32"}, {KeyType::I64, "i64"}});
}

/** Bytes of a key. */
constexpr int64_t key_bytes(KeyType type) { return type == KeyType::U32 ? 4 : 8; }

/** The largest key, as an unsigned number: an i64 key may have any bits. */
constexpr uint64_t max_key(KeyType type) {
  return type == KeyType::U32 ? std::numeric_limits<uint32_t>::max() : std::numeric_limits<uint64_t>::max();
}

}  // namespace tercel::data
