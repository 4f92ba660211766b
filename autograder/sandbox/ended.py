"""What the end of a student's process means: a kind of trouble, and a sentence for the student."""

import signal
from typing import NamedTuple

from autograder.worker.walls import Limits


class Report(NamedTuple):
    """How a student's process ended: exit code (minus a signal's number), and what it used."""

    code: int
    cpu_s: float
    peak_bytes: int


def why_ended(report: Report, limits: Limits, lacked_memory: bool) -> tuple[str, str]:
    """Kind and sentence; `lacked_memory`: the kernel has killed for want of it meanwhile."""
    code = report.code
    if code in (-signal.SIGKILL, -signal.SIGXCPU) and report.cpu_s > limits.cpu_s - 1:
        return "timeout", f"your code takes more than {limits.cpu_s} s of processor time."
    if code == -signal.SIGKILL:
        if 2 * report.peak_bytes > limits.memory_bytes:
            n_mib = limits.memory_bytes // 2**20
            return "out_of_memory", f"your code asks for more memory than the {n_mib} MiB it has."
        if lacked_memory:
            return too_much_together(limits)
    return "crashed", f"the process that runs your code ended before it answered ({how(code)})."


def too_much_together(limits: Limits) -> tuple[str, str]:
    """Kind and sentence for an exercise whose processes have no memory left."""
    why = f"than the {limits.job_bytes // 2**20} MiB that all its processes have together"
    return "out_of_memory", f"your code asks for more memory {why}."


def how(code: int) -> str:
    """An exit code in words."""
    # A filter of calls ends what sends SIGKILL to itself (see `worker.seccomp`).
    code = -signal.SIGKILL if code == -signal.SIGSYS else code
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
