// Objects of another language that represent tensors and storages.
//
// Note [Peers]
// A binding (Python's) creates one object per tensor, and must find it again when C++ returns the tensor:
// `is` must hold, and attributes must persist. So a TensorImpl and a StorageImpl keep one pointer to that peer. As long
// as Python refers to the object, it owns the tensor, and the pointer does not own. When the object is about to die but
// C++ still holds the tensor, the binding may reverse ownership: the tensor then owns the object and passes it to the
// peer deleter when it dies. A tensor that dies with a peer therefore owns that peer.
//
// The pointer is read and written under the binding's lock (Python's GIL) and is opaque to this layer.
#pragma once

#include "tercel/util/export.h"

namespace tercel {

/** Releases a peer that a dying tensor or storage owned; called on any thread, must not throw. */
using PeerDeleter = void (*)(void* peer) noexcept;

/** Called once, by the binding, before it sets the first peer. */
TERCEL_API void set_peer_deleter(PeerDeleter deleter);

namespace detail {
TERCEL_API void drop_peer(void* peer) noexcept;
}

}  // namespace tercel
