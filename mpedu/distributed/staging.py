"""Reused buffers in the host's memory: how tensors of a GPU travel where NCCL cannot take them.

NCCL refuses two ranks on one device. There a tensor is copied into a buffer, gloo carries that, and
on arrival it is copied to the device of the receiver.
"""

from collections import defaultdict

import torch
from torch import Tensor

LEAST_BYTES = 256


def device_of(local_rank: int, n_local: int, use_gpus: bool = True) -> tuple[str, bool]:
    """Where a rank keeps its tensors, and whether they travel through buffers of the host.

    They do where `n_local` ranks share fewer GPUs. "cpu" where there is none, or none is wanted.
    """
    n_gpus = torch.cuda.device_count() if use_gpus and torch.cuda.is_available() else 0
    if not n_gpus:
        return "cpu", False
    return f"cuda:{local_rank % n_gpus}", n_local > n_gpus


class HostBuffers:
    """Buffers of powers of two bytes that are lent and given back; pinned where there is a GPU.

    Copies from and to pinned memory need no second copy inside the driver; pinning takes long, so
    that buffers are kept.
    """

    def __init__(self, pinned: bool) -> None:
        self._pinned = pinned
        self._free: defaultdict[int, list[Tensor]] = defaultdict(list)
        self.n_made = 0

    def lend(self, n_bytes: int) -> Tensor:
        """The first `n_bytes` of a buffer that nobody uses, uint8; its contents mean nothing."""
        size = 1 << (max(n_bytes, LEAST_BYTES) - 1).bit_length()
        try:
            whole = self._free[size].pop()
        except IndexError:
            whole = torch.empty(size, dtype=torch.uint8, pin_memory=self._pinned)
            self.n_made += 1
        return whole[:n_bytes]

    def give_back(self, lent: Tensor) -> None:
        """Takes a buffer back that was lent and has served."""
        whole = lent._base
        if whole is not None:
            self._free[whole.numel()].append(whole)
