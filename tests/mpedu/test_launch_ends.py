"""However a call ends, no process is left: interrupts, deaths of ranks and of the caller."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time

import left_over
import psutil
import pytest
from endless import compute, hold_the_lock, nothing, receive, talk

from mpedu.launch import run_ranks
from mpedu.ranks import processes
from mpedu.ranks.errors import Interrupted, RankError
from mpedu.ranks.interrupts import Interrupts

N_KILLS = int(os.environ.get("MPEDU_KILLS", "10"))


def interrupt_after(delay_s):
    timer = threading.Timer(delay_s, os.kill, [os.getpid(), signal.SIGINT])
    timer.start()
    return timer


def is_running():
    return len(left_over.ranks_of_this_process()) >= 2


class TestInterrupt:
    @pytest.mark.parametrize("program", [receive, compute, hold_the_lock])
    def test_it_ends_the_ranks_and_says_what_they_did(self, program):
        def interrupt_when_it_runs():
            left_over.until(is_running)
            time.sleep(0.3)
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=interrupt_when_it_runs).start()
        with pytest.raises(Interrupted) as caught:
            run_ranks(program, 2)
        assert left_over.ranks_of_this_process() == []
        first, *lines = str(caught.value).splitlines()
        doing = "waits in recv from rank" if program is receive else "is running"
        assert first == "2 ranks, none left running"
        assert [doing in line for line in lines] == [True, True]
        assert run_ranks(nothing, 2).results == [0, 1]

    def test_while_ranks_are_being_started_it_ends_those_too_that_come_after_it(self, monkeypatch):
        """The start of a rank may wait for the server, and nobody waits for that."""
        start = processes.start_process

        def start_slowly(target, rank, arguments):
            process = start(target, rank, arguments)
            if rank == 1:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.5)
            return process

        monkeypatch.setattr(processes, "start_process", start_slowly)
        with pytest.raises(Interrupted, match="3 ranks"):
            run_ranks(receive, 3)
        time.sleep(0.7)
        left_over.until(lambda: not left_over.ranks_of_this_process(), guard_s=10)

    def test_it_can_stop_a_slow_on_report(self):
        def dwell(rank, value):
            interrupt_after(0.05)
            time.sleep(left_over.HANG_S)

        start_s = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            run_ranks(lambda comm: comm.report(1), 1, on_report=dwell)
        assert time.monotonic() - start_s < left_over.HANG_S / 2

    def test_a_handler_that_does_not_raise_stops_nothing(self):
        seen = []
        old = signal.signal(signal.SIGINT, lambda *_: seen.append(1))
        try:
            timers = [interrupt_after(0.02 * number) for number in range(8)]
            run_ranks(lambda comm: time.sleep(0.3), 2)
            for timer in timers:
                timer.join()
        finally:
            signal.signal(signal.SIGINT, old)
        assert 1 <= len(seen) <= 8

    def test_the_handler_is_back_afterwards(self):
        before = signal.getsignal(signal.SIGINT)
        run_ranks(nothing, 1)
        with pytest.raises(RankError):
            run_ranks(lambda comm: 1 / 0, 1)
        assert signal.getsignal(signal.SIGINT) is before


class TestInterrupts:
    def test_what_comes_too_early_is_done_where_it_is_allowed(self):
        steps = []
        with pytest.raises(KeyboardInterrupt), Interrupts() as interrupts:
            signal.raise_signal(signal.SIGINT)
            steps.append("start")
            with interrupts.allowed():
                steps.append("never")
        assert steps == ["start"]

    def test_what_comes_too_late_is_done_at_the_end(self):
        steps = []
        with pytest.raises(KeyboardInterrupt), Interrupts() as interrupts:
            with interrupts.allowed():
                steps.append("work")
            signal.raise_signal(signal.SIGINT)
            steps.append("end")
        assert steps == ["work", "end"]

    def test_a_second_one_does_not_disturb_the_cleaning_up(self):
        steps = []
        with pytest.raises(KeyboardInterrupt), Interrupts() as interrupts:
            try:
                with interrupts.allowed():
                    signal.raise_signal(signal.SIGINT)
            finally:
                signal.raise_signal(signal.SIGINT)
                steps.append("cleaned")
        assert steps == ["cleaned"]

    def test_an_error_on_its_way_is_not_replaced(self):
        with pytest.raises(LookupError), Interrupts():
            signal.raise_signal(signal.SIGINT)
            raise LookupError

    def test_other_threads_and_ignored_interrupts_are_left_alone(self):
        before = signal.getsignal(signal.SIGINT)

        def elsewhere():
            with Interrupts() as interrupts, interrupts.allowed():
                assert signal.getsignal(signal.SIGINT) is before

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            with Interrupts():
                signal.raise_signal(signal.SIGINT)
        finally:
            signal.signal(signal.SIGINT, before)


@pytest.fixture
def caller(tmp_path):
    """Starts a program that calls `run_ranks(PROGRAM, 2)`; its processes can be told by a mark."""
    started = []

    def start(program):
        mark = str(tmp_path)
        lines = ["from endless import *", "from mpedu.launch import run_ranks"]
        code = "\n".join([*lines, f"run_ranks({program}, 2, timeout_s=None)"])
        environment = dict(os.environ, PYTHONPATH=f"{mark}:{os.path.dirname(__file__)}")
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            env=environment,
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process, mark

    yield start
    for process in started:
        process.kill()
        process.communicate(timeout=left_over.HANG_S)


def n_marked(mark, at_least):
    def found():
        return len(left_over.marked(mark)) >= at_least

    return found


def nobody(mark):
    def left():
        return not left_over.marked(mark)

    return left


class TestDeathOfTheCaller:
    def test_the_server_ends_though_it_is_still_loading(self, tmp_path):
        """torch replaced by what takes far longer than the guard."""
        (tmp_path / "torch.py").write_text(f"import time; time.sleep({10 * left_over.HANG_S})")
        server = [sys.executable, "-c", "import mpedu.ranks.preload", mark := str(tmp_path)]
        parent = [sys.executable, "-c", f"import subprocess; subprocess.run({server})"]
        process = subprocess.Popen(parent, env=dict(os.environ, PYTHONPATH=mark))
        left_over.until(n_marked(mark, 2))
        time.sleep(0.5)
        process.kill()
        process.wait()
        assert left_over.until(nobody(mark))

    def test_ctrl_c_while_the_server_is_loading_is_an_ordinary_interrupt(self, caller):
        process, mark = caller("receive")
        left_over.until(n_marked(mark, 1))
        time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the server gets it too
        stderr = process.communicate(timeout=left_over.HANG_S)[1]
        left_over.until(nobody(mark))
        assert "Interrupted: 2 ranks, none left running" in stderr
        assert stderr.count("Traceback") == 1


DAEMON = """
import os, time
from multiprocessing import forkserver, resource_tracker
from mpedu.launch import run_ranks

