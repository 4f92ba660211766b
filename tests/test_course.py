"""The script `course` on machines that lack things: driven for real, with stand-ins for Python."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
TOOLS = (
    "sh cat chmod cksum cp cut date dirname env grep id ln mkdir mktemp mv rm rmdir sed sleep "
    "tail uname"
).split()

# Answers what `course` asks of a Python before there is an environment, and makes one on `-m venv`.
SYSTEM_PYTHON = """#!/bin/sh
case "$*" in
    *os.setsid*) shift 2; {detach} ;;
    *_base_executable*) echo "{version} $0" ;;
    "-c import venv, ensurepip") exit {lacks} ;;
    "-m venv "*) echo venv >>"$FAKE/calls"; mkdir -p "$3/bin"
        cp "$FAKE/venv-python" "$3/bin/python" ;;
    *) exit 9 ;;
esac
"""
# The environment's Python: records each call of pip and then does as FAKE_PIP says.
VENV_PYTHON = """#!/bin/sh
case "$*" in
    *os.setsid*) shift 2; {detach} ;;
    "-c import pip") exit 0 ;;
    "-m pip "*)
        echo "$*" >>"$FAKE/calls"; env >"$FAKE/environment"
        case ${{FAKE_PIP:-works}} in
            fails) echo "ERROR: No matching distribution found for torch==2.13.0"; exit 1 ;;
            offline) echo "WARNING: broken by 'NewConnectionError(...)'"; exit 1 ;;
            hangs) sleep 97 & echo $! >"$FAKE/sleeper"; wait ;;
            slow) sleep 1 ;;
        esac
        for tool in ruff mypy; do
            printf '#!/bin/sh\\necho %s "$@"\\n! [ "$FAKE_BAD" = %s ]\\n' $tool $tool \\
                >"${{0%/*}}/$tool"
            chmod +x "${{0%/*}}/$tool"
        done ;;
    "-m pytest"* | "-P -m autograder"*) printf '<%s>' "$@"; echo "${{PATH%%:*}}"; exit 7 ;;
    *) exit 9 ;;
esac
"""
# Another user may not be able to run our own Python, because of the folder that it lies in.
DETACH = f"""[ -x '{sys.executable}' ] || exec "$@"
        exec '{sys.executable}' -c 'import os, sys
os.setsid()
os.execv(sys.argv[1], sys.argv[1:])' "$@"
"""


class Machine:
    """A checkout in a folder whose name has a space, and a PATH with only what we put there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "check out"
        self.bin = folder / "bin"
        self.fake = folder / "fake"
        self.tmp = folder / "tmp"
        for made in (self.root, self.bin, self.fake, self.tmp):
            made.mkdir(parents=True)
        for name in ("course", "pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, self.root / name)
        for name in ("mpedu", "autograder"):
            (self.root / name).mkdir()
        for tool in TOOLS:
            (self.bin / tool).symlink_to(shutil.which(tool) or tool)
        self.write(self.fake / "venv-python", VENV_PYTHON.format(detach=DETACH))
        self.venv = self.root / ".venv"
        self.lock = self.root / ".venv.lock"

    def write(self, path: Path, text: str) -> None:
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)

    def add_python(self, name: str, version: str, lacks: int = 0) -> None:
        text = SYSTEM_PYTHON.format(version=version, lacks=lacks, detach=DETACH)
        self.write(self.bin / name, text)

    def add_tool(self, name: str, text: str = "") -> None:
        (self.bin / name).unlink(missing_ok=True)
        self.write(self.bin / name, f"#!/bin/sh\n{text}\n")

    def environment(self, **more: str) -> dict[str, str]:
        plain = {"PATH": str(self.bin), "FAKE": str(self.fake), "TMPDIR": str(self.tmp)}
        return plain | {"FAKE_BAD": "", "LC_ALL": "C"} | more

    def run(self, *args: str, **more: Any) -> subprocess.CompletedProcess[str]:
        settings = {key: more.pop(key) for key in list(more) if key.isupper()}
        command = more.pop("command", [str(self.root / "course")])
        return subprocess.run(
            [*command, *args],
            env=self.environment(**settings),
            cwd=self.folder,
            text=True,
            capture_output=True,
            timeout=20,
            **more,
        )

    def start(self, *args: str, **settings: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(self.root / "course"), *args],
            env=self.environment(**settings),
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def calls(self) -> list[str]:
        log = self.fake / "calls"
        return log.read_text(encoding="utf-8").splitlines() if log.exists() else []

    def files(self) -> set[str]:
        return {path.name for path in self.root.iterdir()}


@pytest.fixture
def bare(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def machine(bare: Machine) -> Machine:
    bare.add_python("python3.12", "3.12")
    return bare


def sentence(run: subprocess.CompletedProcess[str]) -> str:
    """The one sentence that a refused command ends with."""
    assert run.returncode == 2, run.stderr
    last = run.stderr.splitlines()[-1]
    assert last.startswith("course: ") and last.endswith(".")
    return last


def wait_for(path: Path) -> None:
    limit = time.monotonic() + 10
    while not path.exists() or not path.read_text(encoding="utf-8").strip():
        assert time.monotonic() < limit, f"{path} did not appear"
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
    return state.stdout.strip()[:1] not in ("", "Z")


@pytest.mark.parametrize("args", [(), ("help",), ("--help",)])
def test_help_lists_every_command_and_makes_nothing(bare: Machine, args: tuple[str, ...]) -> None:
    before = bare.files()
    run = bare.run(*args)
    assert run.returncode == 0
    for name in ("lab", "test", "grade", "release", "demo", "check"):
        assert f"\n  {name} " in run.stdout
    assert bare.files() == before


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


def test_news_box_of_jupyterlab_is_switched_off(machine: Machine) -> None:
    machine.run("test")
    settings = machine.venv / "share/jupyter/lab/settings/overrides.json"
    box = json.loads(settings.read_text())["@jupyterlab/apputils-extension:notification"]
    assert box["fetchNews"] == "false"


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
