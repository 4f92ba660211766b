"""The script `course` on machines that lack things: driven for real, with stand-ins for Python."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from course_machine import Machine, sentence


@pytest.fixture
def bare(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path)
    made.add_python("python3.12", "3.12")
    return made


@pytest.mark.parametrize("args", [(), ("help",), ("--help",)])
def test_help_lists_every_command_and_makes_nothing(bare: Machine, args: tuple[str, ...]) -> None:
    before = bare.files()
    run = bare.run(*args)
    assert run.returncode == 0
    for name in "lab test grade release demo train bench doctor check".split():
        assert f"\n  {name} " in run.stdout
    assert bare.files() == before


@pytest.mark.parametrize(
    "args", [("grade", "--help"), ("lab", "--port", "1", "-h"), ("doctor", "-h")]
)
def test_help_of_a_command_makes_nothing(bare: Machine, args: tuple[str, ...]) -> None:
    before = bare.files()
    run = bare.run(*args)
    assert run.returncode == 0 and run.stderr == ""
    first, last = run.stdout.splitlines()
    assert first.startswith(f"./course {args[0]}: ") and "--help says more" in last
    assert bare.files() == before


def test_help_of_a_stale_environment_changes_nothing(machine: Machine) -> None:
    machine.run("test")
    made = machine.calls()
    run = machine.run("test", "--help", COURSE_TORCH="torch>=2.14")
    assert run.returncode == 0 and run.stdout.startswith("./course test: ")
    assert machine.calls() == made


def test_unknown_command_is_refused_in_one_sentence(bare: Machine) -> None:
    run = bare.run("labb")
    assert "labb is not a command; choose lab, test," in sentence(run)
    assert len(run.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("manager", "command"),
    [
        ("apt-get", "apt-get update && {sudo}apt-get install -y python3-venv"),
        ("dnf", "dnf install -y python3.12"),
        ("pacman", "pacman -S --needed python"),
        ("zypper", "zypper install -y python312"),
        ("brew", "brew install python@3.13"),
        ("", "conda env create -f environment.yml"),
    ],
)
def test_no_python_names_the_command_of_this_system(
    bare: Machine, manager: str, command: str
) -> None:
    if manager:
        bare.add_tool(manager)
    bare.add_tool("id", "echo 1000")
    before = bare.files()
    run = bare.run("test")
    sudo = "sudo " if manager not in ("brew", "") else ""
    assert f"`{sudo}{command.format(sudo=sudo)}`, then ./course test again." in sentence(run)
    assert len(run.stderr.splitlines()) == 1
    assert bare.files() == before and not list(bare.tmp.iterdir())


def test_old_python_is_named_and_refused(bare: Machine) -> None:
    bare.add_tool("apt-get")
    bare.add_tool("id", "echo 0")
    bare.add_python("python3", "3.9")
    run = bare.run("lab")
    assert "(only 3.9): run `apt-get update && apt-get install -y python3.11 " in sentence(run)


def test_python_without_ensurepip_names_its_package(bare: Machine) -> None:
    bare.add_tool("apt-get")
    bare.add_tool("id", "echo 0")
    bare.add_python("python3", "3.12", lacks=1)
    before = bare.files()
    run = bare.run("test")
    assert "`apt-get update && apt-get install -y python3.12-venv`" in sentence(run)
    assert len(run.stderr.splitlines()) == 1
    assert bare.files() == before


def test_python_that_is_complete_is_preferred_to_one_that_is_not(bare: Machine) -> None:
    bare.add_python("python3.13", "3.13", lacks=1)
    bare.add_python("python3", "3.11")
    run = bare.run("test")
    assert run.returncode == 7 and "with Python 3.11" in run.stderr


def test_first_run_installs_all_in_one_call_and_the_second_nothing(machine: Machine) -> None:
    first = machine.run("test", "-k", "two words")
    assert first.stdout == f"<-m><pytest><-k><two words>{machine.venv}/bin\n"
    assert first.returncode == 7  # pytest's own status is passed on
    assert "1.4 GB and 90 s" in first.stderr
    installed = f"-m pip install --no-input torch==2.13.0 -e {machine.root}"
    assert machine.calls() == ["venv", installed]
    second = machine.run("grade", "--help")
    assert second.stdout == f"<-P><-m><autograder><grade><--help>{machine.venv}/bin\n"
    assert second.stderr == ""
    assert machine.calls() == ["venv", installed]
    assert not machine.lock.exists() and not list(machine.tmp.iterdir())


@pytest.mark.parametrize("command", ["train", "bench", "doctor"])
def test_commands_of_the_package_get_their_arguments(machine: Machine, command: str) -> None:
    run = machine.run(command, "--out", "two words")
    words = f"<-P><-m><mpedu><{command}><--out><two words>"
    assert run.stdout == f"{words}{machine.venv}/bin\n" and run.returncode == 7


def test_pip_works_on_the_disk_of_the_environment(machine: Machine) -> None:
    machine.run("test")
    seen = (machine.fake / "environment").read_text(encoding="utf-8").splitlines()
    assert f"TMPDIR={machine.venv}/tmp" in seen  # a small /tmp cannot hold what pip unpacks
    assert not (machine.venv / "tmp").exists()


@pytest.mark.parametrize("shell", ["dash", "bash --posix", "busybox sh"])
def test_script_runs_in_every_plain_shell(machine: Machine, shell: str) -> None:
    words = shell.split()
    program = shutil.which(words[0])
    if program is None:
        pytest.skip(f"needs {words[0]}")
    run = machine.run("test", command=[program, *words[1:], str(machine.root / "course")])
    assert run.returncode == 7 and len(machine.calls()) == 2, run.stderr


def test_chosen_torch_is_remembered(machine: Machine) -> None:
    machine.run("test", COURSE_TORCH="torch>=2.14")
    machine.run("test")
    assert [call for call in machine.calls() if "pip" in call] == [
        f"-m pip install --no-input torch>=2.14 -e {machine.root}"
    ]


def test_settings_for_other_projects_do_not_reach_pip(machine: Machine) -> None:
    names = ("PYTHONPATH", "PYTHONHOME", "PIP_REQUIRE_VIRTUALENV", "PIP_TARGET")
    run = machine.run("test", PIP_USER="1", **dict.fromkeys(names, "/elsewhere"))
    assert run.returncode == 7
    seen = (machine.fake / "environment").read_text(encoding="utf-8")
    assert "/elsewhere" not in seen and "PIP_USER=0" in seen


@pytest.fixture
def read_only() -> Iterator[Machine]:
    """A machine whose checkout cannot be written, in a folder that every user can reach."""
    folder = Path(tempfile.mkdtemp(prefix="mpedu-read-only-"))
    folder.chmod(0o755)
    machine = Machine(folder)
    machine.add_python("python3.12", "3.12")
    for writable in (machine.fake, machine.tmp):
        writable.chmod(0o777)
    machine.root.chmod(0o555)
    yield machine
    machine.root.chmod(0o755)
    shutil.rmtree(folder)


def as_anyone() -> dict[str, Any]:
    """Root may write everywhere, so it must run the script as nobody."""
    return {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}


def test_read_only_checkout_names_the_way_out(read_only: Machine) -> None:
    before = read_only.files()
    run = read_only.run("lab", **as_anyone())
    assert '`COURSE_VENV="$HOME/mpedu-venv" ./course lab`' in sentence(run)
    assert len(run.stderr.splitlines()) == 1
    assert read_only.files() == before


def test_read_only_checkout_is_installed_through_links(read_only: Machine) -> None:
    before = read_only.files()
    venv = read_only.tmp / "my env"
    run = read_only.run("test", COURSE_VENV=str(venv), **as_anyone())
    assert run.stdout == f"<-m><pytest>{venv}/bin\n"
    assert read_only.calls()[-1].endswith(f"-e {venv}/checkout")
    assert (venv / "checkout/mpedu").resolve() == read_only.root / "mpedu"
    assert (venv / "checkout/pyproject.toml").is_file()
    assert read_only.files() == before


@pytest.mark.parametrize(
    ("system", "way_out"), [("Darwin x86_64", "Apple silicon"), ("MINGW64_NT x86_64", "WSL")]
)
def test_system_without_torch_is_refused_before_any_download(
    machine: Machine, system: str, way_out: str
) -> None:
    kernel, processor = system.split()
    machine.add_tool("uname", f'[ "$1" = -m ] && echo {processor} || echo {kernel}')
    before = machine.files()
    run = machine.run("test")
    assert way_out in sentence(run) and len(run.stderr.splitlines()) == 1
    assert machine.files() == before and machine.calls() == []


def test_check_runs_all_three_tools_and_names_the_failed_ones(machine: Machine) -> None:
    bad = machine.run("check", FAKE_BAD="ruff")
    assert bad.stdout.splitlines() == ["ruff format --check", "ruff check", "mypy"]
    assert bad.returncode == 1
    assert bad.stderr.splitlines()[-1] == "course: failed: ruff format --check, ruff check."
    assert machine.run("check").returncode == 0
    assert machine.run("check", "--help").stdout.startswith("./course check: format, lint")