def program(comm):
    pid = os.fork()
    if pid == 0:
        os.setsid()
        time.sleep(90)  # longer than the guard, but not for ever
    while os.getsid(pid) != pid:
        time.sleep(0.01)
    return pid

child = run_ranks(program, 1).results[0]
print(child, forkserver._forkserver._forkserver_pid, resource_tracker._resource_tracker._pid)
"""


def test_a_child_in_a_session_of_its_own_survives_but_keeps_no_server_or_tracker():
    done = subprocess.run(  # it returns when nobody holds its output any more
        [sys.executable, "-c", DAEMON], capture_output=True, text=True, timeout=left_over.HANG_S
    )
    child, *servers = map(int, done.stdout.split())
    try:
        assert psutil.pid_exists(child)
        left_over.until(lambda: not any(map(psutil.pid_exists, servers)))
    finally:
        os.kill(child, signal.SIGKILL)


def kill_a_rank(draw):
    """Of those there are at a random moment, start-up included; returns what was killed."""
    killed = []

    def kill():
        left_over.until(left_over.ranks_of_this_process)
        time.sleep(draw.choice([0, draw.random() * 0.2]))
        with contextlib.suppress(IndexError, psutil.NoSuchProcess):
            victim = draw.choice(left_over.ranks_of_this_process())
            victim.send_signal(draw.choice([signal.SIGKILL, signal.SIGTERM]))
            killed.append(victim.pid)

    thread = threading.Thread(target=kill)
    thread.start()
    return thread


@pytest.mark.parametrize("seed", range(N_KILLS))
def test_a_kill_at_a_random_moment_leaves_no_process(seed, caller):
    draw = random.Random(seed)
    program = draw.choice([receive, compute, talk])
    kind = ["rank", "interrupt", "rank", "interrupt", "caller", "early end"][seed % 6]
    if kind == "rank":
        thread = kill_a_rank(draw)
        with pytest.raises(RankError, match=r"^rank \d died: its process was killed by SIG"):
            run_ranks(program, draw.randint(2, 4))
        thread.join()
    elif kind == "interrupt":
        with pytest.raises(KeyboardInterrupt):
            timer = interrupt_after(draw.random() * 0.3)
            run_ranks(program, draw.randint(2, 4))
        timer.join()
    elif kind == "early end":  # the interrupt comes about when the call is over
        with contextlib.suppress(KeyboardInterrupt):
            timer = interrupt_after(0.03 + draw.random() * 0.1)
            run_ranks(nothing, 2)
            timer.join()
    else:
        process, mark = caller(program.__name__)
        left_over.until(n_marked(mark, draw.randint(1, 3)))
        time.sleep(draw.random() * 0.3)
        process.send_signal(draw.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGHUP]))
        left_over.until(nobody(mark))
    left_over.until(lambda: not left_over.ranks_of_this_process())
    assert run_ranks(nothing, 2).results == [0, 1]
