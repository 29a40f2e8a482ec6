#include "tercel/util/small_vector.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <vector>

namespace tercel {
namespace {

using Small = SmallVector<int64_t, 4>;

std::vector<int64_t> contents(const Small& v) { return {v.begin(), v.end()}; }

TEST(SmallVector, StaysInlineUpToN) {
  Small v{1, 2, 3, 4};
  EXPECT_TRUE(v.is_inline());
  EXPECT_EQ(v.capacity(), 4u);
  v.push_back(5);
  EXPECT_FALSE(v.is_inline());
  EXPECT_EQ(contents(v), (std::vector<int64_t>{1, 2, 3, 4, 5}));
}

TEST(SmallVector, MoveStealsTheHeapBlock) {
  Small v{1, 2, 3, 4, 5};
  const int64_t* const block = v.data();
  Small moved = std::move(v);
  EXPECT_EQ(moved.data(), block);
  EXPECT_TRUE(v.empty());  // NOLINT(bugprone-use-after-move): the state is documented
  EXPECT_TRUE(v.is_inline());
  Small inline_one{7};
  moved = std::move(inline_one);
  EXPECT_EQ(contents(moved), std::vector<int64_t>{7});
  EXPECT_TRUE(moved.is_inline());
}

TEST(SmallVector, CopiesAreIndependent) {
  const Small v{1, 2, 3, 4, 5};
  Small copy = v;
  copy[0] = 9;
  EXPECT_EQ(v[0], 1);
  Small& alias = copy;
  copy = alias;
  EXPECT_EQ(contents(copy), (std::vector<int64_t>{9, 2, 3, 4, 5}));
}

TEST(SmallVector, ArgumentsMayLieInside) {
  Small v{1, 2, 3, 4};
  v.push_back(v[0]);
  EXPECT_EQ(contents(v), (std::vector<int64_t>{1, 2, 3, 4, 1}));
  v.insert(v.begin() + 1, Span<int64_t>(v));
  EXPECT_EQ(contents(v), (std::vector<int64_t>{1, 1, 2, 3, 4, 1, 2, 3, 4, 1}));
  v.assign(Span<int64_t>(v).subspan(4, 3));
  EXPECT_EQ(contents(v), (std::vector<int64_t>{4, 1, 2}));
}

TEST(SmallVector, ConvertsToSpan) {
  const Small v{2, 3};
  const IntSpan span = v;
  EXPECT_EQ(span.data(), v.data());
  EXPECT_EQ(span.size(), 2u);
}

TEST(SmallVector, RefusesMisuse) {
  Small v{1};
  v.pop_back();
  EXPECT_THROW(v.pop_back(), InternalError);
  EXPECT_THROW(v.erase(v.end()), InternalError);
  EXPECT_THROW(v.reserve(SIZE_MAX), ValueError);
}

RC_GTEST_PROP(SmallVector, BehavesLikeVector, ()) {
  Small small;
  std::vector<int64_t> model;
  const int steps = *rc::gen::inRange(1, 60);
  for (int step = 0; step < steps; ++step) {
    const auto value = *rc::gen::arbitrary<int64_t>();
    const size_t at = *rc::gen::inRange<size_t>(0, model.size() + 1);
    const size_t count = *rc::gen::inRange<size_t>(0, 7);
    const auto offset = static_cast<ptrdiff_t>(at);
    switch (*rc::gen::inRange(0, 10)) {
      case 0:
        small.push_back(value);
        model.push_back(value);
        break;
      case 1:
        small.resize(count, value);
        model.resize(count, value);
        break;
      case 2: {
        const auto* const p = small.insert(small.begin() + at, value);
        RC_ASSERT(p == small.begin() + at);
        model.insert(model.begin() + offset, value);
        break;
      }
      case 3: {
        const std::vector<int64_t> list(count, value);
        small.insert(small.begin() + at, Span<int64_t>(list));
        model.insert(model.begin() + offset, list.begin(), list.end());
        break;
      }
      case 4:
        if (at < model.size()) {
          small.erase(small.begin() + at);
          model.erase(model.begin() + offset);
        }
        break;
      case 5:
        small.erase(small.begin() + at, small.end());
        model.erase(model.begin() + offset, model.end());
        break;
      case 6:
        small.assign(count, value);
        model.assign(count, value);
        break;
      case 7: {
        Small copy = small;
        small = std::move(copy);
        break;
      }
      case 8: {
        const Small copy(small);
        small.clear();
        small = copy;
        break;
      }
      case 9: small.reserve(count); break;
    }
    RC_ASSERT(contents(small) == model);
    RC_ASSERT(small.capacity() >= small.size());
  }
}

}  // namespace
}  // namespace tercel
