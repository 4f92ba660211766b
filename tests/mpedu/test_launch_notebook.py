"""`run_ranks` in a real notebook kernel: cells, the stop button, and the kernel's own end."""

import time

import left_over
import pytest
from jupyter_client.manager import KernelManager

SETUP = """
import os, time, torch
from torch import nn
from mpedu.launch import run_ranks
"""
TALK = """
def program(comm):
    while True:
        comm.all_reduce(torch.zeros(1))
run_ranks(program, 3, timeout_s=None)
"""


class Kernel:
    """A kernel whose processes, and those of its ranks, can be told by `mark`."""

    def __init__(self, mark):
        self.mark = str(mark)
        self.manager = KernelManager(kernel_name="python3")
        self.manager.start_kernel(cwd=self.mark)
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=left_over.HANG_S)
        # The fork server's command line has it from the path.
        self.run(f"import sys; sys.path.append({self.mark!r})")
        self.run(SETUP)

    def run(self, code):
        """What a cell shows: its value, or its traceback."""
        return self.outcome(self.client.execute(code))

    def outcome(self, message_id):
        shown = []
        while True:
            message = self.client.get_iopub_msg(timeout=left_over.HANG_S)
            if message["parent_header"].get("msg_id") != message_id:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "stream":
                shown.append(content["text"])
            elif kind == "execute_result":
                shown.append(content["data"]["text/plain"])
            elif kind == "error":
                shown.append("\n".join(content["traceback"]))
            elif kind == "status" and content["execution_state"] == "idle":
                return "".join(shown)

    def ranks(self):
        return left_over.marked(self.mark)[1:]  # all but the fork server

    def close(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    started = Kernel(tmp_path_factory.mktemp("kernel"))
    yield started
    started.close()


@pytest.fixture
def doomed(tmp_path):
    started = Kernel(tmp_path)
    yield started
    started.close()


def all_run(kernel, n_ranks=3):
    def found():
        return len(kernel.ranks()) >= n_ranks

    return found


def none_left(kernel):
    def found():
        return not left_over.marked(kernel.mark)

    return found


def test_functions_closures_and_classes_of_cells_run_on_ranks(kernel):
    kernel.run("class Scaling(nn.Module):\n def forward(self, x): return factor * x")
    kernel.run("factor = 3; layer = Scaling(); made = lambda comm: (layer(comm.rank), Scaling())")
    shown = kernel.run("[(x, type(y) is Scaling) for x, y in run_ranks(made, 4).results]")
    assert shown == "[(0, True), (3, True), (6, True), (9, True)]"


def test_a_changed_cell_is_what_runs_next(kernel):
    kernel.run("def program(comm): return 'old'")
    kernel.run("run_ranks(program, 1)")
    kernel.run("def program(comm): return 'new'")
    assert kernel.run("run_ranks(program, 2).results") == "['new', 'new']"


def test_the_folder_and_environment_of_the_notebook_reach_the_ranks(kernel):
    kernel.run("os.environ['MARK_OF_TEST'] = 'x'")
    shown = kernel.run("run_ranks(lambda c: (os.getcwd(), os.environ['MARK_OF_TEST']), 1).results")
    assert shown == f"[({kernel.mark!r}, 'x')]"


def test_output_of_ranks_stands_below_the_cell(kernel):
    shown = kernel.run("_ = run_ranks(lambda comm: print('grüße'), 2)")
    assert sorted(shown.splitlines()) == ["[rank 0] grüße", "[rank 1] grüße"]


def test_a_failing_rank_is_told_in_short_with_the_line_of_the_cell(kernel):
    kernel.run("def helper(x):\n    return 1 / x")
    shown = kernel.run(
        "def program(comm):\n"
        "    if comm.rank == 1:\n"
        "        helper(0)\n"
        "    comm.barrier()\n"
        "run_ranks(program, 2)"
    )
    lines = shown.splitlines()
    number = int(kernel.run("len(In) - 2"))
    assert lines[0] == "RankError: rank 1 failed: ZeroDivisionError: division by zero"
    assert lines[1] == f"  Cell In[{number}] line 3, in program: helper(0)"
    assert lines[2] == f"  Cell In[{number - 1}] line 2, in helper: return 1 / x"
    assert lines[3].startswith("  rank 0 waits in barrier") and len(lines) == 4


def test_a_busy_cell_function_is_told_with_its_line(kernel):
    shown = kernel.run(
        "def program(comm):\n    while True: x = 1\nrun_ranks(program, 1, timeout_s=0.3)"
    )
    assert "rank 0 is running, at Cell In[" in shown and "x = 1" in shown


def test_the_stop_button_ends_the_ranks_and_shows_what_they_did(kernel):
    message = kernel.client.execute(TALK)
    left_over.until(all_run(kernel))
    time.sleep(0.2)
    kernel.manager.interrupt_kernel()
    lines = kernel.outcome(message).splitlines()
    assert kernel.ranks() == []
    assert lines[0] == "Stopped: 3 ranks, none left running"
    assert len(lines) == 4 and all(line.startswith("  rank ") for line in lines[1:])
    assert kernel.run("run_ranks(lambda comm: comm.rank, 3).results") == "[0, 1, 2]"


@pytest.mark.parametrize("end", ["kill", "restart"])
def test_when_the_kernel_ends_so_do_its_ranks_and_server(doomed, end):
    """Also ranks in C code that holds Python's own lock: there no thread could end them."""
    doomed.client.execute("import re; run_ranks(lambda c: re.match('(a*)*b', 'a' * 100), 3)")
    left_over.until(all_run(doomed))
    time.sleep(0.3)
    if end == "kill":
        doomed.manager.signal_kernel(9)
    else:
        doomed.manager.restart_kernel()
    assert left_over.until(none_left(doomed))
