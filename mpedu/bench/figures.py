"""What the times of a benchmark say: the figures of every engine in one run at one size."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

ONE_PROCESS = "one process"
WHOLE_BACKWARD, HALVES = "backward B", "backward I + W"  # of one micro-batch, by one process


class Size(NamedTuple):
    """A batch: its samples, and the micro-batches it is cut into, all of one size."""

    n_samples: int
    n_microbatches: int

    def __str__(self) -> str:
        return f"B={self.n_samples} M={self.n_microbatches}"


class Times(NamedTuple):
    """Of every repetition: the time of the step, and the CPU time of all ranks, in seconds."""

    seconds: Sequence[float]
    cpu_s: Sequence[float]


class Round(NamedTuple):
    """One run at one size: the times of each engine, and of what one process did."""

    times: Mapping[str, Times]
    size: Size
    n_ranks: int

    def least_s(self, name: str) -> float:
        """The least time of a step."""
        return min(self.times[name].seconds)

    def median_s(self, name: str) -> float:
        """The median time of a step."""
        return median(self.times[name].seconds)

    def cpu_s(self, name: str) -> float:
        """The median CPU time of a step, summed over the ranks."""
        return median(self.times[name].cpu_s)

    def ideal_s(self, one_process_s: float) -> float:
        """A step whose ranks share the work evenly and lose nothing but 1F1B's bubble."""
        n_microbatches = self.size.n_microbatches
        n_slots = n_microbatches + self.n_ranks - 1
        return one_process_s / self.n_ranks * n_slots / n_microbatches


class Figure(NamedTuple):
    """An engine in one round: seconds, and what they are over the ideal and over its peer.

    Each is compared with its like: the least time with the ideal by the least time of one process,
    medians with medians. cpu_of_one: CPU time over that of one process.
    """

    engine: str
    least_s: float
    median_s: float
    least_of_ideal: float
    median_of_ideal: float
    of_peer: float | None
    cpu_of_one: float


def figures(found: Round, peers: Mapping[str, str]) -> list[Figure]:
    """Those of all engines, in the order of the times; peers: which of them is whose like."""
    least_s = found.ideal_s(found.least_s(ONE_PROCESS))
    middle_s = found.ideal_s(found.median_s(ONE_PROCESS))
    shown = []
    for name in found.times:
        if name in (WHOLE_BACKWARD, HALVES):
            continue
        shown.append(
            Figure(
                name,
                found.least_s(name),
                found.median_s(name),
                found.least_s(name) / least_s,
                found.median_s(name) / middle_s,
                _ratio(found, name, peers.get(name)),
                found.cpu_s(name) / found.cpu_s(ONE_PROCESS),
            )
        )
    return shown


def _ratio(found: Round, name: str, peer: str | None) -> float | None:
    if peer is None or peer not in found.times:
        return None
    return found.median_s(name) / found.median_s(peer)
