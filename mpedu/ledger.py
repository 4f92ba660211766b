"""The record of a training run: what its ranks tell, step by step, and the files made of it."""

import json
import math
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from statistics import fmean, median
from typing import Any, NamedTuple, TextIO

from mpedu.faults import Failure
from mpedu.mesh import places
from mpedu.pipeline import StepResult
from mpedu.plot import loss_curve, overlay
from mpedu.schedule import KINDS, actions_of, peak_in_flight, stage_to_rank
from mpedu.simulate import Costs, Timeline, simulate
from mpedu.trace import write_trace
from mpedu.train_config import CHECKPOINTS, TrainConfig
from mpedu.training import StepReport

EMULATED = "devices are emulated by a clock: this shows order, not this machine's speed"
METRICS = "metrics.jsonl"
LOCK = "lock"  # held open by the run in a folder
WELL_ABOVE = 0.05  # of an idle share over its prediction: asks for a word
NEVER_S = 1.0  # of work that no stage does
N_FIRST = 2  # steps left out of means: the first ones also agree on shapes and fill caches


class Step(NamedTuple):
    """One step of all ranks.

    seconds: from its first action to the end of the optimiser's work. idle_share: of the ranks'
    time in forward and backward.
    """

    step: int
    loss: float
    n_tokens: int
    seconds: float
    idle_share: float
    gradient_norm: float

    @property
    def tokens_per_s(self) -> float:
        """Targets that count per second of this step."""
        return self.n_tokens / self.seconds

    def words(self) -> dict[str, Any]:
        """A line of the metrics file."""
        return {**self._asdict(), "tokens_per_s": self.tokens_per_s}


class Ledger:
    """Collects the reports of a run, and writes a line per step into `folder`/metrics.jsonl.

    earlier: the losses of the steps before, where a run goes on; its metrics file is cut down to
    these steps. after_step is called with every step once all ranks have told of it.
    """

    def __init__(
        self,
        config: TrainConfig,
        folder: Path | None = None,
        earlier: Sequence[float] = (),
        after_step: Callable[[Step], None] = lambda step: None,
    ) -> None:
        self.config, self.after_step = config, after_step
        self.schedule = config.make_schedule()
        self.earlier = list(earlier)
        self.steps: list[Step] = []  # those of this run
        # By pipeline rank, the most of all data ranks, in (stage, micro-batch) units.
        self.peaks: list[int] = []
        self.timeline: Timeline | None = None  # of the last step, on the first data rank
        self._reports: dict[int, dict[int, StepReport]] = {}
        self._spent_s: dict[tuple[str, int], float] = defaultdict(float)  # after the first steps
        self._file = None if folder is None else folder / METRICS
        if self._file is not None:
            _cut_down(self._file, self.earlier)

    def take(self, rank: int, report: StepReport) -> None:
        """Takes one rank's report of one step; the ranks may tell in any order.

        Failure where the loss is no finite number.
        """
        told = self._reports.setdefault(report.step, {})
        told[rank] = report
        if len(told) < self.config.n_ranks:
            return
        del self._reports[report.step]
        self._add([told[rank] for rank in range(self.config.n_ranks)])

    def _add(self, reports: list[StepReport]) -> None:
        """Takes a step that all ranks have told of."""
        pp, dp = self.config.pp, self.config.dp
        pipelines: list[list[StepResult]] = [[] for _ in range(dp)]  # by data rank
        for report, place in zip(reports, places(pp, dp), strict=True):
            pipelines[place.dp].append(report.result)
        ran = [Timeline([span for r in pipeline for span in r.spans], pp) for pipeline in pipelines]
        self.timeline = ran[0]
        if len(self.steps) >= N_FIRST:
            for span in (span for timeline in ran for span in timeline.spans):
                self._spent_s[span.kind, span.stage] += float(span.end_s - span.start_s)
        self.peaks = [
            max(result.peak_in_flight for result in same) for same in zip(*pipelines, strict=True)
        ]
        # Each pipeline in a time of its own: data ranks start a little apart.
        worked_s = sum(pp * duration_s(pipeline) for pipeline in pipelines)
        first = reports[0].result
        start_s = min(report.result.start_s for report in reports)
        step = Step(
            reports[0].step,
            first.loss,
            first.n_tokens,
            max(report.updated_s for report in reports) - start_s,
            1 - sum(float(timeline.busy_s) for timeline in ran) / worked_s,
            reports[0].gradient_norm,
        )
        self.steps.append(step)
        if self._file is not None:
            with self._file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(step.words()) + "\n")
        self.after_step(step)
        if not math.isfinite(step.loss):
            raise Failure(
                f"the loss is {step.loss} at step {step.step}: the run has diverged; start anew "
                f"with a learning rate below {self.config.learning_rate:g}"
            )

    @property
    def losses(self) -> list[float]:
        """Of all steps, from step 1 on."""
        return self.earlier + [step.loss for step in self.steps]

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
        n_ran = len(self._later()) * self.config.dp
        n_actions = Counter((action.kind, action.stage) for _, action in actions_of(self.schedule))

        def mean_s(kind: str, stage: int) -> float:
            n_done = n_actions[kind, stage] * n_ran
            return self._spent_s[kind, stage] / n_done if n_done else NEVER_S

        stages = range(len(stage_to_rank(self.schedule)))
        forward, backward, inputs, weights = ([mean_s(k, s) for s in stages] for k in KINDS)
        return simulate(self.schedule, Costs(forward, backward, inputs, weights))

    def idle_in_words(self) -> str:
        """The measured idle share beside the predicted ones, in one line."""
        words = f"{self.measured_idle:.1%} measured, {_share(self.predicted(), 'equal stages')}"
        timed = self.predicted_as_timed()
        if timed is None:
            return words
        words += ", " + _share(timed, "this run's mean times")
        if self.measured_idle - float(timed.idle_share) < WELL_ABOVE:
            return words
        return f"{words}; the rest is waiting for messages and for a processor that others use"

    def peaks_in_words(self) -> str:
        """The most that each pipeline rank held at once, beside what the list says, in one line."""
        peaks = ", ".join(f"rank {rank}: {peak}" for rank, peak in enumerate(self.peaks))
        is_cut = len(stage_to_rank(self.schedule)) > self.config.pp
        unit = "activations of a stage and micro-batch" if is_cut else "micro-batches"
        most = ", the most of any data rank" * (self.config.dp > 1)
        return f"{peaks} {unit}{most} (the list says {peak_in_flight(self.schedule)})"

    def draw(self, folder: Path, floor: float) -> list[Path]:
        """The pictures and the trace of a run, in `folder`: their paths."""
        made = [folder / "loss.png", folder / "timeline.png", folder / "trace.json"]
        if not self.steps or self.timeline is None:
            return []
        degrees = f"pp {self.config.pp}" + f", dp {self.config.dp}" * (self.config.dp > 1)
        loss_curve({degrees: self.losses}, floor).save(made[0])
        predicted = self.predicted_as_timed() or self.predicted()
        overlay(predicted, self.timeline, self._title()).save(made[1])
        write_trace(self.timeline, made[2], predicted)
        return made

    def _title(self) -> str:
        name = f"{self.config.schedule}, {len(stage_to_rank(self.schedule))} stages, the last step"
        if self.config.dp > 1:
            name += f", data rank 0 of {self.config.dp}"
        return f"{name}; {EMULATED}" if self.config.costs else name


