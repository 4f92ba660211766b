"""What simulated ranks print: whole lines behind "[rank i] ", as they come."""

import io
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO


class RankLines(io.TextIOBase):
    """A stream that knows the threads of the ranks; whatever others print passes unchanged."""

    def __init__(self, target: TextIO) -> None:
        self._target = target
        self._rank: dict[int, int] = {}  # by thread
        self._begun: dict[int, str] = {}  # by rank: a line without its end

    def writable(self) -> bool:
        """Whether it takes text: always."""
        return True

    def __getattr__(self, name: str) -> Any:
        """Whatever else is asked of a stream."""
        return getattr(self._target, name)

    def begin(self, rank: int) -> None:
        """Takes what this thread prints for the output of `rank`."""
        self._rank[threading.get_ident()] = rank

    def write(self, text: str) -> int:
        """Prints the lines that are whole, and keeps the rest."""
        rank = self._rank.get(threading.get_ident())
        if rank is None:
            return self._target.write(text)
        *lines, rest = (self._begun.pop(rank, "") + text).split("\n")
        if rest:
            self._begun[rank] = rest
        self._print(rank, lines)
        return len(text)

    def end(self) -> None:
        """Prints what is left."""
        for rank, line in sorted(self._begun.items()):
            self._print(rank, [line])
        self._begun.clear()

    def _print(self, rank: int, lines: list[str]) -> None:
        if lines:
            self._target.write("".join(f"[rank {rank}] {line}\n" for line in lines))


@contextmanager
def rank_lines() -> Iterator[RankLines]:
    """Inside, what ranks print comes out behind their numbers."""
    before = sys.stdout
    lines = RankLines(before)
    sys.stdout = lines
    try:
        yield lines
    finally:
        sys.stdout = before
        lines.end()
