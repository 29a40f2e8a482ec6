#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>
#include <utility>

#include "tercel/data/row_order_impl.h"
#include "tercel/util/ceil_div.h"
#include "tercel/util/error.h"
#include "tercel/util/philox.h"

namespace tercel::data {

namespace {

// Third and fourth counter word of Philox, so that no two uses of a key share numbers.
constexpr uint32_t kOrderOfRows = 0x726f7773;  // "rows"; keeps readers apart from others that use the same seed
constexpr uint32_t kBlockRound = 1;
constexpr uint32_t kMix = 2;

constexpr uint32_t kRounds = 10;  // with 6, orders of a few elements are visibly uneven

constexpr uint32_t low(uint64_t value) { return static_cast<uint32_t>(value); }
constexpr uint32_t high(uint64_t value) { return static_cast<uint32_t>(value >> 32); }

}  // namespace

Permutation::Permutation(int64_t count, uint64_t key) : count_(static_cast<uint64_t>(count)), key_(key) {
  TERCEL_ASSERT(count > 0);
  half_bits_ = std::max(1, (static_cast<int>(std::bit_width(count_ - 1)) + 1) / 2);
}

uint64_t Permutation::round(uint64_t half, uint32_t number) const {
  const PhiloxBlock block = philox4x32({{low(half), number, 0, kBlockRound}}, key_);
  return block.word[0] & ((uint64_t{1} << half_bits_) - 1);
}

uint64_t Permutation::encrypt(uint64_t value) const {
  uint64_t left = value >> half_bits_;
  uint64_t right = value & ((uint64_t{1} << half_bits_) - 1);
  for (uint32_t number = 0; number < kRounds; ++number) {
    const uint64_t next = left ^ round(right, number);
    left = right;
    right = next;
  }
  return left << half_bits_ | right;
}

uint64_t Permutation::decrypt(uint64_t value) const {
  uint64_t left = value >> half_bits_;
  uint64_t right = value & ((uint64_t{1} << half_bits_) - 1);
  for (uint32_t number = kRounds; number-- > 0;) {
    const uint64_t before = right ^ round(left, number);
    right = left;
    left = before;
  }
  return left << half_bits_ | right;
}

int64_t Permutation::operator()(int64_t index) const {
  auto value = static_cast<uint64_t>(index);
  do {
    value = encrypt(value);
  } while (value >= count_);
  return static_cast<int64_t>(value);
}

int64_t Permutation::inverse(int64_t value) const {
  auto index = static_cast<uint64_t>(value);
  do {
    index = decrypt(index);
  } while (index >= count_);
  return static_cast<int64_t>(index);
}

RowWindows RowWindows::every(int64_t rows, int64_t window_rows) {
  TERCEL_ASSERT(window_rows > 0);
  RowWindows windows;
  windows.rows_ = rows;
  windows.window_rows_ = window_rows;
  return windows;
}

RowWindows RowWindows::at(int64_t rows, std::vector<int64_t> starts) {
  TERCEL_ASSERT(rows == 0 ? starts.empty() : !starts.empty() && starts.front() == 0 && starts.back() < rows);
  TERCEL_ASSERT(std::adjacent_find(starts.begin(), starts.end(), std::greater_equal<>()) == starts.end());
  RowWindows windows;
  windows.rows_ = rows;
  windows.starts_ = std::move(starts);
  return windows;
}

int64_t RowWindows::count() const {
  return window_rows_ > 0 ? ceil_div(rows_, window_rows_) : static_cast<int64_t>(starts_.size());
}

int64_t RowWindows::begin(int64_t window) const {
  if (window >= count()) return rows_;
  return window_rows_ > 0 ? window * window_rows_ : starts_[static_cast<size_t>(window)];
}

int64_t RowWindows::of(int64_t row) const {
  if (window_rows_ > 0) return row / window_rows_;
  return std::upper_bound(starts_.begin(), starts_.end(), row) - starts_.begin() - 1;
}

RowOrder RowOrder::in_order(RowWindows windows) {
  RowOrder order;
  order.rows_ = windows.rows();
  order.num_windows_ = windows.count();
  order.windows_ = std::move(windows);
  return order;
}

RowOrder RowOrder::in_order(const RowWindows& windows, const RowSubset& subset) {
  if (subset.is_all()) return in_order(windows);
  RowOrder order;
  order.subset_ = subset;
  order.rows_ = subset.count();
  std::vector<int64_t> starts;
  for (int64_t window = 0; window < windows.count(); ++window) {
    const int64_t begin = windows.begin(window), end = windows.begin(window + 1);
    const int64_t position = subset.before(begin);
    if (position == subset.before(end)) continue;
    starts.push_back(position);
    order.reads_.push_back({begin, end - begin});
  }
  order.num_windows_ = static_cast<int64_t>(starts.size());
  order.windows_ = RowWindows::at(order.rows_, std::move(starts));
  return order;
}

RowOrder RowOrder::shuffled(const RowSubset& subset, uint64_t seed, int64_t window_rows, int64_t block_rows) {
  RowOrder order;
  order.subset_ = subset;
  const int64_t rows = order.rows_ = subset.count();
  order.shuffled_ = order.mixed_ = true;
  order.seed_ = seed;
  order.block_rows_ = std::min(block_rows, window_rows);
  order.num_blocks_ = order.num_permuted_ = ceil_div(rows, order.block_rows_);
  order.window_blocks_ = window_rows / order.block_rows_;
  order.num_windows_ = ceil_div(order.num_blocks_, order.window_blocks_);
  return order;
}

RowOrder RowOrder::shuffled_blocks(const RowSubset& subset, uint64_t seed, int64_t block_rows) {
  RowOrder order;
  order.subset_ = subset;
  const int64_t rows = order.rows_ = subset.count();
  order.shuffled_ = true;
  order.seed_ = seed;
  order.block_rows_ = block_rows;
  order.num_blocks_ = order.num_windows_ = ceil_div(rows, block_rows);
  order.num_permuted_ = rows / block_rows;
  return order;
}

uint64_t RowOrder::epoch_key(int64_t epoch) const {
  const auto number = static_cast<uint64_t>(epoch);
  const PhiloxBlock block = philox4x32({{low(number), high(number), 0, kOrderOfRows}}, seed_);
  return random_u64(block.word[0], block.word[1]);
}

Permutation RowOrder::permutation_of(int64_t epoch) const {
  return Permutation(std::max<int64_t>(1, num_permuted_), epoch_key(epoch));
}

int64_t RowOrder::place_of_last_block(int64_t epoch) const {
  if (num_permuted_ < num_blocks_) return num_blocks_ - 1;
  return permutation_of(epoch).inverse(num_blocks_ - 1);
}

int64_t RowOrder::window_begin(int64_t epoch, int64_t window) const {
  if (!shuffled_) return windows_.begin(window);
  const int64_t first_block = window * window_blocks_;
  if (first_block >= num_blocks_) return rows_;
  const int64_t missing = num_blocks_ * block_rows_ - rows_;
  return first_block * block_rows_ - (place_of_last_block(epoch) < first_block ? missing : 0);
}

int64_t RowOrder::window_end(int64_t epoch, int64_t window) const { return window_begin(epoch, window + 1); }

int64_t RowOrder::window_of(int64_t epoch, int64_t position) const {
  if (!shuffled_) return windows_.of(position);
  // Blocks before it may lack rows of one block at most, which moves a position by at most one window.
  const int64_t window = position / (window_blocks_ * block_rows_);
  return position >= window_end(epoch, window) ? window + 1 : window;
}

RowRange RowOrder::block(const Permutation& permutation, int64_t place) const {
  const int64_t begin = (place < num_permuted_ ? permutation(place) : place) * block_rows_;
  return {begin, std::min(block_rows_, rows_ - begin)};
}

void RowOrder::ranges(int64_t epoch, int64_t window, std::vector<RowRange>& out) const {
  out.clear();
  if (!shuffled_) {
    out.push_back(subset_.is_all()
                      ? RowRange{windows_.begin(window), windows_.begin(window + 1) - windows_.begin(window)}
                      : reads_[static_cast<size_t>(window)]);
    return;
  }
  const int64_t first_block = window * window_blocks_;
  const int64_t last_block = std::min(first_block + window_blocks_, num_blocks_);
  const Permutation permutation = permutation_of(epoch);
  for (int64_t place = first_block; place < last_block; ++place) {
    const RowRange positions = block(permutation, place);
    const int64_t begin = subset_.row(positions.begin), last = subset_.row(positions.begin + positions.count - 1);
    out.push_back({begin, last + 1 - begin});
  }
}

/** Appends which of the rows read from `first` on, the first of which is the `read`th of the window, are positions. */
void RowOrder::append_places(const RowRange& positions, int64_t first, int64_t read, std::vector<uint32_t>& out) const {
  for (int64_t i = 0; i < positions.count; ++i)
    out.push_back(static_cast<uint32_t>(read + subset_.row(positions.begin + i) - first));
}

void RowOrder::mix(int64_t epoch, int64_t window, std::vector<uint32_t>& out) const {
  out.clear();
  if (!is_mixed()) return;
  const int64_t position = window_begin(epoch, window), count = window_end(epoch, window) - position;
  if (!shuffled_) return append_places({position, count}, reads_[static_cast<size_t>(window)].begin, 0, out);
  if (subset_.is_all()) {
    out.resize(static_cast<size_t>(count));
    std::iota(out.begin(), out.end(), 0u);
  } else {
    std::vector<RowRange> read;
    ranges(epoch, window, read);
    const Permutation permutation = permutation_of(epoch);
    int64_t before = 0;
    for (size_t i = 0; i < read.size(); ++i) {
      append_places(block(permutation, window * window_blocks_ + static_cast<int64_t>(i)), read[i].begin, before, out);
      before += read[i].count;
    }
  }
  if (!mixed_) return;
  // Fisher-Yates from the end; each block of Philox serves two steps.
  const uint64_t key = epoch_key(epoch);
  const auto number = static_cast<uint64_t>(window);
  PhiloxBlock block{};
  for (size_t left = out.size(); left > 1; --left) {
    const bool second = left % 2 != 0;
    if (second || left == out.size()) block = philox4x32({{low(left / 2), low(number), high(number), kMix}}, key);
    const uint64_t bits = second ? random_u64(block.word[2], block.word[3]) : random_u64(block.word[0], block.word[1]);
    std::swap(out[left - 1], out[uniform_int(bits, left)]);
  }
}

}  // namespace tercel::data
