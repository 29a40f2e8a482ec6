"""Messages between a loader and a worker: bytes, and file descriptors, through a pair of sockets.

Note [Channels]
Each worker has a pair of its own: one that dies while it writes harms no other, and its end is seen at once, as the end of
the stream. A channel's message is a header, the bytes, and one byte for each part of its descriptors, which brings them.

The loader's side never waits in send(): what the socket does not take waits in `_unsent` for the next flush(), so that a
loader with much to say and a worker with much to say do not wait for each other. A process that is forked while a loader
runs closes its copies of the loader's sockets, so that workers see the loader's end when it ends.
"""

import array
import os
import socket
import struct
import weakref
from collections import deque

__all__ = ["Channel", "ClosedError"]

_HEADER = struct.Struct("<QI")  # bytes of the message, descriptors that come with it
_AT_ONCE = 250  # descriptors; Linux takes 253
_ANCILLARY = socket.CMSG_SPACE(_AT_ONCE * array.array("i").itemsize)
_CHUNK = 1 << 18


class ClosedError(Exception):
    """The other side has closed the channel or has ended."""


_of_loaders = weakref.WeakSet()


def _close_in_child():
    for channel in list(_of_loaders):
        channel.close()


os.register_at_fork(after_in_child=_close_in_child)


class Channel:
    """One side: the loader's, which does not block, or the worker's, which does."""

    def __init__(self, sock, of_loader):
        self._socket = sock
        self._unsent = bytearray()
        self._received = bytearray()
        self._descriptors = deque()
        self.ended = False  # the other side has closed its end
        sock.setblocking(not of_loader)
        if of_loader:
            _of_loaders.add(self)

    def fileno(self):
        """The socket's descriptor."""
        return self._socket.fileno()

    @property
    def unsent(self):
        """Whether flush() has something to send."""
        return bool(self._unsent)

    def send(self, message, descriptors=()):
        """Sends bytes. Descriptors only to a loader: they are sent at once. ClosedError if nobody can read them."""
        self._unsent += _HEADER.pack(len(message), len(descriptors))
        self._unsent += message
        self.flush()
        try:
            for begin in range(0, len(descriptors), _AT_ONCE):
                part = array.array("i", descriptors[begin:begin + _AT_ONCE])
                self._socket.sendmsg([b"\0"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, part)])
        except ConnectionError:
            raise ClosedError from None

    def flush(self):
        """Sends what has not been sent; on the loader's side as much as the socket takes."""
        try:
            while self._unsent:
                del self._unsent[:self._socket.send(self._unsent)]
        except BlockingIOError:
            pass
        except ConnectionError:
            self._unsent.clear()
            raise ClosedError from None

    def receive(self):
        """Reads once: the messages that are complete now. Their descriptors wait for take_descriptor().

        RuntimeError if the process has too many open files.
        """
        try:
            data, ancillary, flags, _ = self._socket.recvmsg(_CHUNK, _ANCILLARY, socket.MSG_CMSG_CLOEXEC)
        except BlockingIOError:
            return []
        except ConnectionError:
            data, ancillary, flags = b"", [], 0
        for _, _, numbers in ancillary:
            part = array.array("i")
            part.frombytes(numbers[:len(numbers) - len(numbers) % part.itemsize])
            self._descriptors.extend(part)
        if flags & socket.MSG_CTRUNC:
            raise RuntimeError("Too many open files. Communication with the workers is no longer possible. Please increase the "
                               "limit using `ulimit -n` in the shell")
        if not data:
            self.ended = True
        self._received += data
        messages = []
        while len(self._received) >= _HEADER.size:
            size, count = _HEADER.unpack_from(self._received)
            body = _HEADER.size + size
            end = body + -(-count // _AT_ONCE)
            if len(self._received) < end:
                break
            messages.append(bytes(memoryview(self._received)[_HEADER.size:body]))
            del self._received[:end]
        return messages

    def take_descriptor(self):
        """The next descriptor that has come with a message; the caller closes it."""
        return self._descriptors.popleft()

    def close(self):
        """Closes the socket and the descriptors that nobody has taken."""
        self._socket.close()
        while self._descriptors:
            os.close(self._descriptors.popleft())
