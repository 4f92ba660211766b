"""Finds the processes that calls of `run_ranks` left behind."""

import os
import time

import psutil

HANG_S = 60  # a guard, far beyond what anything here takes
SELF = psutil.Process()


def ranks_of_this_process():
    """Processes of ranks started here: the children of the fork server, not the server itself."""
    return [child for child in SELF.children(recursive=True) if _parent(child) != SELF.pid]


def marked(mark):
    """Every process whose command line holds `mark`; ranks have that of their fork server."""
    found = []
    for process in psutil.process_iter(["pid", "cmdline", "status"]):
        words = process.info["cmdline"] or []
        is_gone = process.info["status"] == psutil.STATUS_ZOMBIE
        if process.pid != os.getpid() and not is_gone and any(mark in word for word in words):
            found.append(process)
    return found


def until(condition, guard_s=HANG_S):
    """The first value of `condition()` that is true; fails after `guard_s`."""
    end_s = time.monotonic() + guard_s
    while not (value := condition()):
        assert time.monotonic() < end_s, f"still not: {condition.__name__}"
        time.sleep(0.05)
    return value


def _parent(process):
    try:
        return process.ppid()
    except psutil.NoSuchProcess:
        return SELF.pid
