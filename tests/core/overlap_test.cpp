#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <vector>

#include "tercel/core/geometry.h"
#include "tercel/util/error.h"
#include "tercel/util/philox.h"
#include "tests/core/strided.h"

namespace tercel {
namespace {

using test::any_geometry;
using test::Geometry;
using test::Ints;
using test::offsets_of;

bool repeats(const Geometry& g) {
  Ints offsets = offsets_of(g.sizes, g.strides);
  std::sort(offsets.begin(), offsets.end());
  return std::adjacent_find(offsets.begin(), offsets.end()) != offsets.end();
}

Overlap overlap_by_enumeration(const ByteLayout& a, const ByteLayout& b) {
  const Ints in_a = offsets_of(a.sizes.to_vector(), a.strides.to_vector());
  const Ints in_b = offsets_of(b.sizes.to_vector(), b.strides.to_vector());
  std::set<int64_t> bytes;
  for (const int64_t offset : in_a)
    for (int64_t i = 0; i < a.item_size; ++i) bytes.insert(a.origin + offset * a.item_size + i);
  bool shared = false;
  for (const int64_t offset : in_b)
    for (int64_t i = 0; i < b.item_size; ++i) shared |= bytes.count(b.origin + offset * b.item_size + i) > 0;
  if (!shared) return Overlap::None;
  // Dimensions of size 1 make no other tensor of it.
  const auto sizes_of = [](const ByteLayout& l) {
    Ints sizes = l.sizes.to_vector();
    sizes.erase(std::remove(sizes.begin(), sizes.end(), 1), sizes.end());
    return sizes;
  };
  const bool same_elements =
      a.origin == b.origin && a.item_size == b.item_size && sizes_of(a) == sizes_of(b) && in_a == in_b;
  return same_elements ? Overlap::Full : Overlap::Partial;
}

/** Seconds that fn takes. */
template <class Fn>
double seconds(Fn&& fn) {
  const auto start = std::chrono::steady_clock::now();
  fn();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// ---- within one tensor

TEST(InternalOverlap, Cases) {
  EXPECT_FALSE(has_internal_overlap({}, {}));
  EXPECT_FALSE(has_internal_overlap({2, 3}, {3, 1}));
  EXPECT_FALSE(has_internal_overlap({2, 3}, {1, 2}));
  EXPECT_FALSE(has_internal_overlap({4, 3}, {6, 2}));
  EXPECT_FALSE(has_internal_overlap({3, 4}, {-4, -1}));
  EXPECT_TRUE(has_internal_overlap({3, 4}, {0, 1}));   // expanded
  EXPECT_FALSE(has_internal_overlap({1, 4}, {0, 1}));  // by one
  EXPECT_FALSE(has_internal_overlap({3, 0}, {0, 1}));  // of nothing
  EXPECT_TRUE(has_internal_overlap({3, 3}, {1, 1}));   // zeros(5).unfold(0, 3, 1)
  EXPECT_TRUE(has_internal_overlap({2, 2}, {3, -3}));
  EXPECT_FALSE(has_internal_overlap({2, 2}, {3, -2}));
  EXPECT_FALSE(has_internal_overlap({3, 2}, {2, 3}));  // 0 2 4 3 5 7
  EXPECT_TRUE(has_internal_overlap({4, 3}, {2, 3}));   // 6 twice
  EXPECT_FALSE(has_internal_overlap({2, 2, 2}, {4, 6, 9}));
  EXPECT_TRUE(has_internal_overlap({2, 2, 2}, {4, 5, 9}));
  EXPECT_THROW(has_internal_overlap({3}, {INT64_MAX}), RuntimeError);
}

RC_GTEST_PROP(InternalOverlap, IsThatOfTheOffsets, ()) {
  test::many_times([] {
    const Geometry g = *any_geometry(4, 6, 25);
    RC_ASSERT(has_internal_overlap(g.sizes, g.strides) == repeats(g));
  });
}

// Sums of four coprime strides: neither nested nor decided by the greatest common divisor, so that the search runs out
// of its budget and elements are marked.
TEST(InternalOverlap, HardCasesAreExactAndQuick) {
  const Geometry apart{{40, 40, 40, 40}, {1000003, 1000033, 1000037, 1000039}};
  EXPECT_EQ(has_internal_overlap(apart.sizes, apart.strides), repeats(apart));
  const Geometry close{{30, 30, 30, 30}, {10007, 10009, 10037, 10039}};
  EXPECT_EQ(has_internal_overlap(close.sizes, close.strides), repeats(close));
  const Geometry twice{{50, 50, 50}, {2 * 9973, 2 * 9967, 9949}};
  EXPECT_EQ(has_internal_overlap(twice.sizes, twice.strides), repeats(twice));
}

TEST(InternalOverlap, TimeIsBounded) {
  // A knapsack of 2^20 elements: weights without pattern, sums that fill their range only thinly.
  const Ints sizes(20, 2);
  Ints strides;
  for (uint64_t i = 0; i < 20; ++i) strides.push_back(1 + Philox{3, 0}(i).word[0] % 200'000'000);
  bool overlap = false;
  EXPECT_LT(seconds([&] { overlap = has_internal_overlap(sizes, strides); }), 30);
  EXPECT_EQ(overlap, repeats({sizes, strides}));
}

// ---- of two tensors

ByteLayout layout(const Geometry& g, int64_t origin, int64_t item_size) {
  return {origin, item_size, g.sizes, g.strides};
}

TEST(Overlap, Cases) {
  const Geometry row{{4}, {1}}, matrix{{3, 3}, {3, 1}}, transposed{{3, 3}, {1, 3}}, even{{3}, {2}}, reversed{{4}, {-1}};
  EXPECT_EQ(overlap_of(layout(row, 0, 4), layout(row, 0, 4)), Overlap::Full);
  EXPECT_EQ(overlap_of(layout(row, 0, 4), layout(row, 16, 4)), Overlap::None);
  EXPECT_EQ(overlap_of(layout(row, 0, 4), layout(row, 12, 4)), Overlap::Partial);
  EXPECT_EQ(overlap_of(layout(row, 0, 4), layout(row, 2, 4)), Overlap::Partial);  // half an element
  EXPECT_EQ(overlap_of(layout(row, 0, 4), layout(row, 0, 2)), Overlap::Partial);  // other elements in the same bytes
  EXPECT_EQ(overlap_of(layout(matrix, 0, 4), layout(transposed, 0, 4)), Overlap::Partial);  // x.add_(x.t())
  EXPECT_EQ(overlap_of(layout(even, 0, 4), layout(even, 4, 4)), Overlap::None);             // x[::2], x[1::2]
  EXPECT_EQ(overlap_of(layout(even, 0, 4), layout(even, 8, 4)), Overlap::Partial);
  EXPECT_EQ(overlap_of(layout(row, 0, 4), layout(reversed, 12, 4)), Overlap::Partial);
  EXPECT_EQ(overlap_of(layout(reversed, 12, 4), layout(reversed, 12, 4)), Overlap::Full);
  const Geometry empty{{0, 3}, {3, 1}}, one{{1}, {1}}, one_elsewhere{{1}, {9}};
  EXPECT_EQ(overlap_of(layout(empty, 0, 4), layout(row, 0, 4)), Overlap::None);
  EXPECT_EQ(overlap_of(layout(one, 0, 4), layout(one_elsewhere, 0, 4)), Overlap::Full);
  EXPECT_EQ(overlap_of(layout(one, 0, 4), layout({{}, {}}, 0, 4)), Overlap::Full);  // x[1:2] = x[1]
  EXPECT_EQ(overlap_of(layout(one, 0, 4), layout(row, 0, 4)), Overlap::Partial);
}

TEST(Overlap, ColumnsOfOneMatrix) {
  // x[:, :k] and x[:, k:] interleave without sharing anything.
  for (int64_t k = 1; k < 7; ++k) {
    const Geometry left{{5, k}, {7, 1}}, right{{5, 7 - k}, {7, 1}};
    EXPECT_EQ(overlap_of(layout(left, 0, 8), layout(right, k * 8, 8)), Overlap::None);
    EXPECT_EQ(overlap_of(layout(left, 0, 8), layout(right, k * 8 - 1, 8)), Overlap::Partial);
  }
}

RC_GTEST_PROP(Overlap, IsThatOfTheBytes, ()) {
  test::many_times([] {
    const Geometry ga = *any_geometry(3, 5, 12), gb = *any_geometry(3, 5, 12);
    const auto a = layout(ga, *rc::gen::inRange<int64_t>(-60, 60), *rc::gen::element<int64_t>(1, 2, 4, 8));
    const auto b = layout(gb, *rc::gen::inRange<int64_t>(-60, 60), *rc::gen::element<int64_t>(1, 2, 4, 8));
    const Overlap found = overlap_of(a, b);
    const Overlap expected = overlap_by_enumeration(a, b);
    RC_ASSERT(found == expected);
    RC_ASSERT((overlap_of(b, a) == Overlap::None) == (expected == Overlap::None));
  });
}

RC_GTEST_PROP(Overlap, OfATensorWithAPartOfItself, ()) {
  test::many_times([] {
    const Geometry g = *any_geometry(3, 5, 12);
    if (test::count_of(g.sizes) == 0) return;
    Geometry part = g;
    int64_t origin = 0;
    for (size_t d = 0; d < g.sizes.size(); ++d) {  // a slice of any step
      const int64_t step = *rc::gen::inRange<int64_t>(1, 3), start = *rc::gen::inRange<int64_t>(0, g.sizes[d]);
      origin += start * g.strides[d] * 4;
      part.sizes[d] = (g.sizes[d] - start + step - 1) / step;
      part.strides[d] = g.strides[d] * step;
    }
    const auto whole = layout(g, 0, 4), slice = layout(part, origin, 4);
    RC_ASSERT(overlap_of(whole, slice) != Overlap::None);
    RC_ASSERT(overlap_of(whole, slice) == overlap_by_enumeration(whole, slice));
  });
}

TEST(Overlap, HardCasesAreExactAndQuick) {
  const Geometry a{{25, 25, 25}, {10007, 10009, 10037}}, b{{25, 25, 25}, {10039, 10061, 10067}};
  for (const int64_t origin : {1, 4, 1003, 40028, 40029}) {
    const auto la = layout(a, 0, 4), lb = layout(b, origin, 4);
    Overlap found = Overlap::Full;
    EXPECT_LT(seconds([&] { found = overlap_of(la, lb); }), 10);
    EXPECT_EQ(found, overlap_by_enumeration(la, lb)) << origin;
  }
}

}  // namespace
}  // namespace tercel
