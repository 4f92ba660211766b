import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from autograder.pool import Lost, PoolError, process_ends_after, run_tasks


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
        if task == "hang alone":
            with process_ends_after(0.2):
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
        ("hang alone", 60, "exit code 1"),
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


@contextmanager
def unborn(place: str, n: int) -> Iterator[Callable[[object], object]]:
    """Dies before it is ready, the first `n` times."""
    starts = Path(place)
    n_before = len(starts.read_text()) if starts.exists() else 0
    starts.write_text("x" * (n_before + 1))
    if n_before < n:
        os.kill(os.getpid(), signal.SIGKILL)
    yield lambda task: task


@pytest.mark.parametrize("n", [2, 3])
def test_a_process_killed_while_it_starts_is_started_again_but_not_for_ever(
    tmp_path: Path, n: int
) -> None:
    run = run_tasks(unborn, (str(tmp_path / "starts"), n), [1, 2], n_jobs=1, limit_s=60)
    if n < 3:
        assert dict(run) == {1: 1, 2: 2}
    else:
        with pytest.raises(PoolError, match="it ended with exit code -9"):
            list(run)


def test_leaving_early_leaves_no_process() -> None:
    run = run_tasks(answering, (), ["pid", "hang", "hang"], n_jobs=2, limit_s=60)
    _, pid = next(run)
    run.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@contextmanager
def dying(place: str) -> Iterator[Callable[[object], object]]:
    """Dies on each task, but not once it has the given number of tries behind it."""

    def handle(task: tuple[str, int]) -> int:
        name, n_deaths = task
        tries = Path(place) / name
        n_tries = len(tries.read_text()) if tries.exists() else 0
        tries.write_text("x" * (n_tries + 1))
        if n_tries < n_deaths:
            os.kill(os.getpid(), signal.SIGKILL)
        return n_tries + 1

    yield handle


def test_a_lost_task_is_given_to_another_process_until_it_has_had_its_tries(
    tmp_path: Path,
) -> None:
    tasks = [("never", 0), ("twice", 2), ("always", 99)]
    done = dict(run_tasks(dying, (str(tmp_path),), tasks, n_jobs=2, limit_s=60, most_tries=3))
    assert (done["never", 0], done["twice", 2]) == (1, 3)
    assert isinstance(done["always", 99], Lost)
    assert (tmp_path / "always").read_text() == "xxx"
