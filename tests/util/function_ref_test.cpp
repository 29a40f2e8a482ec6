#include "tercel/util/function_ref.h"

#include <gtest/gtest.h>

#include <memory>

namespace tercel {
namespace {

int twice(int x) { return 2 * x; }
int call(FunctionRef<int(int)> function, int x) { return function(x); }

TEST(FunctionRef, CallsLambdasFunctionsAndObjects) {
  int calls = 0;
  EXPECT_EQ(call([&](int x) { return ++calls + x; }, 10), 11);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(call(twice, 4), 8);
  EXPECT_EQ(call(&twice, 5), 10);
  struct Const {
    int operator()(int x) const { return -x; }
  };
  const Const object;
  EXPECT_EQ(call(object, 3), -3);
}

TEST(FunctionRef, RefersToTheObjectItself) {
  struct Counter {
    int count = 0;
    void operator()() { ++count; }
  };
  Counter counter;
  const FunctionRef<void()> first = counter;
  const FunctionRef<void()> copy = first;
  first();
  copy();
  EXPECT_EQ(counter.count, 2);
}

TEST(FunctionRef, KeepsAFunctionAfterItsTemporaryIsGone) {
  FunctionRef<int(int)> function = [](int x) { return x; };
  function = FunctionRef<int(int)>(twice);
  EXPECT_EQ(function(21), 42);
}

TEST(FunctionRef, ForwardsMoveOnlyArgumentsAndReferences) {
  const FunctionRef<int(std::unique_ptr<int>, int&)> take = [](std::unique_ptr<int> p, int& out) { return out = *p; };
  int out = 0;
  EXPECT_EQ(take(std::make_unique<int>(5), out), 5);
  EXPECT_EQ(out, 5);
}

TEST(FunctionRef, DropsAnUnwantedResult) {
  int value = 0;
  const auto set = [&](int x) { return value = x; };
  const FunctionRef<void(int)> function = set;
  function(3);
  EXPECT_EQ(value, 3);
}

static_assert(sizeof(FunctionRef<void()>) == 2 * sizeof(void*));
static_assert(std::is_trivially_copyable_v<FunctionRef<void()>>);
static_assert(!std::is_constructible_v<FunctionRef<int(int)>, int>);
static_assert(!std::is_constructible_v<FunctionRef<int()>, int (*)(int)>);

}  // namespace
}  // namespace tercel
