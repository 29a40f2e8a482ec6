#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tercel/core/intrusive_ptr.h"
#include "tests/core/counted.h"

namespace tercel {
namespace {

using test::Counted;
using test::Fate;

template <class F>
class WeakIntrusivePtr : public ::testing::Test {
 protected:
  Fate fate_, other_fate_;
};
using Flavours = ::testing::Types<test::Plain, test::OwnNull, test::MixedNull>;
TYPED_TEST_SUITE(WeakIntrusivePtr, Flavours);

#define USE_TYPES                                        \
  using Ptr = typename TypeParam::Ptr;                   \
  using Weak = typename TypeParam::Weak;                 \
  [[maybe_unused]] Fate& fate = this->fate_;             \
  [[maybe_unused]] Fate& other_fate = this->other_fate_; \
  [[maybe_unused]] Ptr strong = Ptr::make(fate, 5);      \
  [[maybe_unused]] Ptr other = Ptr::make(other_fate, 6)

TYPED_TEST(WeakIntrusivePtr, DefaultIsNull) {
  USE_TYPES;
  const Weak w;
  EXPECT_TRUE(w.is_null());
  EXPECT_TRUE(w.expired());
  EXPECT_EQ(w.use_count(), 0u);
  EXPECT_EQ(w.weak_use_count(), 0u);
  EXPECT_FALSE(w.lock().defined());
}

TYPED_TEST(WeakIntrusivePtr, FromNullIsNull) {
  USE_TYPES;
  const Weak w{Ptr()};
  EXPECT_TRUE(w.is_null());
  EXPECT_FALSE(w.lock().defined());
}

TYPED_TEST(WeakIntrusivePtr, DoesNotOwn) {
  USE_TYPES;
  const Weak w(strong);
  EXPECT_EQ(strong.use_count(), 1u);
  EXPECT_TRUE(strong.unique());
  EXPECT_EQ(strong.weak_use_count(), 2u);
  EXPECT_EQ(w.use_count(), 1u);
  EXPECT_EQ(w.weak_use_count(), 2u);
  EXPECT_FALSE(w.expired());
  EXPECT_EQ(w.unsafe_get(), strong.get());
}

TYPED_TEST(WeakIntrusivePtr, LockGivesAnOwner) {
  USE_TYPES;
  const Weak w(strong);
  const Ptr locked = w.lock();
  EXPECT_EQ(locked.get(), strong.get());
  EXPECT_EQ(strong.use_count(), 2u);
}

TYPED_TEST(WeakIntrusivePtr, LockKeepsTheObjectAlive) {
  USE_TYPES;
  const Weak w(strong);
  Ptr locked = w.lock();
  strong.reset();
  EXPECT_EQ(fate.released, 0);
  EXPECT_EQ(locked->value, 5);
  locked.reset();
  EXPECT_TRUE(w.expired());
}

TYPED_TEST(WeakIntrusivePtr, ExpiresWithTheLastOwner) {
  USE_TYPES;
  const Weak w(strong);
  strong.reset();
  EXPECT_TRUE(w.expired());
  EXPECT_FALSE(w.is_null());
  EXPECT_EQ(w.use_count(), 0u);
  EXPECT_EQ(w.weak_use_count(), 1u);
  EXPECT_FALSE(w.lock().defined());
}

TYPED_TEST(WeakIntrusivePtr, ResourcesGoWithTheLastOwnerMemoryWithTheLastReference) {
  USE_TYPES;
  Weak a(strong), b = a;
  strong.reset();
  EXPECT_EQ(fate.released, 1);
  EXPECT_EQ(fate.destroyed, 0);
  a.reset();
  EXPECT_EQ(fate.destroyed, 0);
  b.reset();
  EXPECT_EQ(fate.destroyed, 1);
  EXPECT_EQ(fate.released, 1);
}

TYPED_TEST(WeakIntrusivePtr, GoingFirstIsLikeNeverHavingBeen) {
  USE_TYPES;
  { const Weak w(strong); }
  EXPECT_EQ(strong.weak_use_count(), 1u);
  strong.reset();
  EXPECT_EQ(fate.released, 0);
  EXPECT_EQ(fate.destroyed, 1);
}

TYPED_TEST(WeakIntrusivePtr, CopyCounts) {
  USE_TYPES;
  const Weak a(strong);
  const Weak b = a;
  EXPECT_EQ(strong.weak_use_count(), 3u);
  EXPECT_TRUE(a == b);
}

TYPED_TEST(WeakIntrusivePtr, CopyOfAnExpiredOne) {
  USE_TYPES;
  const Weak a(strong);
  strong.reset();
  const Weak b = a;
  EXPECT_TRUE(b.expired());
  EXPECT_EQ(b.weak_use_count(), 2u);
}

TYPED_TEST(WeakIntrusivePtr, MoveTakesOver) {
  USE_TYPES;
  Weak a(strong);
  const Weak b = std::move(a);
  EXPECT_TRUE(a.is_null());  // NOLINT(bugprone-use-after-move): the state is documented
  EXPECT_EQ(strong.weak_use_count(), 2u);
  EXPECT_EQ(b.unsafe_get(), strong.get());
}

TYPED_TEST(WeakIntrusivePtr, CopyAssignmentDropsTheOld) {
  USE_TYPES;
  Weak a(strong);
  const Weak b(other);
  strong.reset();
  a = b;
  EXPECT_EQ(fate.destroyed, 1);
  EXPECT_EQ(other.weak_use_count(), 3u);
}

TYPED_TEST(WeakIntrusivePtr, MoveAssignmentDropsTheOld) {
  USE_TYPES;
  Weak a(strong), b(other);
  strong.reset();
  a = std::move(b);
  EXPECT_EQ(fate.destroyed, 1);
  EXPECT_EQ(other.weak_use_count(), 2u);
  EXPECT_TRUE(b.is_null());  // NOLINT(bugprone-use-after-move)
}

TYPED_TEST(WeakIntrusivePtr, AssignmentToItself) {
  USE_TYPES;
  Weak a(strong);
  Weak& alias = a;
  a = alias;
  a = std::move(alias);
  EXPECT_EQ(strong.weak_use_count(), 2u);
  EXPECT_EQ(a.lock().get(), strong.get());
}

TYPED_TEST(WeakIntrusivePtr, AssignmentFromStrong) {
  USE_TYPES;
  Weak a;
  a = strong;
  EXPECT_EQ(a.lock()->value, 5);
  a = Ptr();
  EXPECT_TRUE(a.is_null());
  EXPECT_EQ(strong.weak_use_count(), 1u);
}

TYPED_TEST(WeakIntrusivePtr, ConvertsFromChild) {
  USE_TYPES;
  auto child = TypeParam::ChildPtr::make(fate, 7);
  const typename TypeParam::ChildWeak child_weak(child);
  const Weak from_strong = child, from_weak = child_weak;
  EXPECT_EQ(child.weak_use_count(), 4u);
  EXPECT_EQ(from_strong.lock()->value, 7);
  EXPECT_TRUE(from_strong == from_weak);
  typename TypeParam::ChildWeak gone = child_weak;
  const Weak moved = std::move(gone);
  EXPECT_EQ(child.weak_use_count(), 5u);
  child.reset();
  EXPECT_TRUE(moved.expired());
  EXPECT_EQ(Weak(typename TypeParam::ChildWeak()).unsafe_get(), TypeParam::Null::singleton());
}

TYPED_TEST(WeakIntrusivePtr, ReleaseAndReclaimKeepTheCount) {
  USE_TYPES;
  Weak a(strong);
  auto* const bare = a.release();
  EXPECT_TRUE(a.is_null());
  EXPECT_EQ(strong.weak_use_count(), 2u);
  const Weak b = Weak::reclaim(bare);
  EXPECT_EQ(strong.weak_use_count(), 2u);
  EXPECT_EQ(b.lock().get(), strong.get());
}

TYPED_TEST(WeakIntrusivePtr, ReclaimAfterDeath) {
  USE_TYPES;
  auto* const bare = Weak(strong).release();
  strong.reset();
  EXPECT_EQ(fate.released, 1);
  { const Weak again = Weak::reclaim(bare); }
  EXPECT_EQ(fate.destroyed, 1);
}

TYPED_TEST(WeakIntrusivePtr, ResetAndSwap) {
  USE_TYPES;
  Weak a(strong), b;
  a.swap(b);
  EXPECT_TRUE(a.is_null());
  b.reset();
  EXPECT_EQ(strong.weak_use_count(), 1u);
}

TYPED_TEST(WeakIntrusivePtr, ComparesAndHashesByObject) {
  USE_TYPES;
  const Weak a(strong), a2(strong), b(other), null, null2;
  EXPECT_TRUE(a == a2);
  EXPECT_TRUE(a != b);
  EXPECT_TRUE(null == null2);
  EXPECT_TRUE(null < a);
  EXPECT_NE(a < b, b < a);
  EXPECT_EQ(std::set<Weak>({a, a2, b, null}).size(), 3u);
  EXPECT_EQ(std::unordered_set<Weak>({a, a2, b, null, null2}).size(), 3u);
  strong.reset();
  EXPECT_TRUE(a == a2);  // of dead objects as well
}

#undef USE_TYPES

TEST(WeakIntrusivePtrThreads, LockRacesWithTheLastOwner) {
  for (int round = 0; round < 1000; ++round) {
    Fate fate;
    auto strong = make_intrusive<Counted>(fate, 5);
    const weak_intrusive_ptr<Counted> weak(strong);
    std::thread locker([copy = weak] {
      for (int i = 0; i < 10; ++i) {
        const intrusive_ptr<Counted> p = copy.lock();
        if (p) {
          EXPECT_EQ(p->value, 5);
        }
      }
    });
    strong.reset();
    locker.join();
    EXPECT_TRUE(weak.expired());
    EXPECT_EQ(fate.released, 1);
    EXPECT_EQ(fate.destroyed, 0);
  }
}

TEST(WeakIntrusivePtrThreads, StrongAndWeakGoTogether) {
  for (int round = 0; round < 1000; ++round) {
    Fate fate;
    auto strong = make_intrusive<Counted>(fate);
    weak_intrusive_ptr<Counted> weak(strong);
    std::thread other([w = std::move(weak)]() mutable { w.reset(); });
    strong.reset();
    other.join();
    EXPECT_EQ(fate.destroyed, 1);
    EXPECT_LE(fate.released, 1);
  }
}

}  // namespace
}  // namespace tercel
