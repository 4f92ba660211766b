import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from autograder.pool import Lost, PoolError, run_tasks


@contextmanager
def answering(message: str = "") -> Iterator[Callable[[object], object]]:
    """What a pool process does here: squares numbers, dies, raises or hangs when told so."""
    if message:
        raise RuntimeError(message)

    def handle(task: object) -> object:
        if task == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if task == "hang":
            time.sleep(60)
        if task == "raise":
            raise ValueError("a judge with a defect")
        if task == "pid":
            return os.getpid()
        return int(str(task)) ** 2

    yield handle


def test_every_task_is_answered_whatever_the_number_of_processes() -> None:
    done = dict(run_tasks(answering, (), list(range(7)), n_jobs=2, limit_s=60))
    assert done == {n: n * n for n in range(7)}


@pytest.mark.parametrize(
    ("bad", "limit_s", "reason"),
    [
        ("die", 60, "exit code -9"),
        ("hang", 1.0, "longer than a submission may"),
        ("raise", 60, "raised ValueError: a judge with a defect (test_pool.py:"),
    ],
)
def test_a_process_that_fails_costs_only_its_own_task(
    bad: str, limit_s: float, reason: str
) -> None:
    done = dict(run_tasks(answering, (), [2, bad, 3], n_jobs=1, limit_s=limit_s))
    assert (done[2], done[3]) == (4, 9)
    assert isinstance(done[bad], Lost)
    assert reason in done[bad].reason


def test_a_process_that_cannot_start_ends_the_run_with_its_reason() -> None:
    with pytest.raises(PoolError, match="could not start: it raised RuntimeError: no walls here"):
        list(run_tasks(answering, ("no walls here",), [1, 2], n_jobs=1, limit_s=60))


def test_leaving_early_leaves_no_process() -> None:
    run = run_tasks(answering, (), ["pid", "hang", "hang"], n_jobs=2, limit_s=60)
    _, pid = next(run)
    run.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
