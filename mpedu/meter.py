"""The meter: what each rank has called and sent, by kind of operation."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Count(NamedTuple):
    """Calls of one operation, and what they sent.

    `messages_between` and `bytes_between` are the part that left the sender's node.
    """

    calls: int = 0
    messages: int = 0
    bytes: int = 0
    messages_between: int = 0
    bytes_between: int = 0

    def plus(self, other: "Count") -> "Count":
        """Both together."""
        return Count(*map(sum, zip(self, other, strict=True)))


class Meter:
    """Counts by (rank, kind); kind is the operation a rank called: "send", "all_reduce", ...

    A message counts for its sender, under the operation that sent it, when it is posted. Real ranks
    count every call, but messages and bytes of "send" alone: what a backend's collective sends is
    its own affair.
    """

    def __init__(self) -> None:
        self._counts: dict[tuple[int, str], list[int]] = {}

    def call(self, rank: int, kind: str) -> None:
        """One more call."""
        self._row(rank, kind)[0] += 1

    def message(self, rank: int, kind: str, n_bytes: int, between: bool) -> None:
        """One more message of `n_bytes`; between: to another node."""
        row = self._row(rank, kind)
        row[1] += 1
        row[2] += n_bytes
        if between:
            row[3] += 1
            row[4] += n_bytes

    def add(self, counts: Mapping[tuple[int, str], Count]) -> None:
        """Adds what another meter has counted."""
        for (rank, kind), count in counts.items():
            row = self._row(rank, kind)
            row[:] = map(sum, zip(row, count, strict=True))

    @property
    def counts(self) -> dict[tuple[int, str], Count]:
        """All counts by (rank, kind), in order."""
        return {key: Count(*row) for key, row in sorted(self._counts.items())}

    def total(self, rank: int | None = None, kind: str | None = None) -> Count:
        """The sum over ranks and kinds, or over those asked for."""
        total = Count()
        for (one_rank, one_kind), count in self.counts.items():
            if rank in (None, one_rank) and kind in (None, one_kind):
                total = total.plus(count)
        return total

    def __str__(self) -> str:
        head = (
            "rank",
            "operation",
            "calls",
            "messages",
            "bytes",
            "between nodes: messages",
            "bytes",
        )
        rows = [(str(rank), kind, *map(str, count)) for (rank, kind), count in self.counts.items()]
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        return "\n".join(_line(row, widths) for row in (head, *rows))

    def _row(self, rank: int, kind: str) -> list[int]:
        row = self._counts.get((rank, kind))
        if row is None:
            row = self._counts[rank, kind] = [0] * 5
        return row


def _line(row: Iterable[str], widths: Iterable[int]) -> str:
    cells = list(zip(row, widths, strict=True))
    return "  ".join(
        [cells[0][0].rjust(cells[0][1]), cells[1][0].ljust(cells[1][1])]
        + [text.rjust(width) for text, width in cells[2:]]
    )
