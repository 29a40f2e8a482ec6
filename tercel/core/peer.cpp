#include "tercel/core/peer.h"

#include <atomic>

namespace tercel {

namespace {
constinit std::atomic<PeerDeleter> g_deleter{nullptr};
}  // namespace

void set_peer_deleter(PeerDeleter deleter) { g_deleter.store(deleter, std::memory_order_release); }

void detail::drop_peer(void* peer) noexcept {
  if (const PeerDeleter deleter = g_deleter.load(std::memory_order_acquire)) deleter(peer);
}

}  // namespace tercel
