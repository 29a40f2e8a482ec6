// An owning wrapper for callables, like std::function but without the compile time of <functional>.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace tercel {

template <class Signature>
class Callable;

/** Owns a callable object; copies share it. FunctionRef is cheaper for a parameter that is not kept. */
template <class R, class... Args>
class Callable<R(Args...)> {
 public:
  /** Calling it is not allowed. */
  Callable() = default;
  template <class F>
  requires(!std::is_same_v<F, Callable> && std::is_invocable_r_v<R, F&, Args...>) Callable(F function)
      : object_(std::make_shared<F>(std::move(function))),
        call_([](void* object, Args... args) -> R { return (*static_cast<F*>(object))(std::forward<Args>(args)...); }) {
  }

  explicit operator bool() const { return call_ != nullptr; }
  R operator()(Args... args) const { return call_(object_.get(), std::forward<Args>(args)...); }

 private:
  // Copies share the object, so that hooks may be run while their list changes.
  std::shared_ptr<void> object_;
  R (*call_)(void*, Args...) = nullptr;
};

}  // namespace tercel
