"""`train_step`: a schedule of the reader's own, run on real ranks from a notebook cell.

It trains a small GPT on real text for a few steps, and the same model in one process beside it, or
runs on devices that a clock emulates, to show the order of the work.
"""

import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import NamedTuple

from torch import Tensor

from mpedu.alone import Alone
from mpedu.comm import Comm
from mpedu.families import naive
from mpedu.faults import require_at_least
from mpedu.launch import run_ranks
from mpedu.ledger import EMULATED, duration_s
from mpedu.mesh import Mesh
from mpedu.model import GPTConfig, count_targets, token_loss
from mpedu.pipeline import StepResult
from mpedu.plot import Picture, draw_schedule, loss_curve, overlay
from mpedu.plot.layout import counted
from mpedu.schedule import Schedule, actions_of, stage_to_rank
from mpedu.simulate import Timeline, simulate
from mpedu.train_config import TrainConfig
from mpedu.training import Trainer
from mpedu.validate import rank_word, validate_schedule

N_SAMPLES = 16
Gradients = dict[int, dict[str, Tensor]]  # by stage, by name


class TrainedSteps(NamedTuple):
    """What a few training steps of a schedule gave.

    losses, serial_losses: nats per byte of every step, on the ranks and in one process.
    timeline: of the last step. differences: by stage, the largest relative difference between its
    gradients and those of one process in the first step.
    tokens_per_s, serial_tokens_per_s: of the median step. devices: what the ranks ran on.
    peaks: by rank, the most activations held at once, in (stage, micro-batch) units.
    """

    schedule: Schedule
    losses: list[float]
    serial_losses: list[float]
    timeline: Timeline
    differences: dict[int, float]
    tokens_per_s: float
    serial_tokens_per_s: float
    devices: str
    is_emulated: bool
    peaks: list[int]

    def __str__(self) -> str:
        n_ranks = len(self.schedule)
        lines = [f"real ranks: {n_ranks} processes, {self.devices}"]
        predicted, measured = simulate(self.schedule).idle_share, self.timeline.idle_share
        if self.is_emulated:
            shares = f"{float(measured):.1%} measured, {float(predicted):.1%} predicted"
            held = f"held at most, by rank: {', '.join(map(str, self.peaks))}"
            return "\n".join([*lines, f"idle share: {shares}", held, EMULATED])
        lines.append("gradients beside those of one process, largest relative difference:")
        lines += [f"  stage {stage}: {value:.1e}" for stage, value in self.differences.items()]
        last = f"{self.losses[-1]:.4f} nats per byte, in one process {self.serial_losses[-1]:.4f}"
        lines.append(f"loss in step {len(self.losses)}: {last}")
        speeds = f"{self.tokens_per_s:,.0f} tokens/s; one process: {self.serial_tokens_per_s:,.0f}"
        return "\n".join([*lines, f"speed: {speeds}"])

    def picture(self) -> Picture:
        """The timeline below the predicted one where devices are emulated, else the losses."""
        n_ranks = len(self.schedule)
        if self.is_emulated:
            title = f"Your list on {n_ranks} processes; {EMULATED}"
            return overlay(simulate(self.schedule), self.timeline, title)
        names = {f"{n_ranks} processes": self.losses, "one process": self.serial_losses}
        return loss_curve(names, title="Loss on real text")


class CannotRun(ValueError):
    """A schedule that no ranks can run, or another one than was asked for, and why."""

    def __init__(self, schedule: Schedule, why: str) -> None:
        super().__init__(why)
        self.schedule = schedule

    def picture(self) -> Picture:
        """The schedule, its first fault in red; the reason alone where there is none."""
        if not isinstance(self.schedule, list):
            return Picture(b"", str(self), str(self))
        return draw_schedule(self.schedule)


def train_step(
    schedule: Schedule | Callable[..., Schedule],
    *sizes: int,
    n_steps: int = 1,
    device_clock_ms: float | None = None,
    skip_division: bool = False,
    timeout_s: float = 120.0,
) -> TrainedSteps:
    """What `n_steps` training steps give when real ranks run a schedule, one process per list.

    schedule: a list, or a function that `sizes` is given to, as in train_step(gpipe, 4, 8).
    device_clock_ms: emulates devices on which a forward takes so long, and a backward twice that.
    skip_division: the gradients are those of a loss that is not divided by the number of
    micro-batches; the losses that are told stay means.
    CannotRun for a schedule that is not legal, or of other sizes than the two that were given as
    stages and micro-batches; RankError where a rank failed.
    """
    require_at_least(1, n_steps=n_steps)
    made = schedule(*sizes) if callable(schedule) else schedule
    problem = _problem(schedule, sizes, made)
    if problem:
        raise CannotRun(made, problem)
    config = _config(made, device_clock_ms)
    scale = config.n_microbatches if skip_division else 1
    ran = run_ranks(_rank, len(made), config, made, n_steps, scale, timeout_s=timeout_s).results
    results = [result for result, _, _ in ran]
    serial_losses, serial_s, expected = [], 1.0, {}
    if device_clock_ms is None:
        serial = run_ranks(_serial, 1, config, n_steps, timeout_s=timeout_s, use_gpus=False)
        serial_losses, serial_s, expected = serial.results[0]
    last = [steps[-1] for steps in results]
    timeline = Timeline([span for step in last for span in step.spans], len(made))
    times_s = [duration_s([steps[i] for steps in results]) for i in range(n_steps)]
    n_tokens = last[0].n_tokens
    return TrainedSteps(
        made,
        [step.loss / scale for step in results[0]],
        serial_losses,
        timeline,
        _differences([gradients for _, gradients, _ in ran], expected) if expected else {},
        n_tokens / median(times_s[1:] or times_s),
        n_tokens / serial_s,
        ran[0][2],
        device_clock_ms is not None,
        [max(step.peak_in_flight for step in steps) for steps in results],
    )


