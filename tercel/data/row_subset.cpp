#include "tercel/data/row_subset_impl.h"
#include "tercel/util/philox.h"

namespace tercel::data {

namespace {

constexpr uint64_t kKey = 0x76616c6964617465;  // "validate"

}  // namespace

int64_t RowSubset::place(int64_t group) const {
  const auto number = static_cast<uint64_t>(group);
  const PhiloxBlock block =
      philox4x32({{static_cast<uint32_t>(number), static_cast<uint32_t>(number >> 32), 0, 0}}, kKey);
  return static_cast<int64_t>(uniform_int(random_u64(block.word[0], block.word[1]), static_cast<uint64_t>(every_)));
}

int64_t RowSubset::before(int64_t row) const {
  if (is_all()) return row;
  const int64_t group = row / every_, within = row % every_;
  const int64_t held_out = group + (within > 0 && place(group) < within ? 1 : 0);
  return held_out_ ? held_out : row - held_out;
}

int64_t RowSubset::row(int64_t index) const {
  if (is_all()) return index;
  if (held_out_) return index * every_ + place(index);
  const int64_t group = index / (every_ - 1), within = index % (every_ - 1);
  return group * every_ + within + (within >= place(group) ? 1 : 0);
}

}  // namespace tercel::data
