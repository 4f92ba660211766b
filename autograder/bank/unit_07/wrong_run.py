"""Wrong answers to unit 07's loop over a list, one mistake an entry."""

from autograder.bank import Answer
from autograder.bank.unit_07.right import FORWARD, IMPORTS, PARTS, RUN, with_part

_Expected = tuple[int, str]
_DIVIDED = "gradient / n_samples"
_WAIT = "    for request in sent:\n        request.wait()\n"


def _run(
    id: str, expected: _Expected, fast: _Expected, *changes: tuple[str, str], source: str = RUN
) -> Answer:
    for old, new in changes:
        if old not in source:
            raise ValueError(f"{old!r} is not in it")
        source = source.replace(old, new)
    both = {"run_actions": expected, "run_actions_fast": fast}
    return Answer(f"run_{id}", with_part("run_actions", source), both)


def _gradient(id: str, diagnosis: str, *changes: tuple[str, str], score: int = 2) -> Answer:
    """What shows in the gradients; the record is right."""
    return _run(id, (score, diagnosis), (0, diagnosis), *changes)


_HELD = ("held[m] = kept, gradient", "held.append((kept, gradient))")
_A_LIST = ("held, sent, total = {}, [], 0.0", "held, sent, total = [], [], 0.0")
_TAKES = "y, kept = stage_forward(comm, stage, inputs[m] if comm.rank == 0 else None, sent)"
_OWN_FORWARD = """x = inputs[m] if comm.rank == 0 else comm.recv(comm.rank - 1)
            y, kept = stage.forward(x)
            if comm.rank < comm.size - 1:
                sent.append(comm.isend(y, comm.rank + 1))"""
_WHOLE_BATCH = """
def run_actions(comm, actions, stage, batch):
    inputs, targets = batch
    sent, loss, gradient = [], None, None
    stage.zero_grad()
    y, kept = stage_forward(comm, stage, np.concatenate(inputs) if inputs else None, sent)
    if targets:
        together = np.concatenate(targets)
        loss, gradient = stage.loss(y, together)
        loss, gradient = loss / len(together), gradient / len(together)
    stage_backward(comm, stage, kept, gradient, sent)
    for request in sent:
        request.wait()
    return loss
"""
_BLOCKING = IMPORTS + "\n".join(
    {
        **PARTS,
        "stage_forward": FORWARD.replace("sent.append(comm.isend(", "(comm.send("),
        "stage_backward": PARTS["stage_backward"].replace("sent.append(comm.isend(", "(comm.send("),
    }.values()
)

