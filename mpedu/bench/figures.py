"""What the times of a benchmark say: every engine's figures, goals held or missed, and tables."""

import sys
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import NamedTuple

ONE_PROCESS = "one process"
COLUMNS = ["engine", "least ms", "median ms", "least/ideal", "median/ideal", "mpedu/torch"]
VERDICT_COLUMNS = ["engine", "size", "of each run", "median", "goal", "verdict"]
Times = Mapping[str, Sequence[float]]  # seconds of every repetition, by engine
Show = Callable[[str, Sequence[str], Sequence[Sequence[str]]], None]  # a title, a header, rows


class Size(NamedTuple):
    """A batch: its samples, and the micro-batches it is cut into, all of one size."""

    n_samples: int
    n_microbatches: int

    def __str__(self) -> str:
        return f"B={self.n_samples} M={self.n_microbatches}"


class Goal(NamedTuple):
    """The median time of `engine` is to be at most `at_most` times that of `peer`."""

    engine: str
    peer: str
    at_most: float

    def ratio(self, times: Times) -> float:
        """What it is, by the times of one run."""
        return median(times[self.engine]) / median(times[self.peer])


GOALS = (
    Goal("mpedu 1F1B", "torch Schedule1F1B", 1.00),
    Goal("mpedu GPipe", "torch ScheduleGPipe", 0.95),
)


class Figure(NamedTuple):
    """An engine in one run: seconds, and what they are over the ideal and over its peer.

    Each is compared with its like: the least time with the ideal by the least time of one process.
    """

    engine: str
    least_s: float
    median_s: float
    least_of_ideal: float
    median_of_ideal: float
    of_peer: float | None


class Verdict(NamedTuple):
    """A goal and the ratios of all runs, at one size."""

    goal: Goal
    size: Size
    ratios: tuple[float, ...]

    @property
    def middle(self) -> float:
        """The median of the runs."""
        return median(self.ratios)

    @property
    def word(self) -> str:
        """Whether the goal was "held" or "missed"."""
        return "held" if self.middle <= self.goal.at_most else "missed"


def ideal_s(one_process_s: float, n_ranks: int, n_microbatches: int) -> float:
    """Seconds of a step whose ranks share the work evenly and lose nothing but the bubble."""
    return one_process_s / n_ranks * (n_microbatches + n_ranks - 1) / n_microbatches


def figures(times: Times, n_ranks: int, n_microbatches: int) -> list[Figure]:
    """Those of one run at one size, in the order of `times`."""
    least_s, middle_s = (
        ideal_s(of(times[ONE_PROCESS]), n_ranks, n_microbatches) for of in (min, median)
    )
    goals = {goal.engine: goal for goal in GOALS}
    return [
        Figure(
            engine,
            min(seconds),
            median(seconds),
            min(seconds) / least_s,
            median(seconds) / middle_s,
            goals[engine].ratio(times) if engine in goals else None,
        )
        for engine, seconds in times.items()
    ]


def verdicts(runs: Sequence[Mapping[Size, Times]]) -> list[Verdict]:
    """On every goal at every size of the runs."""
    return [
        Verdict(goal, size, tuple(goal.ratio(run[size]) for run in runs))
        for goal in GOALS
        for size in runs[0]
    ]


def summary(found: Sequence[Verdict]) -> str:
    """What came out, in a sentence for each goal that was missed."""
    missed = [
        f"Missed: {each.goal.engine} at {each.size} takes {each.middle:.3f} of the time of "
        f"{each.goal.peer}; the goal is at most {each.goal.at_most:.2f}."
        for each in found
        if each.word == "missed"
    ]
    return "\n".join(missed or ["Every goal was held."])


# ---- tables ----


def rows(times: Times, n_ranks: int, size: Size) -> list[list[str]]:
    """What `COLUMNS` says of each engine in one run at one size."""
    return [
        [
            each.engine,
            f"{each.least_s * 1e3:.1f}",
            f"{each.median_s * 1e3:.1f}",
            f"{each.least_of_ideal:.3f}",
            f"{each.median_of_ideal:.3f}",
            "" if each.of_peer is None else f"{each.of_peer:.3f}",
        ]
        for each in figures(times, n_ranks, size.n_microbatches)
    ]


def verdict_rows(found: Sequence[Verdict]) -> list[list[str]]:
    """What `VERDICT_COLUMNS` says of each."""
    return [
        [
            each.goal.engine,
            str(each.size),
            " ".join(f"{ratio:.3f}" for ratio in each.ratios),
            f"{each.middle:.3f}",
            f"<= {each.goal.at_most:.2f}",
            each.word,
        ]
        for each in found
    ]


def show_plain(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints a table in plain text: words to the left, numbers to the right."""
    table = [header, *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(header))]
    print(f"\n{title}")
    for row in table:
        first, *others = (
            text.ljust(width) if column == 0 else text.rjust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        print("  ".join([first, *others]).rstrip(), flush=True)


def shower() -> Show:
    """Tables by rich on a terminal, else in plain text."""
    if not sys.stdout.isatty():
        return show_plain
    from rich.console import Console
    from rich.table import Table

    def show(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        table = Table(title=title, title_justify="left")
        for column, name in enumerate(header):
            table.add_column(name, justify="right" if column else "left")
        for row in rows:
            table.add_row(*row)
        Console().print(table)

    return show
