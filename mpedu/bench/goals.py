"""What the benchmark is to show of our engine: each goal held or missed, by most of the runs."""

from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import NamedTuple

from mpedu.bench.figures import HALVES, ONE_PROCESS, WHOLE_BACKWARD, Round, Size

F1B, GPIPE, NAIVE = "mpedu 1f1b", "mpedu gpipe", "mpedu naive"
INTERLEAVED, V_SHAPED = "mpedu interleaved", ("mpedu zbv", "mpedu dualpipe-v")
MOST_CPU = 1.06  # times one process's, where a rank has one stage and backwards are whole


class Goal(NamedTuple):
    """What a figure of one round is to be: at most `limit`, or at least where `at_least`.

    needs: the engines it is made of. only_m: the number of micro-batches at which it is asked for.
    """

    text: str
    needs: tuple[str, ...]
    figure: Callable[[Round], float]
    limit: float
    at_least: bool = False
    only_m: int | None = None

    def holds(self, value: float) -> bool:
        """Whether a figure is what it is to be; never for what is no number."""
        return value >= self.limit if self.at_least else value <= self.limit

    @property
    def bound(self) -> str:
        """The limit with its sign, "<= 0.97"."""
        return f"{'>=' if self.at_least else '<='} {self.limit:.2f}"


class Verdict(NamedTuple):
    """A goal and its figure in all runs, at one size."""

    goal: Goal
    size: Size
    values: tuple[float, ...]

    @property
    def middle(self) -> float:
        """The median of the runs."""
        return median(self.values)

    @property
    def word(self) -> str:
        """Whether the goal was "held" or "missed": missed in half of the runs is missed."""
        n_missed = sum(not self.goal.holds(value) for value in self.values)
        return "missed" if 2 * n_missed >= len(self.values) else "held"


def time_goal(engine: str, peer: str, limit: float) -> Goal:
    """The median time over that of another engine."""
    return Goal(
        f"time of {engine} / {peer}",
        (engine, peer),
        lambda found: found.median_s(engine) / found.median_s(peer),
        limit,
    )


def cpu_goal(engine: str, peer: str, limit: float) -> Goal:
    """The CPU time of all ranks over that of another engine, or of one process."""
    return Goal(
        f"CPU time of {engine} / {peer}",
        (engine, peer),
        lambda found: found.cpu_s(engine) / found.cpu_s(peer),
        limit,
    )


def goals(peers: dict[str, str]) -> list[Goal]:
    """All of the course; peers: by each engine of ours the one of torch that is like it."""
    torch_v = peers[V_SHAPED[1]]
    return [
        Goal(
            f"least time of {F1B} / ideal",
            (F1B, ONE_PROCESS),
            lambda found: found.least_s(F1B) / found.ideal_s(found.least_s(ONE_PROCESS)),
            1.08,
        ),
        Goal(
            f"time of {F1B} / ideal",
            (F1B, ONE_PROCESS),
            lambda found: found.median_s(F1B) / found.ideal_s(found.median_s(ONE_PROCESS)),
            1.12,
        ),
        time_goal(F1B, peers[F1B], 0.97),
        time_goal(GPIPE, peers[GPIPE], 0.92),
        time_goal(INTERLEAVED, peers[INTERLEAVED], 0.97),
        Goal(
            f"time of the better of {' and '.join(V_SHAPED)} / {torch_v}",
            (*V_SHAPED, torch_v),
            lambda found: min(map(found.median_s, V_SHAPED)) / found.median_s(torch_v),
            1.00,
        ),
        time_goal(NAIVE, F1B, 1.55)._replace(at_least=True, only_m=8),
        *(cpu_goal(name, ONE_PROCESS, MOST_CPU) for name in (F1B, GPIPE)),
        *(cpu_goal(*pair, 1.00) for pair in peers.items() if pair[0] not in (F1B, GPIPE)),
        time_goal(HALVES, WHOLE_BACKWARD, 1.05),
    ]


def verdicts(runs: Sequence[Iterable[Round]], asked: Iterable[Goal]) -> list[Verdict]:
    """On every goal at every size of the runs whose engines all ran."""
    by_size: dict[Size, list[Round]] = {}
    for run in runs:
        for found in run:
            by_size.setdefault(found.size, []).append(found)
    return [
        Verdict(goal, size, tuple(map(goal.figure, rounds)))
        for goal in asked
        for size, rounds in by_size.items()
        if goal.only_m in (None, size.n_microbatches) and {*goal.needs} <= rounds[0].times.keys()
    ]


def summary(found: Sequence[Verdict]) -> str:
    """What came out, in a sentence for each goal that was missed."""
    missed = [
        f"Missed: {each.goal.text} at {each.size} is {each.middle:.3f}; "
        f"the goal is {each.goal.bound}."
        for each in found
        if each.word == "missed"
    ]
    if not found:
        return "No goal is about these engines alone."
    return "\n".join(missed or [f"All {len(found)} goals were held."])
