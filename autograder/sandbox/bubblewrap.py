"""The outer wall: the command line that starts a program with nothing of this machine but Python.

Inside are the system's libraries, the Python environment and the runtime folder, all read-only, a
private /tmp and no network. Nothing of the checkout, of any home or of the grader's results.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

RUNTIME_INSIDE = "/opt/runtime"
_ENVIRONMENT = "/opt/venv"
_OURS = ("autograder", "mpedu")


def bubblewrap_command(program: str, runtime: Path) -> list[str]:
    """The words that start this environment's Python inside; its arguments are to follow.

    `program` is bwrap; `runtime` is seen as RUNTIME_INSIDE. Environment variables and descriptors
    given to the command are passed on.
    """
    words = [program, "--die-with-parent", "--new-session", *_namespaces(), *_system(), *_python()]
    words += [*_mounted(runtime.resolve(), RUNTIME_INSIDE)]
    words += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--chdir", "/tmp"]
    if os.geteuid() == 0:
        # Of root, bubblewrap covers all of /proc/sys. The worker needs this part for one purpose,
        # to forbid user namespaces in its own one, and is no longer root by then.
        words += ["--bind-try", "/proc/sys/user", "/proc/sys/user"]
    return [*words, "--remount-ro", "/dev", "--remount-ro", "/", f"{_ENVIRONMENT}/bin/python"]


def _namespaces() -> list[str]:
    if os.geteuid() != 0:
        return ["--unshare-all"]
    # Root needs no user namespace, in which it would stay root for limits and for files of root:
    # the worker becomes nobody. Only that takes a right.
    apart = ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
    rights = ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    return [*apart, "--unshare-cgroup-try", *rights]


def _system() -> Iterator[str]:
    yield from _mounted(Path("/usr"), "/usr")
    for name in ("bin", "lib", "lib64"):
        folder = Path("/", name)
        if folder.is_symlink():
            yield from ("--symlink", os.readlink(folder), str(folder))
        elif folder.is_dir():
            yield from ("--ro-bind", str(folder), str(folder))
    for name in ("ld.so.cache", "alternatives", "localtime"):
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")


def _python() -> Iterator[str]:
    base = Path(sys.base_prefix).resolve()
    if not base.is_relative_to("/usr"):
        yield from _mounted(base, str(base))
    yield from _mounted(Path(sys.prefix).resolve(), _ENVIRONMENT)


def _mounted(folder: Path, inside: str) -> Iterator[str]:
    """`folder` read-only at `inside`, with whatever is ours in it hidden."""
    for parent in reversed(Path(inside).parents[:-1]):
        yield from ("--dir", str(parent))  # made by the way, others than root could not enter it
    yield from ("--ro-bind", str(folder), inside)
    root = Path(__file__).resolve().parents[2]
    installed = not (root / "pyproject.toml").is_file()  # among other packages
    for hidden in [root / name for name in _OURS] if installed else [root]:
        if hidden.is_relative_to(folder):
            yield from ("--tmpfs", str(inside / hidden.relative_to(folder)))
