// Objects of another language that stand for tensors and storages.
//
// Note [Peers]
// A binding (Python's) makes one object of its own for a tensor, and must find it again when the tensor comes back:
// `is` is to hold, and attributes are to stay. So a TensorImpl and a StorageImpl keep one pointer to that peer. While
// the binding's object lives on its own, it owns the tensor, and the pointer is a mere note. When the object is about
// to die but C++ still holds the tensor, the binding may turn ownership around: it leaves its object to the tensor,
// which gives it back to the binding when it dies. A tensor that dies with a peer therefore owns that peer.
//
// The pointer is read and written under the binding's own lock (Python's GIL). Core knows nothing of what it points to.
#pragma once

#include "tercel/util/export.h"

namespace tercel {

/** Gives up a peer that a dying tensor or storage owned; any thread, must not throw. */
using PeerDeleter = void (*)(void* peer) noexcept;

/** Called once, by the binding, before it sets the first peer. */
TERCEL_API void set_peer_deleter(PeerDeleter deleter);

namespace detail {
TERCEL_API void drop_peer(void* peer) noexcept;
}

}  // namespace tercel
