"""Plain data on a wire: msgpack in frames of known length, never anything that could be run.

Runs on both sides of the wall, so it knows nothing of the autograder but `plain`.
"""

import select
import socket
import struct
import time
from collections.abc import Sequence
from typing import Any

import msgpack  # type: ignore[import-untyped]

from autograder.worker.plain import MAX_SIZE, NotPlain, from_plain, to_plain

MAX_FRAME_BYTES = 8 * 2**20
HERE = ("here",)  # what a student's process says first, before any code of the student's runs
_HEADER = struct.Struct(">I")
_PART_BYTES = 2**16  # read at once; a larger buffer would be mapped anew for every part


class ProtocolError(Exception):
    """Bytes that are no value: broken, too large or too deep."""


def encode(value: object, envelope: int = 0) -> bytes:
    """The bytes of a plain value; NotPlain where it is none or takes more than 8 MiB."""
    data: bytes = msgpack.packb(to_plain(value, envelope))
    if len(data) > MAX_FRAME_BYTES:
        raise NotPlain(f"the answer takes {len(data)} bytes; {MAX_FRAME_BYTES} can pass")
    return data


def decode(data: bytes) -> Any:
    """The value of some bytes; ProtocolError for whatever else they are."""
    try:
        # A header could promise more entries than there are, and reserve memory for all of them;
        # a list of few entries takes much more memory than a tuple.
        most = min(len(data), MAX_SIZE)
        limits = {"max_array_len": most, "max_map_len": 0, "max_ext_len": 0}
        return from_plain(msgpack.unpackb(data, use_list=False, **limits))
    except Exception as error:  # the bytes are a stranger's: all that can go wrong means one thing
        why = f"{type(error).__name__}: {error}"[:200]
        raise ProtocolError(f"these bytes are no plain value ({why})") from None


class Channel:
    """Messages, tuples of plain data, over a stream socket: 4 bytes of length, then the bytes.

    Waits without limit block in the socket; others poll, which takes fewer calls of the system
    than a socket's own time-out.
    """

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._unread = bytearray()

    def send(self, message: tuple[Any, ...], timeout_s: float | None = None) -> None:
        """Sends one message; NotPlain, TimeoutError, or OSError when nobody is there."""
        self.send_frames([encode(message, envelope=1)], timeout_s)

    def receive(self, timeout_s: float | None = None) -> Any:
        """The next message, whole within `timeout_s`; TimeoutError, EOFError or ProtocolError."""
        return decode(self.frame(timeout_s))

    def send_frames(self, frames: Sequence[bytes], timeout_s: float | None = None) -> None:
        """Sends the bytes of messages; TimeoutError, or OSError when nobody is there."""
        data = memoryview(b"".join(_HEADER.pack(len(frame)) + frame for frame in frames))
        deadline = self._deadline(timeout_s)
        while data:
            try:
                data = data[self.sock.send(data) :]
            except BlockingIOError:
                self._await(select.POLLOUT, deadline)

    def frame(self, timeout_s: float | None = None, most_bytes: int = MAX_FRAME_BYTES) -> bytes:
        """The bytes of the next message; errors as of `receive`."""
        deadline = self._deadline(timeout_s)
        unread, end = self._unread, _HEADER.size
        while len(unread) < end:
            self._read(deadline)
        end += _HEADER.unpack_from(unread)[0]
        if end - _HEADER.size > most_bytes:
            n_bytes = end - _HEADER.size
            raise ProtocolError(f"a frame of {n_bytes} bytes; {most_bytes} can pass")
        while len(unread) < end:
            self._read(deadline)
        frame = bytes(unread[_HEADER.size : end])
        del unread[:end]
        return frame

    def _deadline(self, timeout_s: float | None) -> float | None:
        """When the time is over; sets whether calls of the socket block."""
        blocks = timeout_s is None
        if self.sock.getblocking() is not blocks:
            self.sock.setblocking(blocks)
        return None if timeout_s is None else time.monotonic() + timeout_s

    def _read(self, deadline: float | None) -> None:
        """Reads some bytes more."""
        if deadline is not None and time.monotonic() > deadline:  # single bytes must not stretch it
            raise TimeoutError("no whole message in time")
        try:
            part = self.sock.recv(_PART_BYTES)
        except BlockingIOError:
            return self._await(select.POLLIN, deadline)
        except ConnectionError:
            part = b""
        if not part:
            raise EOFError("the other side is gone")
        self._unread += part

    def _await(self, event: int, deadline: float | None) -> None:
        left_s = 0.0 if deadline is None else deadline - time.monotonic()
        waiting = select.poll()
        waiting.register(self.sock, event)
        if left_s <= 0 or not waiting.poll(1000 * left_s):
            raise TimeoutError("no whole message in time")
