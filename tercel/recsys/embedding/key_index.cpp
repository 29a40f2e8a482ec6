#include "tercel/recsys/embedding/key_index.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "tercel/util/cpu_info.h"
#include "tercel/util/error.h"

namespace tercel::recsys {

namespace {

constexpr size_t kMask = 4095;
constexpr size_t kLine = 4;  // entries of a cache line
// Reached by neither keys nor memory; a check, not a limit.
constexpr uint32_t kMaxDepth = 36;

/** A mixing bijection, the finaliser of MurmurHash3. */
uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdU;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53U;
  return x ^ (x >> 33);
}

uint64_t random_salt() {
  std::random_device source;
  return uint64_t{source()} << 32 | source();
}

/** The entry of a segment at which the search of a key begins: the first one of a line. */
size_t home(uint64_t hash) { return hash & kMask & ~(kLine - 1); }

/** Entries at which a segment is divided: 0.60 to 0.85 of all. */
size_t most_used(size_t number) { return 2458 + mix(number) % 1024; }

/**
 * The entry with a key, or the first free one, which has the number 0 and says that the key has none; null if others
 * have all of the line.
 */
template <class Entry>
const Entry* find_in_line(const Entry* line, int64_t key) {
  unsigned equal = 0;
  for (size_t j = 0; j < kLine; ++j) equal |= static_cast<unsigned>(line[j].key == key) << j;
  // A free entry has the key 0, too. Free ones are behind those in use, so the first one counts.
  if (equal != 0) return line + __builtin_ctz(equal);
  return line[kLine - 1].number == 0 ? line + (kLine - 1) : nullptr;
}

}  // namespace

KeyIndex::KeyIndex()
    : memory_(kEntries * sizeof(Entry), static_cast<size_t>(memory_info().total)), salt_(random_salt()) {
  directory_.push_back(static_cast<uint32_t>(add_segment(0)));
}

uint64_t KeyIndex::hash(int64_t key) const { return mix(static_cast<uint64_t>(key) ^ salt_); }

size_t KeyIndex::bytes() const {
  return segments_.size() * (kEntries * sizeof(Entry) + sizeof(Segment)) + directory_.size() * sizeof(uint32_t);
}

size_t KeyIndex::add_segment(uint32_t depth) {
  memory_.grow((segments_.size() + 1) * kEntries * sizeof(Entry));
  segments_.push_back({0, depth});
  return segments_.size() - 1;
}

int64_t KeyIndex::find_in(const Entry* entries, size_t first, int64_t key) {
  for (;; first = (first + kLine) & kMask)
    if (const Entry* const entry = find_in_line(entries + first, key)) return entry->number;
}

int64_t KeyIndex::find(int64_t key) const {
  const uint64_t h = hash(key);
  return find_in(segment(segment_of(h)), home(h), key);
}

void KeyIndex::find(Span<int64_t> keys, int64_t* numbers) const {
  constexpr size_t kAhead = 32, kBlock = 256;
  struct Place {
    const Entry* entries;
    size_t first;
  };
  struct Later {
    Place place;
    size_t i;
  };
  Place places[kAhead];
  Later later[kBlock];
  const auto start = [&](size_t i) {
    const uint64_t h = hash(keys[i]);
    Place& place = places[i % kAhead];
    place = {segment(segment_of(h)), home(h)};
    __builtin_prefetch(place.entries + place.first);
  };
  for (size_t i = 0; i < std::min(kAhead, keys.size()); ++i) start(i);
  for (size_t begin = 0; begin < keys.size(); begin += kBlock) {
    size_t count = 0;
    for (size_t i = begin; i < std::min(begin + kBlock, keys.size()); ++i) {
      const Place place = places[i % kAhead];
      if (const Entry* const entry = find_in_line(place.entries + place.first, keys[i])) {
        numbers[i] = entry->number;
      } else {
        // The next line is not in the cache, either: others are searched until it is.
        const size_t next = (place.first + kLine) & kMask;
        __builtin_prefetch(place.entries + next);
        later[count++] = {{place.entries, next}, i};
      }
      if (i + kAhead < keys.size()) start(i + kAhead);
    }
    for (const Later* l = later; l != later + count; ++l)
      numbers[l->i] = find_in(l->place.entries, l->place.first, keys[l->i]);
  }
}

int64_t& KeyIndex::insert(int64_t key) {
  const uint64_t h = hash(key);
  for (;;) {
    const size_t number = segment_of(h);
    Entry* const entries = segment(number);
    size_t i = home(h);
    for (; entries[i].number != 0; i = (i + 1) & kMask)
      if (entries[i].key == key) return entries[i].number;
    if (segments_[number].used < most_used(number)) {
      ++segments_[number].used;
      ++size_;
      entries[i].key = key;
      return entries[i].number;
    }
    divide(number, h);
  }
}

void KeyIndex::divide(size_t number, uint64_t hash) {
  const uint32_t depth = segments_[number].depth;
  TERCEL_CHECK(depth < kMaxDepth, RuntimeError, "key index: more than ", most_used(number),
               " keys whose hashes begin with the same ", depth, " bits");
  Entry* const old = segment(number);
  scratch_.assign(old, old + kEntries);
  const size_t added = add_segment(depth + 1);
  if (depth == depth_) {
    directory_.resize(2 * directory_.size());
    for (size_t i = directory_.size(); i-- > 0;) directory_[i] = directory_[i / 2];
    ++depth_;
  }
  // The second half of the entries that point to this segment.
  const size_t span = size_t{1} << (depth_ - depth), first = depth == 0 ? 0 : (hash >> (64 - depth)) * span;
  std::fill(directory_.begin() + static_cast<int64_t>(first + span / 2),
            directory_.begin() + static_cast<int64_t>(first + span), static_cast<uint32_t>(added));
  segments_[number] = {0, depth + 1};
  std::memset(static_cast<void*>(old), 0, kEntries * sizeof(Entry));
  for (const Entry& entry : scratch_) {
    if (entry.number == 0) continue;
    const uint64_t h = this->hash(entry.key);
    const size_t target = (h >> (63 - depth) & 1) == 0 ? number : added;
    Entry* const entries = segment(target);
    size_t i = home(h);
    while (entries[i].number != 0) i = (i + 1) & kMask;
    entries[i] = entry;
    ++segments_[target].used;
  }
}

bool KeyIndex::erase(int64_t key) {
  const uint64_t h = hash(key);
  const size_t number = segment_of(h);
  Entry* const entries = segment(number);
  size_t hole = home(h);
  while (entries[hole].key != key || entries[hole].number == 0) {
    if (entries[hole].number == 0) return false;
    hole = (hole + 1) & kMask;
  }
  // Later entries of the run move up where their first place is not behind the hole, so that runs have no gaps.
  for (size_t i = (hole + 1) & kMask; entries[i].number != 0; i = (i + 1) & kMask) {
    const size_t first = home(this->hash(entries[i].key));
    if (((i - first) & kMask) < ((i - hole) & kMask)) continue;
    entries[hole] = entries[i];
    hole = i;
  }
  entries[hole] = {};
  --segments_[number].used;
  --size_;
  return true;
}

}  // namespace tercel::recsys
