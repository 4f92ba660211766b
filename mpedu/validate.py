"""Is a schedule legal? Each fault in one sentence, causes before their consequences."""

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from numbers import Integral
from typing import Any

from mpedu.faults import Fault, require_at_least
from mpedu.schedule import (
    KINDS,
    Action,
    Needs,
    Schedule,
    actions_of,
    all_needs,
    missing_work,
    run_order,
    stage_to_rank,
)


def validate_schedule(
    schedule: object, n_stages: int | None = None, n_microbatches: int | None = None
) -> list[Fault]:
    """The faults of a schedule, [] when it is legal; the first is the one to mend first.

    Counts left out are taken as 1 + the largest index found. Checked in turn, and only as far as
    the first kind of fault found, since later ones would be its consequences: the form (a list per
    rank of `Action`); the work (each (stage, micro-batch) has one F and one B, or one I and one W,
    all of a stage on one rank); the order within a rank; the order at both ends of each link
    (messages from one rank to another arrive first-in first-out); deadlock.
    The sentences say "stage 2" for rank 2 where every rank holds the stage of its own number.
    """
    faults = _faults(schedule, n_stages, n_microbatches)
    if not faults or rank_word(_held(schedule)) == "rank":
        return faults
    return [f._replace(text=re.sub(r"\brank\b", "stage", f.text)) for f in faults]


def rank_word(held: Iterable[tuple[int, int]]) -> str:
    """What to call a rank, of all (rank, stage) held: "stage" where all are of equals."""
    return "stage" if all(rank == stage for rank, stage in held) else "rank"


def _held(schedule: object) -> Iterator[tuple[int, int]]:
    lists = schedule if isinstance(schedule, list) else []
    for rank, entries in enumerate(lists):
        for entry in entries if isinstance(entries, list) else []:
            if not action_problem(entry):
                yield rank, entry.stage


def _faults(schedule: object, n_stages: int | None, n_microbatches: int | None) -> list[Fault]:
    faults = _form_faults(schedule)
    if faults:
        return faults
    checked: Schedule = schedule  # type: ignore[assignment]  # _form_faults has just shown it
    faults = _index_faults(checked)
    if faults:
        return faults
    if n_stages is None:
        n_stages = 1 + max(action.stage for _, action in actions_of(checked))
    if n_microbatches is None:
        n_microbatches = 1 + max(action.microbatch for _, action in actions_of(checked))
    require_at_least(1, n_stages=n_stages, n_microbatches=n_microbatches)
    faults = _work_faults(checked, n_stages, n_microbatches)
    if faults:
        return faults
    waits = all_needs(checked, n_stages)
    return (
        _order_faults(checked, waits)
        or _channel_faults(checked, waits)
        or _deadlock(checked, waits)
    )


def _form_faults(schedule: object) -> list[Fault]:
    if not isinstance(schedule, list):
        name = type(schedule).__name__
        text = f"a schedule is a list with one list of Action per rank; this is of type {name}"
        return [Fault("not_a_list", None, None, None, text)]
    if not schedule:
        text = "the schedule is empty; give a list with one list of Action per rank"
        return [Fault("empty", None, None, None, text)]
    faults = []
    for rank, actions in enumerate(schedule):
        if not isinstance(actions, list):
            kind = type(actions).__name__
            text = (
                f"entry {rank} of the schedule is of type {kind}; give one list of Action per rank"
            )
            faults.append(Fault("not_a_list", rank, None, None, text))
        elif not actions:
            faults.append(Fault("empty", rank, None, None, f"rank {rank}: its list holds no work"))
        else:
            faults += [
                Fault("not_an_action", rank, None, None, f"rank {rank}, entry {i}: {problem}")
                for i, entry in enumerate(actions)
                if (problem := action_problem(entry))
            ]
    return faults


def action_problem(entry: Any) -> str:
    """Why an entry of a list is no sound `Action`, in words; empty for a sound one."""
    if type(entry) is not Action:
        kind = type(entry).__name__
        also = ", a subclass of Action" if isinstance(entry, Action) else ""
        return f"this is of type {kind}{also}; give Action(kind, stage, microbatch) itself"
    if entry.kind not in KINDS:
        return f"{entry.kind!r} is no kind of work; choose F or B, or I and W, a B's halves"
    for name, value in (("stage", entry.stage), ("microbatch", entry.microbatch)):
        if not isinstance(value, Integral) or isinstance(value, bool) or value < 0:
            return f"{name}={value!r} is not an index; give a whole number from 0"
    return ""


def _index_faults(schedule: Schedule) -> list[Fault]:
    """An index beyond the number of actions cannot belong to a complete schedule.

    Found first, since everything after counts up to the largest index.
    """
    n_actions = sum(map(len, schedule))
    for rank, action in actions_of(schedule):
        for name, index in (("stage", action.stage), ("microbatch", action.microbatch)):
            if index >= n_actions:
                text = f"rank {rank}: {action} has {name}={index} among {n_actions} actions in all"
                return [_fault("out_of_range", rank, action, f"{text}; indices start at 0")]
    return []