RUNS = (
    _gradient("not_divided", "not_divided", (_DIVIDED, "gradient")),
    _gradient("means_added", "means_added", (_DIVIDED, "gradient / len(y)")),
    _gradient(
        "over_numbers",
        "over_numbers",
        ("sum(len(t) for t in targets)", "sum(t.size for t in targets)"),
    ),
    _gradient("over_microbatches", "over_microbatches", (_DIVIDED, "gradient / len(targets)")),
    _gradient(
        "divided_on_each_rank",
        "divided_on_each_rank",
        (
            "stage_backward(comm, stage, *held.pop(m), sent)",
            "kept, gradient = held.pop(m)\n"
            "            if gradient is None:\n"
            "                gradient = comm.recv(comm.rank + 1) / n_samples\n"
            "            found = stage.backward(kept, gradient)\n"
            "            if comm.rank:\n"
            "                sent.append(comm.isend(found, comm.rank - 1))",
        ),
        (
            "n_samples = sum(len(t) for t in targets)",
            "n_samples = comm.all_reduce(np.array([sum(len(t) for t in targets)])).item()",
        ),
    ),
    _gradient("not_cleared", "not_cleared", ("    stage.zero_grad()\n", "")),
    _gradient(
        "cleared_each_time",
        "cleared_each_time",
        (
            "            stage_backward(comm",
            "            stage.zero_grad()\n            stage_backward(comm",
        ),
    ),
    _gradient(
        "cleared_each_forward",
        "cleared_each_forward",
        ('        if kind == "F":\n', '        if kind == "F":\n            stage.zero_grad()\n'),
    ),
    _gradient(
        "cleared_in_the_end", "cleared_in_the_end", (_WAIT, f"{_WAIT}    stage.zero_grad()\n")
    ),
    _gradient(
        "one_variable",
        "one_buffer",
        ("held[m] = kept, gradient", "held = kept, gradient"),
        ("*held.pop(m), sent", "*held, sent"),
        score=0,
    ),
    _gradient(
        "one_key",
        "one_buffer",
        ("held[m] = kept, gradient", "held[0] = kept, None\n            held[m, 0] = gradient"),
        ("*held.pop(m), sent", "held[0][0], held[m, 0], sent"),
        score=0,
    ),
    _gradient(
        "one_loss_gradient",
        "one_loss_gradient",
        ("            gradient = None\n", ""),
        ("held[m] = kept, gradient", "held[m] = kept"),
        ("held, sent, total = {}, [], 0.0", "held, sent, total, gradient = {}, [], 0.0, None"),
        ("*held.pop(m), sent", "held.pop(m), gradient, sent"),
    ),
    _gradient(
        "ones",
        "ones_for_the_received",
        (
            "stage_backward(comm, stage, *held.pop(m), sent)",
            "kept, gradient = held.pop(m)\n"
            "            if gradient is None:\n"
            "                gradient = np.ones_like(comm.recv(comm.rank + 1))\n"
            "            found = stage.backward(kept, gradient)\n"
            "            if comm.rank:\n"
            "                sent.append(comm.isend(found, comm.rank - 1))",
        ),
    ),
    _run("queue", (3, "queue"), (2, ""), _HELD, _A_LIST, ("*held.pop(m)", "*held.pop(0)")),
    _gradient("stack", "stack", _HELD, _A_LIST, ("*held.pop(m)", "*held.pop()"), score=0),
    Answer(
        "run_sends_block",
        _BLOCKING,
        {"run_actions": (0, "sends_block"), "run_actions_fast": (0, "sends_block")},
    ),
    _run(
        "equal_weights",
        (4, "equal_weights"),
        (2, ""),
        (_DIVIDED, "gradient / len(y) / len(targets)"),
        ("total + loss", "total + loss / len(y) / len(targets)"),
        ("total / n_samples", "total"),
    ),
    _run(
        "first_size",
        (4, "first_size"),
        (2, ""),
        ("sum(len(t) for t in targets)", "len(targets) and len(targets) * len(targets[0])"),
    ),
    _run("loss_of_the_last", (4, "loss_of_some"), (2, ""), ("total + loss", "loss")),
    _run("loss_is_a_sum", (4, "loss_not_divided"), (2, ""), ("total / n_samples", "total")),
    _run("no_loss", (4, "no_loss"), (2, ""), ("return total / n_samples if targets else None", "")),
    _run(
        "own_order",
        (3, "own_order"),
        (0, "faster"),
        (
            "for kind, _, m in actions:",
            "every = sorted({a.microbatch for a in actions})\n"
            "    for kind, m in [(k, m) for k in 'FB' for m in every]:",
        ),
    ),
    _run(
        "sorted_backwards",
        (3, "other_record"),
        (0, "faster"),
        ("in actions:", "in sorted(actions, key=lambda a: a.kind == 'B'):"),
    ),
    _run(
        "forward_again",
        (3, "forward_again"),
        (0, "slower"),
        (_TAKES, _OWN_FORWARD),
        ("held[m] = kept, gradient", "held[m] = x, gradient"),
        (
            "stage_backward(comm, stage, *held.pop(m), sent)",
            "x, gradient = held.pop(m)\n"
            "            stage_backward(comm, stage, stage.forward(x)[1], gradient, sent)",
        ),
    ),
    _run("whole_batch", (3, "other_record"), (0, "faster"), source=_WHOLE_BATCH),
    _run(
        "receives_ahead",
        (0, "deadlock"),
        (0, "slower"),
        (
            "    for kind, _, m in actions:\n",
            "    due = [a.microbatch for a in actions if a.kind == 'F' and comm.rank]\n"
            "    came = {m: comm.recv(comm.rank - 1) for m in due}\n"
            "    for kind, _, m in actions:\n",
        ),
        (_TAKES, _OWN_FORWARD.replace("comm.recv(comm.rank - 1)", "came.pop(m)")),
    ),
    _run(
        "receives_the_next",
        (3, "deadlock"),
        (0, "slower"),
        (
            "    for kind, _, m in actions:\n",
            "    due = [a.microbatch for a in actions if a.kind == 'F' and comm.rank]\n"
            "    came = {due.pop(0): comm.recv(comm.rank - 1)} if due else {}\n"
            "    for kind, _, m in actions:\n"
            "        if kind == 'F' and due:\n"
            "            came[due.pop(0)] = comm.recv(comm.rank - 1)\n",
        ),
        (_TAKES, _OWN_FORWARD.replace("comm.recv(comm.rank - 1)", "came.pop(m)")),
    ),
    _run(
        "loss_to_all",
        (5, ""),
        (0, "slower"),
        (
            "return total / n_samples if targets else None",
            "summed = comm.all_reduce(np.array([total, n_samples]))\n"
            "    return float(summed[0] / summed[1])",
        ),
    ),
    _run("never_freed", (3, "never_freed"), (2, ""), ("*held.pop(m), sent", "*held[m], sent")),
    _run("not_waited", (3, "unwaited"), (2, ""), (_WAIT, "")),
    _run(
        "in_step",
        (5, ""),
        (0, "in_step"),
        ("for kind, _, m in actions:", "for kind, _, m in actions:\n        comm.barrier()"),
    ),
    _run(
        "in_step_late",
        (5, ""),
        (0, "slower"),
        (
            "for kind, _, m in actions:",
            "for kind, _, m in actions:\n        comm.all_reduce(np.ones(1))",
        ),
    ),
    _run(
        "first_action_only",
        (0, "wrong_gradient"),
        (0, "wrong_gradient"),
        ("in actions:", "in [a for a in actions if a.microbatch == 0]:"),
    ),
    _run(
        "nothing",
        (0, "no_work"),
        (0, "no_work"),
        source="\ndef run_actions(*args):\n    return 0.0\n",
    ),
    _run(
        "loss_everywhere",
        (0, "raised"),
        (0, "raised"),
        ("if comm.rank == comm.size - 1:", "if True:"),
    ),
)
