import os
import signal
import subprocess
import sys
import time

import pytest

from mpedu.ranks.board import Waiting
from mpedu.ranks.deadlock import Stillness, blockers, deadlock

LONG_S = 5.0


def recv(rank, source, for_s=LONG_S):
    return Waiting(rank, f"recv from rank {source}", for_s, (source,))


def together(rank, *others, text="all_reduce", for_s=LONG_S):
    return Waiting(rank, text, for_s, others)


@pytest.mark.parametrize(
    ("waiting", "finished", "text"),
    [
        ([recv(0, 1), recv(1, 0)], [], "rank 0 waits for rank 1, rank 1 waits for rank 0"),
        (
            [recv(0, 1), recv(1, 2), recv(2, 1)],
            [],
            "rank 1 waits for rank 2, rank 2 waits for rank 1",
        ),
        ([recv(0, 1)], [1], "rank 0 waits for rank 1, which has finished"),
        (
            [recv(0, 1), recv(1, 2)],
            [2],
            "rank 0 waits for rank 1, rank 1 waits for rank 2, which has finished",
        ),
        (
            [together(0, 1, 2), together(1, 0, 2), recv(2, 0)],
            [],
            "rank 0 waits for rank 2, rank 2 waits for rank 0",
        ),
        (
            [together(0, 1, 2), together(1, 0, 2)],
            [2],
            "rank 0 waits for rank 2, which has finished",
        ),
        (
            [together(0, 1), together(1, 0, text="barrier")],
            [],
            "rank 0 waits for rank 1, rank 1 waits for rank 0",
        ),
    ],
)
def test_a_deadlock_is_told_as_who_waits_for_whom(waiting, finished, text):
    assert deadlock(waiting, finished) == text


@pytest.mark.parametrize(
    "waiting",
    [
        [],
        [recv(0, 1)],  # rank 1 computes
        [recv(0, 1), recv(1, 2)],  # rank 2 computes
        [recv(0, 1), recv(1, 0, for_s=0.01)],  # its message may be on the way
        [together(0, 1, 2), together(1, 0, 2)],  # rank 2 is about to come
        [together(0, 1), together(1, 0)],  # all have come
    ],
)
def test_ranks_that_may_still_go_on_are_no_deadlock(waiting):
    assert deadlock(waiting, []) == ""


def test_a_circle_among_very_many_ranks_is_found_at_once():
    n_ranks = 200
    everybody = range(n_ranks)
    waiting = [together(r, *everybody, text=f"barrier {r}") for r in everybody]
    assert deadlock(waiting, []).startswith("rank 0 waits for rank")


def test_whoever_waits_in_a_collective_waits_for_those_who_have_not_come():
    waiting = [together(0, 1, 2, 3), together(2, 0, 1, 3), recv(3, 0)]
    assert blockers(waiting) == {0: [1, 3], 2: [1, 3], 3: [0]}


@pytest.fixture
def process():
    started = []

    def start(code):
        started.append(subprocess.Popen([sys.executable, "-S", "-c", code]))
        return started[-1].pid

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr("mpedu.ranks.deadlock.STILL_S", 0.2)


SLEEP = "import time; time.sleep(60)"


def still(pids, waiting, looks=25, n_finished=0):
    stillness = Stillness()
    for _ in range(looks):
        if stillness.has_come(waiting, pids, n_finished):
            return True
        time.sleep(0.1)
    return False


def test_stillness_comes_where_all_wait_and_nobody_works(process):
    assert still([process(SLEEP)], [recv(0, 1)])


def test_no_stillness_while_a_message_may_be_on_its_way(process):
    assert not still([process("while True: pass")], [recv(0, 1)], looks=6)


@pytest.mark.parametrize("waiting", [[], [recv(0, 1, for_s=0.1)]])
def test_no_stillness_where_a_rank_computes_or_has_just_begun_to_wait(process, waiting):
    assert not still([process(SLEEP)], waiting, looks=6)


@pytest.mark.parametrize("stopped", [0, 1], ids=["the one that waits", "the one that has finished"])
def test_no_stillness_while_a_rank_is_stopped_and_none_for_a_while_after_it(process, stopped):
    pids = [process(SLEEP), process(SLEEP)]
    os.kill(pids[stopped], signal.SIGSTOP)
    assert not still(pids, [recv(0, 1)], looks=8, n_finished=1)
    os.kill(pids[stopped], signal.SIGCONT)
    assert still(pids, [recv(0, 1)], n_finished=1)


def test_no_stillness_while_a_thread_could_work_however_little_it_gets(process, monkeypatch):
    """On a busy machine it may get nothing: its state tells, not the time it used."""
    monkeypatch.setattr("mpedu.ranks.deadlock.BUSY_SHARE", 1e9)
    spin = "import threading\ndef spin():\n while True: pass\nthreading.Thread(target=spin).start()"
    assert not still([process(f"{spin}\n{SLEEP}")], [recv(0, 1)], looks=8)
