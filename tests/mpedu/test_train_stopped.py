"""Whatever stops a training run, it goes on as if nothing had been."""

import contextlib
import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import left_over
import psutil
import pytest
from small_runs import SMALL, command, losses_of, small, text_in, told_losses

from mpedu import train as module
from mpedu.__main__ import main
from mpedu.checkpoint import latest_checkpoint

STEPS = ["--steps", "6", "--save-every", "2"]
DROPOUT = ["--dropout", "0.2"]


@pytest.fixture(autouse=True, scope="module")
def handler():
    """The signal handler that a command sets, set back."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return losses_of(small(tmp_path_factory.mktemp("text"), dropout=0.2), 6)


def struck(monkeypatch, rank, place, number, blow):
    """From now on `blow()` strikes `rank` in its call `number`, from 1, of the function `place`."""
    whole = module.train_rank

    def hit(comm, *arguments):
        import importlib

        owner, name = place.rsplit(":", 1)
        holder = importlib.import_module(owner.split(":")[0])
        for part in owner.split(":")[1:]:
            holder = getattr(holder, part)
        healthy, calls = getattr(holder, name), []

        def counting(*given, **more):
            calls.append(1)
            if len(calls) == number and comm.rank == rank:
                blow()
            return healthy(*given, **more)

        setattr(holder, name, counting)
        return whole(comm, *arguments)

    monkeypatch.setattr(module, "train_rank", hit)


def sigkill():
    def blow():
        import os
        import signal

        os.kill(os.getpid(), signal.SIGKILL)

    return blow


def full_disk():
    def blow():
        raise OSError(28, "No space left on device")

    return blow


def goes_on(folder, undisturbed):
    assert main(["train", "--resume", "--out", str(folder / "run")]) == 0
    assert told_losses(folder / "run") == undisturbed
    saved = latest_checkpoint(folder / "run" / "checkpoints")
    assert (saved.step, saved.about["losses"]) == (6, undisturbed)


UPDATE = "mpedu.training:Trainer:update"
WRITE = "mpedu.checkpoint:_write_tensors"
PUBLISH = "mpedu.checkpoint:_publish"


@pytest.mark.parametrize(
    ("rank", "place", "number", "kept"),
    [(0, UPDATE, 5, 4), (1, UPDATE, 4, 2), (1, WRITE, 2, 2), (0, PUBLISH, 3, 4)],
)
def test_a_run_whose_rank_was_killed_names_it_and_goes_on_bit_for_bit(
    tmp_path, monkeypatch, capsys, undisturbed, rank, place, number, kept
):
    with monkeypatch.context() as patch:
        struck(patch, rank, place, number, sigkill())
        assert command(tmp_path, *STEPS, *DROPOUT, "--out", tmp_path / "run") == 1
    said = capsys.readouterr().err
    assert f"course train: rank {rank} died: its process was killed by SIGKILL" in said
    way_on = f"`./course train --resume --out {tmp_path / 'run'}`"
    assert said.splitlines()[-1] == f"Step {kept} is kept whole: {way_on} goes on after it."
    goes_on(tmp_path, undisturbed)


@pytest.mark.parametrize("place", [UPDATE, PUBLISH])
def test_a_run_killed_before_its_first_checkpoint_starts_anew(
    tmp_path, monkeypatch, capsys, undisturbed, place
):
    words = [*STEPS, *DROPOUT, "--out", tmp_path / "run"]
    with monkeypatch.context() as patch:
        struck(patch, 0, place, 1, sigkill())
        assert command(tmp_path, *words) == 1
    assert "No checkpoint was written yet: the same command starts" in capsys.readouterr().err
    assert command(tmp_path, *words, "--resume") == 2
    assert command(tmp_path, *words) == 0
    assert told_losses(tmp_path / "run") == undisturbed


def test_a_full_disk_is_told_with_the_step_that_is_whole(
    tmp_path, monkeypatch, capsys, undisturbed
):
    with monkeypatch.context() as patch:
        struck(patch, 1, WRITE, 2, full_disk())
        assert command(tmp_path, *STEPS, *DROPOUT, "--out", tmp_path / "run") == 1
    said = capsys.readouterr().err
    assert "rank 1 failed" in said and "step-000004 is not written" in said
    assert "No space left on device); make room" in said and "Step 2 is kept whole" in said
    goes_on(tmp_path, undisturbed)


def test_a_full_disk_under_the_metrics_stops_the_run_and_loses_nothing(
    tmp_path, monkeypatch, capsys, undisturbed
):
    real = Path.open

    def full(path, mode="r", *given, **more):
        is_metrics = mode == "a" and path.name == "metrics.jsonl" and path.exists()
        if is_metrics and metrics_of(path.parent) == 4:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        return real(path, mode, *given, **more)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", full)
        assert command(tmp_path, *STEPS, *DROPOUT, "--out", tmp_path / "run") == 1
    said = capsys.readouterr().err
    assert "No space left on device" in said and "metrics.jsonl" in said
    assert " is kept whole: " in said
    assert not left_over.ranks_of_this_process()
    saved = latest_checkpoint(tmp_path / "run" / "checkpoints").step
    if saved < 6:  # the ranks may have been done
        goes_on(tmp_path, undisturbed)


def test_a_full_disk_at_the_first_checkpoint_keeps_no_part_of_it(tmp_path, monkeypatch, capsys):
    struck(monkeypatch, 1, WRITE, 1, full_disk())
    assert command(tmp_path, *STEPS, "--out", tmp_path / "run") == 1
    assert "No checkpoint was written yet: the same command starts" in capsys.readouterr().err
    assert list((tmp_path / "run" / "checkpoints").iterdir()) == []


def test_a_second_run_in_the_folder_of_a_running_one_is_refused(tmp_path, monkeypatch, capsys):
    out = tmp_path / "run"
    started = []

    def second(step, _n_steps):
        if step.step == 4:  # step 2 is saved
            monkeypatch.setattr(module, "warm_up", lambda: started.append(1))
            assert command(tmp_path, *STEPS, "--out", out) == 2
            assert main(["train", "--resume", "--steps", "9", "--out", str(out)]) == 2

    monkeypatch.setattr(module, "_print_line", second)
    assert command(tmp_path, *STEPS, "--out", out) == 0
    refused = f"course train: {out} is taken by another run, process {os.getpid()}; "
    assert capsys.readouterr().err.count(refused) == 2 and not started
    assert len(told_losses(out)) == 6


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_run_that_is_stopped_says_how_it_goes_on(
    tmp_path, monkeypatch, capsys, undisturbed, number
):
    real = module._print_line

    def stop(step, n_steps):
        if step.step == 3:
            signal.raise_signal(number)
        real(step, n_steps)

    with monkeypatch.context() as patch:
        patch.setattr(module, "_print_line", stop)
        slow = ["--device-clock-ms", "20"]  # so that the ranks are not done before
        assert command(tmp_path, *STEPS, *slow, "--out", tmp_path / "run", "--cpu") == 130
    *_, way_on, last = capsys.readouterr().err.splitlines()
    assert last == "course train: stopped."
    assert way_on.startswith("Step 2 is kept whole: `./course train --resume --out ")
    assert way_on.endswith(" --cpu` goes on after it.")
    assert not left_over.ranks_of_this_process()


def test_what_is_not_kept_is_told(tmp_path, monkeypatch, capsys):
    struck(monkeypatch, 0, UPDATE, 1, sigkill())
    assert command(tmp_path, *STEPS) == 1
    assert capsys.readouterr().err.endswith(
        "Nothing was kept: give --out DIR to be able to go on after a stop.\n"
    )


def test_a_run_that_diverges_says_so(tmp_path, capsys):
    words = ["--learning-rate", "1e30", "--steps", "30", "--out", tmp_path / "run"]
    assert command(tmp_path, *words) == 1
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("course train: the loss is ")
    assert last.endswith(": the run has diverged; start anew with a learning rate below 1e+30")


def in_session(sid):
    """Every process of a session that still runs."""
    found = []
    for process in psutil.process_iter(["status"]):
        with contextlib.suppress(OSError, psutil.Error):
            if os.getsid(process.pid) == sid and process.info["status"] != "zombie":
                found.append(process)
    return found


def test_a_run_whose_starter_was_killed_goes_on_with_every_step_once(tmp_path, undisturbed):
    """Held up first, so that the ranks save steps that it has not heard of."""
    out = tmp_path / "run"
    text = text_in(tmp_path)
    words = [*SMALL, *DROPOUT, "--corpus", text, "--save-every", "1", "--steps", "5000"]
    call = [sys.executable, "-P", "-m", "mpedu", "train", *words, "--out", out]
    with subprocess.Popen(
        [*map(str, call)], start_new_session=True, stderr=subprocess.DEVNULL
    ) as process:
        try:
            left_over.until(lambda: (out / "metrics.jsonl").exists() and metrics_of(out))
            process.send_signal(signal.SIGSTOP)
            n_told = metrics_of(out)
            left_over.until(lambda: saved_in(out) >= n_told + 3)
        finally:
            process.kill()
    left_over.until(lambda: not in_session(process.pid))
    saved = saved_in(out)
    assert metrics_of(out) < saved
    words = ["train", "--resume", "--steps", str(saved + 2), "--out", str(out)]
    assert main(words) == 0
    losses = told_losses(out)
    assert len(losses) == saved + 2
    assert losses == losses_of(small(tmp_path, dropout=0.2), saved + 2)


def metrics_of(out):
    """How many steps a run has told of; with `open` as it always was."""
    return (out / "metrics.jsonl").read_bytes().count(b"\n")


def saved_in(out):
    names = [path.name for path in (out / "checkpoints").glob("step-*") if not path.suffix]
    return max((int(name.removeprefix("step-")) for name in names), default=0)
