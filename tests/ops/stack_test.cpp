// Ops on the user's threads with a small stack.
#include <gtest/gtest.h>
#include <pthread.h>

#include "tercel/autograd/autograd.h"
#include "tercel/ops/ops.h"
#include "tercel/util/sanitizers_impl.h"

namespace tercel {
namespace {

#if !TERCEL_ADDRESS_SANITIZER && !TERCEL_THREAD_SANITIZER && defined(__OPTIMIZE__)  // frames as in a release

void* work(void*) {
  const Tensor x = rand({300, 200}).requires_grad_(), y = rand({200, 300}), half = to(y, kBFloat16);
  const Tensor sum = add(mul(x, y.t()), half.t());
  const Tensor columns = add(sum.sum(0), amax(permute(reshape(sum, {3, 100, 200}), {2, 0, 1}).contiguous(), {1, 2}));
  const Tensor product = matmul(softmax(sum, 1), y), sorted = sort(product, 1).values;
  const Tensor image = reshape(narrow(sorted, 0, 0, 4), {1, 4, 30, 10});
  add(columns.sum(), conv2d(image, rand({2, 4, 3, 3})).sum()).backward();
  fft::fft(flatten(sorted));
  return nullptr;
}

TEST(SmallStack, IsEnoughForOps) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, size_t{128} << 10), 0);
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, &attributes, work, nullptr), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

#endif

}  // namespace
}  // namespace tercel
