"""Limits on all processes of an exercise together, where control groups can be written."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import started
from sandboxed import LIMITS, ROOT, ask, descendants, trouble, within, works

from autograder.sandbox import NOT_WALLED, PER_EXERCISE, RUNGS, Sandbox, cgroups
from autograder.sandbox.parent import FreshParents, WarmParent

MANY = LIMITS._replace(
    memory_bytes=300 * 2**20, job_bytes=400 * 2**20, n_processes=30, job_processes=20
)


@pytest.fixture(params=RUNGS)
def counted(request: pytest.FixtureRequest, runtime: Path) -> Iterator[Sandbox]:
    """A sandbox whose exercises are counted by a control group."""
    for sandbox in started(runtime, request.param, MANY):
        if "cgroup" not in sandbox.walls.note:
            pytest.skip("no control group can be made here")
        yield sandbox


def group_of(sandbox: Sandbox) -> cgroups.Group:
    parent = sandbox._parent
    worker = parent._busy[-1] if isinstance(parent, FreshParents) else parent
    assert isinstance(worker, WarmParent) and worker.group
    return worker.group


CHILDREN = """
import os, time
def f(n_children, n_bytes):
    ends = []
    for _ in range(n_children):
        child = os.fork()
        if child == 0:
            held = b"x" * n_bytes
            time.sleep(3)
            os._exit(0)
        ends.append(child)
    return sorted(os.waitpid(child, 0)[1] for child in ends)
"""


def test_processes_share_their_memory_and_the_first_to_go_are_theirs(counted: Sandbox) -> None:
    before = counted._parent
    ends = ask(counted, CHILDREN, 4, 200 * 2**20)
    assert 0 < ends.count(9) < 4
    assert set(ends) == {0, 9}
    assert works(counted)
    assert counted._parent is before
    assert ask(counted, CHILDREN, 4, 2**20) == [0] * 4


def test_whom_the_kernel_kills_for_all_its_processes_is_out_of_memory(runtime: Path) -> None:
    limits = LIMITS._replace(memory_bytes=2**30, job_bytes=100 * 2**20)
    for sandbox in started(runtime, RUNGS[-1], limits):
        if "cgroup" not in sandbox.walls.note:
            pytest.skip("no control group can be made here")
        error = trouble(sandbox, "def f(): return len(b'x' * (400 * 2**20))")
        said = "your code asks for more memory than the 100 MiB that all its processes have"
        assert (error.kind, error.message) == ("out_of_memory", f"{said} together.")
        assert works(sandbox)


NOBODY_S = """
import ctypes
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p
def f(n_mib):
    for _ in range(n_mib):
        place = libc.shmat(libc.shmget(0, 2**20, 0o1600), None, 0)
        ctypes.memset(place, 1, 2**20)
        libc.shmdt(ctypes.c_void_p(place))
"""


def test_memory_that_belongs_to_no_process_is_the_student_s_all_the_same(counted: Sandbox) -> None:
    if counted.rung == NOT_WALLED:
        pytest.skip("it would stay on this machine")
    # where nobody can say whom the kernel is to kill first, that may be the guardian
    assert trouble(counted, NOBODY_S, 500).kind == "out_of_memory"
    assert works(counted)


def test_what_never_gets_free_is_left_to_the_parent_it_belongs_to(
    counted: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    if counted.rung == PER_EXERCISE:
        pytest.skip("every exercise has a parent of its own")
    assert works(counted)
    before, group = counted._parent, group_of(counted)
    monkeypatch.setattr(group, "_held", lambda: 200 * 2**20)
    assert works(counted)
    assert counted._parent is not before


def test_processes_are_counted_together(counted: Sandbox) -> None:
    source = """
import os, time
def f():
    n = 0
    try:
        while n < 500:
            if os.fork() == 0: time.sleep(600)
            n += 1
    except OSError: pass
    return n
"""
    with counted.open([("c", source)], ["f"]) as one, counted.open([("c", source)], ["f"]) as two:
        n_started = [one(), two()]
    if counted.rung != PER_EXERCISE:
        assert 5 < sum(n_started) < MANY.job_processes
    assert max(n_started) < MANY.job_processes
    assert works(counted)


def test_a_student_s_process_is_the_first_to_be_killed(counted: Sandbox) -> None:
    if counted.rung == PER_EXERCISE:
        pytest.skip("there is no /proc to say so in")
    with counted.open([("c", "def f(): return 1")], ["f"]) as subject:
        assert subject() == 1
        assert isinstance(counted._parent, WarmParent)
        family = descendants(counted._parent._process.pid)
        scores = [int(Path(f"/proc/{pid}/oom_score_adj").read_text()) for pid in family]
    own = int(Path("/proc/self/oom_score_adj").read_text())
    assert sorted(scores)[-1] == 1000
    assert sorted(scores)[:-1] == [own] * (len(scores) - 1)


def test_a_group_is_gone_with_its_parent(counted: Sandbox) -> None:
    with counted.open([("c", "def f(): return 1")], ["f"]) as subject:
        assert subject() == 1
        folders = group_of(counted)._folders
        assert all(folder.exists() for folder in folders)
        subject.close()
        counted.close()
    assert not any(folder.exists() for folder in folders)


def test_what_a_killed_grader_leaves_the_next_one_removes(counted: Sandbox) -> None:
    judge = f"""
