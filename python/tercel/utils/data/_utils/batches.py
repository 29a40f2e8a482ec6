"""Batches as messages: a pickle, and the bytes of tensors and arrays in segments.

Note [Batches as messages]
A storage goes through memory that both processes map (Note [Segments]), once for all tensors over it, and arrives without
being copied again; so do arrays and other objects that pickle gives buffers of. The first OWN of a batch get a segment
each, so that a program may keep one tensor of a batch without the memory of all; those behind share one, for each new
segment takes a descriptor until the other side has it, and a process may open few. A view of less than half of its storage is
sent as a copy of its elements: a row of a table would otherwise bring the whole table.
"""

import ctypes
import io
import os
import pickle

import numpy as np

from tercel import Tensor, UntypedStorage, strided
from tercel._tensor import _rebuild
from tercel.storage import _rebuild_storage

__all__ = ["pack", "unpack"]

INLINE = 1 << 16  # bytes of a pickle that go through the socket
SMALL = 1 << 12  # bytes of a foreign buffer that stay in the pickle
OWN = 32  # buffers of a batch with a segment of their own
ALIGNMENT = 64  # of the buffers in a segment that several share


class _Packing:
    """The segments that one batch takes."""

    def __init__(self, shelf):
        self.shelf = shelf
        self.buffers = []  # (number, offset, bytes) in the order of the pickle's buffers; number None: of the shared segment
        self.added = []  # (number, descriptor) of segments that the other side does not know
        self._taken = []
        self._filled = {}  # by the id of a stand-in for the buffer
        self._sharing = []  # (offset in the shared segment, address, bytes, what keeps the memory)
        self._shared_size = 0

    def take(self, size):
        """(number, segment) for so many bytes."""
        number, segment, descriptor = self.shelf.take(size)
        self._taken.append(number)
        if descriptor is not None:
            self.added.append((number, descriptor))
        return number, segment

    def put(self, address, size):
        """(number, bytes) of a segment with a copy of this memory."""
        number, segment = self.take(size)
        ctypes.memmove(segment.address, address, size)
        return number, size

    def place(self, address, size, owner):
        """(number, offset, bytes) of a copy of this memory, which is made now or, in the shared segment, by share()."""
        if len(self._taken) < OWN:
            number, _ = self.put(address, size)
            return number, 0, size
        offset, self._shared_size = self._shared_size, self._shared_size + -(-size // ALIGNMENT) * ALIGNMENT
        self._sharing.append((offset, address, size, owner))
        return None, offset, size

    def share(self):
        """Fills the shared segment; before the buffers are sent."""
        if not self._sharing:
            return
        number, segment = self.take(self._shared_size)
        for offset, address, size, _ in self._sharing:
            ctypes.memmove(segment.address + offset, address, size)
        self.buffers = [(number if own is None else own, offset, size) for own, offset, size in self.buffers]

    def storage(self, storage):
        """What pickle stores for a storage."""
        stand_in = pickle.PickleBuffer(bytearray(1))
        self._filled[id(stand_in)] = self.place(storage.data_ptr(), storage.nbytes(), storage), stand_in
        return _rebuild_storage, (stand_in,)

    def buffer(self, buffer):
        """Called by pickle with each buffer; true keeps its bytes in the pickle."""
        filled = self._filled.pop(id(buffer), None)
        if filled is None:
            raw = buffer.raw()
            if raw.nbytes < SMALL:
                return True
            memory = np.frombuffer(raw, np.uint8)
            self.buffers.append(self.place(memory.ctypes.data, raw.nbytes, memory))
        else:
            self.buffers.append(filled[0])
        return False

    def give_up(self):
        """Returns the segments, none of which will be sent."""
        added = dict(self.added)
        for number in self._taken:
            if number in added:
                self.shelf.discard(number)
            else:
                self.shelf.give_back([number])
        close_all(added.values())


def close_all(descriptors):
    """Closes descriptors."""
    for descriptor in descriptors:
        os.close(descriptor)


def _reduced(tensor):
    """What pickle stores for a tensor."""
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError("Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not "
                           "support crossing process boundaries.  If you just want to transfer the data, call detach() on "
                           "the tensor before serializing (e.g., putting it on the queue).")
    if type(tensor) is Tensor and tensor.layout is strided:
        if tensor.untyped_storage().nbytes() > 2 * tensor.numel() * tensor.element_size():
            copy = tensor.detach().clone()
            return _rebuild, (Tensor, copy.untyped_storage(), copy.dtype, 0, tuple(copy.size()), copy.stride(),
                              tensor.requires_grad, dict(tensor.__dict__))
    return NotImplemented


class _Pickler(pickle.Pickler):
    def reducer_override(self, thing):
        if isinstance(thing, Tensor):
            return _reduced(thing)
        if type(thing) is UntypedStorage and thing.nbytes() > 0:
            return self.packing.storage(thing)
        return NotImplemented


def pack(batch, shelf):
    """(message, descriptors to send with it) for a batch."""
    packing = _Packing(shelf)
    try:
        file = io.BytesIO()
        pickler = _Pickler(file, 5, buffer_callback=packing.buffer)
        pickler.packing = packing
        pickler.dump(batch)
        packing.share()
        text = file.getvalue()
        if len(text) > INLINE:
            text = packing.put(text, len(text))
        added = packing.added
        return (text, packing.buffers, [number for number, _ in added]), [descriptor for _, descriptor in added]
    except BaseException:
        packing.give_up()
        raise


def unpack(message, mapped):
    """The batch of a message whose segments have been added to mapped."""
    text, buffers, _ = message
    ends = {}
    for number, offset, size in buffers:
        ends[number] = max(ends.get(number, 0), offset + size)
    segments = {number: mapped.lease(number, end) for number, end in ends.items()}
    leases = [segments[number][offset:offset + size] for number, offset, size in buffers]
    if not isinstance(text, bytes):
        text = mapped.lease(*text)
    return pickle.loads(text, buffers=leases)