def duration_s(pipeline: list[StepResult]) -> float:
    """Of a step, from the first start to the last end of the ranks of a pipeline."""
    return max(r.end_s for r in pipeline) - min(r.start_s for r in pipeline)


def _share(timeline: Timeline, given: str) -> str:
    return f"{float(timeline.idle_share):.1%} predicted for {given}"


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Makes the folder of a run, and keeps other runs out of it until this one or its process ends.

    ValueError where another run is in it, and where it cannot be written.
    """
    with ExitStack() as until_the_end:
        try:
            (folder / CHECKPOINTS).mkdir(parents=True, exist_ok=True)
            lock = until_the_end.enter_context((folder / LOCK).open("a+", encoding="utf-8"))
            _take(lock, folder)
            (folder / METRICS).open("a").close()
            for place in (folder, folder / CHECKPOINTS):
                probe = place / ".writable"
                probe.touch()
                probe.unlink()
        except OSError as error:
            raise ValueError(
                f"{folder} cannot be written ({error.strerror}: {error.filename}); "
                "give a folder of yours"
            ) from None
        yield


def _take(lock: TextIO, folder: Path) -> None:
    """Locks an open file for as long as it is open; ValueError where another process has it."""
    try:
        _lock(lock.fileno())
    except BlockingIOError:
        lock.seek(0)
        raise ValueError(
            f"{folder} is taken by another run, process {lock.read().strip()}; "
            "wait for its end, or give another folder"
        ) from None
    lock.truncate(0)
    print(os.getpid(), file=lock, flush=True)


def _lock(handle: int) -> None:
    if sys.platform == "win32":
        return  # has no such lock
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        return  # nor have some file systems


def _cut_down(file: Path, losses: Sequence[float]) -> None:
    """Leaves the steps with these losses, the first ones, in a metrics file, each once.

    A killed run may have told of later ones too, or not of all that it had saved: what is missing
    stands there with its loss alone.
    """
    lines = {step: json.dumps({"step": step, "loss": x}) for step, x in enumerate(losses, 1)}
    there = file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""
    for line in there.splitlines():
        with suppress(ValueError, KeyError, TypeError):  # half a line, or none of ours
            step = json.loads(line)["step"]
            if step in lines:
                lines[step] = line
    new = file.with_suffix(".new")
    new.write_text("".join(f"{line}\n" for line in lines.values()), encoding="utf-8")
    os.replace(new, file)
