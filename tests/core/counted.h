// Objects that record their life cycle, for tests of reference counting.
#pragma once

#include "tercel/core/intrusive_ptr.h"

namespace tercel::test {

/** Life cycle of an object. */
struct Fate {
  int destroyed = 0;
  int released = 0;  ///< calls of release_resources()
};

class Counted : public intrusive_ptr_target {
 public:
  Counted() = default;
  explicit Counted(Fate& watcher, int number = 0) : value(number), fate_(&watcher) {}
  Counted(const Counted&) = default;
  Counted& operator=(const Counted&) = default;
  ~Counted() override {
    if (fate_) ++fate_->destroyed;
  }

  int value = 0;

 private:
  void release_resources() override {
    if (fate_) ++fate_->released;
  }

  Fate* fate_ = nullptr;
};

class CountedChild : public Counted {
 public:
  using Counted::Counted;
};

/** A null object, like Tensor's. */
struct NullObject {
  static Counted* singleton() noexcept {
    static Counted null;
    return &null;
  }
};
struct NullChild {
  static CountedChild* singleton() noexcept {
    static CountedChild null;
    return &null;
  }
};

/** The kinds of pointers with the same rules. */
template <class T, class N, class ChildT, class ChildN>
struct Flavour {
  using Pointee = T;
  using Null = N;
  using Ptr = intrusive_ptr<T, N>;
  using Weak = weak_intrusive_ptr<T, N>;
  using ChildPtr = intrusive_ptr<ChildT, ChildN>;
  using ChildWeak = weak_intrusive_ptr<ChildT, ChildN>;
};
using Plain = Flavour<Counted, detail::NullPointer<Counted>, CountedChild, detail::NullPointer<CountedChild>>;
using OwnNull = Flavour<Counted, NullObject, CountedChild, NullChild>;
using MixedNull = Flavour<Counted, NullObject, CountedChild, detail::NullPointer<CountedChild>>;
using Const =
    Flavour<const Counted, detail::NullPointer<const Counted>, CountedChild, detail::NullPointer<CountedChild>>;

}  // namespace tercel::test
