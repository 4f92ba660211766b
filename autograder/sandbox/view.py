"""What students' code sees of this machine, as steps of bubblewrap (its options, without dashes).

The system's libraries, the Python environment and the runtime folder, all read-only, and a private
/tmp. Nothing of the checkout, of any home or of the grader's results.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

RUNTIME_INSIDE = "/opt/runtime"
_ENVIRONMENT = "/opt/venv"
PYTHON_INSIDE = f"{_ENVIRONMENT}/bin/python"
_OURS = ("autograder", "mpedu")
# Nodes that every program on an NVIDIA GPU opens, beside the one of its device.
_GPU_COMMON = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools")

Step = tuple[str, ...]


def steps(
    runtime: Path, tmp_bytes: int, gpu: int | None = None, *, proc: bool = True
) -> list[Step]:
    """What to make of an empty root, in order; `runtime` is seen as RUNTIME_INSIDE.

    "scratch" stands for a tmpfs of `tmp_bytes` that everyone may write to. Of the GPUs only the one
    of that number is there, if any; without `proc`, /proc is empty.
    """
    made = [*_system(), *_python(), *_mounted(runtime.resolve(), RUNTIME_INSIDE)]
    made += [("proc", "/proc") if proc else ("dir", "/proc"), ("dev", "/dev")]
    nodes = () if gpu is None else (f"nvidia{gpu}", *_GPU_COMMON)
    made += [("dev-bind-try", f"/dev/{node}", f"/dev/{node}") for node in nodes]
    return [*made, *(("scratch", place, str(tmp_bytes)) for place in ("/dev/shm", "/tmp"))]


def _system() -> Iterator[Step]:
    yield from _mounted(Path("/usr"), "/usr")
    for name in ("bin", "lib", "lib64"):
        folder = Path("/", name)
        if folder.is_symlink():
            yield "symlink", os.readlink(folder), str(folder)
        elif folder.is_dir():
            yield "ro-bind", str(folder), str(folder)
    yield "dir", "/etc"
    for name in ("ld.so.cache", "alternatives", "localtime"):
        yield "ro-bind-try", f"/etc/{name}", f"/etc/{name}"


def _python() -> Iterator[Step]:
    base = Path(sys.base_prefix).resolve()
    if not base.is_relative_to("/usr"):
        yield from _mounted(base, str(base))
    yield from _mounted(Path(sys.prefix).resolve(), _ENVIRONMENT)


def _mounted(folder: Path, inside: str) -> Iterator[Step]:
    """`folder` read-only at `inside`, with whatever is ours in it hidden."""
    for parent in reversed(Path(inside).parents[:-1]):
        yield "dir", str(parent)  # made by the way, others than root could not enter it
    yield "ro-bind", str(folder), inside
    root = Path(__file__).resolve().parents[2]
    installed = not (root / "pyproject.toml").is_file()  # among other packages
    for hidden in [root / name for name in _OURS] if installed else [root]:
        if hidden.is_relative_to(folder):
            yield "tmpfs", str(inside / hidden.relative_to(folder))
