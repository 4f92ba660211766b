"""What a rank has begun, so that at the end somebody can tell what has no other end."""

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

MOST_TOLD = 4  # of one kind


class Line(NamedTuple):
    """Messages that are told apart by order alone; ranks by their numbers among all ranks."""

    group: str
    source: int
    destination: int
    tag: int


@dataclass
class Count:
    """How many were begun, and how many of these waited for; the words for the last few."""

    begun: int = 0
    waited: int = 0
    words: deque[str] = field(default_factory=lambda: deque(maxlen=MOST_TOLD))

    def begin(self, words: str) -> Callable[[], None]:
        """One more; the function that comes back is called when it was waited for."""
        self.begun += 1
        self.words.append(words)
        return self._end

    def _end(self) -> None:
        self.waited += 1

    def last(self, n: int) -> list[str]:
        """The words for the last `n`, as far as they are known."""
        return list(self.words)[-n:] if n > 0 else []


class Ledger:
    """The messages and collectives of one rank, counted."""

    def __init__(self) -> None:
        self.sent: defaultdict[Line, Count] = defaultdict(Count)
        self.posted: defaultdict[Line, Count] = defaultdict(Count)
        # by the group's name and the numbers of its members
        self.joined: defaultdict[tuple[str, tuple[int, ...]], Count] = defaultdict(Count)


def left_over(ledgers: Sequence[Ledger]) -> list[str]:
    """What has no other end, or was never waited for, by the ledgers of all ranks that finished."""
    lines = []
    for rank, ledger in enumerate(ledgers):
        for line, sent in ledger.sent.items():
            n_taken = ledgers[line.destination].posted.get(line, Count()).begun
            lines += [
                f"rank {line.destination} never received what rank {rank} sent it: {words}"
                for words in sent.last(sent.begun - n_taken)
            ]
        for line, posted in ledger.posted.items():
            n_sent = ledgers[line.source].sent.get(line, Count()).begun
            lines += [
                f"rank {line.source} never sent what rank {rank} started to receive from it{words}"
                for words in posted.last(posted.begun - n_sent)
            ]
            if posted.waited < posted.begun <= n_sent:
                lines.append(
                    f"rank {rank} never waited for what it started to receive from "
                    f"rank {line.source}{posted.words[-1]}"
                )
        lines += _unjoined(rank, ledgers)
    return lines


def _unjoined(rank: int, ledgers: Sequence[Ledger]) -> list[str]:
    lines = []
    for key, joined in ledgers[rank].joined.items():
        n_joined = partial(_n_joined, ledgers, key)
        last = min(key[1], key=n_joined)
        lines += [
            f"rank {rank} started {name}, and rank {last} never did"
            for name in joined.last(joined.begun - n_joined(last))
        ]
        if joined.waited < joined.begun <= n_joined(last):
            lines.append(f"rank {rank} never waited for the {joined.words[-1]} it started")
    return lines


def _n_joined(ledgers: Sequence[Ledger], key: tuple[str, tuple[int, ...]], rank: int) -> int:
    return ledgers[rank].joined.get(key, Count()).begun
