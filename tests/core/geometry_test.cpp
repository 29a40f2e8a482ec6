#include "tercel/core/geometry.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "tercel/util/error.h"
#include "tests/core/strided.h"
#include "tests/support/errors.h"

namespace tercel {
namespace {

using test::any_geometry;
using test::Geometry;
using test::Ints;
using test::message_of;
using test::offsets_of;

Ints list(IntSpan v) { return v.to_vector(); }

constexpr int64_t kHuge = int64_t{1} << 62;

// ---- numel, strides

TEST(Geometry, Numel) {
  EXPECT_EQ(numel_of({}), 1);
  EXPECT_EQ(numel_of({2, 3, 4}), 24);
  EXPECT_EQ(numel_of({2, 0, 4}), 0);
  EXPECT_EQ(numel_of({kHuge}), kHuge);
  EXPECT_EQ(numel_of({0, kHuge}), 0);
  EXPECT_EQ(message_of<RuntimeError>([] {
              numel_of({2, -3});
            }),
            "Trying to create tensor with negative dimension -3: [2, -3]");
  EXPECT_EQ(message_of<RuntimeError>([] {
              numel_of({kHuge, 4});
            }),
            "Storage size calculation overflowed with sizes=[4611686018427387904, 4]");
  EXPECT_THROW(numel_of({kHuge, 0, 4}), RuntimeError);
  EXPECT_THROW(numel_of({0, -1}), RuntimeError);
  EXPECT_THROW(numel_of({INT64_MIN, INT64_MIN}), RuntimeError);
}

TEST(Geometry, ContiguousStrides) {
  EXPECT_EQ(list(contiguous_strides({})), Ints{});
  EXPECT_EQ(list(contiguous_strides({5})), Ints{1});
  EXPECT_EQ(list(contiguous_strides({2, 3, 4})), (Ints{12, 4, 1}));
  EXPECT_EQ(list(contiguous_strides({3, 0, 5})), (Ints{5, 5, 1}));
  EXPECT_THROW(contiguous_strides({kHuge, 0, kHuge}), RuntimeError);
}

TEST(Geometry, StridesForFormats) {
  EXPECT_EQ(list(strides_for({2, 3, 4, 5}, MemoryFormat::Contiguous)), (Ints{60, 20, 5, 1}));
  EXPECT_EQ(list(strides_for({2, 3, 4, 5}, MemoryFormat::ChannelsLast)), (Ints{60, 1, 15, 3}));
  EXPECT_EQ(list(strides_for({2, 3, 4, 5, 6}, MemoryFormat::ChannelsLast3d)), (Ints{360, 1, 90, 18, 3}));
  EXPECT_THROW(strides_for({2, 3}, MemoryFormat::ChannelsLast3d), RuntimeError);
  EXPECT_THROW(strides_for({2, 3, 4, 5, 6}, MemoryFormat::ChannelsLast), RuntimeError);
  EXPECT_THROW(strides_for({2, 3, 4, 5}, MemoryFormat::Preserve), RuntimeError);
}

RC_GTEST_PROP(Geometry, ContiguousMeansOffsetsInOrder, ()) {
  test::many_times([] {
    const Geometry g = *any_geometry(4, 4, 8);
    const Ints offsets = offsets_of(g.sizes, g.strides);
    bool in_order = true;
    for (size_t i = 0; i < offsets.size(); ++i) in_order &= offsets[i] == static_cast<int64_t>(i);
    RC_ASSERT(is_contiguous_strides(g.sizes, g.strides) == in_order);
    RC_ASSERT(is_contiguous_strides(g.sizes, contiguous_strides(g.sizes)));
  });
}

RC_GTEST_PROP(Geometry, DenseMeansEachOffsetOnce, ()) {
  test::many_times([] {
    const Geometry g = *any_geometry(4, 4, 8);
    Ints offsets = offsets_of(g.sizes, g.strides);
    std::sort(offsets.begin(), offsets.end());
    bool once_each = true;
    for (size_t i = 0; i < offsets.size(); ++i) once_each &= offsets[i] == static_cast<int64_t>(i);
    RC_ASSERT(is_non_overlapping_and_dense(g.sizes, g.strides) == once_each);
  });
}

// ---- channels-last

TEST(Geometry, ChannelsLast) {
  EXPECT_TRUE(is_channels_last_strides({2, 3, 4, 5}, {60, 1, 15, 3}));
  EXPECT_FALSE(is_channels_last_strides({2, 3, 4, 5}, {60, 20, 5, 1}));
  EXPECT_FALSE(is_channels_last_strides({3, 4, 5}, {1, 15, 3}));
  EXPECT_TRUE(is_channels_last_strides({2, 1, 4, 5}, {20, 20, 5, 1}));  // one channel: both formats
  EXPECT_TRUE(is_channels_last_strides({2, 3, 1, 1}, {3, 1, 99, 99}));  // one pixel: both
  EXPECT_TRUE(is_channels_last_strides({0, 3, 4, 5}, {60, 1, 15, 3}));
  EXPECT_TRUE(is_channels_last_3d_strides({2, 3, 4, 5, 6}, {360, 1, 90, 18, 3}));
  EXPECT_FALSE(is_channels_last_3d_strides({2, 3, 4, 5}, {60, 1, 15, 3}));
}

TEST(Geometry, StridesLikeChannelsLast) {
  struct Case {
    Ints sizes, strides;
    bool like;
  };
  const Case cases[] = {
      {{2, 3, 4, 5}, {60, 1, 15, 3}, true},    //
      {{2, 3, 4, 5}, {60, 20, 5, 1}, false},   //
      {{2, 3, 4, 5}, {120, 2, 30, 6}, true},   // with gaps
      {{2, 3, 2, 2}, {60, 1, 30, 6}, true},    // every second pixel
      {{2, 3, 4, 5}, {60, 0, 15, 3}, false},   // expanded channels
      {{0, 3, 4, 5}, {60, 1, 15, 3}, false},   // nothing in it
      {{2, 3, 4, 5}, {60, 1, 3, 12}, false},   // width outside height
      {{2, 1, 4, 5}, {20, 1, 5, 1}, true},     // one channel, made channels-last
      {{2, 1, 4, 5}, {20, 20, 5, 1}, false},   // and row-major
      {{2, 3, 1, 1}, {3, 1, 3, 3}, true},      // one pixel
      {{2, 3, 1, 1}, {3, 1, 1, 1}, false},     //
      {{1, 1, 1, 1}, {1, 1, 1, 1}, false},     // a tie is row-major
      {{4, 1, 1, 1}, {5, 5, 5, 5}, false},     // N111: could be NC11 or N11W
      {{2, 3, 4, 5}, {60, -1, 15, 3}, false},  //
      {{3, 4, 5}, {1, 15, 3}, false},          // no batch: never
      {{2, 2, 2, 2}, {8, 1, INT64_MAX, 2}, false},
  };
  for (const Case& c : cases)
    EXPECT_EQ(is_strides_like_channels_last(c.sizes, c.strides), c.like)
        << str_cat({IntSpan(c.sizes), IntSpan(c.strides)});
  EXPECT_TRUE(is_strides_like_channels_last_3d({2, 3, 4, 5, 6}, {360, 1, 90, 18, 3}));
  EXPECT_FALSE(is_strides_like_channels_last_3d({2, 3, 4, 5, 6}, {360, 120, 30, 6, 1}));
  EXPECT_FALSE(is_strides_like_channels_last_3d({2, 3, 4, 5}, {60, 1, 15, 3}));
  EXPECT_EQ(suggest_memory_format({2, 3, 4, 5}, {60, 1, 15, 3}), MemoryFormat::ChannelsLast);
  EXPECT_EQ(suggest_memory_format({2, 3, 4, 5, 6}, {360, 1, 90, 18, 3}), MemoryFormat::ChannelsLast3d);
  EXPECT_EQ(suggest_memory_format({2, 3}, {3, 1}), MemoryFormat::Contiguous);
}

TEST(Geometry, PreservedStrides) {
  const auto preserved = [](IntSpan sizes, IntSpan strides) { return list(preserved_strides(sizes, strides)); };
  EXPECT_EQ(preserved({2, 3, 4}, {1, 8, 2}), (Ints{1, 8, 2}));
  EXPECT_EQ(preserved({3, 1, 4}, {4, 99, 1}), (Ints{4, 99, 1}));  // dense, so as it is
  EXPECT_EQ(preserved({4, 3}, {6, 2}), (Ints{3, 1}));
  EXPECT_EQ(preserved({4, 1}, {1, -1}), (Ints{1, 1}));
}

// ---- dense strides of a copy (values from PyTorch's empty_like)

TEST(Geometry, InferDenseStrides) {
  const auto infer = [](IntSpan sizes, IntSpan strides) { return list(infer_dense_strides(sizes, strides)); };
  EXPECT_EQ(infer({4, 2, 3}, {1, 12, 4}), (Ints{1, 12, 4}));
  EXPECT_EQ(infer({4, 3}, {6, 2}), (Ints{3, 1}));
  EXPECT_EQ(infer({4, 3}, {1, 8}), (Ints{1, 4}));
  EXPECT_EQ(infer({3, 4}, {1, 0}), (Ints{4, 1}));
  EXPECT_EQ(infer({3, 4}, {0, 1}), (Ints{4, 1}));
  EXPECT_EQ(infer({2, 3}, {-3, 1}), (Ints{3, 1}));  // flipped rows stay rows
  EXPECT_EQ(infer({2, 3}, {1, -2}), (Ints{1, 2}));
  EXPECT_EQ(infer({}, {}), Ints{});
  EXPECT_EQ(infer({0, 3}, {3, 1}), (Ints{3, 1}));
}

RC_GTEST_PROP(Geometry, InferredStridesAreDenseAndKeepDenseOnes, ()) {
  test::many_times([] {
    const Geometry g = *any_geometry(5, 4, 30);
    const DimVector inferred = infer_dense_strides(g.sizes, g.strides);
    RC_ASSERT(is_non_overlapping_and_dense(g.sizes, inferred));
    RC_ASSERT(!has_internal_overlap(g.sizes, inferred));
    if (is_non_overlapping_and_dense(g.sizes, g.strides) && numel_of(g.sizes) > 0)
      RC_ASSERT(offsets_of(g.sizes, list(inferred)) == offsets_of(g.sizes, g.strides));
  });
}

// ---- dimensions

TEST(Geometry, WrapDim) {
  EXPECT_EQ(wrap_dim(0, 3), 0);
  EXPECT_EQ(wrap_dim(2, 3), 2);
  EXPECT_EQ(wrap_dim(-1, 3), 2);
  EXPECT_EQ(wrap_dim(-3, 3), 0);
  EXPECT_EQ(message_of<IndexError>([] { wrap_dim(5, 2); }),
            "Dimension out of range (expected to be in range of [-2, 1], but got 5)");
  EXPECT_THROW(wrap_dim(-3, 2), IndexError);
  EXPECT_THROW(wrap_dim(INT64_MIN, 2), IndexError);
  EXPECT_EQ(wrap_dim(0, 0), 0);
  EXPECT_EQ(wrap_dim(-1, 0), 0);
  EXPECT_EQ(message_of<IndexError>([] { wrap_dim(1, 0); }),
            "Dimension out of range (expected to be in range of [-1, 0], but got 1)");
  EXPECT_EQ(message_of<IndexError>([] { wrap_dim(-1, 0, false); }),
            "Dimension specified as -1 but tensor has no dimensions");
}

TEST(Geometry, InferSize) {
  EXPECT_EQ(list(infer_size({2, -1}, 6)), (Ints{2, 3}));
  EXPECT_EQ(list(infer_size({-1}, 0)), (Ints{0}));
  EXPECT_EQ(list(infer_size({-1, 3}, 0)), (Ints{0, 3}));
  EXPECT_EQ(list(infer_size({0, 5}, 0)), (Ints{0, 5}));
  EXPECT_EQ(list(infer_size({}, 1)), Ints{});
  EXPECT_EQ(list(infer_size({-1}, 1)), Ints{1});
  EXPECT_EQ(message_of<RuntimeError>([] { infer_size({7}, 6); }), "shape '[7]' is invalid for input of size 6");
  EXPECT_EQ(message_of<RuntimeError>([] { infer_size({4, -1}, 6); }), "shape '[4, -1]' is invalid for input of size 6");
  EXPECT_EQ(message_of<RuntimeError>([] { infer_size({}, 6); }), "shape '[]' is invalid for input of size 6");
  EXPECT_EQ(message_of<RuntimeError>([] { infer_size({-1, -1}, 6); }), "only one dimension can be inferred");
  EXPECT_EQ(message_of<RuntimeError>([] { infer_size({-2}, 6); }), "invalid shape dimension -2");
  EXPECT_EQ(message_of<RuntimeError>([] {
              infer_size({-1, 0}, 0);
            }),
            "cannot reshape tensor of 0 elements into shape [-1, 0] because the unspecified dimension size -1 can be "
            "any value and is ambiguous");
  EXPECT_EQ(message_of<RuntimeError>([] { infer_size({0, -1}, 6); }), "shape '[0, -1]' is invalid for input of size 6");
  EXPECT_THROW(infer_size({kHuge, kHuge}, 6), RuntimeError);
}

TEST(Geometry, Broadcast) {
  EXPECT_EQ(list(broadcast_sizes({2, 3}, {3})), (Ints{2, 3}));
  EXPECT_EQ(list(broadcast_sizes({2, 1}, {1, 4})), (Ints{2, 4}));
  EXPECT_EQ(list(broadcast_sizes({}, {5})), Ints{5});
  EXPECT_EQ(list(broadcast_sizes({0}, {1})), Ints{0});
  EXPECT_EQ(list(broadcast_sizes({4, 1, 3}, {2, 1})), (Ints{4, 2, 3}));
  EXPECT_EQ(message_of<RuntimeError>([] { broadcast_sizes({0}, {2}); }),
            "The size of tensor a (0) must match the size of tensor b (2) at non-singleton dimension 0");
  EXPECT_EQ(message_of<RuntimeError>([] {
              broadcast_sizes({2, 3}, {2, 4});
            }),
            "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1");
}

// ---- views

TEST(Geometry, ViewStrides) {
  const auto view = [](IntSpan sizes, IntSpan strides, IntSpan to) -> std::optional<Ints> {
    const auto v = view_strides(sizes, strides, to);
    if (!v) return std::nullopt;
    return list(*v);
  };
  EXPECT_EQ(view({2, 3, 4}, {12, 4, 1}, {6, 4}), (Ints{4, 1}));
  EXPECT_EQ(view({2, 3, 4}, {12, 4, 1}, {2, 12}), (Ints{12, 1}));
  EXPECT_EQ(view({2, 3}, {1, 2}, {6}), std::nullopt);
  EXPECT_EQ(view({2, 3}, {1, 2}, {2, 1, 3, 1}), (Ints{1, 6, 2, 2}));
  EXPECT_EQ(view({4, 6}, {12, 2}, {24}), (Ints{2}));
  EXPECT_EQ(view({4, 6}, {12, 1}, {4, 2, 3}), (Ints{12, 3, 1}));
  EXPECT_EQ(view({4, 6}, {12, 1}, {8, 3}), std::nullopt);
  EXPECT_EQ(view({}, {}, {1, 1}), (Ints{1, 1}));
  EXPECT_EQ(view({1}, {7}, {}), Ints{});
  EXPECT_EQ(view({6}, {-1}, {2, 3}), (Ints{-3, -1}));
  EXPECT_EQ(view({2, 3}, {0, 0}, {6}), Ints{0});
  EXPECT_EQ(view({0, 3}, {1, 9}, {0, 3}), (Ints{1, 9}));
  EXPECT_EQ(view({0, 3}, {1, 9}, {3, 0, 2}), (Ints{2, 2, 1}));
}

/** The strides under which `to` shows the same offsets in the same order, found by looking. */
std::optional<Ints> view_by_enumeration(const Geometry& g, const Ints& to) {
  const Ints offsets = offsets_of(g.sizes, g.strides);
  Ints strides(to.size(), 0);
  int64_t step = 1;  // between neighbours along d, in row-major order
  for (size_t d = to.size(); d-- > 0;) {
    if (to[d] > 1) strides[d] = offsets[static_cast<size_t>(step)] - offsets[0];
    step *= to[d];
  }
  if (offsets_of(to, strides) != offsets) return std::nullopt;
  return strides;
}

RC_GTEST_PROP(Geometry, ViewsAreThoseThatEnumerationFinds, ()) {
  test::many_times([] {
    const Geometry g = *any_geometry(4, 6, 20);
    const int64_t n = numel_of(g.sizes);
    if (n == 0) return;
    // The prime factors of n, dealt out to a few dimensions.
    Ints to(static_cast<size_t>(*rc::gen::inRange(n > 1 ? 1 : 0, 6)), 1);
    for (int64_t rest = n, f = 2; rest > 1; ++f)
      for (; rest % f == 0; rest /= f) to[*rc::gen::inRange<size_t>(0, to.size())] *= f;
    const auto strides = view_strides(g.sizes, g.strides, to);
    const auto expected = view_by_enumeration(g, to);
    RC_ASSERT(strides.has_value() == expected.has_value());
    if (strides) RC_ASSERT(offsets_of(to, list(*strides)) == offsets_of(g.sizes, g.strides));
  });
}

// ---- extent

TEST(Geometry, Extent) {
  EXPECT_EQ(extent_of({2, 3}, {3, 1}).highest, 5);
  EXPECT_EQ(extent_of({2, 3}, {-3, 1}).lowest, -3);
  EXPECT_EQ(extent_of({2, 3}, {-3, 1}).highest, 2);
  EXPECT_EQ(extent_of({}, {}).highest, 0);
  EXPECT_EQ(extent_of({5, 0}, {1, 1}).highest, -1);
  EXPECT_EQ(extent_of({1}, {INT64_MIN}).lowest, 0);
  EXPECT_THROW(extent_of({3}, {kHuge}), RuntimeError);
  EXPECT_THROW(extent_of({2, 2}, {kHuge, kHuge}), RuntimeError);
  EXPECT_THROW(extent_of({2}, {INT64_MIN}), RuntimeError);
  EXPECT_THROW(extent_of({2}, {int64_t{1} << 58}), RuntimeError);  // its bytes would not fit
}

RC_GTEST_PROP(Geometry, ExtentIsThatOfTheOffsets, ()) {
  test::many_times([] {
    const Geometry g = *any_geometry(4, 5, 20);
    const Ints offsets = offsets_of(g.sizes, g.strides);
    if (offsets.empty()) return;
    const Extent extent = extent_of(g.sizes, g.strides);
    RC_ASSERT(extent.lowest == *std::min_element(offsets.begin(), offsets.end()));
    RC_ASSERT(extent.highest == *std::max_element(offsets.begin(), offsets.end()));
  });
}

}  // namespace
}  // namespace tercel
