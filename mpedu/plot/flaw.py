"""Which box of a faulty schedule is drawn in red, and which arrows lead to it."""

import re
from typing import NamedTuple

from mpedu.faults import Fault
from mpedu.plot.layout import Box, Layout, actions_in, entries_of, n_blanks
from mpedu.schedule import Action, Needs, Schedule, all_needs, stage_to_rank
from mpedu.validate import channels, waiting_cycle


class Flaw(NamedTuple):
    """What is drawn in red: a sentence, a row, a box, and arrows from needed to needing boxes.

    in_labels: the fault is seen in the boxes' labels only, not in where they stand.
    """

    text: str
    row: int | None
    box: Box | None
    arrows: list[tuple[Box, Box]]
    in_labels: bool


def find_flaw(schedule: object, layout: Layout, fault: Fault | None, n_stages: int) -> Flaw:
    """What to draw in red for a fault; without one, what to say of the blanks."""
    if fault is None:
        n_entries = sum(map(len, entries_of(schedule)))
        text = f"{n_blanks(schedule)} of {n_entries} entries are still to fill in"
        return Flaw(text, None, None, [], in_labels=False)
    box_of = {box.action: box for box in reversed(layout.boxes) if box.action}
    box = _named_box(fault, layout.boxes)
    pairs = _arrows(fault, actions_in(entries_of(schedule)), n_stages, box)
    arrows = [(box_of[need], box_of[action]) for need, action in pairs]
    box = arrows[0][1] if arrows else box
    in_labels = fault.kind in ("out_of_range", "split_stage")
    return Flaw(fault.text, box.row if box else fault.rank, box, arrows, in_labels)


def _named_box(fault: Fault, boxes: list[Box]) -> Box | None:
    """The box a fault speaks of: of its rank, stage and micro-batch, and named in its sentence."""
    state = {"not_an_action": "no action", "missing": "missing"}.get(fault.kind)
    found = [
        box
        for box in boxes
        if fault.rank in (None, box.row)
        and state in (None, box.state)
        and (fault.stage is None or _place(box) == (fault.stage, fault.microbatch))
    ]
    words = re.findall(r"\w+", fault.text)
    found = [box for box in found if str(box.action) in words] or found
    if not found or fault.kind == "not_a_list":
        return None
    return found[1] if fault.kind == "repeated" and len(found) > 1 else found[0]


def _place(box: Box) -> tuple[int, int] | None:
    return box.action and (box.action.stage, box.action.microbatch)


def _arrows(
    fault: Fault, schedule: Schedule, n_stages: int, box: Box | None
) -> list[tuple[Action, Action]]:
    """The (needed action, action in need) that a fault of order or of waiting is about."""
    if fault.kind not in ("before_input", "before_forward", "channel_order", "cycle"):
        return []
    needs = all_needs(schedule, n_stages)
    if fault.kind == "cycle":
        return [(need, action) for _, action, need in waiting_cycle(schedule, needs)]
    if fault.kind == "channel_order":
        return _crossing(fault, schedule, needs)
    if box is None or box.action is None:
        return []
    listed = schedule[box.row]
    later = listed[listed.index(box.action) :]
    return [(need, box.action) for need in needs[box.action] if need in later]


def _crossing(fault: Fault, schedule: Schedule, needs: Needs) -> list[tuple[Action, Action]]:
    """Where a link's ends part: the work whose message comes, and the work that takes it."""
    owner = stage_to_rank(schedule)
    return [
        (next(need for need in needs[sent] if owner[need.stage] == source), taken)
        for (source, target, _), ends in channels(schedule, needs).items()
        for sent, taken in zip(*ends, strict=True)
        if sent != taken and (target, taken.stage, taken.microbatch) == fault[1:4]
    ][:1]
