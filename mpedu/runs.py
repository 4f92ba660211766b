"""What a training run of a pipeline leaves to be looked at, and the names of what can be wrong."""

from collections.abc import Iterable
from typing import NamedTuple

from mpedu.schedule import Schedule

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
            order = " ".join(f"{action.kind}{action.microbatch}" for action in actions)
            lines.append(f"stage {stage}: {order}")
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
