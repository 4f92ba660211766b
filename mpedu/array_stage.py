"""A stage of a small GPT behind four calls that take and give NumPy arrays."""

import time
from dataclasses import dataclass
from weakref import WeakSet

import torch
from torch import Tensor

from mpedu.arrays import Array
from mpedu.comm import Comm
from mpedu.model import GPTStage, token_loss
from mpedu.schedule import Action
from mpedu.simulate import Span


@dataclass(eq=False, slots=True, weakref_slot=True)
class Kept:
    """What a backward needs: which micro-batch it is, x and y."""

    microbatch: int
    x: Tensor
    y: Tensor


class ArrayStage:
    """A stage of a GPT that takes and gives NumPy arrays.

    The loss of a sample is the mean over its tokens. `actions` is the list that is to be run: its
    order says which micro-batch a forward is of. device_s: emulates a device on which a forward
    takes so long, and a backward twice that. most_held: the most of what forwards gave as kept that
    was there when a backward began; an engine that drops none of it holds all.
    """

    def __init__(
        self, module: GPTStage, comm: Comm, actions: list[Action], device_s: float | None
    ) -> None:
        self.module, self._comm, self._device_s = module, comm, device_s
        self._forwards = [action.microbatch for action in actions if action.kind == "F"]
        self.most_held = self._n_forwards = 0
        self._held = WeakSet[Kept]()
        self.spans: list[Span] = []

    def forward(self, x: Array) -> tuple[Array, Kept]:
        """y, and what its backward needs.

        x: int64 [samples, tokens] on the first stage, elsewhere [samples, tokens, d_model]
        y: [samples, tokens, d_model]; on the last stage [samples, tokens, vocab_size]
        """
        start_s = time.perf_counter()
        leaf = torch.from_numpy(x).to(self._comm.device)
        y = self.module(leaf.requires_grad_(leaf.is_floating_point()))
        microbatch = self._forwards[self._n_forwards % len(self._forwards)]
        self._n_forwards += 1
        kept = Kept(microbatch, leaf, y)
        self._held.add(kept)
        self._ended("F", microbatch, start_s, 1)
        return _array(y), kept

    def backward(self, kept: Kept, gradient: Array) -> Array:
        """The gradient for x, of its shape, zeros for tokens; that of the weights is added up.

        gradient: for y, of its shape
        """
        start_s = time.perf_counter()
        # Not earlier: an engine's own variable may hold the latest one until the next forward ends.
        self.most_held = max(self.most_held, len(self._held))
        leaf, y = kept.x, kept.y
        y.backward(torch.from_numpy(gradient).to(y.device))  # type: ignore[no-untyped-call]
        self._ended("B", kept.microbatch, start_s, 2)
        return _array(torch.zeros(leaf.shape) if leaf.grad is None else leaf.grad)

    def loss(self, y: Array, targets: Array) -> tuple[float, Array]:
        """The losses of all samples in nats, added up, and the gradient for y, of its shape.

        y: [samples, tokens, vocab_size]; targets: int64 [samples, tokens]
        """
        logits = torch.from_numpy(y).requires_grad_()
        loss = token_loss(logits, torch.from_numpy(targets)) / targets.shape[1]
        loss.backward()
        return loss.item(), _array(logits.grad)

    def zero_grad(self) -> None:
        """Clears the gradient of the weights."""
        self.module.zero_grad()

    def _ended(self, kind: str, microbatch: int, start_s: float, n_times: int) -> None:
        if self._device_s is not None:
            time.sleep(max(0.0, start_s + n_times * self._device_s - time.perf_counter()))
        rank = self._comm.rank
        self.spans.append(Span(rank, kind, rank, microbatch, start_s, time.perf_counter()))


def _array(x: Tensor | None) -> Array:
    assert x is not None
    return x.detach().contiguous().cpu().numpy()
