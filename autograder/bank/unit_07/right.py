"""Right answers to all of unit 07, each in a manner of its own."""

from autograder.bank import Answer
from autograder.bank.unit_07.right_shelves import SHELVES

FULL = {
    "stage_forward": 3,
    "stage_backward": 3,
    "run_actions": 5,
    "run_actions_fast": 2,
    "minibatch_steps": 4,
    "engine_cause": 3,
}

IMPORTS = """
import numpy as np

from mpedu.schedule import peak_in_flight
"""
COUNTED = """
def forward_counted(comm, stage, x):
    sent = []
    return stage_forward(comm, stage, x, sent), len(sent)


def backward_counted(comm, stage, kept, gradient):
    sent = []
    return stage_backward(comm, stage, kept, gradient, sent), len(sent)
"""
FORWARD = """
def stage_forward(comm, stage, x, sent):
    if comm.rank > 0:
        x = comm.recv(comm.rank - 1)
    y, kept = stage.forward(x)
    if comm.rank < comm.size - 1:
        sent.append(comm.isend(y, comm.rank + 1))
    return y, kept
"""
BACKWARD = """
def stage_backward(comm, stage, kept, gradient, sent):
    if comm.rank < comm.size - 1:
        gradient = comm.recv(comm.rank + 1)
    x_gradient = stage.backward(kept, gradient)
    if comm.rank > 0:
        sent.append(comm.isend(x_gradient, comm.rank - 1))
    return x_gradient
"""
RUN = """
def run_actions(comm, actions, stage, batch):
    inputs, targets = batch
    n_samples = sum(len(t) for t in targets)
    held, sent, total = {}, [], 0.0
    stage.zero_grad()
    for kind, _, m in actions:
        if kind == "F":
            y, kept = stage_forward(comm, stage, inputs[m] if comm.rank == 0 else None, sent)
            gradient = None
            if comm.rank == comm.size - 1:
                loss, gradient = stage.loss(y, targets[m])
                total, gradient = total + loss, gradient / n_samples
            held[m] = kept, gradient
        else:
            stage_backward(comm, stage, *held.pop(m), sent)
    for request in sent:
        request.wait()
    return total / n_samples if targets else None
"""
STEPS = """
def minibatch_steps(stage, n_stages, n_microbatches):
    yield "zero_grad", None
    for m in range(n_microbatches):
        yield "load_input" if stage == 0 else "recv_activations", m
        yield "forward", m
        if stage < n_stages - 1:
            yield "send_activations", m
    for m in reversed(range(n_microbatches)):
        yield "load_target" if stage == n_stages - 1 else "recv_gradient", m
        yield "backward_all_reduce" if m == 0 else "backward", m
        if stage > 0:
            yield "send_gradient", m
    yield "step", None


def all_steps(stage, n_stages, n_microbatches):
    return list(minibatch_steps(stage, n_stages, n_microbatches))
"""
CAUSE = """
def engine_cause(run):
    if run.record != run.schedule:
        return "other_order"
    as_listed = list(run.held) == peak_in_flight(run.schedule)
    if max(run.across) > 1e-6:
        return "own_gradient" if as_listed else "one_buffer"
    shares = np.array(run.sizes) / sum(run.sizes)
    if np.allclose(run.ratios, shares):
        return "none" if as_listed else "never_freed"
    if np.allclose(run.ratios, 1):
        return "not_divided"
    return "overwritten" if np.min(run.ratios) < 1e-6 else "reduced_each_time"
"""
PARTS = {
    "stage_forward": FORWARD,
    "stage_backward": BACKWARD,
    "run_actions": RUN,
    "minibatch_steps": STEPS,
    "engine_cause": CAUSE,
}

