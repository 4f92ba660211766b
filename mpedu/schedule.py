"""Schedules as lists: what each rank runs, in order, and the proof that it can run.

`Schedule` = one list per pipeline rank of `Action(kind, stage, microbatch)`. `stage` is the global
stage index, so a rank's list carries its placement. A list says order, never time.
"""

import re
from collections.abc import Container, Iterable, Iterator
from typing import NamedTuple

from mpedu.faults import require_at_least

KINDS = ("F", "B", "I", "W")


class Action(NamedTuple):
    """One piece of work: "F" forward, "B" backward, "I" / "W" backward for inputs / for weights."""

    kind: str
    stage: int
    microbatch: int

    def __str__(self) -> str:
        return f"{self.stage}{self.kind}{self.microbatch}"

    @classmethod
    def parse(cls, text: str) -> "Action":
        """The action printed as `text`, "2F0" for Action("F", 2, 0); ValueError otherwise."""
        match = re.fullmatch(rf"(\d+)([{''.join(KINDS)}])(\d+)", text)
        if match is None:
            raise ValueError(f"{text!r} is no action; write stage, kind, micro-batch, like '2F0'")
        return cls(match[2], int(match[1]), int(match[3]))


Schedule = list[list[Action]]


def actions_of(schedule: Schedule) -> Iterator[tuple[int, Action]]:
    """Every (rank, action), rank after rank in list order."""
    return ((rank, action) for rank, actions in enumerate(schedule) for action in actions)


def stage_to_rank(schedule: Schedule) -> dict[int, int]:
    """The rank that holds each stage; of a stage in two places the first rank."""
    owner: dict[int, int] = {}
    for rank, action in actions_of(schedule):
        owner.setdefault(action.stage, rank)
    return owner


def needs(action: Action, present: Container[Action], n_stages: int) -> list[Action]:
    """The actions whose results `action` waits for.

    A forward needs the forward of the stage before. A backward (B or I) needs its own forward and
    the gradient from the stage after, which comes from that stage's I where `present` holds one
    and from its B otherwise. W needs its own I.
    """
    kind, stage, microbatch = action
    if kind == "F":
        return [Action("F", stage - 1, microbatch)] if stage > 0 else []
    if kind == "W":
        return [Action("I", stage, microbatch)]
    own_forward = Action("F", stage, microbatch)
    if stage == n_stages - 1:
        return [own_forward]
    split = Action("I", stage + 1, microbatch)
    return [own_forward, split if split in present else Action("B", stage + 1, microbatch)]


Needs = dict[Action, list[Action]]


def all_needs(schedule: Schedule, n_stages: int) -> Needs:
    """What every action of the schedule waits for, in one table."""
    present = {action for _, action in actions_of(schedule)}
    return {action: needs(action, present, n_stages) for action in present}


def run_order(
    schedule: Schedule, waits: Needs
) -> tuple[list[tuple[int, Action]], dict[int, Action]]:
    """An order in which the ranks can run their lists, and what each stuck rank waits to run.

    `waits` is `all_needs` of the schedule. Nobody is stuck exactly when every action's needs come
    in time: the second value is then empty.
    """
    order: list[tuple[int, Action]] = []
    done: set[Action] = set()
    position = [0] * len(schedule)
    moved = True
    while moved:
        moved = False
        for rank, actions in enumerate(schedule):
            while position[rank] < len(actions):
                action = actions[position[rank]]
                if not done.issuperset(waits[action]):
                    break
                done.add(action)
                order.append((rank, action))
                position[rank] += 1
                moved = True
    heads = zip(schedule, position, strict=True)
    stuck = {rank: acts[at] for rank, (acts, at) in enumerate(heads) if at < len(acts)}
    return order, stuck


def in_flight(actions: Iterable[Action], freed_by: str = "I") -> list[int]:
    """Forwards whose activations are still held after each action of one rank's list.

    One unit is the activations of one (stage, micro-batch). A B frees them; with a split backward
    `freed_by` says whether I or W does.
    """
    if freed_by not in ("I", "W"):
        raise ValueError(f"freed_by={freed_by!r} is unknown; choose 'I' or 'W'")
    change = {"F": 1, "B": -1, freed_by: -1}
    held = 0
    curve = []
    for action in actions:
        held += change.get(action.kind, 0)
        curve.append(held)
    return curve


def peak_in_flight(schedule: Schedule, freed_by: str = "I") -> list[int]:
    """The most activations each rank holds at once, in (stage, micro-batch) units."""
    return [max(in_flight(actions, freed_by), default=0) for actions in schedule]


def missing_work(schedule: Schedule, n_stages: int, n_microbatches: int) -> list[Action]:
    """Work a complete schedule would hold and this one does not, by stage and micro-batch.

    Complete: every (stage, micro-batch) has one F and either one B or one I and one W.
    """
    require_at_least(1, n_stages=n_stages, n_microbatches=n_microbatches)
    present = {action for _, action in actions_of(schedule)}
    missing = []
    for stage in range(n_stages):
        for m in range(n_microbatches):
            halves = [Action("I", stage, m), Action("W", stage, m)]
            backward = halves if any(a in present for a in halves) else [Action("B", stage, m)]
            missing += [a for a in (Action("F", stage, m), *backward) if a not in present]
    return missing
