"""Plain data on a wire: msgpack in frames of known length, never anything that could be run.

Runs on both sides of the wall, so it knows nothing of the autograder but `plain`.
"""

import socket
import struct
import time
from typing import Any

import msgpack  # type: ignore[import-untyped]

from autograder.worker.plain import MAX_SIZE, NotPlain, from_plain, to_plain

MAX_FRAME_BYTES = 8 * 2**20


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
    """Messages, tuples of plain data, over a stream socket: 4 bytes of length, then the bytes."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock

    def send(self, message: tuple[Any, ...], timeout_s: float | None = None) -> None:
        """Sends one message; NotPlain, TimeoutError, or OSError when nobody is there."""
        data = encode(message, envelope=1)
        self.sock.settimeout(timeout_s)
        self.sock.sendall(struct.pack(">I", len(data)) + data)

    def receive(self, timeout_s: float | None = None) -> Any:
        """The next message, whole within `timeout_s`; TimeoutError, EOFError or ProtocolError."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        (n_bytes,) = struct.unpack(">I", self._exactly(4, deadline))
        if n_bytes > MAX_FRAME_BYTES:
            raise ProtocolError(f"a frame of {n_bytes} bytes; {MAX_FRAME_BYTES} can pass")
        return decode(self._exactly(n_bytes, deadline))

    def _exactly(self, n_bytes: int, deadline: float | None) -> bytes:
        data = bytearray()
        while len(data) < n_bytes:
            left_s = None if deadline is None else deadline - time.monotonic()
            if left_s is not None and left_s <= 0:
                raise TimeoutError("no whole message in time")
            self.sock.settimeout(left_s)
            try:
                part = self.sock.recv(min(n_bytes - len(data), 2**20))
            except ConnectionError:
                part = b""
            if not part:
                raise EOFError("the other side is gone")
            data += part
        return bytes(data)
