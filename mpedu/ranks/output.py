"""What ranks print, as it comes: whole lines behind "[rank i] "."""

import contextlib
import os
import sys
from collections.abc import Sequence

from mpedu.ranks.rank import Pipe

CHUNK_BYTES = 65536
MOST_LINE_BYTES = 1_000_000  # a longer line is cut in pieces
MOST_CHUNKS = 64  # read at the end: more than a pipe can hold


class RankOutput:
    """The reading ends of the ranks' output."""

    def __init__(self) -> None:
        self._rank: dict[Pipe, int] = {}  # until the end has been read
        self._begun: dict[int, bytes] = {}  # by rank: a line without its end

    def add(self, rank: int, pipe: Pipe) -> None:
        """Takes what comes out of `pipe` for the output of `rank`."""
        self._rank[pipe] = rank

    @property
    def pipes(self) -> Sequence[Pipe]:
        """What may be waited for."""
        return list(self._rank)

    def print_from(self, pipe: Pipe) -> None:
        """Prints the lines that have come whole."""
        rank = self._rank[pipe]
        written = _read(pipe)
        if not written:
            del self._rank[pipe]
            pipe.close()
            return
        *lines, rest = (self._begun.pop(rank, b"") + written).split(b"\n")
        if len(rest) > MOST_LINE_BYTES:
            lines, rest = [*lines, rest], b""
        if rest:
            self._begun[rank] = rest
        _print(rank, lines)

    def close(self) -> None:
        """Prints what is left, whole lines or not."""
        for pipe in self.pipes:
            for _ in range(MOST_CHUNKS):
                if pipe in self._rank and pipe.poll():
                    self.print_from(pipe)
            if self._rank.pop(pipe, None) is not None:
                pipe.close()
        for rank, line in sorted(self._begun.items()):
            _print(rank, [line])
        self._begun.clear()


def _read(pipe: Pipe) -> bytes:
    with contextlib.suppress(EOFError, OSError):
        if sys.platform == "win32":
            written: bytes = pipe.recv_bytes()  # a pipe of messages: each is what was written
            return written
        return os.read(pipe.fileno(), CHUNK_BYTES)
    return b""


def _print(rank: int, lines: Sequence[bytes]) -> None:
    if not lines:
        return
    text = "".join(f"[rank {rank}] {line.decode(errors='replace')}\n" for line in lines)
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    # One call for all of them: a print per line takes seconds for a flood in a notebook.
    print(text.encode(encoding, "replace").decode(encoding), end="", flush=True)
