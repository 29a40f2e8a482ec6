// Groups of processes, for Python.
//
// Note [Groups and the GIL]
// The thread of a group frees tensors, which may need the GIL, also while it holds the group's lock. So no function of
// a group is called with the GIL; a lock of our own makes the calls of several Python threads one after the other.
#pragma once

#include <unistd.h>

#include <memory>
#include <mutex>
#include <utility>

#include "python/src/python.h"
#include "tercel/distributed/process_group.h"

namespace tercel::python {

/** A group of the process that made it: a child that was forked can neither use nor end it. */
class GroupObject {
 public:
  explicit GroupObject(std::unique_ptr<distributed::ProcessGroup> group) : group_(std::move(group)) {}
  ~GroupObject();
  GroupObject(const GroupObject&) = delete;
  GroupObject& operator=(const GroupObject&) = delete;

  int64_t rank() const { return group_->rank(); }
  int64_t size() const { return group_->size(); }
  /** To be used within use(). */
  distributed::ProcessGroup& get() { return *group_; }

  /** f(group) without the GIL, while no other thread of Python uses it. RuntimeError in a child. */
  template <class F>
  auto use(F&& f) {
    TERCEL_CHECK(::getpid() == process_, RuntimeError,
                 "process group: it is that of the process that was forked; a child cannot take part in it");
    return released([&] {
      const std::lock_guard lock(mutex_);
      return f(*group_);
    });
  }

 private:
  std::unique_ptr<distributed::ProcessGroup> group_;
  std::mutex mutex_;
  const pid_t process_ = ::getpid();
};

void register_distributed(nb::module_& m);

}  // namespace tercel::python
