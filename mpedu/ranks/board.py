"""The board: one shared file in which every rank says what it waits for, and for whom.

It is read by the process that started the ranks, also when the ranks can no longer answer.
"""

import mmap
import struct
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

ENTRY_BYTES = 256
MOST_RANKS = 256
_SINCE = struct.Struct("<d")
_NOT_WAITING = _SINCE.pack(0.0)
_PEERS_BYTES = MOST_RANKS // 8  # a bit for each rank
_TEXT_AT = _SINCE.size + _PEERS_BYTES
_TEXT_BYTES = ENTRY_BYTES - _TEXT_AT


class Waiting(NamedTuple):
    """A rank that waits: in which operation, for how many seconds, for which ranks.

    peers: whoever takes part in the operation but `rank` itself.
    """

    rank: int
    text: str
    for_s: float
    peers: tuple[int, ...] = ()


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

    def wait_in(self, rank: int, text: str, peers: Iterable[int] = ()) -> None:
        """Says that `rank` waits for `peers` in the operation `text` from now on."""
        start = rank * ENTRY_BYTES
        mask = 0
        for peer in peers:
            mask |= 1 << peer
        # Cut between characters: half of one would not be read.
        words = text.encode()[:_TEXT_BYTES].decode(errors="ignore").encode()
        entry = mask.to_bytes(_PEERS_BYTES, "little") + words.ljust(_TEXT_BYTES, b"\0")
        self._map[start + _SINCE.size : start + ENTRY_BYTES] = entry
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
                mask = int.from_bytes(entry[_SINCE.size : _TEXT_AT], "little")
                peers = tuple(peer for peer in range(self.n_ranks) if mask >> peer & 1)
                text = entry[_TEXT_AT:].rstrip(b"\0").decode(errors="replace")
                found.append(Waiting(rank, text, max(0.0, now_s - since_s), peers))
        return found

    def close(self) -> None:
        """Gives the memory back."""
        self._map.close()
