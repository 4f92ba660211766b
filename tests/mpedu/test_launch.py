import gc
import os
import platform
import random
import subprocess
import sys
import threading

import left_over
import numpy as np
import psutil
import pytest
import torch
from torch import nn

from mpedu.launch import run_ranks
from mpedu.ranks import starting
from mpedu.ranks.errors import RankError
from mpedu.ranks.travel import MUCH_BYTES


def rank_and_size(comm):
    return comm.rank, comm.size


class Doubling(nn.Module):
    def forward(self, x):
        return 2 * x


class TestWhatTravels:
    def test_results_come_back_in_order_of_rank(self):
        assert run_ranks(rank_and_size, 3).results == [(0, 3), (1, 3), (2, 3)]

    def test_closures_lambdas_and_local_classes_travel_by_value(self):
        factor = 3

        class Scaling(nn.Module):
            def forward(self, x):
                return factor * x

        layer = Scaling()
        run = run_ranks(lambda comm, x: layer(x) + comm.rank, 2, torch.ones(2))
        assert [r.tolist() for r in run.results] == [[3, 3], [4, 4]]

    def test_what_a_rank_made_is_of_the_callers_own_classes(self):
        class Local:
            pass

        local, module = run_ranks(lambda comm: (Local(), Doubling()), 1).results[0]
        assert isinstance(local, Local) and isinstance(module, Doubling)

    @pytest.mark.parametrize("n_ranks", [np.int64(2), np.uint8(2)])
    def test_numbers_of_numpy_will_do(self, n_ranks):
        run = run_ranks(rank_and_size, n_ranks, timeout_s=np.float32(50), wait_s=np.int64(50))
        assert run.results == [(0, 2), (1, 2)]

    def test_sixteen_ranks_fit_on_any_machine(self):
        run = run_ranks(lambda comm: comm.all_reduce(torch.tensor(comm.rank)).item(), 16)
        assert run.results == [120] * 16

    def test_reports_arrive_one_by_one_while_ranks_run(self):
        seen = []

        def program(comm):
            for number in range(3):
                comm.report({"number": number, "of": comm.rank})

        run_ranks(program, 2, on_report=lambda rank, value: seen.append((rank, value)))
        for rank in range(2):
            mine = [value for sender, value in seen if sender == rank]
            assert mine == [{"number": number, "of": rank} for number in range(3)]

    def test_an_error_of_on_report_reaches_the_caller_and_ends_the_ranks(self):
        def refuse(rank, value):
            raise LookupError("no")

        def program(comm):
            comm.report(1)
            comm.recv(1 - comm.rank, torch.zeros(1))

        with pytest.raises(LookupError):
            run_ranks(program, 2, on_report=refuse)
        assert left_over.ranks_of_this_process() == []

    def test_much_data_in_the_program_is_warned_of(self):
        data = bytes(MUCH_BYTES)
        with pytest.warns(UserWarning, match="50 MB, sent to every rank: make large arrays inside"):
            assert run_ranks(lambda comm: len(data), 1).results == [MUCH_BYTES]


class TestFreshProcesses:
    def test_nothing_of_one_call_is_left_in_the_next(self):
        def program(comm):
            seen = getattr(torch, "mark_of_test", None), os.environ.get("MARK_OF_TEST")
            torch.mark_of_test = 1
            os.environ["MARK_OF_TEST"] = "1"
            return *seen, os.getpid()

        first, second = (run_ranks(program, 2).results for _ in range(2))
        assert [r[:2] for r in first + second] == [(None, None)] * 4
        assert len({r[2] for r in first + second}) == 4

    def test_folder_environment_and_path_of_the_caller_reach_the_ranks(self, tmp_path, monkeypatch):
        (tmp_path / "own_module_of_test.py").write_text("ANSWER = 42\n")
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "path", ["", *sys.path])
        monkeypatch.setenv("MARK_OF_TEST", "ä")

        def program(comm):
            import own_module_of_test

            return os.getcwd(), os.environ["MARK_OF_TEST"], own_module_of_test.ANSWER

        assert run_ranks(program, 1).results == [(str(tmp_path), "ä", 42)]

    def test_numpys_own_random_numbers_differ_by_rank_and_call(self):
        draws = [run_ranks(lambda comm: np.random.rand(), 2).results for _ in range(2)]
        assert len({*draws[0], *draws[1]}) == 4

    def test_a_rank_computes_with_one_thread(self):
        assert run_ranks(lambda comm: torch.get_num_threads(), 2).results == [1, 1]

    def test_a_script_without_a_guard_does_not_repeat_its_top_level(self, tmp_path):
        script = tmp_path / "script.py"
        script.write_text(
            "from mpedu.launch import run_ranks\n"
            "print('top')\n"
            "class Own: pass\n"
            "def program(comm):\n"
            "    print('here')\n"
            "    return Own()\n"
            "print([type(result) is Own for result in run_ranks(program, 2).results])\n"
        )
        done = subprocess.run(
            [sys.executable, script], capture_output=True, text=True, timeout=left_over.HANG_S
        )
        assert sorted(done.stdout.splitlines()) == [
            "[True, True]",
            "[rank 0] here",
            "[rank 1] here",
            "top",
        ]
        assert done.stderr == ""

    def test_fifty_calls_leave_no_file_descriptor_process_or_folder(self, tmp_path, monkeypatch):
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

        def program(comm, fails):
            if fails:
                raise ValueError

        run_ranks(program, 1, False)
        gc.collect()
        before = psutil.Process().num_fds(), threading.active_count()
        for number in range(50):
            if number % 5 == 0:
                with pytest.raises(RankError):
                    run_ranks(program, 1, True)
            else:
                run_ranks(program, 1, False)
        gc.collect()
        assert (psutil.Process().num_fds(), threading.active_count()) == before
        assert list(tmp_path.iterdir()) == [] and left_over.ranks_of_this_process() == []


