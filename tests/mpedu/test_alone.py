import pytest
import torch

from mpedu.alone import Alone
from mpedu.simulate import Span


def test_its_collectives_give_what_a_single_rank_gets():
    comm, x = Alone(), torch.tensor([1.0, 2.0])
    assert comm.broadcast(x) is x
    reduced = comm.all_reduce(x)
    assert torch.equal(reduced, x) and reduced is not x
    comm.barrier()
    assert comm.split(3).size == 1 and comm.channels([]) == {}


@pytest.mark.parametrize("call", ["send", "isend"])
def test_it_has_nobody_to_send_to(call):
    with pytest.raises(ValueError, match="no rank 1; rank 0 is alone"):
        getattr(Alone(), call)(torch.zeros(1), 1)


def test_it_has_nobody_to_receive_from():
    with pytest.raises(ValueError, match="no rank 1; rank 0 is alone"):
        Alone().recv(1, torch.zeros(1))


def test_it_hands_reports_over_and_keeps_spans():
    seen = []
    comm = Alone(seen.append)
    comm.report(1)
    comm.record(Span(0, "F", 0, 0, 0.0, 1.0))
    assert seen == [1] and len(comm.spans) == 1
