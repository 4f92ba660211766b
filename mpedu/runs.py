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
