// Hash table from strings to numbers: counts in the first pass over raw text, ids of a vocabulary. Private.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "tercel/util/checksum.h"

namespace tercel::data {

/**
 * Open addressing with linear probing over entries of 16 bytes. A string of up to 8 bytes, as nearly all are in click
 * logs, is stored in the entry, so that a look-up costs one cache miss; longer ones are in blocks that never move.
 */
class TokenTable {
 public:
  static constexpr size_t kMaxLength = (size_t{1} << 24) - 1;
  static constexpr int64_t kMaxValue = (int64_t{1} << 40) - 1;

  TokenTable() : entries_(kFirstCapacity) {}

  int64_t size() const { return static_cast<int64_t>(used_); }

  /** The number of a string, 0 if it was never set. The string must not be empty, nor longer than kMaxLength.
   */
  int64_t find(std::string_view text) const {
    const uint64_t key = inline_key(text);
    for (size_t i = place(text, key);; i = (i + 1) & (entries_.size() - 1)) {
      const Entry& entry = entries_[i];
      if (entry.length == 0) return 0;
      if (matches(entry, text, key)) return static_cast<int64_t>(entry.value);
    }
  }

  /** Adds to the number of a text; false if it would pass kMaxValue. */
  bool add(std::string_view text, int64_t count) {
    Entry& entry = insert(text);
    if (static_cast<int64_t>(entry.value) > kMaxValue - count) return false;
    entry.value = static_cast<uint64_t>(static_cast<int64_t>(entry.value) + count) & uint64_t{kMaxValue};
    return true;
  }

  /** Calls visit(text, number) for every string, in unspecified order. */
  template <class Visit>
  void for_each(Visit visit) const {
    for (const Entry& entry : entries_)
      if (entry.length != 0) visit(text_of(entry), static_cast<int64_t>(entry.value));
  }

 private:
  struct Entry {
    uint64_t text = 0;         // the bytes, or the address of the bytes
    uint64_t length : 24 = 0;  // 0: the entry is free
    uint64_t value : 40 = 0;
  };
  static_assert(sizeof(Entry) == 16);

  static constexpr size_t kFirstCapacity = 16;
  static constexpr size_t kFirstBlockBytes = size_t{4} << 10;
  static constexpr size_t kBlockDoublings = 8;  // to 1 MiB

  // The bytes of a short string, zero-filled, by overlapping loads: a copy of variable length would be a function call.
  static uint64_t inline_key(std::string_view text) {
    const char* const data = text.data();
    const size_t n = text.size();
    if (n > 8) return 0;
    if (n >= 4) {
      uint32_t low, high;
      std::memcpy(&low, data, 4);
      std::memcpy(&high, data + n - 4, 4);
      return low | static_cast<uint64_t>(high) << (8 * (n - 4));
    }
    const auto byte = [&](size_t i) { return static_cast<uint64_t>(static_cast<unsigned char>(data[i])) << (8 * i); };
    return byte(0) | byte(n / 2) | byte(n - 1);
  }

  size_t place(std::string_view text, uint64_t key) const {
    uint64_t hash = text.size() > 8 ? checksum(text.data(), text.size()) : key + text.size();
    hash = (hash ^ (hash >> 32)) * 0x9E3779B97F4A7C15u;
    return static_cast<size_t>((hash ^ (hash >> 29)) * 0xBF58476D1CE4E5B9u >> 20) & (entries_.size() - 1);
  }

  static std::string_view text_of(const Entry& entry) {
    const char* data = reinterpret_cast<const char*>(&entry.text);
    if (entry.length > 8) std::memcpy(&data, &entry.text, sizeof(data));
    return {data, static_cast<size_t>(entry.length)};
  }

  static bool matches(const Entry& entry, std::string_view text, uint64_t key) {
    if (entry.length != text.size()) return false;
    return text.size() <= 8 ? entry.text == key : text_of(entry) == text;
  }

  Entry& insert(std::string_view text) {
    if (used_ + 1 > entries_.size() / 8 * 5) grow();
    const uint64_t key = inline_key(text);
    size_t i = place(text, key);
    for (; entries_[i].length != 0; i = (i + 1) & (entries_.size() - 1))
      if (matches(entries_[i], text, key)) return entries_[i];
    Entry& entry = entries_[i];
    entry.text = key;
    if (text.size() > 8) {
      const char* const kept = keep(text);
      std::memcpy(&entry.text, &kept, sizeof(kept));
    }
    entry.length = text.size() & kMaxLength;
    ++used_;
    return entry;
  }

  void grow() {
    std::vector<Entry> before(entries_.size() * 2);
    before.swap(entries_);
    for (const Entry& entry : before) {
      if (entry.length == 0) continue;
      size_t i = place(text_of(entry), entry.text);
      while (entries_[i].length != 0) i = (i + 1) & (entries_.size() - 1);
      entries_[i] = entry;
    }
  }

  const char* keep(std::string_view text) {
    if (text.size() > room_) {
      room_ = std::max(text.size(), kFirstBlockBytes << std::min(blocks_.size(), kBlockDoublings));
      blocks_.push_back(std::make_unique_for_overwrite<char[]>(room_));
      next_ = blocks_.back().get();
    }
    char* const kept = next_;
    std::memcpy(kept, text.data(), text.size());
    next_ += text.size();
    room_ -= text.size();
    return kept;
  }

  std::vector<Entry> entries_;
  size_t used_ = 0;
  std::vector<std::unique_ptr<char[]>> blocks_;
  char* next_ = nullptr;
  size_t room_ = 0;
};

}  // namespace tercel::data
