"""Ranks under the real torchrun: what they give, how they end, and that nobody is left."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import left_over
import pytest
import under_torchrun

from mpedu.launch import run_ranks
from mpedu.torchrun import from_environment

PROGRAM = str(Path(under_torchrun.__file__))
STANDALONE = ("--standalone",)
RENDEZVOUS = ("--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--rdzv-id=7")


def torchrun(how, n_ranks, *options, folder):
    """What a run of `under_torchrun.py` printed, and its exit status; nobody is left after it."""
    command = [sys.executable, "-m", "torch.distributed.run", *options]
    command += [f"--nproc-per-node={n_ranks}", PROGRAM, how, str(folder)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=left_over.HANG_S,
        env=dict(os.environ, TMPDIR=str(folder)),
    )
    assert not left_over.marked(str(folder))
    assert not list(Path(folder).glob("mpedu-*"))  # and no file either
    return done


@pytest.mark.parametrize(("n_ranks", "options"), [(2, STANDALONE), (4, RENDEZVOUS)])
def test_a_program_gives_what_it_gives_on_processes(n_ranks, options, tmp_path):
    done = torchrun("everything", n_ranks, *options, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    results = run_ranks(under_torchrun.everything, n_ranks).results
    wanted = [f"rank {rank} gives {result}" for rank, result in enumerate(results)]
    assert sorted(line for line in done.stdout.splitlines() if line) == wanted
    assert "Warning" not in done.stderr


FAULTS = {
    "deadlock": "deadlock: rank 0 waits for rank 1, rank 1 waits for rank 0 "
    "(rank 0 has waited for more than 0.8 s):\n  rank 0 waits in recv from rank 1 (tag 3), for ",
    "early_end": "deadlock: rank 1 waits for rank 0, which has finished "
    "(rank 1 has waited for more than 0.8 s):\n  rank 1 waits in recv from rank 0, for ",
    "raising": "rank 1 failed: ValueError: odd\n  under_torchrun.py line ",
    "dying": "rank 0 ends in consequence: recv from rank 1: connection ",
    "leaving": "rank 1 never received what rank 0 sent it: float64 [5000]",
    "differing": "failed: ValueError: all_reduce: rank 0 gives float64 [1], rank 1 float64 [2]",
}


@pytest.mark.parametrize("how", FAULTS)
def test_a_fault_is_told_and_ends_all_ranks(how, tmp_path):
    done = torchrun(how, 2, *STANDALONE, folder=tmp_path)
    assert done.returncode == 1
    assert FAULTS[how] in done.stderr
    assert "gives" not in done.stdout
    waited_s = [float(text) for text in re.findall(r", for (\d+\.\d) s", done.stderr)]
    assert all(under_torchrun.WAIT_S <= s <= under_torchrun.WAIT_S + 0.5 for s in waited_s)
    if how == "deadlock":
        assert len(waited_s) == 2 and done.stderr.count("in deadlock: comm.recv(") == 2
    if how == "dying":
        assert "exitcode  : 7" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="there a process does not know its parent")
def test_ranks_end_though_torchrun_was_killed_and_they_wait_for_nobody(tmp_path):
    command = [sys.executable, "-m", "torch.distributed.run", *STANDALONE, "--nproc-per-node=2"]
    process = subprocess.Popen(
        [*command, PROGRAM, "endless", str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env=dict(os.environ, TMPDIR=str(tmp_path)),
    )
    with process:
        for _ in range(2):
            assert process.stdout.readline() == "rank at work\n"
        process.kill()

        def nobody():
            return not left_over.marked(str(tmp_path))

        assert left_over.until(nobody)


@pytest.fixture
def set_environment(monkeypatch):
    """Sets the variables of torchrun, and unsets those that are not given."""

    def give(**given):
        for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv("MASTER_PORT", raising=False)
        for name, value in given.items():
            monkeypatch.setenv(name, value)

    return give


ALL = dict(LOCAL_RANK="0", LOCAL_WORLD_SIZE="2", MASTER_ADDR="localhost", MASTER_PORT="1")


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (
            {},
            "RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT are not set: "
            "start with torchrun --standalone --nproc-per-node 2 program.py, or use run_ranks",
        ),
        (dict(ALL, RANK="0"), "WORLD_SIZE is not set: start with torchrun"),
        (dict(ALL, RANK="one", WORLD_SIZE="2"), "RANK='one', WORLD_SIZE='2', LOCAL_RANK='0'"),
        (
            dict(ALL, RANK="2", WORLD_SIZE="2"),
            "RANK=2 of WORLD_SIZE=2 cannot be; ranks count from 0",
        ),
        (dict(ALL, RANK="0", WORLD_SIZE="999"), "there are at most 256"),
    ],
    ids=["nothing", "no size", "a word", "a rank too far", "too many"],
)
def test_variables_that_are_missing_or_wrong_are_named(given, text, set_environment):
    set_environment(**given)
    with pytest.raises(ValueError, match=re.escape(text)), from_environment():
        pass
    assert not list(Path(tempfile.gettempdir()).glob(f"mpedu-board-{os.getppid()}-1-*"))


@pytest.mark.parametrize("wait_s", [0, -1, True, "5", float("inf"), float("nan")])
def test_a_limit_that_is_none_is_refused(wait_s, set_environment):
    set_environment(**ALL, RANK="0", WORLD_SIZE="2")
    text = "is no limit; give seconds above 0"
    with pytest.raises(ValueError, match=text), from_environment(wait_s=wait_s):
        pass