def _work_faults(schedule: Schedule, n_stages: int, n_microbatches: int) -> list[Fault]:
    faults = []
    owner = stage_to_rank(schedule)
    seen: set[Action] = set()
    for rank, action in actions_of(schedule):
        if action.stage >= n_stages or action.microbatch >= n_microbatches:
            text = (
                f"rank {rank}: {action} does not exist; n_stages={n_stages} means stages "
                f"0..{n_stages - 1}, n_microbatches={n_microbatches} means 0..{n_microbatches - 1}"
            )
            faults.append(_fault("out_of_range", rank, action, text))
        elif owner[action.stage] != rank:
            text = (
                f"stage {action.stage} stands on rank {owner[action.stage]} and on rank {rank} "
                f"({action}); all work of a stage belongs to one rank"
            )
            faults.append(_fault("split_stage", rank, action, text))
        elif action in seen or _whole_and_split(action, seen):
            text = f"rank {rank}: {action} is done a second time; once is enough"
            faults.append(_fault("repeated", rank, action, text))
        seen.add(action)
    by_stage: dict[int, list[Action]] = {}
    for action in missing_work(schedule, n_stages, n_microbatches):
        by_stage.setdefault(action.stage, []).append(action)
    for stage, missing in by_stage.items():
        text = f"stage {stage} never runs {_listed(missing)}"
        faults.append(_fault("missing", owner.get(stage), missing[0], text))
    return faults


def _whole_and_split(action: Action, seen: set[Action]) -> bool:
    """A backward both whole (B) and in halves (I, W): some of it would be done twice."""
    other = {"B": "IW", "I": "B", "W": "B"}.get(action.kind, "")
    return any(action._replace(kind=kind) in seen for kind in other)


def _order_faults(schedule: Schedule, waits: Needs) -> list[Fault]:
    """Work that its own rank's list puts before something it needs."""
    faults = []
    for rank, actions in enumerate(schedule):
        position = {action: i for i, action in enumerate(actions)}
        for i, action in enumerate(actions):
            for need in waits[action]:
                if position.get(need, -1) > i:
                    same_stage = need.stage == action.stage
                    kind = "before_forward" if same_stage else "before_input"
                    text = f"rank {rank}: {action} stands before {need}, whose result it needs"
                    faults.append(_fault(kind, rank, action, text))
    return faults


def channels(
    schedule: Schedule, waits: Needs
) -> dict[tuple[int, int, str], tuple[list[Action], list[Action]]]:
    """Both ends of every link (source rank, destination rank, "F" or "B").

    First the receivers' actions in the order of the sender's list, then in that of the receiver's:
    the two are equal where the ends agree.
    """
    owner = stage_to_rank(schedule)
    ends: dict[tuple[int, int, str], tuple[list[Action], list[Action]]] = {}
    senders = {action: i for i, (_, action) in enumerate(actions_of(schedule))}
    sent: dict[tuple[int, int, str], list[tuple[int, Action]]] = {}
    for rank, action in actions_of(schedule):
        for need in waits[action]:
            if owner[need.stage] != rank:
                key = (owner[need.stage], rank, "F" if action.kind == "F" else "B")
                ends.setdefault(key, ([], []))[1].append(action)
                sent.setdefault(key, []).append((senders[need], action))
    for key, (in_send_order, _) in ends.items():
        in_send_order += [action for _, action in sorted(sent[key])]
    return ends


def _channel_faults(schedule: Schedule, waits: Needs) -> list[Fault]:
    faults = []
    for (source, target, direction), (sends, receives) in channels(schedule, waits).items():
        at = next((i for i, sent in enumerate(sends) if sent != receives[i]), None)
        if at is not None:
            sent, taken = _short(sends, at), _short(receives, at)
            what = "activations" if direction == "F" else "gradients"
            text = (
                f"link {source}->{target}: rank {source} sends {what} for {sent} and "
                f"rank {target} takes them as {taken}; both ends need one order"
            )
            faults.append(_fault("channel_order", target, receives[at], text))
    return faults


def _deadlock(schedule: Schedule, waits: Needs) -> list[Fault]:
    cycle = waiting_cycle(schedule, waits)
    if not cycle:
        return []
    owner = stage_to_rank(schedule)
    sentence = "; ".join(
        f"rank {rank} waits at {action} for {need} of rank {owner[need.stage]}"
        for rank, action, need in cycle
    )
    rank, action, _ = cycle[0]
    return [_fault("cycle", rank, action, f"deadlock: {sentence}")]


def waiting_cycle(schedule: Schedule, waits: Needs) -> list[tuple[int, Action, Action]]:
    """The ranks that wait for each other, as (rank, its next action, the work it waits for)."""
    order, stuck = run_order(schedule, waits)
    if not stuck:
        return []
    done = {action for _, action in order}
    owner = stage_to_rank(schedule)
    blocked: dict[int, tuple[int, Action, Action]] = {}
    rank = min(stuck)
    while rank not in blocked:
        action = stuck[rank]
        need = next(n for n in waits[action] if n not in done)
        blocked[rank] = (rank, action, need)
        rank = owner[need.stage]
    path = list(blocked)
    return [blocked[r] for r in path[path.index(rank) :]]


def _fault(kind: str, rank: int | None, action: Action, text: str) -> Fault:
    return Fault(kind, rank, action.stage, action.microbatch, text)


def _listed(actions: list[Action]) -> str:
    """Work of one stage in words: "F0, F3..F7 and B0"."""
    numbers = {kind: [a.microbatch for a in actions if a.kind == kind] for kind in KINDS}
    return " and ".join(", ".join(_runs(kind, ms)) for kind, ms in numbers.items() if ms)


def _runs(kind: str, numbers: list[int]) -> Iterator[str]:
    for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        first, *rest = [number for _, number in run]
        yield f"{kind}{first}..{kind}{rest[-1]}" if rest else f"{kind}{first}"


def _short(actions: list[Action], start: int) -> str:
    """Up to six of the actions from `start` on, micro-batches alone where the stage is one."""
    one_stage = len({action.stage for action in actions}) == 1
    names = [str(a.microbatch) if one_stage else str(a) for a in actions]
    shown = ",".join(names[start : start + 6])
    return ("..," if start else "") + shown + (",.." if len(names) > start + 6 else "")
