"""The walls that the grader puts around students' code: whether they can be had, and how."""

import os
import platform
from pathlib import Path
from shutil import which

from mpedu.probes import Ask, Finding

_ABOUT = "grader's walls"
_ONLY = "only instructors need it"
# The namespaces and mounts that the grader asks for, around a program that does nothing; then those
# that each exercise asks for inside.
_OUTER = (
    "--die-with-parent --unshare-all --ro-bind / / --proc /proc --dev /dev --tmpfs /tmp".split()
)
_INNER = "unshare --user --mount --pid --net --ipc --uts --fork true".split()
_SYSCTL = Path("/proc/sys")


def walls(ask: Ask) -> Finding:
    """Which of the grader's walls this machine has, as `autograder.sandbox` calls them."""
    program = which("bwrap")
    if platform.system() != "Linux":
        return Finding("note", _ABOUT, "none on this system", f"{_ONLY}. {way_to_walls()}")
    if program is None:
        return _without_bubblewrap(ask, "no bubblewrap")
    answer = ask([program, *_OUTER, "true"])
    if answer.status != 0:
        return _without_bubblewrap(ask, f"bubblewrap cannot start: {answer.last_line()}")
    if which("unshare") is None or ask([program, *_OUTER, *_INNER]).status == 0:
        return Finding("ok", _ABOUT, f"bubblewrap ({program}); {_ONLY}")
    found = "bubblewrap-per-exercise, which is slow: what it starts may make no namespaces"
    return Finding("note", _ABOUT, found, f"{_ONLY}; {_why_not()}")


def _without_bubblewrap(ask: Ask, why: str) -> Finding:
    reached = which("unshare") is not None and ask(_INNER).status == 0
    found = f"{'namespaces' if reached else 'none'} ({why})"
    return Finding("note", _ABOUT, found, f"{_ONLY}. {way_to_walls()}")


def way_to_walls() -> str:
    """How to get walls on this machine, in one sentence."""
    if platform.system() != "Linux":
        return "Walls need Linux with bubblewrap: grade there, or in a virtual machine."
    if which("bwrap"):
        return f"bubblewrap is installed but cannot start here; {_why_not()}."
    tools = {"apt-get": "install -y", "dnf": "install -y", "pacman": "-S", "zypper": "install"}
    found = next((f"{tool} {how}" for tool, how in tools.items() if which(tool)), None)
    if found is None:
        return "Install bubblewrap to have walls."
    return f"For walls: {_sudo()}{found} bubblewrap"


def _why_not() -> str:
    """What forbids user namespaces here, with the command that allows them."""
    forbids = {
        "kernel/apparmor_restrict_unprivileged_userns": ("1", "0"),
        "kernel/unprivileged_userns_clone": ("0", "1"),
        "user/max_user_namespaces": ("0", "15000"),
    }
    for name, (forbidden, allowed) in forbids.items():
        if _read(_SYSCTL / name) == forbidden:
            setting = f"{name.replace('/', '.')}={allowed}"
            return f"user namespaces are forbidden: run `{_sudo()}sysctl {setting}`"
    return "user namespaces may be forbidden, as they are in most containers"


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _sudo() -> str:
    return "" if os.geteuid() == 0 else "sudo "
