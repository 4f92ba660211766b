"""The script `course` after what went wrong: stopped, killed, moved, locked, made by others."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from course_machine import Machine, is_alive, sentence, wait_for


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path)
    made.add_python("python3.12", "3.12")
    return made


@pytest.mark.parametrize(
    ("how", "reason"),
    [("fails", "No matching distribution"), ("offline", "the package index cannot be reached")],
)
def test_failing_pip_leaves_only_its_log(machine: Machine, how: str, reason: str) -> None:
    before = machine.files()
    said = sentence(machine.run("lab", FAKE_PIP=how))
    assert reason in said
    log = Path(said.rsplit(" ", 1)[1].removesuffix("."))
    assert log.parent == machine.tmp and log.stat().st_size > 0
    assert machine.files() == before


CONFLICT = """Collecting torch==2.5.0
ERROR: Cannot install mpedu==0.1.0 and torch==2.5.0 because these versions conflict.

The conflict is caused by:
    The user requested torch==2.5.0
    mpedu 0.1.0 depends on torch>=2.11

To fix this you could try to:
1. loosen the range of package versions you've specified
ERROR: ResolutionImpossible: for help visit a page
"""


def test_torch_that_does_not_fit_is_named_with_pip_s_reason(machine: Machine) -> None:
    (machine.fake / "conflict").write_text(CONFLICT, encoding="utf-8")
    before = machine.files()
    run = machine.run("lab", FAKE_PIP="conflict", COURSE_TORCH="torch==2.5.0")
    assert "(Cannot install mpedu==0.1.0 and torch==2.5.0 because" in sentence(run)
    assert "    mpedu 0.1.0 depends on torch>=2.11\n" in run.stderr
    assert "You chose torch==2.5.0 with COURSE_TORCH" in run.stderr
    assert "loosen" not in run.stderr and "Collecting" not in run.stderr
    assert machine.files() == before


def test_slip_in_the_name_of_a_torch_comes_with_pip_s_hint(machine: Machine) -> None:
    slip = "ERROR: Invalid requirement: 'torch=2'\nHint: = is not a valid operator.\n"
    (machine.fake / "conflict").write_text(slip, encoding="utf-8")
    run = machine.run("lab", FAKE_PIP="conflict", COURSE_TORCH="torch=2")
    assert "(Invalid requirement: 'torch=2')" in sentence(run)
    assert "Hint: = is not a valid operator.\n" in run.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_stopped_installation_leaves_nothing(machine: Machine, number: signal.Signals) -> None:
    before = machine.files()
    with machine.start("lab", FAKE_PIP="hangs") as run:
        wait_for(machine.fake / "sleeper")
        os.killpg(run.pid, number)
        _, said = run.communicate(timeout=10)
    assert run.returncode == 130 and said.endswith("nothing half made is left.\n")
    assert machine.files() == before and not list(machine.tmp.iterdir())
    assert not is_alive(int((machine.fake / "sleeper").read_text()))


def test_killed_installation_is_made_anew(machine: Machine) -> None:
    with machine.start("lab", FAKE_PIP="hangs") as run:
        wait_for(machine.fake / "sleeper")
        run.kill()
    sleeper = int((machine.fake / "sleeper").read_text())
    os.killpg(os.getpgid(sleeper), signal.SIGKILL)
    assert machine.venv.exists() and machine.lock.exists()
    (machine.venv / "leftover").touch()
    assert machine.run("test").returncode == 7
    assert machine.calls().count("venv") == 2
    assert not (machine.venv / "leftover").exists() and not machine.lock.exists()


def test_moved_checkout_is_made_anew(machine: Machine) -> None:
    machine.run("test")
    moved = machine.root.rename(machine.folder / "else where")
    run = machine.run("test", command=[str(moved / "course")])
    assert run.stdout == f"<-m><pytest>{moved}/.venv/bin\n"
    assert machine.calls()[2:] == ["venv", f"-m pip install --no-input torch==2.13.0 -e {moved}"]


def test_environment_whose_python_is_gone_is_made_anew(machine: Machine) -> None:
    machine.run("test")
    (machine.venv / "bin/python").unlink()
    assert machine.run("test").returncode == 7
    assert machine.calls().count("venv") == 2


def test_changed_requirements_are_brought_up_to_date_in_place(machine: Machine) -> None:
    machine.run("test")
    with (machine.root / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write("# changed\n")
    failed = machine.run("test", FAKE_PIP="fails")
    assert "nothing was changed" in sentence(failed)  # and the old environment is kept
    assert (machine.venv / "bin/python").exists()
    assert machine.run("test").returncode == 7
    assert machine.calls().count("venv") == 1 and len(machine.calls()) == 4
    assert machine.run("test").stderr == ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_stopped_update_keeps_the_environment_and_is_taken_up_next_time(
    machine: Machine, number: signal.Signals
) -> None:
    machine.run("test")
    (machine.venv / "precious").touch()
    with machine.start("test", FAKE_PIP="hangs", COURSE_TORCH="torch==2.99") as run:
        wait_for(machine.fake / "sleeper")
        os.killpg(run.pid, number)
        _, said = run.communicate(timeout=10)
    sleeper = int((machine.fake / "sleeper").read_text())
    if number == signal.SIGKILL:
        os.killpg(os.getpgid(sleeper), signal.SIGKILL)
    else:
        assert run.returncode == 130
        assert said.endswith("the environment is kept, and the next run goes on with it.\n")
        assert not machine.lock.exists() and not list(machine.tmp.iterdir())
        assert not (machine.venv / "tmp").exists() and not is_alive(sleeper)
    # What pip had changed by then is not known, so even the old requirements are asked for anew.
    again = machine.run("test")
    assert again.returncode == 7 and "requirements have changed" in again.stderr
    assert (machine.venv / "precious").exists() and machine.calls().count("venv") == 1
    assert machine.calls()[-1] == machine.calls()[1]
    assert not (machine.venv / "tmp").exists()
    assert machine.run("test").stderr == ""


def test_lock_of_a_live_process_is_waited_for_within_a_limit(machine: Machine) -> None:
    machine.lock.mkdir()
    (machine.lock / "owner").write_text(f"{os.getpid()} {os.uname().nodename}\n")
    run = machine.run("test", COURSE_WAIT_S="1")
    assert f"(process {os.getpid()}) is making the environment; waiting for it" in run.stderr
    assert f"remove {machine.lock}" in sentence(run)
    assert machine.lock.exists() and not machine.venv.exists()


def test_lock_from_another_machine_is_never_broken(machine: Machine) -> None:
    with subprocess.Popen(["true"]) as dead:
        pass
    machine.lock.mkdir()
    (machine.lock / "owner").write_text(f"{dead.pid} another-machine\n")
    assert f"remove {machine.lock}" in sentence(machine.run("test", COURSE_WAIT_S="0"))
    assert machine.lock.exists()


def test_lock_of_a_dead_process_is_broken(machine: Machine) -> None:
    with subprocess.Popen(["true"]) as dead:
        pass
    machine.lock.mkdir()
    (machine.lock / "owner").write_text(f"{dead.pid} {os.uname().nodename}\n")
    assert machine.run("test").returncode == 7
    assert not machine.lock.exists()


def test_second_run_uses_what_the_first_has_made(machine: Machine) -> None:
    with machine.start("test", FAKE_PIP="slow") as one, machine.start("test") as two:
        said = one.communicate(timeout=15)[1] + two.communicate(timeout=15)[1]
    assert (one.returncode, two.returncode) == (7, 7)
    assert "waiting for it" in said and len(machine.calls()) == 2


def test_folder_that_course_did_not_make_is_never_removed(machine: Machine) -> None:
    precious = machine.folder / "precious"
    precious.mkdir()
    (precious / "file").touch()
    said = sentence(machine.run("test", COURSE_VENV="precious/"))  # relative to where one stands
    assert f"{precious} is not empty and ./course did not make it" in said
    assert (precious / "file").exists() and machine.calls() == []


def test_environment_that_someone_made_by_hand_is_never_removed(machine: Machine) -> None:
    machine.run("test")
    (machine.venv / ".course-stamp").unlink()
    assert f"{machine.venv} is not empty and ./course did not make it" in sentence(
        machine.run("test")
    )
    assert (machine.venv / "bin/python").exists()


def test_half_made_environment_of_another_tool_is_made_anew(machine: Machine) -> None:
    (machine.venv / "bin").mkdir(parents=True)  # what `python3 -m venv` leaves without ensurepip
    assert machine.run("test").returncode == 7
