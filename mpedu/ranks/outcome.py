"""How a run of ranks ended: what came back, or which of them failed.

Knows no torch: the simulated machine ends alike.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mpedu.meter import Meter
from mpedu.ranks.board import Waiting
from mpedu.simulate import Timeline


class Run(NamedTuple):
    """What came back: the results in order of rank, what the ranks recorded, and the meter.

    timeline: None where nothing was recorded.
    """

    results: list[Any]
    timeline: Timeline | None
    meter: Meter


class Failed(NamedTuple):
    """An error of one rank; frames are (file, line, function), outermost first.

    at_s: when, in seconds of `time.monotonic`, which all processes share.
    """

    rank: int
    type_name: str
    message: str
    frames: list[tuple[str, int, str]]
    is_consequence: bool
    at_s: float


class RankError(RuntimeError):
    """Ranks failed, died or waited too long; the text names the first cause first.

    failures: the ranks that failed, causes before consequences. waiting: those that waited.
    timeline, cause: on the simulated machine, what was recorded until then, and the exception of
    the rank that failed.
    """

    def __init__(
        self,
        text: str,
        failures: Sequence[Failed] = (),
        waiting: Sequence[Waiting] = (),
        timeline: Timeline | None = None,
        cause: BaseException | None = None,
    ) -> None:
        super().__init__(text)
        self.cause = cause
        self.timeline = timeline
        self.failures = list(failures)
        self.waiting = list(waiting)

    def _render_traceback_(self) -> list[str]:
        """What IPython shows: the sentences alone, since no frame here is the student's."""
        return [f"{type(self).__name__}: {self}"]


class Interrupted(KeyboardInterrupt):
    """Somebody stopped the ranks; the text says what each of them was doing."""

    def _render_traceback_(self) -> list[str]:
        return [f"Stopped: {self}"]


def stacks_file(folder: str, rank: int) -> Path:
    """Where a rank writes its Python stacks, when it gets SIGUSR1 or as it crashes."""
    return Path(folder) / f"stacks-{rank}"