# No function of the others is used by `run_actions`; receives are posted ahead; lists by hand.
_OTHERWISE = """
import numpy as np


def stage_forward(comm, stage, x, sent):
    is_last = comm.rank + 1 == comm.size
    taken = x if comm.rank == 0 else comm.irecv(comm.rank - 1).wait()
    made = stage.forward(taken)
    sent += [] if is_last else [comm.isend(made[0], comm.rank + 1, what="activations")]
    return list(made)


def stage_backward(comm, stage, kept, gradient, sent):
    if gradient is None:
        gradient = comm.recv(comm.rank + 1, what="a gradient")
    found = stage.backward(kept, gradient)
    if comm.rank != 0:
        sent.append(comm.isend(found, comm.rank - 1))
    return found


def run_actions(comm, actions, stage, batch):
    # All receives are posted before anything runs; tags tell the micro-batches apart.
    first, last = comm.rank == 0, comm.rank == comm.size - 1
    xs, gs = {}, {}
    for kind, _, m in actions:
        if kind == "F" and not first:
            xs[m] = comm.irecv(comm.rank - 1, tag=m)
        if kind == "B" and not last:
            gs[m] = comm.irecv(comm.rank + 1, tag=m)
    stage.zero_grad()
    kept, outputs, losses, pending = {}, {}, [], []
    for action in actions:
        m = action.microbatch
        if action.kind == "F":
            x = batch[0][m] if first else xs.pop(m).wait()
            outputs[m], kept[m] = stage.forward(x)
            if not last:
                pending.append(comm.isend(outputs.pop(m), comm.rank + 1, tag=m))
            continue
        if last:
            loss, g = stage.loss(outputs.pop(m), batch[1][m])
            losses.append(loss)
            g = g / np.concatenate(batch[1]).shape[0]
        else:
            g = gs.pop(m).wait()
        back = stage.backward(kept.pop(m), g)
        if not first:
            pending.append(comm.isend(back, comm.rank - 1, tag=m))
    [one.wait() for one in pending]
    return sum(losses) / sum(map(len, batch[1])) if last else 0.0


def all_steps(stage, n_stages, n_microbatches):
    # A list straight away, targets loaded with the inputs.
    first, last, steps = stage == 0, stage == n_stages - 1, [["zero_grad", None]]
    for m in range(n_microbatches):
        if last:
            steps.append(("load_target", m))
        steps.append(("load_input" if first else "recv_activations", m))
        steps.append(("forward", m))
    steps += [] if last else [("send_activations", m) for m in range(n_microbatches)]
    m = n_microbatches
    while m:
        m -= 1
        steps += [] if last else [("recv_gradient", m)]
        steps.append(("backward", m) if m else ("backward_all_reduce", m))
        steps += [] if first else [("send_gradient", m)]
    return steps + [("step", None)]


def engine_cause(run):
    def order_of(kind, rank):
        return [a.microbatch for a in run.record[rank] if a.kind == kind]

    for listed, done in zip(run.schedule, run.record):
        if [str(a) for a in listed] != [str(a) for a in done]:
            return "other_order"
    kept, most = 0, 0
    for action in run.schedule[0]:
        kept += 1 if action.kind == "F" else -1
        most = max(most, kept)
    if any(one > 1e-6 for one in run.across):
        return "one_buffer" if run.held[0] < most else "own_gradient"
    total = sum(run.sizes)
    off = [r / (size / total) for r, size in zip(run.ratios[-1], run.sizes)]
    if all(abs(one - 1) < 1e-6 for one in off):
        return "never_freed" if run.held[-1] > 1 and order_of("B", -1)[0] == order_of("F", -1)[
            0
        ] and run.record[-1][1].kind == "B" else "none"
    if min(off) < 1e-6:
        return "overwritten"
    last = order_of("B", -1)[-1]
    return "reduced_each_time" if abs(off[last] - 1) < 1e-6 else "not_divided"
"""


def _right(id: str, source: str) -> Answer:
    return Answer(id, source, {exercise: (points, "") for exercise, points in FULL.items()})


def with_part(name: str, source: str) -> str:
    """The first right answer with the function of that name written otherwise."""
    return IMPORTS + "\n".join({**PARTS, name: source}.values())


RIGHT = (
    _right("kept_by_microbatch", with_part("stage_forward", FORWARD)),
    _right("received_ahead_and_listed", _OTHERWISE),
    _right("shelves", SHELVES),
)
