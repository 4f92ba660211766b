import pytest
import rendezvous
import torch

from mpedu.alone import Alone
from mpedu.pipeline.announce import Announcer, pack, pack_specs, unpack, unpack_specs
from mpedu.pipeline.stages import Spec
from mpedu.schedule import Action

FLOAT, DOUBLE = torch.float32, torch.float64


def spec(*shape, dtype=FLOAT):
    return Spec(shape, dtype)


def announcer(comm, owner, stages, n_microbatches=2, count=len):
    own = {number: stages[number] for number, rank in owner.items() if rank == comm.rank}
    return Announcer(comm, owner, own, n_microbatches, count)


@pytest.mark.parametrize("value", [None, 3, "ä", [[1, [2]], "x" * 5000], {"a": 1.5}])
def test_what_is_packed_is_unpacked_again(value):
    assert unpack(pack(value)) == value


def test_specs_travel_as_plain_data():
    specs = [spec(3, 4), spec(), spec(0, 2, dtype=torch.int64), spec(1, dtype=torch.bfloat16)]
    assert unpack_specs(unpack(pack(pack_specs(specs)))) == specs


def test_ranks_learn_shapes_and_divisor_and_again_when_they_change():
    owner = {0: 0, 1: 1, 2: 0}
    stages = {0: lambda x: x[:, :1], 1: lambda x: x.double(), 2: lambda x: x.sum(-1)}
    shapes = [(4, 3, 2), (4, 3, 2), (5, 3, 7), (3, 3, 7)]

    def program(comm):
        agree = announcer(comm, owner, stages)
        seen = []
        for shape in shapes:
            batch = (torch.zeros(shape), torch.zeros(shape[0])) if comm.rank == 0 else None
            announced = agree.announce(batch, stamp=False)
            parts = agree.parts(batch)
            agree.expect_loss()
            assert agree.finish(torch.tensor(float(len(seen)), dtype=DOUBLE)) == len(seen)
            action = Action("F", 1, 0) if comm.rank else Action("F", 2, 1)
            seen.append((announced.divisor, agree.spec_for(action), [len(p) for p in parts[1]]))
        return seen

    first, second = rendezvous.run_threads(program, 2)
    assert [divisor for divisor, _, _ in first] == [4, 4, 5, 3]
    assert [divisor for divisor, _, _ in second] == [4, 4, 5, 3]
    assert [s for _, s, _ in second] == [spec(n, 1, w) for n, w in ((2, 2), (2, 2), (3, 7), (2, 7))]
    assert [s for _, s, _ in first] == [
        spec(n, 1, w, dtype=DOUBLE) for n, w in ((2, 2), (2, 2), (2, 7), (1, 7))
    ]
    assert [sizes for _, _, sizes in first] == [[2, 2], [2, 2], [3, 2], [2, 1]]
    assert [sizes for _, _, sizes in second] == [[]] * 4


def test_the_last_stage_gets_the_targets_that_belong_to_its_microbatches():
    targets = torch.arange(14.0).view(7, 2)

    def program(comm):
        agree = announcer(comm, {0: 0, 1: 1}, {0: lambda x: x, 1: lambda x: x}, 3)
        # not contiguous, and with a gradient: neither may travel
        batch = (torch.zeros(7), targets.t().contiguous().t().requires_grad_())
        agree.announce(batch if comm.rank == 0 else None, stamp=False)
        parts = agree.parts(batch if comm.rank == 0 else None)[1]
        agree.expect_loss()
        assert agree.finish(torch.tensor(2.5 * comm.rank, dtype=DOUBLE)) == 2.5
        return [part.detach().clone() for part in parts]

    assert [len(part) for part in rendezvous.run_threads(program, 2)[1]] == [3, 2, 2]
    assert torch.equal(torch.cat(rendezvous.run_threads(program, 2)[1]), targets)


def test_microbatches_given_one_by_one_may_differ_in_every_length():
    lengths = [[(3, 4), (1, 9)], [(3, 4), (1, 9)], [(2, 6), (3, 4)]]
    zeros_run = []

    def first(x):
        zeros_run.append(tuple(x.shape))
        return x.double()

    def program(comm):
        agree = announcer(comm, {0: 0, 1: 1}, {0: first, 1: lambda x: x}, 2, torch.numel)
        seen = []
        for shapes in lengths:
            pairs = [(torch.ones(shape), torch.full(shape, 1.5)) for shape in shapes]
            pairs[0][1].requires_grad_()
            announced = agree.announce(pairs if comm.rank == 0 else None, stamp=False)
            inputs, targets = agree.parts(pairs if comm.rank == 0 else None)
            agree.expect_loss()
            agree.finish(torch.zeros((), dtype=DOUBLE))
            action = Action("F" if comm.rank else "B", comm.rank, 1)
            seen.append((announced.divisor, agree.spec_for(action), inputs, targets))
        return seen

    first_rank, second = rendezvous.run_threads(program, 2)
    for (divisor, coming, inputs, targets), shapes in zip(first_rank, lengths, strict=True):
        assert divisor == sum(a * b for a, b in shapes)
        assert coming == spec(*shapes[1], dtype=DOUBLE)
        assert [tuple(x.shape) for x in inputs] == shapes and not targets
    for (divisor, coming, inputs, targets), shapes in zip(second, lengths, strict=True):
        assert divisor == sum(a * b for a, b in shapes)
        assert coming == spec(*shapes[1], dtype=DOUBLE)
        assert not inputs and [tuple(t.shape) for t in targets] == shapes
        assert all((t == 1.5).all() for t in targets)
    assert zeros_run == [(3, 4), (1, 9), (2, 6)]  # of each shape once


def test_alone_nothing_is_sent():
    agree = announcer(Alone(), {0: 0}, {0: lambda x: x})
    batch = torch.zeros(3, 1), torch.ones(3)
    announced = agree.announce(batch, stamp=True)
    assert announced.divisor == 3 and announced.start_ns > 0
    inputs, targets = agree.parts(batch)
    assert [len(x) for x in inputs] == [len(t) for t in targets] == [2, 1]
