"""Rank programs drawn at random: real ranks give what simulated ones and NumPy give."""

import sys

import cloudpickle
import numpy as np
import pytest
import torch

from mpedu.launch import run_ranks

# The ranks need not import this file, and with it pytest.
cloudpickle.register_pickle_by_value(sys.modules[__name__])
MOST = 10_000
N_CASES = 25
KINDS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "barrier")


def collective(kind, draw, n):
    """A drawn collective: (x of each rank, how to call it, result on each rank, its adjoint).

    The adjoint takes the gradients of all results and gives those of all `x`.
    """
    size = int(draw.choice([0, 1, 2, 7, 300, MOST // n]))
    cut = draw.multinomial(size, [1 / n] * n)
    if kind == "all_gather":
        xs = [draw.standard_normal((rows, 1)) for rows in cut]
        whole = np.concatenate(xs)
        places = np.cumsum(cut)[:-1]
        return (
            xs,
            lambda comm, x: comm.all_gather(x, cut.tolist()),
            [whole] * n,
            lambda gs: np.split(sum(gs), places),
        )
    if kind == "all_to_all":
        sizes = [draw.multinomial(size, [1 / n] * n) for _ in range(n)]
        xs = [draw.standard_normal((size, 1)) for _ in range(n)]
        columns = [[row[rank] for row in sizes] for rank in range(n)]
        return (
            xs,
            lambda comm, x: comm.all_to_all(x, sizes[comm.rank].tolist()),
            exchanged(xs, sizes),
            lambda gs: exchanged(gs, columns),
        )
    xs = [draw.standard_normal((size, 1)) for _ in range(n)]
    total = sum(xs)
    if kind == "all_reduce":
        return xs, lambda comm, x: comm.all_reduce(x), [total] * n, lambda gs: [sum(gs)] * n
    return (
        xs,
        lambda comm, x: comm.reduce_scatter(x, sizes=cut.tolist()),
        np.split(total, np.cumsum(cut)[:-1]),
        lambda gs: [np.concatenate(gs)] * n,
    )


def exchanged(xs, sizes):
    parts = [np.split(x, np.cumsum(row)[:-1]) for x, row in zip(xs, sizes, strict=True)]
    return [np.concatenate([part[rank] for part in parts]) for rank in range(len(xs))]


@pytest.mark.parametrize("machine", ["processes", "simulated"])
@pytest.mark.parametrize("n_ranks", [1, 2, 3, 4, 8])
def test_results_and_gradients_of_drawn_collectives_are_those_of_numpy(n_ranks, machine):
    def program(comm):
        draw, worst = np.random.default_rng([7, comm.size]), 0.0
        for number in range(N_CASES if comm.size < 8 else 6):
            xs, call, results, adjoint = collective(KINDS[number % 4], draw, comm.size)
            weights = [draw.standard_normal(result.shape) for result in results]
            needs = draw.integers(0, 2, comm.size)  # some ranks' arrays need no gradient
            x = torch.from_numpy(xs[comm.rank]).requires_grad_(bool(needs[comm.rank]))
            got = call(comm, x)
            worst = max(worst, np.abs(got.detach().numpy() - results[comm.rank]).max(initial=0))
            assert got.requires_grad == bool(needs.any())
            if got.requires_grad:
                (got * torch.from_numpy(weights[comm.rank])).sum().backward()
            assert (x.grad is None) != needs[comm.rank]
            if x.grad is not None:
                wanted = adjoint(weights)[comm.rank]
                worst = max(worst, np.abs(x.grad.numpy() - wanted).max(initial=0))
        return worst

    assert max(run_ranks(program, n_ranks, machine=machine).results) <= 1e-12


def drawn_steps(seed, n):
    """What all ranks do, in one order: (source, destination, tag, size) or a collective's name."""
    draw = np.random.default_rng([seed, n])
    for _ in range(40):
        if draw.random() < 0.6:
            source, destination = map(int, draw.permutation(n)[:2])
            size = int(draw.choice([0, 1, 400, 443, 444, 3000]))
            yield source, destination, int(draw.integers(0, 3)), size
        else:
            yield str(draw.choice(KINDS))


def run_steps(comm, seed):
    """Starts every step, waits in an order of this rank's own, and gives what came."""
    draw, requests = np.random.default_rng([seed, comm.rank]), []
    for number, step in enumerate(drawn_steps(seed, comm.size)):
        x = np.arange(12, dtype=np.int64) * (comm.rank + 1) + number
        if isinstance(step, str):
            how = {"async_op": True} if draw.random() < 0.7 else {}
            args = () if step == "barrier" else (x,)
            if step == "all_to_all":
                how["send_sizes"] = how["recv_sizes"] = [12 // comm.size] * comm.size
            started = getattr(comm, step)(*args, **how)
            requests.append(started if how.get("async_op") else Given(started))
            continue
        source, destination, tag, size = step
        if comm.rank == source:
            requests.append(comm.isend(np.full(size, number), destination, tag))
        elif comm.rank == destination:
            requests.append(comm.irecv(source, None, tag))
    for place in draw.permutation(len(requests)):
        requests[place].wait()
    found = [request.wait() for request in requests]
    return [None if x is None else x.tolist() for x in found]


class Given:
    def __init__(self, value):
        self.value = value

    def wait(self):
        return self.value


@pytest.mark.parametrize("n_ranks", [2, 3, 4])
def test_drawn_programs_give_bit_for_bit_what_they_give_on_simulated_ranks(n_ranks):
    def program(comm):
        return [run_steps(comm, seed) for seed in range(6)]

    real = run_ranks(program, n_ranks)
    simulated = run_ranks(program, n_ranks, machine="simulated")
    assert real.results == simulated.results
    for kind in (*KINDS, "send", "recv"):
        assert real.meter.total(kind=kind).calls == simulated.meter.total(kind=kind).calls > 0
    assert real.meter.total(kind="send") == simulated.meter.total(kind="send")
