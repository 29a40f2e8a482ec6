// When objects die: of every form of assignment, of pointers that come from outside, and with weak references around.
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "tercel/core/intrusive_ptr.h"
#include "tests/core/counted.h"

namespace tercel {
namespace {

using test::Counted;
using test::CountedChild;
using test::Fate;

template <class F>
class IntrusivePtrLifetime : public ::testing::Test {
 protected:
  using Owner = typename F::Ptr;
  using Reference = typename F::Weak;

  /** a and b own an object each; assign(a, b) must release the old object of `a` at once, and only that. */
  template <class Assign>
  void expect_old_dies_at_once(Assign assign) {
    Fate old_fate, new_fate;
    {
      Owner a = Owner::make(old_fate, 1);
      Owner b = Owner::make(new_fate, 2);
      assign(a, b);
      EXPECT_EQ(old_fate.destroyed, 1);
      EXPECT_EQ(new_fate.destroyed, 0);
      EXPECT_EQ(a->value, 2);
      b.reset();
      EXPECT_EQ(new_fate.destroyed, 0);
    }
    EXPECT_EQ(old_fate.destroyed, 1);
    EXPECT_EQ(new_fate.destroyed, 1);
    EXPECT_EQ(old_fate.released + new_fate.released, 0);
  }
  /** The same while `a` has another owner: nothing may die. */
  template <class Assign>
  void expect_old_lives_on(Assign assign) {
    Fate old_fate, new_fate;
    Owner a = Owner::make(old_fate, 1);
    const Owner other = a;
    Owner b = Owner::make(new_fate, 2);
    assign(a, b);
    EXPECT_EQ(old_fate.destroyed, 0);
    EXPECT_TRUE(other.unique());
  }
  /** And while `a` is known weakly: resources go, memory stays. */
  template <class Assign>
  void expect_old_is_released(Assign assign) {
    Fate old_fate, new_fate;
    Owner a = Owner::make(old_fate, 1);
    Owner b = Owner::make(new_fate, 2);
    Reference weak(a);
    assign(a, b);
    EXPECT_EQ(old_fate.released, 1);
    EXPECT_EQ(old_fate.destroyed, 0);
    EXPECT_TRUE(weak.expired());
    weak.reset();
    EXPECT_EQ(old_fate.destroyed, 1);
    EXPECT_EQ(new_fate.released, 0);
  }
  template <class Assign>
  void expect_all(Assign assign) {
    expect_old_dies_at_once(assign);
    expect_old_lives_on(assign);
    expect_old_is_released(assign);
  }
};
using Flavours = ::testing::Types<test::Plain, test::OwnNull, test::MixedNull, test::Const>;
TYPED_TEST_SUITE(IntrusivePtrLifetime, Flavours);

TYPED_TEST(IntrusivePtrLifetime, CopyAssignment) {
  this->expect_all([](auto& a, auto& b) { a = b; });
}
TYPED_TEST(IntrusivePtrLifetime, CopyAssignmentOfAConst) {
  this->expect_all([](auto& a, auto& b) { a = std::as_const(b); });
}
TYPED_TEST(IntrusivePtrLifetime, MoveAssignment) {
  this->expect_all([](auto& a, auto& b) { a = std::move(b); });
}
TYPED_TEST(IntrusivePtrLifetime, AssignmentOfATemporary) {
  this->expect_all([](auto& a, auto& b) { a = typename TypeParam::Ptr(b); });
}
TYPED_TEST(IntrusivePtrLifetime, AssignmentAfterReset) {
  this->expect_all([](auto& a, auto& b) {
    a.reset();
    a = b;
  });
}
TYPED_TEST(IntrusivePtrLifetime, AssignmentAfterNull) {
  this->expect_all([](auto& a, auto& b) {
    a = nullptr;
    a = std::move(b);
  });
}
TYPED_TEST(IntrusivePtrLifetime, AssignmentThroughSwapWithATemporary) {
  this->expect_all([](auto& a, auto& b) { typename TypeParam::Ptr(b).swap(a); });
}
TYPED_TEST(IntrusivePtrLifetime, AssignmentThroughReleaseAndReclaim) {
  this->expect_all([](auto& a, auto& b) { a = TypeParam::Ptr::reclaim(b.release()); });
}
TYPED_TEST(IntrusivePtrLifetime, AssignmentThroughReclaimCopy) {
  this->expect_all([](auto& a, auto& b) { a = TypeParam::Ptr::reclaim_copy(b.get()); });
}
TYPED_TEST(IntrusivePtrLifetime, AssignmentOfANonowningPointer) {
  this->expect_all([](auto& a, auto& b) { a = TypeParam::Ptr::unsafe_reclaim_from_nonowning(b.get()); });
}
TYPED_TEST(IntrusivePtrLifetime, AssignmentOfALockedWeakReference) {
  this->expect_all([](auto& a, auto& b) { a = typename TypeParam::Weak(b).lock(); });
}

TYPED_TEST(IntrusivePtrLifetime, ChildAssignedToBase) {
  using Ptr = typename TypeParam::Ptr;
  for (const bool moves : {false, true}) {
    Fate old_fate, child_fate;
    {
      Ptr p = Ptr::make(old_fate);
      auto child = TypeParam::ChildPtr::make(child_fate, 3);
      if (moves)
        p = std::move(child);
      else
        p = child;
      EXPECT_EQ(old_fate.destroyed, 1);
      child = typename TypeParam::ChildPtr();
      EXPECT_EQ(child_fate.destroyed, 0);
      EXPECT_TRUE(p.unique());
    }
    EXPECT_EQ(child_fate.destroyed, 1);
  }
}

TYPED_TEST(IntrusivePtrLifetime, AssignmentToItselfKillsNothing) {
  using Ptr = typename TypeParam::Ptr;
  Fate fate;
  Ptr a = Ptr::make(fate);
  Ptr& alias = a;
  a = alias;
  a = std::move(alias);
  a.swap(alias);
  EXPECT_EQ(fate.destroyed, 0);
  EXPECT_TRUE(a.unique());
  Ptr null;
  Ptr& null_alias = null;
  null = null_alias;
  null = std::move(null_alias);
  EXPECT_EQ(null.get(), TypeParam::Null::singleton());
}

/** How many owners there are after each of many ways to make and lose some. */
TYPED_TEST(IntrusivePtrLifetime, CountsInManySituations) {
  using Ptr = typename TypeParam::Ptr;
  Fate fate;
  const Ptr p = Ptr::make(fate);
  const auto during = [&](auto situation) {
    const uint32_t count = situation(p);
    EXPECT_TRUE(p.unique());
    return count;
  };
  const auto by_value = [&p](Ptr) { return p.use_count(); };
  const auto by_reference = [&p](const Ptr&) { return p.use_count(); };
  EXPECT_EQ(by_value(p), 2u);
  EXPECT_EQ(by_reference(p), 1u);
  EXPECT_EQ(during([](const Ptr& q) {
              const std::vector<Ptr> v(7, q);
              return q.use_count();
            }),
            8u);
  EXPECT_EQ(during([](const Ptr& q) {
              std::vector<Ptr> v(7, q);
              v.resize(3);
              v.shrink_to_fit();
              return q.use_count();
            }),
            4u);
  EXPECT_EQ(during([](const Ptr& q) {
              const std::array<Ptr, 3> a{q, Ptr(), q};
              return q.use_count();
            }),
            3u);
  EXPECT_EQ(during([](const Ptr& q) {
              const std::pair<Ptr, Ptr> a(q, q), b = a;
              return q.use_count();
            }),
            5u);
  EXPECT_EQ(during([](const Ptr& q) {
              std::optional<Ptr> o = q;
              const uint32_t held = q.use_count();
              o.reset();
              return held * 10 + q.use_count();
            }),
            21u);
  EXPECT_EQ(during([](const Ptr& q) {
              std::deque<Ptr> d;
              for (int i = 0; i < 4; ++i) d.push_front(q);
              d.pop_back();
              return q.use_count();
            }),
            4u);
  EXPECT_EQ(during([](const Ptr& q) {
              std::map<int, Ptr> m;
              for (int i = 0; i < 4; ++i) m[i % 3] = q;
              return q.use_count();
            }),
            4u);
  EXPECT_EQ(during([](const Ptr& q) {
              const auto lambda = [q] { return q.use_count(); };
              return lambda();
            }),
            2u);
  EXPECT_EQ(during([](const Ptr& q) {
              const auto shared = std::make_shared<Ptr>(q);
              const auto again = shared;  // one pointer, owned twice
              return q.use_count();
            }),
            2u);
  EXPECT_EQ(during([](const Ptr& q) {
              Ptr a = q, b = std::move(a), c = std::move(b);
              return q.use_count();
            }),
            2u);
  EXPECT_EQ(during([](const Ptr& q) {
              const typename TypeParam::Weak weak(q);
              const Ptr a = weak.lock(), b = weak.lock();
              return q.use_count();
            }),
            3u);
  EXPECT_EQ(fate.destroyed, 0);
}

TYPED_TEST(IntrusivePtrLifetime, ExceptionsUnwindOwners) {
  using Ptr = typename TypeParam::Ptr;
  Fate fate;
  const Ptr p = Ptr::make(fate);
  try {
    const Ptr copy = p;
    throw 1;
  } catch (int) {
  }
  EXPECT_TRUE(p.unique());
}

TYPED_TEST(IntrusivePtrLifetime, NonowningPointerOfNull) {
  EXPECT_FALSE(TypeParam::Ptr::unsafe_reclaim_from_nonowning(TypeParam::Null::singleton()).defined());
}

TYPED_TEST(IntrusivePtrLifetime, WeakCopyFromABarePointer) {
  using Ptr = typename TypeParam::Ptr;
  using Weak = typename TypeParam::Weak;
  Fate fate;
  Ptr p = Ptr::make(fate);
  Weak weak(p);
  {
    const Weak copy = Weak::reclaim_copy(p.get());
    EXPECT_EQ(p.weak_use_count(), 3u);
    p.reset();
    const Weak of_the_dead = Weak::reclaim_copy(weak.unsafe_get());
    EXPECT_EQ(weak.weak_use_count(), 3u);
    EXPECT_FALSE(of_the_dead.lock().defined());
  }
  EXPECT_EQ(weak.weak_use_count(), 1u);
  EXPECT_TRUE(Weak::reclaim_copy(TypeParam::Null::singleton()).is_null());
}

TYPED_TEST(IntrusivePtrLifetime, WeakAssignmentLetsGo) {
  using Ptr = typename TypeParam::Ptr;
  using Weak = typename TypeParam::Weak;
  const auto check = [](auto assign) {
    Fate old_fate, new_fate;
    Ptr old = Ptr::make(old_fate);
    const Ptr fresh = Ptr::make(new_fate);
    Weak a(old), b(fresh);
    old.reset();
    EXPECT_EQ(old_fate.released, 1);
    EXPECT_EQ(old_fate.destroyed, 0);
    assign(a, b);
    EXPECT_EQ(old_fate.destroyed, 1);  // with its last weak reference
    EXPECT_EQ(a.lock().get(), fresh.get());
    EXPECT_EQ(new_fate.released, 0);
  };
  check([](Weak& a, Weak& b) { a = b; });
  check([](Weak& a, Weak& b) { a = std::move(b); });
  check([](Weak& a, Weak& b) { a = Weak(b); });
  check([](Weak& a, Weak& b) { a = b.lock(); });
  check([](Weak& a, Weak& b) { Weak(b).swap(a); });
  check([](Weak& a, Weak& b) { a = Weak::reclaim(b.release()); });
  check([](Weak& a, Weak& b) { a = Weak::reclaim_copy(b.unsafe_get()); });
  check([](Weak& a, Weak& b) {
    a.reset();
    a = b;
  });
}

// ---- release_resources

TEST(IntrusivePtrRelease, RunsOnceAndOnlyWhereWeakReferencesRemain) {
  struct Case {
    int weak;           // weak references alive when the last owner goes
    bool weak_earlier;  // one more that has gone before
    int released;
  };
  for (const Case c : {Case{0, false, 0}, Case{0, true, 0}, Case{1, false, 1}, Case{1, true, 1}, Case{3, false, 1}}) {
    Fate fate;
    auto p = make_intrusive<Counted>(fate);
    if (c.weak_earlier) weak_intrusive_ptr<Counted>(p).reset();
    std::vector<weak_intrusive_ptr<Counted>> weak(static_cast<size_t>(c.weak), p);
    auto second = p;
    p.reset();
    EXPECT_EQ(fate.released, 0);
    second.reset();
    EXPECT_EQ(fate.released, c.released);
    EXPECT_EQ(fate.destroyed, c.weak == 0 ? 1 : 0);
    weak.clear();
    EXPECT_EQ(fate.released, c.released);
    EXPECT_EQ(fate.destroyed, 1);
  }
}

/** An object whose resources hold a weak reference to itself: as they go, so does the last reference. */
struct SelfKnowing : intrusive_ptr_target {
  explicit SelfKnowing(Fate& f) : fate(f) {}
  ~SelfKnowing() override { ++fate.destroyed; }
  void release_resources() override {
    ++fate.released;
    self.reset();
  }
  Fate& fate;
  weak_intrusive_ptr<SelfKnowing> self;
};

TEST(IntrusivePtrRelease, ObjectThatKnowsItselfWeakly) {
  Fate fate;
  auto p = make_intrusive<SelfKnowing>(fate);
  p->self = p;
  p.reset();
  EXPECT_EQ(fate.released, 1);
  EXPECT_EQ(fate.destroyed, 1);
}

/** A list node: the destructor of the first sees the pointer to it already null. */
struct Watcher : intrusive_ptr_target {
  explicit Watcher(const intrusive_ptr<Watcher>& o, bool& n) : owner(o), was_null(n) {}
  ~Watcher() override { was_null = !owner.defined(); }
  const intrusive_ptr<Watcher>& owner;
  bool& was_null;
};

TEST(IntrusivePtrRelease, PointerIsNullBeforeItsObjectDies) {
  bool was_null = false;
  intrusive_ptr<Watcher> p;
  p = make_intrusive<Watcher>(p, was_null);
  p.reset();
  EXPECT_TRUE(was_null);
}

TEST(IntrusivePtrRelease, WeakKeepsTheAddressFromBeingReused) {
  Fate fate;
  auto p = make_intrusive<Counted>(fate);
  const weak_intrusive_ptr<Counted> weak(p);
  p.reset();
  std::vector<intrusive_ptr<Counted>> others;
  for (int i = 0; i < 100; ++i) {
    others.push_back(make_intrusive<Counted>());
    EXPECT_NE(others.back().get(), weak.unsafe_get());
  }
}

// ---- the interface for bare pointers

TEST(RawCounts, MakeWeakOutlivesTheObject) {
  Fate fate;
  Counted* const bare = make_intrusive<Counted>(fate).release();
  intrusive_ptr_target* const weak = raw::make_weak(bare);
  EXPECT_EQ(weak, bare);
  EXPECT_EQ(raw::use_count(bare), 1u);
  EXPECT_EQ(raw::weak_use_count(bare), 2u);
  raw::decref(bare);
  EXPECT_EQ(fate.released, 1);
  EXPECT_EQ(raw::weak_use_count(weak), 1u);
  raw::weak_incref(weak);
  raw::weak_decref(weak);
  EXPECT_EQ(fate.destroyed, 0);
  raw::weak_decref(weak);
  EXPECT_EQ(fate.destroyed, 1);
}

TEST(RawCounts, MixWithHandles) {
  Fate fate;
  auto p = make_intrusive<Counted>(fate);
  raw::incref(p.get());
  EXPECT_EQ(p.use_count(), 2u);
  Counted* const bare = p.get();
  p.reset();
  EXPECT_TRUE(raw::lock(bare));
  raw::decref(bare);
  { const auto last = intrusive_ptr<Counted>::reclaim(bare); }
  EXPECT_EQ(fate.destroyed, 1);
}

#ifndef NDEBUG
TEST(RawCountsDeathTest, NonowningPointerToTheDead) {
  auto p = make_intrusive<Counted>();
  const weak_intrusive_ptr<Counted> weak(p);
  p.reset();
  EXPECT_DEATH(static_cast<void>(intrusive_ptr<Counted>::unsafe_reclaim_from_nonowning(weak.unsafe_get())),
               "strong_of");
}
#endif

// ---- threads

TEST(IntrusivePtrLifetimeThreads, CopiesMovesAndWeakReferencesRace) {
  for (int round = 0; round < 50; ++round) {
    Fate fate;
    auto shared = make_intrusive<Counted>(fate, 5);
    const weak_intrusive_ptr<Counted> weak(shared);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([strong = shared, w = weak, t]() mutable {
        for (int i = 0; i < 200; ++i) {
          intrusive_ptr<Counted> a = w.lock();
          if (a) {
            EXPECT_EQ(a->value, 5);
          }
          weak_intrusive_ptr<Counted> again(a);
          w = std::move(again);
          if (!a) break;
          if (i == 50 * t) strong.reset();
        }
      });
    shared.reset();
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(weak.expired());
    EXPECT_EQ(fate.released, 1);
    EXPECT_EQ(fate.destroyed, 0);
  }
}

TEST(IntrusivePtrLifetimeThreads, LastStrongAndLastWeakGoAtOnce) {
  for (int round = 0; round < 500; ++round) {
    Fate fate;
    auto strong = make_intrusive<Counted>(fate);
    weak_intrusive_ptr<Counted> one(strong), two(strong);
    std::thread a([w = std::move(one)]() mutable {
      const auto p = w.lock();
      w.reset();
    });
    std::thread b([w = std::move(two)]() mutable { w.reset(); });
    strong.reset();
    a.join();
    b.join();
    EXPECT_EQ(fate.destroyed, 1);
    EXPECT_LE(fate.released, 1);
  }
}

TEST(IntrusivePtrLifetimeThreads, BarePointersAreCountedFromAllThreads) {
  Fate fate;
  Counted* const bare = make_intrusive<Counted>(fate).release();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([bare] {
      for (int i = 0; i < 2000; ++i) {
        raw::incref(bare);
        intrusive_ptr_target* const weak = raw::make_weak(bare);
        if (raw::lock(weak)) raw::decref(bare);
        raw::weak_decref(weak);
        raw::decref(bare);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(raw::use_count(bare), 1u);
  EXPECT_EQ(raw::weak_use_count(bare), 1u);
  raw::decref(bare);
  EXPECT_EQ(fate.destroyed, 1);
}

}  // namespace
}  // namespace tercel
