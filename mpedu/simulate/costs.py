"""What each action of a schedule costs on the model clock."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from mpedu.schedule import Action

Seconds = float | Fraction
PerStage = Seconds | Sequence[Seconds]


@dataclass(frozen=True)
class Costs:
    """Seconds of one micro-batch on one stage; each a number, or a sequence of one per stage.

    `input_s` and `weight_s` (the two halves of a split backward) default to half of `backward_s`.
    `latency_s` is added to every message between two ranks; it blocks neither of them. `message_s`
    is the time that a stage's message occupies its rank's outgoing link: bytes over bandwidth.
    `blocking`: whether the rank waits that long before it works on, as in a blocking send;
    otherwise the message leaves beside the work, behind those before it.
    Fractions give exact times.
    """

    forward_s: PerStage = 1.0
    backward_s: PerStage = 2.0
    input_s: PerStage | None = None
    weight_s: PerStage | None = None
    latency_s: Seconds = 0
    message_s: PerStage = 0
    blocking: bool = False

    def __post_init__(self) -> None:
        for name in ("forward_s", "backward_s", "input_s", "weight_s"):
            cost = getattr(self, name)
            for value in cost if isinstance(cost, Sequence) else [cost]:
                if value is not None and not (0 < value < math.inf):
                    raise ValueError(f"{name}={cost!r} is not a time; give seconds above 0")
        for name in ("latency_s", "message_s"):
            cost = getattr(self, name)
            for value in cost if isinstance(cost, Sequence) else [cost]:
                if not 0 <= value < math.inf:
                    raise ValueError(f"{name}={cost!r} is not a time; give seconds, 0 or more")

    def of(self, action: Action) -> Seconds:
        """Seconds that `action` takes; ValueError where a sequence does not reach its stage."""
        kind, stage, _ = action
        if kind == "F":
            return _at(self.forward_s, stage, "forward_s")
        if kind == "I" and self.input_s is not None:
            return _at(self.input_s, stage, "input_s")
        if kind == "W" and self.weight_s is not None:
            return _at(self.weight_s, stage, "weight_s")
        whole = _at(self.backward_s, stage, "backward_s")
        return whole if kind == "B" else whole / 2

    def table(self, kinds: Iterable[str], n_stages: int) -> dict[str, list[Seconds]]:
        """Seconds of each kind by stage; ValueError of `of`."""
        return {
            kind: [self.of(Action(kind, stage, 0)) for stage in range(n_stages)] for kind in kinds
        }

    def sent(self, end_s: Seconds, free_s: Seconds, stage: int) -> tuple[Seconds, Seconds, Seconds]:
        """A message of `stage` that is ready at `end_s`, on a link that is free at `free_s`.

        When its rank works on, when its link is free again, and when it arrives.
        """
        left_s = max(end_s, free_s) + _at(self.message_s, stage, "message_s")
        return left_s if self.blocking else end_s, left_s, left_s + self.latency_s


def _at(cost: PerStage, stage: int, name: str) -> Seconds:
    if not isinstance(cost, Sequence):
        return cost
    if stage >= len(cost):
        raise ValueError(
            f"{name} has {len(cost)} entries and stage {stage} is asked; give one each"
        )
    return cost[stage]
