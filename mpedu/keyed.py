"""Random numbers that depend on named keys only, so that every rank and every rerun agrees."""

import hashlib
import json
from operator import index
from typing import NamedTuple

import torch
from torch import Tensor


class Key(NamedTuple):
    """Where in a training run a random number is drawn; the layer comes with the draw."""

    seed: int
    step: int
    microbatch: int


def keyed_generator(*numbers: int | str, device: torch.device | str = "cpu") -> torch.Generator:
    """A new generator on `device` whose state follows from `numbers` alone, in their order.

    Its seed is 63 bits of SHA-256 over the numbers: neighbours, such as two steps, are unrelated.
    torch's global random state is neither read nor changed.
    """
    # JSON tells 1 from "1" and (1, 23) from (12, 3); index() makes NumPy's integers plain
    text = json.dumps([n if isinstance(n, str) else index(n) for n in numbers])
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1
    return torch.Generator(device).manual_seed(seed)


def require_dropout(p: float) -> None:
    """Nothing; ValueError where `p` is not a share of numbers that may be dropped."""
    if not 0 <= p < 1:
        raise ValueError(f"dropout={p!r} is not a share in [0, 1); give 0 for none, or such as 0.1")


def dropout(x: Tensor, p: float, key: Key | None, layer: int | str) -> Tensor:
    """`x` with each number zero at probability `p`, else divided by 1 - p; of the shape of `x`.

    The mask follows from `key` and `layer` (and the kind of device), so a rank that holds the
    layer alone and a recomputation draw the same one. Without a key, or at p = 0, `x` itself.
    On the meta device nothing is drawn.
    """
    require_dropout(p)
    if key is None or p == 0:
        return x
    # not empty_like: the order of the draws must not follow the strides of x
    keep = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if x.device.type != "meta":
        keep.bernoulli_(1 - p, generator=keyed_generator(*key, layer, device=x.device))
    return x * keep.div_(1 - p)
