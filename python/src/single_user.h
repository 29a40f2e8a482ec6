// Objects that work without the GIL, and that one thread may use at a time.
#pragma once

#include <string>
#include <string_view>

#include "python/src/python.h"

namespace tercel::python {

/**
 * Who uses an object. All functions need the GIL, which guards the state: another thread, a signal's handler or a
 * callback that comes while the object is used gets a RuntimeError instead of half-changed data.
 */
class SingleUser {
 public:
  /** `name`: of the object, in messages. The other two end the sentences about its own thread and another one. */
  SingleUser(std::string_view name, std::string_view here, std::string_view elsewhere)
      : name_(name), here_(here), elsewhere_(elsewhere) {}
  SingleUser(const SingleUser&) = delete;
  SingleUser& operator=(const SingleUser&) = delete;

  /** The object's use for the length of a scope: that of a callback too, in a Loan. */
  class Use {
   public:
    explicit Use(SingleUser& user) : user_(user), borrowed_(user.lent_ && user.is_used_here()) {
      if (!borrowed_) user.check_unused();
      user.in_use_ = true;
      user.lent_ = false;  // this use may have callbacks of its own
      user.thread_ = PyThread_get_thread_ident();
    }
    ~Use() { user_.in_use_ = user_.lent_ = borrowed_; }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    SingleUser& user_;
    bool borrowed_;
  };

  /** In a callback of the thread that uses the object: lets the callback use it too, for the length of a scope. */
  class Loan {
   public:
    explicit Loan(SingleUser& user) : user_(user) { user.lent_ = true; }
    ~Loan() { user_.lent_ = false; }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;

   private:
    SingleUser& user_;
  };

  bool is_used_here() const { return in_use_ && thread_ == PyThread_get_thread_ident(); }
  /** RuntimeError if it is in use, in a Loan too. */
  void check_unused() const {
    TERCEL_CHECK(!is_used_here(), RuntimeError, name_, ": this thread is using it: ", here_);
    TERCEL_CHECK(!in_use_, RuntimeError, name_,
                 ": another thread is using it (or was, when this process was forked): ", elsewhere_);
  }

 private:
  std::string_view name_, here_, elsewhere_;
  bool in_use_ = false, lent_ = false;
  unsigned long thread_ = 0;
};

}  // namespace tercel::python
