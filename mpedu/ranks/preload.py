"""What the fork server loads once, so that no rank has to: imported nowhere else."""

import os
import threading

_PARENT = os.getppid()
_loaded = threading.Event()


def _end_with_parent() -> None:
    # The server hears of its parent's death only when it has loaded everything.
    while not _loaded.wait(0.2):
        if os.getppid() != _PARENT:
            os._exit(1)


_watch = threading.Thread(target=_end_with_parent, daemon=True)
_watch.start()
try:
    # ruff: noqa: F401
    import torch._dynamo  # torch's optimisers load it when the first is made: over a second
    import torch.fx.experimental.symbolic_shapes  # its backward, at first use: half a second

    import mpedu.differentiable  # loaded at the first collective of tensors: 10 ms
    import mpedu.pipeline
    import mpedu.ranks.rank
finally:
    # Before anything is forked, there must be one thread again.
    _loaded.set()
    _watch.join()
