#include "tercel/core/dispatch_key.h"

#include <gtest/gtest.h>

namespace tercel {
namespace {

TEST(DispatchKeySet, IsAViewOfTheFields) {
  const Tensor x = empty({2});
  EXPECT_EQ(to_string(key_set(x)), "DispatchKeySet(CPU)");
  x.impl().set_requires_grad_flag(true);
  EXPECT_EQ(key_set(x), (DispatchKeySet{DispatchKey::CPU, DispatchKey::AutogradCPU}));
  EXPECT_EQ(to_string(key_set(x)), "DispatchKeySet(CPU, AutogradCPU)");
  EXPECT_EQ(key_set(x).highest(), DispatchKey::AutogradCPU);
  const Tensor far(make_intrusive<TensorImpl>(kFloat32, kCuda, IntSpan{2}));
  EXPECT_EQ(key_set(far), DispatchKeySet{DispatchKey::CUDA});
  EXPECT_TRUE(key_set(Tensor()).empty());
}

TEST(DispatchKeySet, IsASet) {
  constexpr DispatchKeySet kKeys{DispatchKey::SparseCPU, DispatchKey::Undefined, DispatchKey::SparseCPU};
  static_assert(kKeys.has(DispatchKey::SparseCPU) && !kKeys.has(DispatchKey::CPU));
  static_assert(!kKeys.has(DispatchKey::Undefined));
  EXPECT_TRUE(kKeys.remove(DispatchKey::SparseCPU).empty());
  EXPECT_EQ(kKeys.highest(), DispatchKey::SparseCPU);
  EXPECT_EQ(DispatchKeySet().highest(), DispatchKey::Undefined);
  EXPECT_EQ(to_string(DispatchKeySet()), "DispatchKeySet()");
  for (int i = 1; i < kNumDispatchKeys; ++i) EXPECT_NE(to_string(static_cast<DispatchKey>(i)), "Undefined");
}

}  // namespace
}  // namespace tercel
