// Elements of lines selected by rank.
//
//   top:   for each piece of the line:  bound = a key that the k-th best does not exceed
//                                       candidates += elements of the piece up to the bound
//                                       if there are many candidates: keep the best k of them
//          short lines, small k: several lines at once (topk_lanes.h)
//   rank:  the key of that rank (Note [Order statistics of keys]), then its position
#include "tercel/ops/sort/order_statistics_kernels.h"

#include <cstddef>
#include <limits>

#include "tercel/core/load_element.h"
#include "tercel/ops/sort/cpu/order_keys.h"
#include "tercel/ops/sort/cpu/order_statistics.h"
#include "tercel/ops/sort/cpu/topk_lanes.h"
#include "tercel/ops/sort/sort_kernels.h"

namespace tercel::TERCEL_ISA {

namespace {

template <class K>
constexpr int64_t kRoom = kKeySlack / static_cast<int64_t>(sizeof(K));

// Keys of n elements; in reverse order if `flip`.
template <class T>
void write_keys(const void* in, int64_t n, bool flip, OrderKey<T>* keys) {
  const auto* x = static_cast<const T*>(in);
  const OrderKey<T> turn = flip ? -1 : 0;
  for (int64_t i = 0; i < n; ++i) keys[i] = order_key(load_element(x + i)) ^ turn;
}

template <class T>
void take(void* values, const void* line, const int64_t* indices, int64_t k) {
  for (int64_t j = 0; j < k; ++j) static_cast<T*>(values)[j] = load_element(static_cast<const T*>(line) + indices[j]);
}

// Up to this many elements are all candidates.
constexpr int64_t kOrderedAtOnce = 64;

/** Functions that depend on the dtype; all other code is compiled for only two types of keys. */
template <class K>
struct Elements {
  int64_t item;
  void (*keys)(const void* in, int64_t n, bool flip, K* keys);
  void (*take)(void* values, const void* line, const int64_t* indices, int64_t k);
};

/** Calls fn with the Elements of a dtype. */
template <class Fn>
void visit_keys(ScalarType dtype, Fn fn) {
  visit_ordered(dtype, [&]<class T>() {
    fn(Elements<OrderKey<T>>{static_cast<int64_t>(sizeof(T)), &write_keys<T>, &take<T>});
  });
}

template <class K>
class Top {
 public:
  Top(const TopkLoop& loop, const Elements<K>& elements) : loop_(loop), elements_(elements) {
    const int64_t candidates = topk_scratch_bytes(loop.n, loop.k) / 3;
    auto* memory = static_cast<std::byte*>(loop.scratch);
    best_ = reinterpret_cast<K*>(memory);
    where_ = reinterpret_cast<int64_t*>(memory + candidates);
    copies_ = reinterpret_cast<K*>(memory + 2 * candidates);
  }

  void run(int64_t line) {
    const auto* in = static_cast<const std::byte*>(loop_.lines) + line * loop_.n * elements_.item;
    int64_t* indices = loop_.indices + line * loop_.k;
    if (loop_.k == 1)
      *indices = find_best(in);
    else
      find_top(in, indices);
    elements_.take(static_cast<std::byte*>(loop_.values) + line * loop_.k * elements_.item, in, indices, loop_.k);
  }

 private:
  static constexpr int64_t kGroups = 4 * kLanes<K>;

  // Calls visit(first, keys, m) for pieces of the line until it returns false.
  template <class Visit>
  void for_each_piece(const std::byte* in, Visit visit) const {
    alignas(64) K keys[kOrderStatisticPiece + kRoom<K>];
    for (int64_t first = 0; first < loop_.n; first += kOrderStatisticPiece) {
      const int64_t m = loop_.n - first < kOrderStatisticPiece ? loop_.n - first : kOrderStatisticPiece;
      elements_.keys(in + first * elements_.item, m, loop_.largest, keys);
      store(keys + m, Simd<K>{});
      if (!visit(first, keys, m)) return;
    }
  }

  int64_t find_best(const std::byte* in) const {
    K best = 0;
    int64_t where = -1;
    for_each_piece(in, [&](int64_t first, const K* keys, int64_t m) {
      K least = keys[0];
      for (int64_t i = 1; i < m; ++i) least = keys[i] < least ? keys[i] : least;
      if (where < 0 || least < best) {
        best = least;
        where = first + find_equal(keys, least, 0);
      }
      return true;
    });
    return where;
  }

  void find_top(const std::byte* in, int64_t* indices) {
    collect(in);
    if (count_ > loop_.k && (count_ > kFewKeys || loop_.k > kMaxOrdered)) keep_best();
    if (loop_.k > kMaxOrdered)
      std::memcpy(indices, where_, static_cast<size_t>(loop_.k) * sizeof(int64_t));
    else
      for_each_place(best_, count_, [&](int64_t i, int64_t place) {
        if (place < loop_.k) indices[place] = where_[i];
      });
  }

  // Collects candidates, in order of position.
  void collect(const std::byte* in) {
    alignas(64) uint32_t found[kOrderStatisticPiece + 16];
    const int64_t k = loop_.k;
    count_ = 0;
    K bound = 0;
    for_each_piece(in, [&](int64_t first, const K* keys, int64_t m) {
      if (first == 0) bound = first_bound(keys, m);
      const int64_t chosen = find_at_most(keys, m, bound, found);
      for (int64_t i = 0; i < chosen; ++i) {
        best_[count_] = keys[found[i]];
        where_[count_++] = first + found[i];
      }
      if (count_ < 2 * k || loop_.n <= kOrderStatisticPiece) return true;
      // Later candidates must be better than the worst one kept, since equal ones come after it.
      const K worst = keep_best();
      if (worst == std::numeric_limits<K>::min()) return false;
      bound = worst - 1;
      return true;
    });
  }

