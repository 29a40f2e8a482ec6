"""Memory that one process writes and another reads.

Note [Segments]
A worker puts the bytes of a batch's tensors into segments: files without a name (memfd), which the loader's process maps
when it gets their descriptor, and whose descriptors both close at once. So nothing is left in /dev/shm however a process
ends, and no descriptor stays open however many batches a program keeps. A tensor of the batch owns a Lease; when the last
one that uses the memory is gone, the segment returns to the worker, which writes a later batch into it: mapping and
clearing new pages would cost more than copying the bytes.

The worker writes again only into memory that the loader's process has returned. A process that it has forked since may
still see the memory: such a segment is not used again (`_forks`). Either side may drop a segment: the worker (`Shelf`) if it
has many of them, the loader's process (`Mapped`) after a fork; each tells the other by its number.
"""

import ctypes
import mmap
import os
import tempfile

__all__ = ["Mapped", "Shelf"]

_PAGE = mmap.PAGESIZE
_FAILED = ctypes.c_void_p(-1).value
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
_libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)

_forks = 0


def _count_fork():
    global _forks
    _forks += 1


os.register_at_fork(after_in_parent=_count_fork, after_in_child=_count_fork)


def _new_file(size):
    """The descriptor of a file of this size without a name."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("tercel-batch", os.MFD_CLOEXEC)
    else:  # a Python that was built on an old system
        with tempfile.TemporaryFile(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as file:
            descriptor = os.dup(file.fileno())
    try:
        os.truncate(descriptor, size)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _map(descriptor, size):
    """The address of a file's memory; None if the process has no room for another map."""
    address = _libc.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, descriptor, 0)
    return None if address == _FAILED else address


def _contents(descriptor, size):
    """All bytes of a file; one call reads at most 2 GiB."""
    parts, done = [], 0
    while done < size:
        part = os.pread(descriptor, size - done, done)
        if not part:
            raise RuntimeError(f"DataLoader: a batch's memory has {size} bytes, of which only {done} could be read")
        parts.append(part)
        done += len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _rounded(size):
    """The size of a segment for so many bytes: few different ones, so that segments fit later batches."""
    step = max(_PAGE, 1 << max(0, size.bit_length() - 4))
    return -(-size // step) * step


class _Segment:
    __slots__ = ("address", "forks", "size")

    def __init__(self, address, size):
        self.address, self.size = address, size
        self.forks = None  # the number of forks when a tensor began to use it; None: no tensor does

    def buffer(self, size):
        """The first bytes as a writable buffer that does not keep the memory."""
        return memoryview((ctypes.c_char * size).from_address(self.address)).cast("B")

    def unmap(self, _unmap=_libc.munmap):  # bound here: destructors run when modules are gone
        _unmap(self.address, self.size)


class Shelf:
    """The worker's side: segments by number, free ones by size."""

    FREE = 64  # at most
    LENT = 512  # maps are limited too: of more than this, the oldest are forgotten

    def __init__(self):
        self._next = 0
        self._lent = {}
        self._free = {}
        self.dropped = []  # numbers that will not be used again, to be told

    def take(self, size):
        """(number, segment, its descriptor or None if the other side knows it) for so many bytes."""
        size = _rounded(size)
        number = next((n for n, segment in self._free.items() if segment.size == size), None)
        if number is not None:
            segment, descriptor = self._free.pop(number), None
        else:
            number, self._next = self._next, self._next + 1
            descriptor = _new_file(size)
            address = _map(descriptor, size)
            if address is None:
                os.close(descriptor)
                raise MemoryError(f"DataLoader worker: cannot map {size} bytes for a batch: {os.strerror(ctypes.get_errno())}")
            segment = _Segment(address, size)
        self._lent[number] = segment
        if len(self._lent) > self.LENT:
            self._drop(self._lent, next(iter(self._lent)))
        return number, segment, descriptor

    def give_back(self, numbers):
        """Takes back what the other side no longer uses; -1 - number is one that it has unmapped."""
        for number in numbers:
            segment = self._lent.pop(number if number >= 0 else -1 - number, None)
            if number < 0:
                if segment is not None:
                    segment.unmap()
            elif segment is None:
                self.dropped.append(number)
            else:
                self._free[number] = segment
                if len(self._free) > self.FREE:
                    oldest = next(iter(self._free))
                    self._drop(self._free, oldest)
                    self.dropped.append(oldest)

    def discard(self, number):
        """Unmaps a segment that the other side never gets to know."""
        if number in self._lent:
            self._drop(self._lent, number)

    @staticmethod
    def _drop(segments, number):
        segments.pop(number).unmap()

    def take_dropped(self):
        """The numbers for Mapped.forget()."""
        taken, self.dropped = self.dropped, []
        return taken


_lease_types = {}


def _lease_type(size):
    """The class of leases of so many bytes, which exports them as a buffer."""
    kind = _lease_types.get(size)
    if kind is None:
        def __del__(self):
            self.mapped._release(self.number, self.segment)

        kind = type("Lease", (ctypes.c_char * size,), {"__del__": __del__})
        _lease_types[size] = kind
    return kind


class Mapped:
    """The loader's side: the segments of one worker, and which of them no tensor uses any more."""

    def __init__(self):
        self._segments = {}
        self._returned = []
        self._closed = False

    def add(self, number, descriptor):
        """Maps a new segment and closes its descriptor."""
        try:
            size = os.fstat(descriptor).st_size
            address = _map(descriptor, size)
            # A process has 65,530 maps by default. Beyond them the bytes are copied.
            self._segments[number] = _contents(descriptor, size) if address is None else _Segment(address, size)
        finally:
            os.close(descriptor)

    def lease(self, number, size):
        """A writable buffer of a segment's first bytes; the segment returns when nothing uses the buffer any more."""
        segment = self._segments[number]
        if isinstance(segment, bytes):
            del self._segments[number]
            self._returned.append(-1 - number)
            return bytearray(segment[:size])
        segment.forks = _forks
        lease = _lease_type(segment.size).from_address(segment.address)
        lease.mapped, lease.number, lease.segment = self, number, segment
        return memoryview(lease).cast("B")[:size]

    def refuse(self, number):
        """Returns a segment that no tensor will use."""
        if isinstance(self._segments[number], bytes):
            self.lease(number, 0)
        else:
            self._returned.append(number)

    def _release(self, number, segment):
        # A destructor: it runs in any thread, between any two operations of the others.
        if self._closed or segment.forks != _forks:
            self._segments.pop(number, None)
            segment.unmap()
            self._returned.append(-1 - number)
        else:
            segment.forks = None
            self._returned.append(number)

    def take_returned(self):
        """The numbers for Shelf.give_back()."""
        taken, self._returned = self._returned, []
        return taken

    def forget(self, numbers):
        """Unmaps segments that the worker has dropped, which no tensor uses."""
        for number in numbers:
            segment = self._segments.pop(number, None)
            if segment is not None:
                segment.unmap()

    def close(self):
        """Unmaps what no tensor uses; the rest goes with its tensors."""
        self._closed = True
        for number, segment in list(self._segments.items()):
            if isinstance(segment, bytes) or segment.forks is None:
                del self._segments[number]
                if not isinstance(segment, bytes):
                    segment.unmap()
