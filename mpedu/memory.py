"""Memory counted where torch takes it: what backward will need, and every tensor alive.

Both count storages, each once however many tensors view it, in bytes.
"""

import weakref
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from typing import Any

from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class HeldBytes(saved_tensors_hooks):
    """While it is entered, counts what forwards leave for their backwards.

    ignore: tensors whose storages do not count, such as parameters and the batch.
    key: called at each saving, says to whom it is put down, such as the micro-batch that runs.
    """

    def __init__(
        self, ignore: Iterable[Tensor] = (), key: Callable[[], Hashable] = lambda: None
    ) -> None:
        super().__init__(self._pack, self._unpack)
        self._key = key
        self._ignored: set[int] = set()  # addresses, for as long as their storages live
        self._size: dict[int, int] = {}
        self._n_users: Counter[tuple[Hashable, int]] = Counter()  # of a storage, under each key
        self._n_keys: Counter[int] = Counter()  # of a storage
        self.live_bytes = self.peak_bytes = 0  # held now, whoever saved it, and at most
        self.ignore(*ignore)

    def __enter__(self) -> "HeldBytes":  # type: ignore[override]
        super().__enter__()
        return self

    def ignore(self, *tensors: Tensor) -> None:
        """Does not count the storages of these tensors either."""
        for tensor in tensors:
            self._ignored.add(_address(tensor))
            weakref.finalize(tensor.untyped_storage(), self._ignored.discard, _address(tensor))

    def by_key(self) -> dict[Hashable, int]:
        """Bytes held now under each key; a storage saved under two keys counts under both."""
        held: Counter[Hashable] = Counter()
        for key, storage in self._n_users:
            held[key] += self._size[storage]
        return dict(held)

    def _pack(self, x: Tensor) -> "_Saved":
        saved = _Saved(x)
        storage = _address(x)
        if storage not in self._ignored:
            user = (self._key(), storage)
            self._n_users[user] += 1
            if self._n_users[user] == 1:
                self._n_keys[storage] += 1
                if self._n_keys[storage] == 1:
                    self._size[storage] = x.untyped_storage().nbytes()
                    self.live_bytes += self._size[storage]
            self.peak_bytes = max(self.peak_bytes, self.live_bytes)
            weakref.finalize(saved, self._drop, user)
        return saved

    def _unpack(self, saved: "_Saved") -> Tensor:
        return saved.x

    def _drop(self, user: tuple[Hashable, int]) -> None:
        _, storage = user
        self._n_users[user] -= 1
        if self._n_users[user]:
            return
        del self._n_users[user]
        self._n_keys[storage] -= 1
        if not self._n_keys[storage]:
            del self._n_keys[storage]
            self.live_bytes -= self._size.pop(storage)


class _Saved:
    """A tensor that waits for its backward."""

    def __init__(self, x: Tensor) -> None:
        self.x = x.detach()  # what saves its own output would hold itself alive otherwise


class LiveBytes(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """While it is entered, counts the storages of all tensors made, for as long as they live."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._size: dict[int, int] = {}
        self.live_bytes = self.peak_bytes = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> object:
        """Runs the operation and notes the storages of what it made."""
        given = {_address(x) for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)}
        made = func(*args, **(kwargs or {}))
        for x in tree_leaves(made):
            if isinstance(x, Tensor) and not {_address(x)} & (given | self._size.keys()):
                self._count(x)
        return made

    def _count(self, x: Tensor) -> None:
        storage, address = x.untyped_storage(), _address(x)
        if not storage.nbytes() or x.is_meta:
            return  # all empty storages have one address, and so have those without memory
        self._size[address] = storage.nbytes()
        self.live_bytes += storage.nbytes()
        self.peak_bytes = max(self.peak_bytes, self.live_bytes)
        weakref.finalize(storage, self._drop, address)

    def _drop(self, address: int) -> None:
        self.live_bytes -= self._size.pop(address)


def _address(x: Tensor) -> int:
    return x.untyped_storage().data_ptr()
