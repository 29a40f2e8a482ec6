#include "tercel/core/intrusive_ptr.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <thread>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tests/core/counted.h"

namespace tercel {
namespace {

using test::Counted;
using test::CountedChild;
using test::Fate;

template <class F>
class IntrusivePtr : public ::testing::Test {
 protected:
  typename F::Ptr make(int value = 0) { return F::Ptr::make(fate_, value); }
  typename F::ChildPtr make_child(int value = 0) { return F::ChildPtr::make(fate_, value); }

  Fate fate_, other_fate_;
};
using Flavours = ::testing::Types<test::Plain, test::OwnNull, test::MixedNull, test::Const>;
TYPED_TEST_SUITE(IntrusivePtr, Flavours);

#define USE_TYPES                            \
  using Ptr = typename TypeParam::Ptr;       \
  [[maybe_unused]] Fate& fate = this->fate_; \
  [[maybe_unused]] Fate& other_fate = this->other_fate_

// ---- making, reading

TYPED_TEST(IntrusivePtr, DefaultIsNull) {
  USE_TYPES;
  const Ptr p;
  EXPECT_FALSE(p.defined());
  EXPECT_FALSE(p);
  EXPECT_EQ(p.use_count(), 0u);
  EXPECT_EQ(p.weak_use_count(), 0u);
  EXPECT_FALSE(p.unique());
  EXPECT_EQ(p.get(), TypeParam::Null::singleton());
  EXPECT_TRUE(p == nullptr);
}

TYPED_TEST(IntrusivePtr, NullptrIsNull) {
  USE_TYPES;
  Ptr p = nullptr;
  EXPECT_FALSE(p.defined());
  p = this->make();
  p = nullptr;
  EXPECT_FALSE(p.defined());
  EXPECT_EQ(fate.destroyed, 1);
}

TYPED_TEST(IntrusivePtr, MakeOwnsOnce) {
  USE_TYPES;
  const Ptr p = this->make(5);
  EXPECT_TRUE(p.defined());
  EXPECT_TRUE(p);
  EXPECT_FALSE(p == nullptr);
  EXPECT_EQ(p.use_count(), 1u);
  EXPECT_EQ(p.weak_use_count(), 1u);
  EXPECT_TRUE(p.unique());
}

TYPED_TEST(IntrusivePtr, GetDereferenceAndArrowReachTheObject) {
  USE_TYPES;
  const Ptr p = this->make(5);
  EXPECT_EQ(p->value, 5);
  EXPECT_EQ((*p).value, 5);
  EXPECT_EQ(p.get()->value, 5);
  EXPECT_EQ(&*p, p.get());
}

TYPED_TEST(IntrusivePtr, IsOnePointerWide) {
  USE_TYPES;
  EXPECT_EQ(sizeof(Ptr), sizeof(void*));
  static_assert(std::is_same_v<typename Ptr::element_type, typename TypeParam::Pointee>);
  static_assert(std::is_nothrow_move_constructible_v<Ptr> && std::is_nothrow_copy_constructible_v<Ptr>);
}

TYPED_TEST(IntrusivePtr, ObjectDiesWithTheOnlyOwner) {
  USE_TYPES;
  { const Ptr p = this->make(); }
  EXPECT_EQ(fate.destroyed, 1);
  EXPECT_EQ(fate.released, 0);  // only where weak references remain
}

// ---- copy and move construction

TYPED_TEST(IntrusivePtr, CopyShares) {
  USE_TYPES;
  const Ptr p = this->make(5);
  const Ptr copy = p;
  EXPECT_EQ(copy.get(), p.get());
  EXPECT_EQ(p.use_count(), 2u);
  EXPECT_EQ(p.weak_use_count(), 1u);
  EXPECT_FALSE(p.unique());
}

TYPED_TEST(IntrusivePtr, CopyOfNullIsNull) {
  USE_TYPES;
  const Ptr p;
  const Ptr copy = p;
  EXPECT_FALSE(copy.defined());
}

TYPED_TEST(IntrusivePtr, MoveTakesOver) {
  USE_TYPES;
  Ptr p = this->make();
  const auto* const object = p.get();
  const Ptr moved = std::move(p);
  EXPECT_EQ(moved.get(), object);
  EXPECT_EQ(moved.use_count(), 1u);
  EXPECT_FALSE(p.defined());  // NOLINT(bugprone-use-after-move): the state is documented
}

TYPED_TEST(IntrusivePtr, MoveOfNullIsNull) {
  USE_TYPES;
  Ptr p;
  const Ptr moved = std::move(p);
  EXPECT_FALSE(moved.defined());
  EXPECT_FALSE(p.defined());  // NOLINT(bugprone-use-after-move)
}

TYPED_TEST(IntrusivePtr, ChildCopiesToBase) {
  USE_TYPES;
  const auto child = this->make_child(7);
  const Ptr p = child;
  EXPECT_EQ(p->value, 7);
  EXPECT_EQ(child.use_count(), 2u);
}

TYPED_TEST(IntrusivePtr, NullChildCopiesToNull) {
  USE_TYPES;
  const typename TypeParam::ChildPtr child;
  const Ptr p = child;
  EXPECT_FALSE(p.defined());
  EXPECT_EQ(p.get(), TypeParam::Null::singleton());
}

TYPED_TEST(IntrusivePtr, ChildMovesToBase) {
  USE_TYPES;
  auto child = this->make_child(7);
  const Ptr p = std::move(child);
  EXPECT_EQ(p->value, 7);
  EXPECT_EQ(p.use_count(), 1u);
  EXPECT_FALSE(child.defined());  // NOLINT(bugprone-use-after-move)
}

TYPED_TEST(IntrusivePtr, NullChildMovesToNull) {
  USE_TYPES;
  typename TypeParam::ChildPtr child;
  const Ptr p = std::move(child);
  EXPECT_EQ(p.get(), TypeParam::Null::singleton());
}

TYPED_TEST(IntrusivePtr, ChildIsDestroyedThroughTheBase) {
  USE_TYPES;
  { const Ptr p = this->make_child(); }
  EXPECT_EQ(fate.destroyed, 1);
}

// ---- assignment

TYPED_TEST(IntrusivePtr, CopyAssignmentDropsTheOldAndShares) {
  USE_TYPES;
  Ptr a = this->make(1);
  const Ptr b = Ptr::make(other_fate, 2);
  a = b;
  EXPECT_EQ(fate.destroyed, 1);
  EXPECT_EQ(other_fate.destroyed, 0);
  EXPECT_EQ(a->value, 2);
  EXPECT_EQ(b.use_count(), 2u);
}

TYPED_TEST(IntrusivePtr, CopyAssignmentFromNull) {
  USE_TYPES;
  Ptr a = this->make();
  const Ptr null;
  a = null;
  EXPECT_FALSE(a.defined());
  EXPECT_EQ(fate.destroyed, 1);
}

TYPED_TEST(IntrusivePtr, CopyAssignmentToNull) {
  USE_TYPES;
  const Ptr a = this->make(1);
  Ptr b;
  b = a;
  EXPECT_EQ(a.use_count(), 2u);
  EXPECT_EQ(b.get(), a.get());
}

TYPED_TEST(IntrusivePtr, CopyAssignmentToItself) {
  USE_TYPES;
  Ptr a = this->make(1);
  const Ptr& alias = a;
  a = alias;
  EXPECT_EQ(a.use_count(), 1u);
  EXPECT_EQ(a->value, 1);
  EXPECT_EQ(fate.destroyed, 0);
}

TYPED_TEST(IntrusivePtr, CopyAssignmentOfTheSameObject) {
  USE_TYPES;
  Ptr a = this->make(1);
  const Ptr b = a;
  a = b;
  EXPECT_EQ(a.use_count(), 2u);
  EXPECT_EQ(fate.destroyed, 0);
}

TYPED_TEST(IntrusivePtr, MoveAssignmentDropsTheOldAndTakesOver) {
  USE_TYPES;
  Ptr a = this->make(1);
  Ptr b = Ptr::make(other_fate, 2);
  a = std::move(b);
  EXPECT_EQ(fate.destroyed, 1);
  EXPECT_EQ(a->value, 2);
  EXPECT_EQ(a.use_count(), 1u);
  EXPECT_FALSE(b.defined());  // NOLINT(bugprone-use-after-move)
}

TYPED_TEST(IntrusivePtr, MoveAssignmentFromNull) {
  USE_TYPES;
  Ptr a = this->make();
  a = Ptr();
  EXPECT_FALSE(a.defined());
  EXPECT_EQ(fate.destroyed, 1);
}

TYPED_TEST(IntrusivePtr, MoveAssignmentToItself) {
  USE_TYPES;
  Ptr a = this->make(1);
  Ptr& alias = a;
  a = std::move(alias);
  EXPECT_EQ(a.use_count(), 1u);
  EXPECT_EQ(a->value, 1);
  EXPECT_EQ(fate.destroyed, 0);
}

TYPED_TEST(IntrusivePtr, MoveAssignmentOfTheSameObject) {
  USE_TYPES;
  Ptr a = this->make(1);
  Ptr b = a;
  a = std::move(b);
  EXPECT_EQ(a.use_count(), 1u);
  EXPECT_EQ(fate.destroyed, 0);
}

TYPED_TEST(IntrusivePtr, ChildIsCopyAssignedToBase) {
  USE_TYPES;
  const auto child = this->make_child(7);
  Ptr p = Ptr::make(other_fate);
  p = child;
  EXPECT_EQ(other_fate.destroyed, 1);
  EXPECT_EQ(p->value, 7);
  EXPECT_EQ(child.use_count(), 2u);
}

TYPED_TEST(IntrusivePtr, ChildIsMoveAssignedToBase) {
  USE_TYPES;
  auto child = this->make_child(7);
  Ptr p = Ptr::make(other_fate);
  p = std::move(child);
  EXPECT_EQ(other_fate.destroyed, 1);
  EXPECT_EQ(p->value, 7);
  EXPECT_EQ(p.use_count(), 1u);
}

TYPED_TEST(IntrusivePtr, NullChildIsAssignedAsNull) {
  USE_TYPES;
  Ptr p = this->make();
  p = typename TypeParam::ChildPtr();
  EXPECT_EQ(p.get(), TypeParam::Null::singleton());
  EXPECT_EQ(fate.destroyed, 1);
}

// ---- counting

TYPED_TEST(IntrusivePtr, CountsFollowScopes) {
  USE_TYPES;
  const Ptr a = this->make();
  {
    const Ptr b = a;
    EXPECT_EQ(a.use_count(), 2u);
    {
      const Ptr c = b;
      EXPECT_EQ(a.use_count(), 3u);
    }
    EXPECT_EQ(a.use_count(), 2u);
  }
  EXPECT_TRUE(a.unique());
  EXPECT_EQ(fate.destroyed, 0);
}

TYPED_TEST(IntrusivePtr, ObjectOutlivesTheFirstOwner) {
  USE_TYPES;
  Ptr second;
  {
    const Ptr first = this->make(5);
    second = first;
  }
  EXPECT_EQ(fate.destroyed, 0);
  EXPECT_EQ(second->value, 5);
  second.reset();
  EXPECT_EQ(fate.destroyed, 1);
  EXPECT_EQ(fate.released, 0);
}

TYPED_TEST(IntrusivePtr, ResetDropsAndNulls) {
  USE_TYPES;
  Ptr a = this->make();
  Ptr b = a;
  a.reset();
  EXPECT_FALSE(a.defined());
  EXPECT_EQ(fate.destroyed, 0);
  b.reset();
  EXPECT_EQ(fate.destroyed, 1);
  b.reset();
  EXPECT_EQ(fate.destroyed, 1);
}

TYPED_TEST(IntrusivePtr, SwapExchangesWithoutCounting) {
  USE_TYPES;
  Ptr a = this->make(1);
  Ptr b = Ptr::make(other_fate, 2);
  a.swap(b);
  EXPECT_EQ(a->value, 2);
  EXPECT_EQ(b->value, 1);
  using std::swap;
  swap(a, b);
  EXPECT_EQ(a->value, 1);
  EXPECT_EQ(a.use_count(), 1u);
}

TYPED_TEST(IntrusivePtr, SwapWithNull) {
  USE_TYPES;
  Ptr a = this->make(1);
  Ptr null;
  a.swap(null);
  EXPECT_FALSE(a.defined());
  EXPECT_EQ(null->value, 1);
}

// ---- release and reclaim

TYPED_TEST(IntrusivePtr, ReleaseAndReclaimKeepTheCount) {
  USE_TYPES;
  Ptr a = this->make(3);
  auto* const bare = a.release();
  EXPECT_FALSE(a.defined());
  EXPECT_EQ(fate.destroyed, 0);
  const Ptr again = Ptr::reclaim(bare);
  EXPECT_EQ(again.use_count(), 1u);
  EXPECT_EQ(again->value, 3);
}

TYPED_TEST(IntrusivePtr, ReleaseOfNullGivesTheNull) {
  USE_TYPES;
  Ptr a;
  auto* const bare = a.release();
  EXPECT_EQ(bare, TypeParam::Null::singleton());
  EXPECT_FALSE(Ptr::reclaim(bare).defined());
}

TYPED_TEST(IntrusivePtr, ReclaimOfOneOfSeveral) {
  USE_TYPES;
  Ptr a = this->make();
  Ptr b = a;
  auto* const bare = a.release();
  EXPECT_EQ(b.use_count(), 2u);
  { const Ptr again = Ptr::reclaim(bare); }
  EXPECT_TRUE(b.unique());
}

TYPED_TEST(IntrusivePtr, ReclaimCopyAddsAnOwner) {
  USE_TYPES;
  const Ptr a = this->make();
  {
    const Ptr b = Ptr::reclaim_copy(a.get());
    EXPECT_EQ(a.use_count(), 2u);
  }
  EXPECT_EQ(a.use_count(), 1u);
  EXPECT_FALSE(Ptr::reclaim_copy(TypeParam::Null::singleton()).defined());
}

TYPED_TEST(IntrusivePtr, StealFromNewIsTheFirstOwner) {
  USE_TYPES;
  {
    const Ptr p = Ptr::unsafe_steal_from_new(new typename TypeParam::Pointee(fate, 4));
    EXPECT_EQ(p.use_count(), 1u);
    EXPECT_EQ(p->value, 4);
  }
  EXPECT_EQ(fate.destroyed, 1);
}

// ---- comparison, hash, containers

TYPED_TEST(IntrusivePtr, EqualityIsIdentity) {
  USE_TYPES;
  const Ptr a = this->make(1), b = this->make(1), copy = a, null, null2;
  EXPECT_TRUE(a == copy);
  EXPECT_TRUE(a != b);
  EXPECT_TRUE(a != null);
  EXPECT_TRUE(null == null2);
}

TYPED_TEST(IntrusivePtr, EqualityAcrossTypes) {
  USE_TYPES;
  const auto child = this->make_child();
  const Ptr p = child;
  EXPECT_TRUE(p == child);
  EXPECT_TRUE(Ptr() == typename TypeParam::ChildPtr());  // whatever either has for null
  EXPECT_TRUE(p != typename TypeParam::ChildPtr());
}

TYPED_TEST(IntrusivePtr, OrderIsStrictWithNullFirst) {
  USE_TYPES;
  const Ptr a = this->make(), b = this->make(), null;
  EXPECT_NE(a < b, b < a);
  EXPECT_FALSE(a < a);  // NOLINT(misc-redundant-expression): irreflexive
  EXPECT_TRUE(null < a && null < b);
  EXPECT_FALSE(a < null);
}

TYPED_TEST(IntrusivePtr, HashFollowsEquality) {
  USE_TYPES;
  const Ptr a = this->make(), copy = a, null, null2;
  const std::hash<Ptr> hash;
  EXPECT_EQ(hash(a), hash(copy));
  EXPECT_EQ(hash(null), hash(null2));
  std::unordered_set<Ptr> set{a, copy, null, this->make()};
  EXPECT_EQ(set.size(), 3u);
  EXPECT_EQ(set.count(null2), 1u);
}

TYPED_TEST(IntrusivePtr, LivesInContainers) {
  USE_TYPES;
  {
    std::vector<Ptr> vector;
    for (int i = 0; i < 100; ++i) vector.push_back(this->make(i));
    std::reverse(vector.begin(), vector.end());
    for (const Ptr& p : vector) EXPECT_TRUE(p.unique());
    const std::set<Ptr> set(vector.begin(), vector.end());
    EXPECT_EQ(set.size(), 100u);
    std::map<Ptr, int> map;
    for (const Ptr& p : vector) map[p] = p->value;
    EXPECT_EQ(map[vector[0]], 99);
    EXPECT_EQ(vector[0].use_count(), 3u);
    vector.erase(vector.begin(), vector.begin() + 50);
    EXPECT_EQ(fate.destroyed, 0);
  }
  EXPECT_EQ(fate.destroyed, 100);
}

#undef USE_TYPES

// ---- the object's side

TEST(IntrusivePtrTarget, IsTwoWords) { EXPECT_EQ(sizeof(intrusive_ptr_target), 2 * sizeof(void*)); }

TEST(IntrusivePtrTarget, LivesOnTheStack) {
  Fate fate;
  { const Counted object(fate); }
  EXPECT_EQ(fate.destroyed, 1);
}

TEST(IntrusivePtrTarget, CopyingTheObjectLeavesCountsAlone) {
  const auto a = make_intrusive<Counted>();
  const auto a2 = a;
  a->value = 3;
  const auto b = make_intrusive<Counted>(*a);
  EXPECT_EQ(b.use_count(), 1u);
  EXPECT_EQ(b->value, 3);
  a->value = 4;
  *b = *a;
  EXPECT_EQ(b.use_count(), 1u);
  EXPECT_EQ(a.use_count(), 2u);
  const Counted on_stack = *a;
  EXPECT_EQ(raw::use_count(&on_stack), 0u);
  EXPECT_EQ(on_stack.value, 4);
}

TEST(IntrusivePtrTarget, ConstructorThatThrowsLeavesNothing) {
  struct Thrower : intrusive_ptr_target {
    Thrower() { throw 1; }
  };
  EXPECT_THROW(make_intrusive<Thrower>(), int);
}

TEST(IntrusivePtrTarget, RawCounting) {
  Fate fate;
  Counted* const bare = make_intrusive<Counted>(fate).release();
  EXPECT_EQ(raw::use_count(bare), 1u);
  raw::incref(bare);
  EXPECT_EQ(raw::use_count(bare), 2u);
  raw::decref(bare);
  raw::decref(bare);
  EXPECT_EQ(fate.destroyed, 1);
}

TEST(IntrusivePtrTarget, RawWeakCounting) {
  Fate fate;
  Counted* const bare = make_intrusive<Counted>(fate).release();
  raw::weak_incref(bare);
  EXPECT_TRUE(raw::lock(bare));
  raw::decref(bare);
  raw::decref(bare);
  EXPECT_EQ(fate.released, 1);
  EXPECT_EQ(fate.destroyed, 0);
  EXPECT_FALSE(raw::lock(bare));
  EXPECT_EQ(raw::use_count(bare), 0u);
  raw::weak_decref(bare);
  EXPECT_EQ(fate.destroyed, 1);
}

#ifndef NDEBUG
TEST(IntrusivePtrDeathTest, ReclaimOfAStackObject) {
  Counted on_stack;
  EXPECT_DEATH(static_cast<void>(intrusive_ptr<Counted>::reclaim(&on_stack).release()), "strong_of");
}

TEST(IntrusivePtrDeathTest, DestroyedWhileOwned) {
  EXPECT_DEATH(
      {
        Counted on_stack;
        static_cast<void>(intrusive_ptr<Counted>::unsafe_steal_from_new(&on_stack).release());
      },
      "somebody still owns it");
}

TEST(IntrusivePtrDeathTest, ReviveTheDead) {
  Fate fate;
  auto strong = make_intrusive<Counted>(fate);
  const weak_intrusive_ptr<Counted> weak(strong);
  strong.reset();
  EXPECT_DEATH(raw::incref(weak.unsafe_get()), "Cannot increase refcount after it reached zero");
}

TEST(IntrusivePtrDeathTest, PointerToItselfInItsConstructor) {
  struct SelfOwner : intrusive_ptr_target {
    SelfOwner() { static_cast<void>(intrusive_ptr<SelfOwner>::unsafe_steal_from_new(this).release()); }
  };
  EXPECT_DEATH(static_cast<void>(make_intrusive<SelfOwner>().release()), "already has owners");
}
#endif

TEST(IntrusivePtrThreads, CopiesEverywhereDieOnce) {
  Fate fate;
  auto shared = make_intrusive<Counted>(fate, 5);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([copy = shared] {
      for (int i = 0; i < 20'000; ++i) {
        intrusive_ptr<Counted> a = copy, b = a;
        a = std::move(b);
      }
    });
  shared.reset();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(fate.destroyed, 1);
  EXPECT_EQ(fate.released, 0);
}

TEST(IntrusivePtrThreads, LastOwnerSeesWhatOthersWrote) {
  for (int round = 0; round < 2000; ++round) {
    struct Sum : intrusive_ptr_target {
      ~Sum() override { *result = a + b; }
      int* result = nullptr;
      int a = 0, b = 0;
    };
    int result = 0;
    auto p = make_intrusive<Sum>();
    p->result = &result;
    std::thread other([q = p]() mutable {
      q->b = 2;
      q.reset();
    });
    p->a = 1;
    p.reset();
    other.join();
    ASSERT_EQ(result, 3);
  }
}

}  // namespace
}  // namespace tercel