import sys, time
from pathlib import Path
from autograder.sandbox import Sandbox
sandbox = Sandbox(Path({str(counted._runtime)!r}), rung={counted.rung!r})
with sandbox.open([("c", "def f(): return 1")], ["f"]) as subject:
    parent = sandbox._parent
    worker = parent if hasattr(parent, "group") else parent._busy[-1]
    print(*worker.group._folders, flush=True)
    time.sleep(600)
"""
    with subprocess.Popen(
        [sys.executable, "-c", judge], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        folders = [Path(text) for text in process.stdout.readline().split()]
        process.kill()
    assert folders

    def swept() -> bool:
        made = cgroups.Group.make()
        assert made
        made.remove()
        return not any(folder.exists() for folder in folders)

    assert within(20, swept)


def test_the_group_of_a_living_grader_is_left_alone() -> None:
    one = cgroups.Group.make()
    if one is None:
        pytest.skip("no control group can be made here")
    two = cgroups.Group.make()
    assert two
    assert all(folder.exists() for folder in one._folders + two._folders)
    for group in (one, two):
        group.remove()
    assert not any(folder.exists() for folder in one._folders + two._folders)


# Both versions, as files that only look like a kernel's


def mounted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: str, mounts: str) -> None:
    (tmp_path / "own").write_text(own)
    (tmp_path / "mounts").write_text(mounts.replace("HERE", str(tmp_path)))
    monkeypatch.setattr(cgroups, "_OWN", tmp_path / "own")
    monkeypatch.setattr(cgroups, "_MOUNTED", tmp_path / "mounts")


V1 = """30 20 0:20 / HERE/memory rw - cgroup cgroup rw,memory
31 20 0:21 / HERE/cpu rw - cgroup cgroup rw,cpu,cpuacct
32 20 0:22 /docker HERE/pids rw - cgroup cgroup rw,pids
"""
V2 = "30 20 0:20 / HERE rw,nosuid - cgroup2 cgroup2 rw\n"
OWN_V1 = "4:memory:/lab/a\n3:pids:/docker/b\n2:cpu,cpuacct:/\n"


def test_groups_of_version_1_are_made_below_each_own_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounted(tmp_path, monkeypatch, OWN_V1, V1)
    for folder in ("memory/lab/a", "pids/b"):
        (tmp_path / folder).mkdir(parents=True)
    assert list(cgroups._places()) == [(1, (tmp_path / "memory/lab/a", tmp_path / "pids/b"))]


def test_groups_of_version_2_are_made_below_or_beside_the_own_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounted(tmp_path, monkeypatch, "0::/user/app\n", V2)
    (tmp_path / "user" / "app").mkdir(parents=True)
    below, beside = tmp_path / "user" / "app", tmp_path / "user"
    assert list(cgroups._places()) == [(2, (below, below)), (2, (beside, beside))]
    assert (beside / "cgroup.subtree_control").read_text() == "+memory +pids"


def test_where_nothing_can_be_written_there_is_no_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounted(tmp_path, monkeypatch, OWN_V1 + "0::/\n", V1 + V2)
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert cgroups.Group.make() is None


def test_folders_that_are_no_groups_are_left_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounted(tmp_path, monkeypatch, "0::/\n", V2.replace("HERE", "HERE/none"))
    (tmp_path / "none").mkdir()
    assert cgroups.Group.make() is None
    assert not list((tmp_path / "none").glob("exercises*"))


@pytest.mark.parametrize(
    ("version", "files", "written"),
    [
        (
            1,
            {"memory.usage_in_bytes": "100", "memory.oom_control": "under_oom 0\noom_kill 3\n"},
            {"memory.limit_in_bytes": "1100", "memory.memsw.limit_in_bytes": "1100"},
        ),
        (
            2,
            {"memory.current": "100", "memory.events": "oom 4\noom_kill 3\n"},
            {"memory.max": "1100", "memory.swap.max": "0"},
        ),
    ],
)
def test_limits_are_written_as_each_version_has_them(
    tmp_path: Path, version: int, files: dict[str, str], written: dict[str, str]
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    group = cgroups.Group(version, tmp_path, tmp_path)
    group.limit(1000, 7)
    assert {name: (tmp_path / name).read_text() for name in written} == written
    assert (tmp_path / "pids.max").read_text() == "7"
    assert group.n_killed() == 3
    assert f"cgroup v{version}" in group.note


def test_a_command_enters_both_folders_and_ends_where_it_may_not(tmp_path: Path) -> None:
    for name in ("memory", "pids"):
        (tmp_path / name).mkdir()
    group = cgroups.Group(1, tmp_path / "memory", tmp_path / "pids")
    done = subprocess.run(group.around(["echo", "a b"]), capture_output=True, text=True)
    assert done.stdout == "a b\n"
    entered = [(tmp_path / name / "cgroup.procs").read_text() for name in ("memory", "pids")]
    assert entered[0] == entered[1] and int(entered[0]) > 1
    (tmp_path / "pids" / "cgroup.procs").unlink()
    (tmp_path / "pids").rmdir()
    assert subprocess.run(group.around(["true"]), capture_output=True).returncode != 0


def test_a_group_with_a_process_in_it_is_not_waited_for_without_end(tmp_path: Path) -> None:
    (tmp_path / "held" / "by").mkdir(parents=True)
    begun = time.monotonic()
    cgroups.Group(2, tmp_path / "held", tmp_path / "held").remove()
    assert time.monotonic() - begun < 60
    assert (tmp_path / "held").exists()
