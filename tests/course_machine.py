"""A machine for `course`: a checkout, a PATH that we fill, and stand-ins for Python and pip."""

import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

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
        for source; do :; done; mkdir -p "$source/mpedu.egg-info"
        case ${{FAKE_PIP:-works}} in
            fails) echo "ERROR: No matching distribution found for torch==2.13.0"; exit 1 ;;
            conflict) cat "$FAKE/conflict"; exit 1 ;;
            offline) echo "WARNING: broken by 'NewConnectionError(...)'"; exit 1 ;;
            hangs) sleep 97 & echo $! >"$FAKE/sleeper"; wait ;;
            slow) sleep 1 ;;
        esac
        for tool in ruff mypy; do
            printf '#!/bin/sh\\necho %s "$@"\\n! [ "$FAKE_BAD" = %s ]\\n' $tool $tool \\
                >"${{0%/*}}/$tool"
            chmod +x "${{0%/*}}/$tool"
        done ;;
    "-m pytest"* | "-P -m autograder"* | "-P -m mpedu"*)
        printf '<%s>' "$@"; echo "${{PATH%%:*}}"; exit 7 ;;
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
