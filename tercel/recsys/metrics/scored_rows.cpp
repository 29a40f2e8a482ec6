#include "tercel/recsys/metrics/scored_rows.h"

#include <algorithm>

#include "tercel/recsys/metrics/state_impl.h"
#include "tercel/util/cursor.h"
#include "tercel/util/parallel.h"

namespace tercel::recsys {

namespace {

constexpr size_t kBlockRows = size_t{1} << 18;

}  // namespace

void ScoredRows::add(uint64_t row) {
  if (blocks_.empty() || blocks_.back().size() == kBlockRows) blocks_.emplace_back();
  std::vector<uint64_t>& block = blocks_.back();
  // Slices are many and small: only blocks behind the first one are known to be large.
  if (block.empty() && blocks_.size() > 1) block.reserve(kBlockRows);
  block.push_back(row);
}

void ScoredRows::visit_ascending(FunctionRef<void(Span<uint64_t> run)> visit) {
  parallel_for(0, static_cast<int64_t>(blocks_.size()), 1, [this](int64_t first, int64_t last) {
    for (int64_t b = first; b < last; ++b) {
      std::vector<uint64_t>& rows = blocks_[static_cast<size_t>(b)];
      std::sort(rows.begin(), rows.end());
    }
  });
  // Merges the blocks: a heap of what is left of them, the lowest first row at the front.
  struct Front {
    const uint64_t *next, *end;
    bool operator<(const Front& other) const { return *next > *other.next; }
  };
  std::vector<Front> fronts;
  for (const std::vector<uint64_t>& rows : blocks_) fronts.push_back({rows.data(), rows.data() + rows.size()});
  std::make_heap(fronts.begin(), fronts.end());
  while (!fronts.empty()) {
    std::pop_heap(fronts.begin(), fronts.end());
    Front& lowest = fronts.back();
    // Rows up to the next front come from the same block.
    const uint64_t* const end =
        fronts.size() > 1 ? std::upper_bound(lowest.next, lowest.end, *fronts.front().next) : lowest.end;
    visit({lowest.next, static_cast<size_t>(end - lowest.next)});
    lowest.next = end;
    if (lowest.next == lowest.end)
      fronts.pop_back();
    else
      std::push_heap(fronts.begin(), fronts.end());
  }
}

void ScoredRows::write(std::string& bytes) const {
  uint64_t rows = 0;
  for (const std::vector<uint64_t>& block : blocks_) rows += block.size();
  bytes.reserve(bytes.size() + (rows + 3) * sizeof(uint64_t));
  put(bytes, rows);
  for (const std::vector<uint64_t>& block : blocks_)
    bytes.append(reinterpret_cast<const char*>(block.data()), block.size() * sizeof(uint64_t));
}

void ScoredRows::merge(ByteCursor& bytes, FunctionRef<bool(uint64_t row)> is_valid, const char* expected) {
  const size_t rows = bytes.check_count(bytes.read<uint64_t>("number of rows"), sizeof(uint64_t), "rows");
  ByteCursor values = bytes.sub(rows * sizeof(uint64_t), "rows");
  bytes.expect_end("the rows");
  ByteCursor checked = values;
  for (size_t i = 0; i < rows; ++i)
    if (!is_valid(checked.read<uint64_t>("row"))) checked.fail(expected, "another number");
  for (size_t i = 0; i < rows; ++i) add(values.read<uint64_t>("row"));
}

}  // namespace tercel::recsys
