"""The fork server: how it is warmed up, what it has loaded, and how it is replaced."""

import multiprocessing
import shutil
import sys
import threading
from multiprocessing import forkserver, util
from pathlib import Path

import left_over
import psutil
import pytest
import torch

from mpedu.launch import run_ranks, warm_up
from mpedu.ranks import starting


def rank_and_size(comm):
    return comm.rank, comm.size


def server_pid():
    return forkserver._forkserver._forkserver_pid


class TestServer:
    def test_a_server_that_was_killed_is_replaced(self):
        run_ranks(rank_and_size, 1)
        psutil.Process(forkserver._forkserver._forkserver_pid).kill()
        assert run_ranks(rank_and_size, 2).results == [(0, 2), (1, 2)]

    def test_a_server_whose_temporary_folder_was_deleted_is_replaced(self):
        run_ranks(rank_and_size, 1)
        shutil.rmtree(util.get_temp_dir())
        assert run_ranks(rank_and_size, 2).results == [(0, 2), (1, 2)]
        assert Path(forkserver._forkserver._forkserver_address).exists()

    def test_ranks_of_a_server_that_is_replaced_run_on(self):
        def delete_and_call(rank, value):
            shutil.rmtree(util.get_temp_dir())
            inner.append(run_ranks(rank_and_size, 2).results)

        def program(comm):
            if comm.rank == 0:
                comm.report(1)
            return comm.all_reduce(torch.ones(1)).item()

        inner, old_pid = [], server_pid()
        assert run_ranks(program, 2, on_report=delete_and_call).results == [2, 2]
        assert inner == [[(0, 2), (1, 2)]] and server_pid() != old_pid
        left_over.until(lambda: not psutil.pid_exists(old_pid))

    @pytest.mark.parametrize("is_graded", [True, False])
    def test_it_is_warmed_up_unless_a_notebook_is_being_graded(self, is_graded, monkeypatch):
        calls = []
        monkeypatch.setattr(starting, "_ensure_server", lambda: calls.append(1))
        if is_graded:
            monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
            monkeypatch.setattr(threading, "Thread", None)
            warm_up()
            assert not calls
        else:
            monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
            warm_up()
            left_over.until(lambda: calls)

    def test_a_rank_costs_far_less_than_loading_torch(self):
        """A fork server that preloads nothing would make every rank load it."""

        def program(comm):
            return [name in sys.modules for name in ("mpedu.pipeline", "torch.fx")]

        assert run_ranks(program, 1).results == [[True, True]]

    def test_the_server_touches_no_gpu_and_leaves_no_thread(self):
        def program(comm):
            return torch.cuda.is_initialized(), [t.name for t in threading.enumerate()]

        touched, threads = run_ranks(program, 1).results[0]
        assert not touched and len(threads) == 2  # the main one, and the watch on the parent

    def test_without_a_fork_server_it_works_and_says_so_once(self, monkeypatch, capsys):
        monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: ["spawn"])
        starting._say_slow.cache_clear()
        factor = 3
        run = run_ranks(lambda comm: factor * comm.all_reduce(torch.ones(1)).item(), 2)
        starting.context()
        assert run.results == [6, 6]
        assert capsys.readouterr().out.count("no fork server: each rank loads PyTorch anew") == 1
