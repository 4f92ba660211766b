"""What a student's process may use, and what is left of it."""

import os

import pytest
from sandboxed import LIMITS, ask, trouble, works

from autograder.sandbox import PER_EXERCISE, Sandbox


def test_a_process_that_tries_to_kill_everything_kills_only_itself(walled: Sandbox) -> None:
    source = """
import os
def f():
    if os.fork() == 0:
        while True: pass
    os.kill(-1, 9)
    os.kill(os.getpid(), 9)
"""
    before = walled._parent
    error = trouble(walled, source)
    how = "the process that runs your code ended before it answered (signal SIGKILL)."
    if walled.rung == PER_EXERCISE and os.geteuid() != 0:  # it shares its user with the guardian
        how = "your code ended its process and the one that watches over it."
    assert (error.kind, error.message) == ("crashed", how)
    assert works(walled)
    assert walled._parent is before


def test_a_fork_bomb_is_bounded(walled: Sandbox) -> None:
    source = """
import os, time
def f():
    n = 0
    try:
        while n < 500:
            if os.fork() == 0: time.sleep(600)
            n += 1
    except OSError: pass
    return n
"""
    # Where root cannot nest namespaces, those of all its other nobodies on the machine count too.
    roughly = walled.rung == PER_EXERCISE and os.geteuid() == 0
    assert 0 < ask(walled, source) < (LIMITS.job_processes if roughly else LIMITS.n_processes)
    assert works(walled)


def test_a_file_and_all_files_together_are_bounded(walled: Sandbox) -> None:
    source = """
def f(place):
    sizes = []
    for n in range(50):
        try:
            with open(f"{place}/{n}", "wb") as file:
                sizes.append(0)
                for _ in range(40): sizes[-1] += file.write(bytes(100_000)); file.flush()
        except OSError: pass
    return sizes
"""
    for place in ("/tmp", "/dev/shm"):
        sizes = ask(walled, source, place)
        assert 0 < max(sizes) <= LIMITS.file_bytes
        assert sum(sizes) <= 4 * LIMITS.file_bytes


@pytest.mark.parametrize("what", ["CPU", "NOFILE", "FSIZE", "CORE", "NPROC"])
def test_limits_cannot_be_raised(walled: Sandbox, what: str) -> None:
    source = f"""
import resource
def f():
    soft, hard = resource.getrlimit(resource.RLIMIT_{what})
    try: resource.setrlimit(resource.RLIMIT_{what}, (hard + 1, hard + 1))
    except (ValueError, OSError): return "refused"
    return "raised"
"""
    assert ask(walled, source) == "refused"
