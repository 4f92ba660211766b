"""The board: one shared file in which every rank says what it waits for.

It is read by the process that started the ranks, also when the ranks can no longer answer.
"""

import mmap
import struct
import time
from pathlib import Path
from typing import NamedTuple

ENTRY_BYTES = 256
_SINCE = struct.Struct("<d")
_NOT_WAITING = _SINCE.pack(0.0)
_TEXT_BYTES = ENTRY_BYTES - _SINCE.size


class Waiting(NamedTuple):
    """A rank that waits: in which operation, for how many seconds."""

    rank: int
    text: str
    for_s: float


class Board:
    """The board in the file `path`, `ENTRY_BYTES` for each of `n_ranks` ranks; `create` makes it.

    An entry is written before a blocking operation and taken back after it, without any lock: an
    entry read while it is written may be half the old one, which a report can bear.
    """

    def __init__(self, path: Path, n_ranks: int, create: bool = False) -> None:
        self.n_ranks = n_ranks
        if create:
            path.write_bytes(bytes(ENTRY_BYTES * n_ranks))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), ENTRY_BYTES * n_ranks)

    def wait_in(self, rank: int, text: str) -> None:
        """Says that `rank` waits in the operation `text` from now on."""
        start = rank * ENTRY_BYTES
        # Cut between characters: half of one would not be read.
        words = text.encode()[:_TEXT_BYTES].decode(errors="ignore").encode()
        self._map[start + _SINCE.size : start + ENTRY_BYTES] = words.ljust(_TEXT_BYTES, b"\0")
        self._map[start : start + _SINCE.size] = _SINCE.pack(time.monotonic())

    def go_on(self, rank: int) -> None:
        """Says that `rank` waits no longer."""
        start = rank * ENTRY_BYTES
        self._map[start : start + _SINCE.size] = _NOT_WAITING

    def waiting(self) -> list[Waiting]:
        """The ranks that wait, in order of rank."""
        now_s = time.monotonic()
        found = []
        for rank in range(self.n_ranks):
            entry = self._map[rank * ENTRY_BYTES : (rank + 1) * ENTRY_BYTES]
            (since_s,) = _SINCE.unpack_from(entry)
            if since_s:
                text = entry[_SINCE.size :].rstrip(b"\0").decode(errors="replace")
                found.append(Waiting(rank, text, max(0.0, now_s - since_s)))
        return found

    def close(self) -> None:
        """Gives the memory back."""
        self._map.close()
