"""Unit 07's instructions of one step: which are due, in which order, and what a list has wrong."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from autograder.checks.values import shown, whole_problem
from autograder.diagnosis import Case, Diagnosis

Instruction = tuple[str, int | None]
FORWARD = ("load_input", "recv_activations", "forward", "send_activations")
BACKWARD = ("load_target", "recv_gradient", "backward", "send_gradient")
ENDS = ("zero_grad", "step")
REDUCING = "backward_all_reduce"
NAMES = (*FORWARD, *BACKWARD, REDUCING, *ENDS)
MOST_OF_STEPS = 10_000  # parts an answer may have

Differs = Callable[[Case, Any], Diagnosis | None]


class _Fault(NamedTuple):
    """What is wrong with a list: in words of one case, and of none."""

    id: str
    text: str
    general: str


def due(stage: int, n_stages: int, n_microbatches: int) -> list[Instruction]:
    """The instructions of one stage, in an order as good as any."""
    pieces, is_last = range(n_microbatches), stage == n_stages - 1
    steps: list[Instruction] = [("zero_grad", None)]
    for m in pieces:
        steps += [("recv_activations" if stage else "load_input", m), ("forward", m)]
        steps += [] if is_last else [("send_activations", m)]
    for m in reversed(pieces):
        steps += [("load_target" if is_last else "recv_gradient", m)]
        steps += [(REDUCING if m == 0 else "backward", m)]
        steps += [("send_gradient", m)] if stage else []
    return [*steps, ("step", None)]


def _form(got: Any) -> _Fault | None:
    if not isinstance(got, list | tuple):
        general = "no list came back; the instructions of one stage are asked."
        what = "None came back" if got is None else f"{shown(got)} came back"
        return _Fault("form", f"{what}; a list of instructions is asked.", general)
    general = "some entry is no instruction: give (name, micro-batch)."
    for place, entry in enumerate(got):
        if not isinstance(entry, list | tuple) or len(entry) != 2 or type(entry[0]) is not str:
            why = f"entry {place} is no pair (name, micro-batch)."
            return _Fault("form", why, general)
        name, m = entry
        if name not in NAMES:
            return _Fault("form", f"entry {place} is called {name[:30]!r}, which is none.", general)
        if name in ENDS:
            continue  # they have a group of their own
        if m is None:
            why = f"entry {place}, {name}, holds None as micro-batch; its number is asked."
            return _Fault("form", why, general)
        if whole_problem(m):
            return _Fault("form", f"entry {place}: the micro-batch {whole_problem(m)}", general)
    return None


def _plain(steps: Iterable[Any]) -> list[Instruction]:
    """With both kinds of backward called alike."""
    return [("backward" if name == REDUCING else name, m) for name, m in steps]


def _wrong_work(case: Case, got: Any, names: tuple[str, ...]) -> _Fault | None:
    """Instructions of these names that are missing, or too many."""
    stage, n_stages, _ = case.args
    wanted = Counter(one for one in _plain(due(*case.args)) if one[0] in names)
    found = Counter(one for one in _plain(got) if one[0] in names)
    for one in wanted:
        if not found[one]:
            general = "an instruction is missing that this stage needs."
            return _Fault("missing_step", f"{_told(one)} is missing.", general)
    for one in found:
        if not wanted[one]:
            who = {
                "load_input": "only the first stage loads inputs",
                "recv_activations": "the first stage has no one before it",
                "send_activations": "the last stage has no one after it",
                "load_target": "only the last stage has targets",
                "recv_gradient": "the last stage has no one after it",
                "send_gradient": "the first stage has no one before it",
            }.get(one[0], "")
            of_stage = f"stage {stage} of {n_stages}"
            if who and 0 <= (one[1] or 0) < case.args[2]:
                return _Fault("wrong_end", f"{_told(one)} on {of_stage}: {who}.", f"{who}.")
            general = "an instruction is there that this stage has no use for."
            return _Fault("extra_step", f"{_told(one)} has no place on {of_stage}.", general)
        if found[one] > 1:
            general = "an instruction is there more than once."
            text = f"{_told(one)} is there {found[one]} times."
            if one[0] == "backward":
                text = f"micro-batch {one[1]} has {found[one]} backwards; {REDUCING} is one, too."
            return _Fault("step_twice", text, general)
    return None


def _told(one: Instruction) -> str:
    return f"({one[0]!r}, {one[1]})"


def _wrong_chain(got: Any, names: tuple[str, ...]) -> _Fault | None:
    """A micro-batch that is sent before it is made, or made of what is not there yet."""
    places = {one: place for place, one in enumerate(_plain(got))}
    before, work, after = names[:2], names[2], names[3]
    for (name, m), place in places.items():
        if name in before and place > places.get((work, m), place):
            text = f"{_told((name, m))} comes after {_told((work, m))}, which needs it."
            general = "some work comes before what it needs."
            return _Fault("too_late", text, general)
        if name == after and place < places.get((work, m), place):
            text = f"{_told((name, m))} comes before {_told((work, m))}, whose result it sends."
            general = "something is sent before it is made."
            return _Fault("sent_too_early", text, general)
    return None


def _forwards(case: Case, got: Any) -> _Fault | None:
    bad = _wrong_work(case, got, FORWARD) or _wrong_chain(got, FORWARD)
    if bad:
        return bad
    order = [m or 0 for name, m in got if name == "forward"]
    if order != sorted(order):
        general = "forwards come in another order than that of the micro-batches."
        return _Fault("forward_order", f"the forwards come in the order {order[:9]}.", general)
    return None


def _backwards(case: Case, got: Any) -> _Fault | None:
    bad = _wrong_work(case, got, BACKWARD) or _wrong_chain(got, BACKWARD)
    if bad:
        return bad
    names = [name for name, _ in _plain(got)]
    if "forward" in names[names.index("backward") :]:
        general = "a forward comes after a backward; here all forwards come first."
        return _Fault("forwards_not_first", f"{general.capitalize()}", general)
    order = [m or 0 for name, m in _plain(got) if name == "backward"]
    if order != sorted(order, reverse=True):
        text = (
            f"the backwards come in the order {order[:9]}; the lecture's run in reverse, so that "
            "what was kept last is freed first."
        )
        general = "the backwards do not come in reverse."
        return _Fault("not_reversed", text, general)
    return None


def _reduces(case: Case, got: Any) -> _Fault | None:
    bad = _wrong_work(case, got, ("backward",))
    if bad:
        return bad
    backwards = [one for one in got if one[0] in ("backward", REDUCING)]
    reducing = [place for place, one in enumerate(backwards) if one[0] == REDUCING]
    n, last = len(backwards), len(backwards) - 1
    if reducing == [last]:
        return None
    if not reducing:
        text = "no backward is a backward_all_reduce: the replicas never learn of each other."
        return _Fault("never_reduced", text, "no backward sums gradients over the replicas.")
    if len(reducing) == n and n > 1:
        text = (
            "every backward is a backward_all_reduce. The gradient grows from one to the next, so "
            "earlier micro-batches are summed over the replicas again and again."
        )
        general = "every backward sums over the replicas: earlier micro-batches are summed again."
        return _Fault("reduced_each_time", text, general)
    text = (
        f"backward number {reducing[0] + 1} of {n} is the one that reduces; it must be the last "
        "that runs, when all micro-batches are in the gradient."
    )
    general = "it is not the last executed backward that sums over the replicas."
    return _Fault("reduced_too_early", text, general)


def _ends(case: Case, got: Any) -> _Fault | None:
    names = [name for name, _ in got]
    for name, place, word in (("zero_grad", 0, "first"), ("step", -1, "last")):
        n_times = names.count(name)
        if n_times != 1:
            text = f"{name} is there {n_times} times; it comes once, {word} of all."
            return _Fault(f"{name}_times", text, f"{name} does not come just once.")
        if names[place] != name:
            general = f"{name} does not come {word} of all."
            return _Fault(f"{name}_place", f"{name} must come {word} of all.", general)
        m = got[place][1]
        if m is not None:
            text = f"{name} holds {shown(m)} as micro-batch; it belongs to none: give None."
            return _Fault("of_no_microbatch", text, f"the micro-batch of {name} is None.")
    return None


def _differs(find: Callable[[Case, Any], _Fault | None]) -> Differs:
    def differs(case: Case, got: Any) -> Diagnosis | None:
        fault = _form(got) or find(case, got)
        if fault is None:
            return None
        called = f"minibatch_steps({', '.join(map(str, case.args))})"
        return Diagnosis(fault.id, f"{called}: {fault.text}", fault.general)

    return differs


GROUPS: dict[str, Differs] = {
    "the forwards": _differs(_forwards),
    "the backwards, in reverse": _differs(_backwards),
    "the sum over replicas, with the last executed backward": _differs(_reduces),
    "the first and the last instruction": _differs(_ends),
}
