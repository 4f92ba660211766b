"""What a training run of a pipeline leaves to be looked at, and the names of what can be wrong."""

from collections.abc import Iterable
from typing import NamedTuple

from mpedu.schedule import Action, Schedule

CAUSES = (
    "none",  # nothing is wrong
    "loss_not_divided",  # the mean losses of the micro-batches are added up, undivided
    "divided_twice",  # weighted by their shares of the batch, then divided by their number too
    "equal_weights",  # every micro-batch counts 1/M, though their sizes differ
    "only_last_microbatch",  # each backward overwrites the gradient instead of adding to it
    "order_differs",  # one stage runs its backwards in another order than its neighbours
    "gradients_not_cleared",  # every step adds to the gradient of the step before
)


class RunReport(NamedTuple):
    """Some steps of training by a pipeline, beside the same steps by one process, the serial run.

    schedule: what each stage ran, in order. Messages on a link arrive in the order they were sent.
    sizes: samples of each micro-batch, by number.
    gradient_ratios: for each micro-batch, by number, what its backwards gave to the gradient of
        the first step, over the gradient of that micro-batch's own mean loss in the serial run.
        So a ratio is the weight with which the micro-batch counted. (Where the two gradients
        differ in direction too: the part along the serial one, over the length of that one.)
    losses, serial_losses: mean loss over all samples at each step, before its update.

    All of it is measured with floats: equal things differ by up to about 1e-12.
    """

    schedule: Schedule
    sizes: tuple[int, ...]
    gradient_ratios: tuple[float, ...]
    losses: tuple[float, ...]
    serial_losses: tuple[float, ...]

    @property
    def n_stages(self) -> int:
        """Number of stages, one per rank."""
        return len(self.schedule)

    @property
    def n_microbatches(self) -> int:
        """Number of micro-batches."""
        return len(self.sizes)

    def __str__(self) -> str:
        steps, pieces = range(1, len(self.losses) + 1), range(self.n_microbatches)
        lines = [
            _row("step", steps),
            _row("loss", map(_digits, self.losses)),
            _row("serial loss", map(_digits, self.serial_losses)),
            "",
            _row("micro-batch", pieces),
            _row("samples", self.sizes),
            _row("gradient ratio", map(_digits, self.gradient_ratios)),
            "",
        ]
        for stage, actions in enumerate(self.schedule):
            lines.append(f"stage {stage}: {_order(actions)}")
        return "\n".join(lines)


def _digits(value: float) -> str:
    return f"{value:.4f}"


def _row(name: str, values: Iterable[object]) -> str:
    return name.ljust(14) + "".join(f"{value!s:>8}" for value in values)


SUM_CAUSES = (
    "none",  # nothing is wrong: a ring that sends parts
    "only_rank_0",  # rank 0 alone has the sum, the others keep what they had
    "divided",  # a mean instead of a sum
    "tail_lost",  # the last n mod p elements are not summed
    "whole_arrays",  # a ring that passes whole arrays instead of parts
    "through_rank_0",  # everything goes through rank 0
    "in_turn",  # a ring whose ranks send one after the other
)


class SumRun(NamedTuple):
    """One all-reduce: every rank gives an array of n elements of 8 bytes, and should get the sum.

    given, got: by rank, the elements.
    sent_bytes: by rank, what the meter counted. time_s: from the first start to the last end.
    latency_s, bytes_per_s: of every link of the model clock it ran on.
    """

    given: list[list[int]]
    got: list[list[float]]
    sent_bytes: tuple[int, ...]
    time_s: float
    latency_s: float
    bytes_per_s: float

    def __str__(self) -> str:
        lines = [
            f"{len(self.given)} ranks, {len(self.given[0])} elements of 8 bytes; latency "
            f"{self.latency_s:g} s, {self.bytes_per_s:g} bytes/s",
            "",
            *(f"rank {rank} gives {_elements(x)}" for rank, x in enumerate(self.given)),
            "",
            *(f"rank {rank} gets  {_elements(x)}" for rank, x in enumerate(self.got)),
            "",
            *(
                f"rank {rank} sends {n_bytes:5} bytes"
                for rank, n_bytes in enumerate(self.sent_bytes)
            ),
            "",
            f"time {self.time_s:g} s",
        ]
        return "\n".join(lines)


def _elements(values: Iterable[float]) -> str:
    return " ".join(f"{value:6.4g}" for value in values)


ENGINE_CAUSES = (
    "none",  # nothing is wrong
    "not_divided",  # the mean losses of the micro-batches are added up, undivided
    "overwritten",  # each backward clears the gradient of those before it
    "reduced_each_time",  # each backward sums the gradient over the replicas, not just the last
    "own_gradient",  # stages before the last differentiate the sum of y, not what they received
    "one_buffer",  # a backward uses the kept values of the latest forward
    "never_freed",  # what a forward kept stays until the end
    "other_order",  # ranks run another list than theirs
)


class EngineRun(NamedTuple):
    """One step of a pipeline that runs as several replicas, beside the same step by one process.

    schedule: the list of each rank. record: what each rank did, in order.
    sizes: samples of each micro-batch. n_replicas: pipelines with data of their own, whose
    gradients are summed.
    ratios: by stage, then by micro-batch: what of it is in the gradient, over the gradient of its
        own mean loss, so the weight with which it counted.
    across: by stage, the part of the gradient that is along none of these, over its whole length.
    held: by rank, the most micro-batches for which it kept something at a time.
    """

    schedule: Schedule
    record: Schedule
    sizes: tuple[int, ...]
    n_replicas: int
    ratios: list[list[float]]
    across: tuple[float, ...]
    held: tuple[int, ...]

    def __str__(self) -> str:
        total = sum(self.sizes)
        lines = [f"{len(self.schedule)} ranks, {self.n_replicas} replicas", ""]
        for rank, (actions, done) in enumerate(zip(self.schedule, self.record, strict=True)):
            lines += [f"rank {rank} list:   {_order(actions)}", f"       record: {_order(done)}"]
        lines += ["", _row("micro-batch", range(len(self.sizes))), _row("samples", self.sizes)]
        lines.append(_row("share", (_digits(size / total) for size in self.sizes)))
        for stage, ratios in enumerate(self.ratios):
            lines.append(_row(f"ratio, stage {stage}", map(_digits, ratios)))
        lines += ["", _row("stage, rank", range(len(self.schedule)))]
        lines += [_row("across", map(_digits, self.across)), _row("kept at most", self.held)]
        return "\n".join(lines)


def _order(actions: Iterable[Action]) -> str:
    return " ".join(f"{action.kind}{action.microbatch}" for action in actions)
