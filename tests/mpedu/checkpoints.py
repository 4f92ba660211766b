"""What a checkpoint is made of in tests: tensors of every sort, and stand-ins for ranks."""

import torch

from mpedu.checkpoint import save_checkpoint

ABOUT = {"model": {"n_layers": 4, "d_model": 16}, "pp": 2, "digest": "a1b2", "shape": (2, 3)}
QKV = "model.blocks.3.attention.qkv.weight"


class Alone:
    """A rank by itself: all that a checkpoint asks of a Comm."""

    rank, size = 0, 1

    def barrier(self):
        pass


class Together(Alone):
    def __init__(self, rank, meeting):
        self.rank, self.size, self.barrier = rank, meeting.parties, meeting.wait


def tensors(step=1, rank=0):
    generator = torch.Generator().manual_seed(100 * step + rank)
    whole = torch.randn(6, 4, generator=generator)
    return {
        QKV: whole,
        "adam.exp_avg.blocks.3": whole.to(torch.bfloat16),
        "adam.step.blocks.3": torch.tensor(2**53 + step, dtype=torch.int64),
        "double": torch.randn(3, generator=generator, dtype=torch.float64),
        "nothing": torch.empty(0, 4),
        "a view": whole[1:3],
        "transposed": whole.T,
        "not a number": torch.tensor([float("nan"), float("-inf"), -0.0]),
    }


def assert_same(found, given):
    assert set(found) == set(given)
    for name, x in given.items():
        assert (found[name].dtype, found[name].shape) == (x.dtype, x.shape)
        bits = [t.contiguous().flatten().view(torch.uint8).tolist() for t in (found[name], x)]
        assert bits[0] == bits[1], name


def save(folder, step=1, about=ABOUT, keep=2):
    return save_checkpoint(folder, Alone(), step, tensors(step), about, keep)
