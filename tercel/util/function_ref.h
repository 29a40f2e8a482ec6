// A non-owning reference to a callable: two words, no allocation.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace tercel {

template <class Signature>
class FunctionRef;

/** Refers to a callable that must outlive it; for parameters, where a lambda argument lives until the call returns. */
template <class R, class... Args>
class FunctionRef<R(Args...)> {
 public:
  /** From any callable object, by reference. */
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef> &&
           !std::is_function_v<std::remove_pointer_t<std::remove_cvref_t<F>>> && std::is_invocable_r_v<R, F&, Args...>)
      FunctionRef(F&& callable)
  noexcept {
    target_.object = const_cast<void*>(static_cast<const void*>(std::addressof(callable)));
    call_ = [](Target target, Args... args) -> R {
      auto& function = *static_cast<std::remove_reference_t<F>*>(target.object);
      if constexpr (std::is_void_v<R>)
        function(std::forward<Args>(args)...);
      else
        return function(std::forward<Args>(args)...);
    };
  }

  /** From a plain function, by value: its address stays valid. */
  template <class Q, class... Params>
  requires std::is_invocable_r_v<R, Q (*)(Params...), Args...> FunctionRef(Q (*function)(Params...))
  noexcept {
    target_.function = reinterpret_cast<void (*)()>(function);
    call_ = [](Target target, Args... args) -> R {
      auto* original = reinterpret_cast<Q (*)(Params...)>(target.function);
      if constexpr (std::is_void_v<R>)
        original(std::forward<Args>(args)...);
      else
        return original(std::forward<Args>(args)...);
    };
  }

  R operator()(Args... args) const { return call_(target_, std::forward<Args>(args)...); }

 private:
  union Target {
    void* object;
    void (*function)();
  };
  Target target_;
  R (*call_)(Target, Args...);
};

}  // namespace tercel
