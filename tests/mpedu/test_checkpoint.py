import hashlib
import itertools
import json
import os
import shutil
import threading

import pytest
import torch
from checkpoints import ABOUT, QKV, Alone, Together, assert_same, save, tensors

from mpedu import checkpoint
from mpedu.checkpoint import latest_checkpoint, save_checkpoint


class Killed(BaseException):
    pass


def save_on_two_ranks(folder, step=1):
    """What each rank's call gave, or the error that ended it."""
    meeting, ended = threading.Barrier(2, timeout=20), [None, None]

    def one(rank):
        comm = Together(rank, meeting)
        try:
            path = save_checkpoint(folder, comm, step, tensors(step, rank), ABOUT)
            ended[rank] = path.resolve(strict=True)  # there when the call returns
        except BaseException as error:
            ended[rank] = error
            meeting.abort()

    ranks = [threading.Thread(target=one, args=(rank,)) for rank in range(2)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join(timeout=30)
    return ended


def files_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_what_was_saved_comes_back_bit_for_bit(tmp_path):
    path = save(tmp_path)
    found = latest_checkpoint(tmp_path)
    assert (found.path, found.step) == (path, 1) == (tmp_path / "step-000001", 1)
    assert_same(found.load(0), tensors())
    assert_same(found.load(0, [QKV]), {QKV: tensors()[QKV]})


def test_two_ranks_write_one_folder_and_about_names_every_file(tmp_path):
    path = tmp_path / "run" / "checkpoints" / "step-000200"
    assert save_on_two_ranks(path.parent, 200) == [path, path]
    names = ["rank-00-of-02.safetensors", "rank-01-of-02.safetensors"]
    assert files_in(path.parent) == [f"step-000200/{name}" for name in ["about.json", *names]]
    about = json.loads((path / "about.json").read_text(encoding="utf-8"))
    files = {}
    for name in names:
        data = (path / name).read_bytes()
        files[name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    assert about == {**ABOUT, "shape": [2, 3], "step": 200, "files": files}
    for rank in range(2):
        assert_same(latest_checkpoint(path.parent).load(rank), tensors(200, rank))


def test_loaded_tensors_outlive_their_file(tmp_path):
    path = save(tmp_path)
    found = latest_checkpoint(tmp_path).load(0)
    for file in path.iterdir():
        file.write_bytes(bytes(file.stat().st_size))
    assert_same(found, tensors())


def test_saving_leaves_the_tensors_as_they_are(tmp_path):
    weight = torch.ones(2, requires_grad=True)
    save_checkpoint(tmp_path, Alone(), 1, {"weight": weight}, {})
    found = latest_checkpoint(tmp_path)
    found.load(0)["weight"].add_(1)
    assert weight.requires_grad and weight.tolist() == [1, 1]
    assert found.load(0)["weight"].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("keep", "left"), [(1, ["step-000400"]), (2, ["step-000300", "step-000400"])]
)
def test_the_newest_are_kept(tmp_path, keep, left):
    (tmp_path / "step-notes").mkdir()
    for step in (100, 200, 300, 400):
        save(tmp_path, step, keep=keep)
    assert sorted(path.name for path in tmp_path.iterdir()) == [*left, "step-notes"]


def test_steps_are_ordered_as_numbers(tmp_path):
    for step in (999_999, 1_000_000):
        save(tmp_path, step)
    assert latest_checkpoint(tmp_path).step == 1_000_000


def test_without_a_checkpoint_there_is_none(tmp_path):
    assert latest_checkpoint(tmp_path / "missing") is None
    assert latest_checkpoint(tmp_path) is None


OPERATIONS = [(os, "fsync"), (os, "rename"), (os, "mkdir"), (shutil, "rmtree")]
OPERATIONS += [(checkpoint, "save_file"), (checkpoint.Path, "write_text")]


def kill_at(monkeypatch, nth, when):
    """Lets the nth file operation from here on end the run: before it, after it, or half done."""
    count = itertools.count(1)

    def killing(operation):
        def called(*args, **kwargs):
            last = next(count) == nth
            if last and when == "before":
                raise Killed
            result = operation(*args, **kwargs)
            if last:
                if when == "half done":
                    halve(args)
                raise Killed
            return result

        return called

    for owner, name in OPERATIONS:
        monkeypatch.setattr(owner, name, killing(getattr(owner, name)))


def halve(args):
    """Leaves half of a file that was just written."""
    for path in args:
        if isinstance(path, checkpoint.Path) and path.is_file():
            os.truncate(path, path.stat().st_size // 2)


@pytest.mark.parametrize("when", ["before", "half done", "after"])
def test_a_run_killed_between_any_two_file_operations_leaves_a_whole_checkpoint(
    tmp_path, monkeypatch, when
):
    seen = []
    for nth in itertools.count(1):
        folder = tmp_path / str(nth)
        save(folder, 1, keep=1)
        (folder / "step-000007.partial").mkdir()
        with monkeypatch.context() as patch:
            kill_at(patch, nth, when)
            try:
                save(folder, 2, keep=1)
                break
            except Killed:
                pass
        found = latest_checkpoint(folder)
        seen.append(found.step)
        assert_same(found.load(0), tensors(found.step))
        save(folder, 3)
        assert not list(folder.glob("*.partial"))
    # the two steps each stood after some operation, the later one never before the earlier
    assert seen == sorted(seen) and set(seen) == {1, 2}
    assert len(seen) >= 10


@pytest.mark.parametrize("nth", range(1, 11))
def test_two_ranks_killed_in_any_operation_leave_a_whole_checkpoint(tmp_path, monkeypatch, nth):
    save_on_two_ranks(tmp_path, 1)
    with monkeypatch.context() as patch:
        kill_at(patch, nth, "half done")
        ended = save_on_two_ranks(tmp_path, 2)
    assert sum(isinstance(error, Killed) for error in ended) == 1
    found = latest_checkpoint(tmp_path)
    for rank in range(2):
        assert_same(found.load(rank), tensors(found.step, rank))
    path = tmp_path / "step-000003"
    assert save_on_two_ranks(tmp_path, 3) == [path, path]
    assert not list(tmp_path.glob("*.partial"))


def test_every_file_and_folder_is_on_disk_before_the_folder_gets_its_name(tmp_path, monkeypatch):
    synced, at_rename = set(), []
    fsync, rename = os.fsync, os.rename
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.add(os.fstat(fd).st_ino), fsync(fd)))
    monkeypatch.setattr(os, "rename", lambda *a: (at_rename.append(set(synced)), rename(*a)))
    path = save(tmp_path)
    assert at_rename == [{p.stat().st_ino for p in [path, *path.iterdir()]}]
    assert tmp_path.stat().st_ino in synced


def test_a_damaged_checkpoint_of_the_same_step_is_replaced_and_a_whole_one_is_not(tmp_path):
    path = save(tmp_path)
    (path / "about.json").unlink()
    assert save(tmp_path) == path
    assert_same(latest_checkpoint(tmp_path).load(0), tensors())
    before = files_in(tmp_path)
    with pytest.raises(ValueError, match="step-000001 is there already; save the run in another"):
        save(tmp_path)
    assert files_in(tmp_path) == before
