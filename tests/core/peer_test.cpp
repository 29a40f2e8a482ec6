#include "tercel/core/peer.h"

#include <gtest/gtest.h>

#include <vector>

#include "tercel/core/tensor.h"

namespace tercel {
namespace {

std::vector<void*> g_dropped;
void note_drop(void* peer) noexcept { g_dropped.push_back(peer); }

struct Peer : testing::Test {
  Peer() {
    g_dropped.clear();
    set_peer_deleter(note_drop);
  }
  ~Peer() override { set_peer_deleter(nullptr); }
  int object = 0, other = 0;
};

TEST_F(Peer, OfATensorIsDroppedWithIt) {
  Tensor x = empty({2});
  EXPECT_EQ(x.impl().peer(), nullptr);
  x.impl().set_peer(&object);
  EXPECT_EQ(x.impl().peer(), &object);
  EXPECT_EQ(x.version(), 0u);
  x.reset();
  EXPECT_EQ(g_dropped, std::vector<void*>{&object});
}

TEST_F(Peer, ThatWasTakenAwayIsNotDropped) {
  Tensor x = empty({2});
  x.impl().set_peer(&object);
  x.impl().set_peer(nullptr);
  x.reset();
  EXPECT_TRUE(g_dropped.empty());
}

TEST_F(Peer, LivesBesideAVersionCounter) {
  Tensor x = empty({2});
  x.impl().set_peer(&object);
  x.impl().bump_version();
  x.impl().set_storage(create_storage(kCpu));
  EXPECT_EQ(x.impl().peer(), &object);
  EXPECT_EQ(x.version(), 1u);
  x.impl().set_peer(&other);
  x.impl().bump_version();
  EXPECT_EQ(x.version(), 2u);
  EXPECT_EQ(x.impl().peer(), &other);
  x.reset();
  EXPECT_EQ(g_dropped, std::vector<void*>{&other});
}

TEST_F(Peer, GoesWithTheLastStrongOwner) {
  Tensor x = empty({2});
  x.impl().set_peer(&object);
  const weak_intrusive_ptr<TensorImpl, detail::UndefinedTensor> weak(x.impl_ptr());
  x.reset();
  EXPECT_EQ(g_dropped, std::vector<void*>{&object});
}

TEST_F(Peer, IsNotCopied) {
  Tensor x = empty({2});
  x.impl().set_peer(&object);
  const auto copy = x.impl().shallow_copy(true, true);
  EXPECT_EQ(copy->peer(), nullptr);
  x.impl().set_peer(nullptr);
}

TEST_F(Peer, OfAStorageIsDroppedWithIt) {
  Storage storage = create_storage(kCpu);
  storage->set_peer(&object);
  EXPECT_EQ(storage->peer(), &object);
  storage.reset();
  EXPECT_EQ(g_dropped, std::vector<void*>{&object});
}

}  // namespace
}  // namespace tercel
