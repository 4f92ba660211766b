"""A right answer to all of unit 07 with an engine object, and causes that are predicted."""

SHELVES = """
import itertools

import numpy as np

from mpedu.schedule import peak_in_flight


def stage_forward(comm, stage, x, sent):
    def take():
        return comm.recv(comm.rank - 1, tag=7)

    result = stage.forward(x if x is not None else take())
    for right in range(comm.rank + 1, min(comm.rank + 2, comm.size)):
        sent.append(comm.isend(result[0].copy(), right, tag=7))
    return result


def stage_backward(comm, stage, kept, gradient, sent):
    after = [rank for rank in (comm.rank + 1,) if rank < comm.size]
    for rank in after:
        gradient = comm.recv(source=rank, tag=8)
    gradient = stage.backward(kept, gradient)
    sent.extend(comm.isend(gradient, rank, tag=8) for rank in (comm.rank - 1,) if rank >= 0)
    return gradient


class Engine:
    def __init__(self, comm, stage, batch):
        self.comm, self.stage, (self.inputs, self.targets) = comm, stage, batch
        self.shelf, self.sent, self.losses, self.is_new = {}, [], [], True

    def F(self, m):
        x = self.inputs[m] if self.comm.rank == 0 else None
        self.shelf[m] = stage_forward(self.comm, self.stage, x, self.sent)

    def B(self, m):
        # The loss is asked for only now, and the old gradient cleared only now.
        if self.is_new:
            self.stage.zero_grad()
            self.is_new = False
        y, kept = self.shelf.pop(m)
        gradient = None
        if self.targets:
            loss, gradient = self.stage.loss(y, self.targets[m])
            self.losses.append(loss)
            gradient = gradient / sum(len(t) for t in self.targets)
        stage_backward(self.comm, self.stage, kept, gradient, self.sent)


def run_actions(comm, actions, stage, batch):
    engine = Engine(comm, stage, batch)
    while actions:
        action = actions.pop(0)
        getattr(engine, action.kind)(action.microbatch)
    for request in engine.sent:
        request.wait()
    if batch[1]:
        return np.sum(engine.losses) / sum(map(len, batch[1]))


def minibatch_steps(stage, n_stages, n_microbatches):
    def forward():
        yield "load_input" if stage == 0 else "recv_activations"
        yield "forward"
        if stage + 1 < n_stages:
            yield "send_activations"

    def backward(m):
        yield "recv_gradient" if stage + 1 < n_stages else "load_target"
        yield "backward" + "_all_reduce" * (m == 0)
        yield from ["send_gradient"] * (stage > 0)

    pieces = range(n_microbatches)
    yield "zero_grad", None
    yield from ((name, m) for m in pieces for name in forward())
    yield from ((name, m) for m in pieces[::-1] for name in backward(m))
    yield "step", None


def all_steps(stage, n_stages, n_microbatches):
    return list(minibatch_steps(stage, n_stages, n_microbatches))


def engine_cause(run):
    total, n = sum(run.sizes), len(run.sizes)
    shares = [size / total for size in run.sizes]
    if any(a != b for a, b in zip(itertools.chain(*run.schedule), itertools.chain(*run.record))):
        return "other_order"
    due = {"none": [], "not_divided": [], "overwritten": [], "reduced_each_time": []}
    for actions in run.schedule:
        order = [a.microbatch for a in actions if a.kind == "B"]
        after = [n - 1 - order.index(m) for m in range(n)]
        due["none"].append(shares)
        due["not_divided"].append([1.0] * n)
        due["overwritten"].append([s * (a == 0) for s, a in zip(shares, after)])
        due["reduced_each_time"].append(
            [s * run.n_replicas**a for s, a in zip(shares, after)]
        )
    too_few = any(a < b for a, b in zip(run.held, peak_in_flight(run.schedule)))
    too_many = any(a > b for a, b in zip(run.held, peak_in_flight(run.schedule)))
    for name, ratios in due.items():
        if np.allclose(run.ratios, ratios, atol=1e-6) and max(run.across) < 1e-6:
            return "never_freed" if too_many else name
    return "one_buffer" if too_few else "own_gradient"
"""