  // A bound that at least k of the m keys do not exceed.
  K first_bound(const K* keys, int64_t m) {
    const int64_t k = loop_.k;
    if (k > m || m <= kOrderedAtOnce) return std::numeric_limits<K>::max();
    if (2 * k > kGroups || m < 2 * kGroups) return key_of_rank(keys, m, k - 1, copies_).key;
    // At least as many keys are within the bound as groups have their minimum within it.
    alignas(64) K least[kGroups + kRoom<K>];
    Simd<K> group[4];
    for (int64_t g = 0; g < 4; ++g) group[g] = load(keys + g * kLanes<K>);
    for (int64_t i = kGroups; i + kGroups <= m; i += kGroups) {
      for (int64_t g = 0; g < 4; ++g) {
        const Simd<K> x = load(keys + i + g * kLanes<K>);
        group[g] = x < group[g] ? x : group[g];
      }
    }
    for (int64_t g = 0; g < 4; ++g) store(least + g * kLanes<K>, group[g]);
    return key_of_rank_in_few(least, kGroups, k - 1).key;
  }

  // Keeps the best k candidates, k < count_; returns the worst of their keys.
  K keep_best() {
    const KeyOfRank<K> worst = key_of_rank(best_, count_, loop_.k - 1, copies_);
    int64_t equal = loop_.k - worst.less, kept = 0;
    for (int64_t i = 0; i < count_; ++i) {
      const K key = best_[i];
      best_[kept] = key;
      where_[kept] = where_[i];
      const bool is_worst = key == worst.key;
      kept += key < worst.key || (is_worst && equal > 0);
      equal -= is_worst;
    }
    count_ = kept;
    return worst.key;
  }

  const TopkLoop& loop_;
  const Elements<K>& elements_;
  K* best_;
  int64_t* where_;
  K* copies_;
  int64_t count_ = 0;
};

/** Processes lines in parallel lanes, if they are short, there are enough of them, and k is small. */
template <class K>
bool topk_side_by_side(const TopkLoop& loop, const Elements<K>& elements, int64_t begin, int64_t end) {
  constexpr int64_t kWidth = kLanes<K>;
  if (loop.n > kShortLine || loop.k > kMaxInLanes || loop.n < lanes_depth(loop.k) || end - begin < kWidth) return false;
  alignas(64) K keys[kShortLine * kWidth];
  for (int64_t next = begin; next < end; next += kWidth) {
    // The last vector overlaps the lines before.
    const int64_t line = next + kWidth <= end ? next : end - kWidth;
    const auto* in = static_cast<const std::byte*>(loop.lines) + line * loop.n * elements.item;
    int64_t* indices = loop.indices + line * loop.k;
    elements.keys(in, kWidth * loop.n, loop.largest, keys);
    top_of_lanes(keys, loop.n, loop.k, indices);
    for (int64_t i = 0; i < kWidth; ++i)
      elements.take(static_cast<std::byte*>(loop.values) + (line + i) * loop.k * elements.item,
                    in + i * loop.n * elements.item, indices + i * loop.k, loop.k);
  }
  return true;
}

template <class K>
int64_t position_of_rank(const K* keys, int64_t n, int64_t rank, K* scratch) {
  const KeyOfRank<K> found = key_of_rank(keys, n, rank, scratch);
  return find_equal(keys, found.key, rank - found.less);
}

template <class K>
int64_t position_of(const OrderStatisticLoop& loop, const K* keys, K nan, K* scratch) {
  const int64_t n = loop.n;
  if (loop.of == RankOf::All) return position_of_rank(keys, n, loop.rank, scratch);
  const int64_t nans = is_floating(loop.dtype) ? count_equal(keys, n, nan) : 0, numbers = n - nans;
  if (numbers == 0 || (nans > 0 && loop.of == RankOf::MedianOrNan)) return find_equal(keys, nan, 0);
  return position_of_rank(keys, n, (numbers - 1) / 2, scratch);
}

}  // namespace

void topk(const TopkLoop& loop, int64_t begin, int64_t end) {
  visit_keys(loop.dtype, [&]<class K>(const Elements<K>& elements) {
    if (topk_side_by_side(loop, elements, begin, end)) return;
    Top<K> top(loop, elements);
    for (int64_t line = begin; line < end; ++line) top.run(line);
  });
}

void order_statistic(const OrderStatisticLoop& loop, int64_t begin, int64_t end) {
  visit_keys(loop.dtype, [&]<class K>(const Elements<K>& elements) {
    auto* keys = static_cast<K*>(loop.scratch);
    K* scratch = keys + loop.n + kRoom<K>;
    const K nan = static_cast<K>(nan_key(loop.dtype));
    for (int64_t line = begin; line < end; ++line) {
      const auto* in = static_cast<const std::byte*>(loop.lines) + line * loop.n * elements.item;
      elements.keys(in, loop.n, false, keys);
      store(keys + loop.n, Simd<K>{});
      int64_t* index = loop.indices + line;
      *index = position_of(loop, keys, nan, scratch);
      elements.take(static_cast<std::byte*>(loop.values) + line * elements.item, in, index, 1);
    }
  });
}

}  // namespace tercel::TERCEL_ISA
