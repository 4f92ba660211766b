"""The record of a training run: what its ranks tell, step by step, and the files made of it."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from statistics import fmean, median
from typing import Any, NamedTuple

from mpedu.plot import loss_curve, overlay
from mpedu.simulate import Costs, Timeline, simulate
from mpedu.trace import write_trace
from mpedu.training import StepReport, TrainConfig

METRICS = "metrics.jsonl"
N_FIRST = 2  # steps left out of means: the first ones also agree on shapes and fill caches


class Step(NamedTuple):
    """One step of all ranks."""

    step: int
    loss: float
    n_tokens: int
    seconds: float
    idle_share: float
    gradient_norm: float

    @property
    def tokens_per_s(self) -> float:
        """Counted targets per second of this step, forward and backward."""
        return self.n_tokens / self.seconds

    def words(self) -> dict[str, Any]:
        """A line of the metrics file."""
        return {**self._asdict(), "tokens_per_s": self.tokens_per_s}


class Ledger:
    """Collects the reports of a run, and writes a line per step into `folder`/metrics.jsonl.

    after_step is called with every step once all ranks have told of it.
    """

    def __init__(
        self,
        config: TrainConfig,
        folder: Path | None = None,
        first_step: int = 1,
        after_step: Callable[[Step], None] = lambda step: None,
    ) -> None:
        self.config, self.after_step = config, after_step
        self.schedule = config.make_schedule()
        self.steps: list[Step] = []
        self.peaks: dict[int, int] = {}
        self.timeline: Timeline | None = None  # of the last step
        self._reports: dict[int, dict[int, StepReport]] = {}
        self._spent_s: dict[tuple[str, int], list[float]] = {}
        self._file = None if folder is None else folder / METRICS
        if self._file is not None:
            self.steps = _kept(self._file, first_step)

    def take(self, _rank: int, report: StepReport) -> None:
        """Takes one rank's report of one step."""
        told = self._reports.setdefault(report.step, {})
        told[report.rank] = report
        if len(told) < self.config.pp:
            return
        reports = list(self._reports.pop(report.step).values())
        spans = [span for each in reports for span in each.spans]
        self.timeline = Timeline(spans, self.config.pp)
        for span in spans if report.step > N_FIRST else []:
            key = (span.kind, span.stage)
            self._spent_s.setdefault(key, []).append(float(span.end_s - span.start_s))
        self.peaks = {each.rank: each.peak_in_flight for each in reports}
        seconds = max(r.end_s for r in reports) - min(r.start_s for r in reports)
        idle = 1 - float(self.timeline.busy_s) / (self.config.pp * seconds)
        first = reports[0]
        step = Step(first.step, first.loss, first.n_tokens, seconds, idle, first.gradient_norm)
        self.steps.append(step)
        if self._file is not None:
            with self._file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(step.words()) + "\n")
        self.after_step(step)

    def _later(self) -> list[Step]:
        return self.steps[N_FIRST:] or self.steps

    @property
    def tokens_per_s(self) -> float:
        """Median over the steps after the first ones."""
        return median(step.tokens_per_s for step in self._later())

    @property
    def measured_idle(self) -> float:
        """Mean idle share of the ranks over the same steps."""
        return fmean(step.idle_share for step in self._later())

    def predicted(self) -> Timeline:
        """The schedule on the model clock, all stages alike and backward twice the forward."""
        return simulate(self.schedule)

    def predicted_as_timed(self) -> Timeline | None:
        """The schedule on the model clock at this run's own mean time per stage, if it has any."""
        if not self._spent_s:
            return None
        means = {key: fmean(times) for key, times in self._spent_s.items()}
        forward, backward = ([means[kind, s] for s in range(self.config.pp)] for kind in "FB")
        return simulate(self.schedule, Costs(forward, backward))

    def draw(self, folder: Path, floor: float) -> list[Path]:
        """The pictures and the trace of a run, in `folder`: their paths."""
        made = [folder / "loss.png", folder / "timeline.png", folder / "trace.json"]
        if not self.steps or self.timeline is None:
            return []
        losses = [step.loss for step in self.steps]
        loss_curve({f"pp {self.config.pp}": losses}, floor).save(made[0])
        predicted = self.predicted_as_timed() or self.predicted()
        overlay(predicted, self.timeline, self._title()).save(made[1])
        write_trace(self.timeline, made[2], predicted)
        return made

    def _title(self) -> str:
        name = f"{self.config.schedule}, {self.config.pp} stages, the last step"
        return f"{name}; {EMULATED}" if self.config.costs else name


EMULATED = "devices are emulated by a clock: this shows order, not this machine's speed"


def _kept(file: Path, first_step: int) -> list[Step]:
    """The steps before `first_step` that a metrics file holds; it is cut down to them."""
    if not file.exists():
        return []
    kept = []
    for line in file.read_text(encoding="utf-8").splitlines():
        try:
            words = json.loads(line)
        except ValueError:
            continue  # the last line of a killed run may be half a line
        if words["step"] < first_step:
            kept.append(Step(*(words[name] for name in Step._fields)))
    new = file.with_suffix(".new")
    new.write_text("".join(json.dumps(step.words()) + "\n" for step in kept), encoding="utf-8")
    os.replace(new, file)
    return kept