def _problem(
    schedule: Schedule | Callable[..., Schedule], sizes: tuple[int, ...], made: Schedule
) -> str:
    """Why a schedule is not run, in one sentence; "" where nothing is in the way."""
    name = getattr(schedule, "__name__", "it")
    called = f"{name}({', '.join(map(str, sizes))})"
    if made is None and callable(schedule):
        return f"{called}: None came back: a return seems to be missing"
    faults = validate_schedule(made)
    if faults:
        return f"this schedule cannot run: {faults[0].text}"
    n_microbatches = _n_microbatches(made)
    if not callable(schedule) or len(sizes) != 2 or sizes == (len(made), n_microbatches):
        return ""
    lists = counted(len(made), rank_word((rank, a.stage) for rank, a in actions_of(made)))
    return (
        f"{called} came back with lists for {lists} and "
        f"{counted(n_microbatches, 'micro-batch', 'es')}; {sizes[0]} and {sizes[1]} were asked"
    )


def _n_microbatches(schedule: Schedule) -> int:
    return 1 + max(action.microbatch for _, action in actions_of(schedule))


def _config(schedule: Schedule, device_clock_ms: float | None) -> TrainConfig:
    n_stages = len(stage_to_rank(schedule))
    n_microbatches = _n_microbatches(schedule)
    emulated = device_clock_ms is not None
    # Emulated devices need a model whose real work fits into the emulated time.
    width, n_layers = (32, n_stages) if emulated else (128, max(4, n_stages))
    model = GPTConfig(n_layers=n_layers, d_model=width, n_heads=4, n_positions=64)
    return TrainConfig(
        pp=len(schedule),
        n_microbatches=n_microbatches,
        n_samples=n_microbatches if emulated else max(N_SAMPLES, n_microbatches),
        device_clock_ms=device_clock_ms,
        model=model,
    )


def _rank(
    comm: Comm, config: TrainConfig, schedule: Schedule, n_steps: int, scale: int
) -> tuple[list[StepResult], Gradients, str]:
    """One rank: every step's result, the first step's gradients, and its device in words."""
    trainer = Trainer(Mesh(comm, config.pp), config, schedule, partial(_scaled_loss, scale=scale))
    corpus = config.load_corpus() if 0 in trainer.stages else None
    results: list[StepResult] = []
    gradients: Gradients = {}
    for step in range(1, n_steps + 1):
        results.append(trainer.run(corpus, step))
        gradients = gradients or _gradients(trainer)
        if step < n_steps:
            trainer.update(step)
    return results, gradients, "on the CPU" if comm.device == "cpu" else "one GPU each"


def _scaled_loss(logits: Tensor, targets: Tensor, scale: int) -> Tensor:
    return token_loss(logits, targets) * scale


def _gradients(trainer: Trainer) -> Gradients:
    return {
        stage: {
            name: parameter.grad.detach().cpu().clone()
            for name, parameter in module.named_parameters()
            if parameter.grad is not None
        }
        for stage, module in trainer.stages.items()
    }


def _differences(by_rank: list[Gradients], serial: Gradients) -> dict[int, float]:
    """By stage, the largest relative difference of a parameter's gradient from the serial one."""
    expected = serial[0]
    found = {stage: named for gradients in by_rank for stage, named in gradients.items()}
    return {
        stage: max(_difference(gradient, expected[name]) for name, gradient in named.items())
        for stage, named in sorted(found.items())
    }


def _difference(found: Tensor, expected: Tensor) -> float:
    return float((found - expected).abs().max() / expected.abs().max())


def _serial(comm: Comm, config: TrainConfig, n_steps: int) -> tuple[list[float], float, Gradients]:
    """The same steps in one process with the whole batch at once and no engine.

    Its losses, the seconds of its median step, and the first step's gradients.
    """
    trainer = Trainer(Mesh(Alone()), config, naive(1, 1))
    (model,) = trainer.stages.values()
    corpus = config.load_corpus()
    losses, times_s = [], []
    gradients: Gradients = {}
    for step in range(1, n_steps + 1):
        inputs, targets = corpus.batch(step, config.n_samples, config.n_tokens, config.seed)
        start_s = time.perf_counter()
        loss = token_loss(model(inputs), targets) / count_targets(targets)
        loss.backward()  # type: ignore[no-untyped-call]
        times_s.append(time.perf_counter() - start_s)
        losses.append(loss.item())
        gradients = gradients or _gradients(trainer)
        if step < n_steps:
            trainer.update(step)
    return losses, median(times_s[1:] or times_s), gradients