BAD = {
    "zero": (dict(n_ranks=0), "n_ranks=0 is too small; give n_ranks >= 1"),
    "float": (dict(n_ranks=2.0), "n_ranks=2.0 is not a whole number; give an int >= 1"),
    "true": (dict(n_ranks=True), "n_ranks=True is not a whole number; give an int >= 1"),
    "many": (dict(n_ranks=257), "n_ranks=257 is too many for one machine; give at most 256"),
    "no time": (dict(timeout_s=0), "timeout_s=0 is no limit; give seconds above 0, or None"),
    "nan": (dict(wait_s=float("nan")), "wait_s=nan is no limit; give seconds above 0, or None"),
    "endless": (dict(wait_s=float("inf")), "wait_s=inf is no limit; give seconds above 0, or None"),
    "text": (dict(timeout_s="3"), "timeout_s='3' is no limit; give seconds above 0, or None"),
    "flag": (dict(wait_s=True), "wait_s=True is no limit; give seconds above 0, or None"),
    "program": (dict(program=3), "3 cannot be called; give a function program(comm, ...)"),
}


class TestBadInput:
    @pytest.mark.parametrize(("wrong", "text"), BAD.values(), ids=BAD)
    def test_it_is_one_sentence_before_anything_starts(self, wrong, text, monkeypatch):
        monkeypatch.setattr(starting, "start_process", None)
        call = dict(program=rank_and_size, n_ranks=2) | wrong
        with pytest.raises(ValueError) as caught:
            run_ranks(**call)
        assert str(caught.value) == text

    def test_a_program_that_cannot_travel_is_named_with_the_reason(self):
        lock = threading.Lock()

        def holder(comm):
            return lock

        with pytest.raises(ValueError, match=r"holder and its arguments cannot .*_thread\.lock"):
            run_ranks(holder, 2)

    def test_a_rank_cannot_start_ranks(self):
        with pytest.raises(RankError, match="a rank cannot start ranks of its own; call run_ranks"):
            run_ranks(lambda comm: run_ranks(rank_and_size, 2), 1)


class TestThreads:
    def test_two_calls_at_once_from_two_threads_stay_apart(self):
        results = {}

        def call(name):
            run = run_ranks(lambda comm: (name, comm.all_reduce(torch.ones(1)).item()), 3)
            results[name] = run.results

        main = sys.modules["__main__"]
        threads = [threading.Thread(target=call, args=(name,)) for name in "abc"]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            assert sys.modules["__main__"] is main  # for whoever looks, at any moment
        assert results == {name: [(name, 3)] * 3 for name in "abc"}

    def test_only_ranks_are_kept_from_the_callers_script(self):
        def keys(name):
            return set(starting.spawn.get_preparation_data(name))

        everything = keys("another process")
        with starting._without_main():
            hidden = everything - keys(f"{starting.NAME}-0")
            assert keys("another process") == everything
        assert hidden and all(key.startswith("init_main") for key in hidden)

    def test_multiprocessing_is_left_as_it_was(self):
        before = starting.spawn.get_preparation_data
        run_ranks(rank_and_size, 1)
        assert starting.spawn.get_preparation_data is before


class TestRandomPrograms:
    @pytest.mark.parametrize("seed", range(3))
    def test_any_exchange_that_fits_together_ends_as_it_should(self, seed):
        draw = random.Random(seed)
        n_ranks = draw.randint(2, 5)
        letters = [
            (*draw.sample(range(n_ranks), 2), draw.randint(0, 3), draw.randint(0, 5000))
            for _ in range(30)
        ]

        def program(comm):
            requests, received = [], []
            for number, (source, destination, tag, size) in enumerate(letters):
                if comm.rank == source:
                    requests.append(comm.isend(torch.full((size,), number), destination, tag))
                if comm.rank == destination:
                    received.append((number, torch.zeros(size, dtype=torch.int64)))
                    requests.append(comm.irecv(source, received[-1][1], tag))
            for request in requests:
                request.wait()
            return all(bool((x == number).all()) for number, x in received)

        assert run_ranks(program, n_ranks).results == [True] * n_ranks


def page_faults_by_round(comm):
    import resource

    faults = []
    for _ in range(6):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        held = [torch.ones(1 << 18) for _ in range(16)]  # 16 MB, 4096 pages
        del held
        faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    return faults


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc is told what to keep")
def test_a_rank_keeps_the_memory_that_a_step_frees_for_the_next_step():
    for first, *_, last in run_ranks(page_faults_by_round, 2).results:
        assert first > 1000
        assert last < 100
