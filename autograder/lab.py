"""`./course lab`: the student notebooks in `work/`, and JupyterLab serving them."""

import argparse
import contextlib
import hashlib
import itertools
import json
import logging
import os
import signal
import sys
import tempfile
import time
import urllib.parse
import webbrowser
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import IO

import psutil  # type: ignore[import-untyped]

from autograder.records.results import write_whole
from autograder.server import STOP_LIMIT_S, LabError, choose_port, serving
from autograder.submissions.cells import read_notebook

ROOT = Path(__file__).resolve().parents[1]
CELL_LIMIT_S = 120.0
# What the course itself consists of: a student notebook in one of these would be taken for its own.
COURSE_FOLDERS = (".ci", ".git", "autograder", "benchmarks", "data", "mpedu", "notebooks", "tests")

Build = Callable[[Path], str]  # a source notebook's path -> the student notebook as text


# ---- the command line ----


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `lab` to the course's command line."""
    parser = subparsers.add_parser(
        "lab",
        prog="./course lab",
        help="build the student notebooks and open JupyterLab on them",
        description="Build the student notebooks in work/ and open JupyterLab on them. "
        "Your own work is never overwritten: a new version of a notebook stands beside it.",
        epilog="example: ./course lab --port 9000 --no-browser",
    )
    parser.add_argument("--port", type=port_number, metavar="N", help="serve on this port only")
    parser.add_argument("--no-browser", action="store_true", help="print the address and serve")
    parser.add_argument(
        "--check", action="store_true", help="try all of it in a temporary folder, then stop"
    )
    parser.add_argument(
        "--folder", type=Path, metavar="DIR", help="where your notebooks are (default: work)"
    )
    parser.set_defaults(run=run)


def port_number(text: str) -> int:
    """The port that `text` names; argparse.ArgumentTypeError when there is no such port."""
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 65535):
        raise argparse.ArgumentTypeError(f"{text} is no port; give a whole number from 1 to 65535")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Do what the command line asks; the exit status: 2 after one sentence on stderr."""
    try:
        # Imported here: it brings in nbgrader, which `--help` and other commands need not wait for.
        from autograder.release import student_notebook

        sources = source_notebooks(ROOT)
        if args.check:
            check(sources, student_notebook)
        else:
            folder = (args.folder or ROOT / "work").absolute()
            refuse_course_folder(folder, ROOT)
            lab(sources, student_notebook, folder, args.port, not args.no_browser)
    except LabError as error:
        print(f"course lab: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("course lab: stopped; nothing is left running.", file=sys.stderr)
        return 130
    return 0


def source_notebooks(root: Path) -> list[Path]:
    """The source of every unit, notebooks/NN-slug/NN-slug.ipynb, in order; nothing else is one."""
    found = sorted(root.glob("notebooks/[0-9][0-9]-*/[0-9][0-9]-*.ipynb"))
    return [path for path in found if path.stem == path.parent.name]


def refuse_course_folder(folder: Path, root: Path) -> None:
    """LabError when `folder` is the checkout `root` or part of what it consists of."""
    folder = folder.resolve()
    if folder == root or any(folder.is_relative_to(root / name) for name in COURSE_FOLDERS):
        raise LabError(
            f"{folder} belongs to the course itself; name another folder with --folder, "
            f"or leave it out and {root / 'work'} is taken."
        )


def lab(sources: list[Path], build: Build, folder: Path, port: int | None, browse: bool) -> None:
    """Build the notebooks in `folder` and serve them until Ctrl-C; LabError when it cannot."""
    port = choose_port(port)
    try:
        notebooks = place_notebooks(sources, build, folder)
        log = (folder / f".jupyterlab-{port}.log").open("w", encoding="utf-8")
    except OSError as error:
        raise LabError(
            f"cannot write the notebooks to {folder} ({error.strerror}); "
            "name another folder with --folder."
        ) from error
    first = notebooks[0].relative_to(folder)
    with log, contextlib.suppress(KeyboardInterrupt), _signals_as_interrupt():
        print(f"Starting JupyterLab; its messages go to {log.name} ...", flush=True)
        with serving(folder, port, log, os.environ) as server:
            address = f"{server.address}/lab/tree/{urllib.parse.quote(str(first))}"
            address += f"?token={server.token}"
            print(f"Open first: {first}\n{address}\nCtrl-C here stops JupyterLab.", flush=True)
            if browse and has_display():
                webbrowser.open(address)
            server.process.wait()
    print(f"JupyterLab has stopped. Your notebooks are in {folder}.", flush=True)


def has_display() -> bool:
    """Whether a browser window could open here."""
    if sys.platform != "linux":
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


@contextlib.contextmanager
def _signals_as_interrupt() -> Iterator[None]:
    """A closed terminal or a polite kill stops everything as Ctrl-C does."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    numbers = (signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, interrupt) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


# ---- the student's notebooks ----


def place_notebooks(sources: list[Path], build: Build, folder: Path) -> list[Path]:
    """Put the student notebook of every source into `folder/NN-slug/`; their paths, in order."""
    if not sources:
        raise LabError(f"there are no notebooks in {ROOT / 'notebooks'}; is the checkout complete?")
    targets = []
    for source in sources:
        target = folder / source.stem / source.name
        aside = place_notebook(build(source), target)
        if aside is not None:
            print(
                f"{target.name} holds work of yours, so its new version is {aside}\n"
                f"  Hand in one file called {target.name}: yours as it is, or the new one once "
                "you have\n  copied your answers into it and given it that name in place of yours."
            )
        targets.append(target)
    return targets


def place_notebook(text: str, target: Path) -> Path | None:
    """Write a student notebook, but never over a student's work; where, if not at `target`.

    What we wrote is remembered by its SHA-256 in a file beside it: a file that has it still is
    ours to replace. The same release is put aside only once.
    """
    memory = target.parent / ".mpedu-release.json"
    known = _recall(memory)
    digest = hashlib.sha256(text.encode()).hexdigest()

    def is_ours(path: Path) -> bool:
        if not path.exists():
            return True
        return hashlib.sha256(path.read_bytes()).hexdigest() in (known.get(path.name), digest)

    if known.get("release") == digest and target.exists():
        return None
    names = itertools.chain(
        [target.name, f"{target.stem}.new.ipynb"],
        (f"{target.stem}.new-{number}.ipynb" for number in itertools.count(2)),
    )
    place = next(path for name in names if is_ours(path := target.with_name(name)))
    write_whole(place, text)
    write_whole(memory, json.dumps(known | {"release": digest, place.name: digest}, indent=1))
    return None if place == target else place


def _recall(memory: Path) -> dict[str, str]:
    """What `memory` holds; nothing when it is missing or damaged: then all files are students'."""
    try:
        known = json.loads(memory.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


# ---- the check ----


def check(sources: list[Path], build: Build, unit: str = "03") -> None:
    """Build, serve and run the unit's student notebook in a temporary folder; LabError if amiss.

    The notebook must run up to its first graded cell and stop there with "not written yet".
    """
    with tempfile.TemporaryDirectory(prefix="mpedu-lab-") as name:
        folder = Path(name)
        with (folder / "log").open("w", encoding="utf-8") as log, _isolated(folder):
            lap = _Laps()
            notebooks = place_notebooks(sources, build, folder / "work")
            lap.say(f"student notebooks built: {len(notebooks)}")
            with serving(folder / "work", choose_port(None), log, os.environ) as server:
                lap.say(f"JupyterLab answers at {server.address}")
                notebook = next(path for path in notebooks if path.stem.startswith(unit))
                stopped_at = run_until_unwritten(notebook, log)
                lap.say(f"{notebook.name} runs up to its first unwritten exercise, {stopped_at}")
            expect_no_process(name)
            lap.say("JupyterLab stopped, no process of it is left")


class _Laps:
    """Prints what was done since the last line, with its seconds."""

    def __init__(self) -> None:
        self._since_s = time.monotonic()

    def say(self, what: str) -> None:
        now_s = time.monotonic()
        print(f"{now_s - self._since_s:6.1f} s  {what}", flush=True)
        self._since_s = now_s


@contextlib.contextmanager
def _isolated(folder: Path) -> Iterator[None]:
    """Jupyter and IPython with settings and run files in `folder`, as on an untouched machine."""
    names = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update({name: str(folder / name.lower()) for name in names})
    try:
        yield
    finally:
        for name, value in before.items():
            del os.environ[name]
            if value is not None:
                os.environ[name] = value


def run_until_unwritten(path: Path, log: IO[str]) -> str:
    """Run a student notebook's cells in order; the id of the first graded one, as yet unwritten.

    LabError when a cell before it fails, or when that one does anything but say so.
    """
    # Imported here: it takes a second, which the course's other commands need not wait for.
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    notebook = read_notebook(path)
    client = NotebookClient(notebook, timeout=int(CELL_LIMIT_S), kernel_name="python3")
    client.resources = {"metadata": {"path": str(path.parent)}}
    client.create_kernel_manager().connection_file = str(path.parent / "kernel.json")  # not in /tmp
    with client.setup_kernel(stdout=log, stderr=log):  # a kernel's own remarks are not the user's
        for index, cell in enumerate(notebook.cells):
            graded = cell.metadata.get("nbgrader", {}).get("grade", False)
            try:
                client.execute_cell(cell, index)
            except CellExecutionError as error:
                if graded and "not written yet" in error.evalue:
                    return str(cell.id)
                raise LabError(f"cell {cell.id} of {path.name} failed: {error.evalue}.") from error
            except KeyboardInterrupt:
                # The cell that is cut short fails too, later, and asyncio would tell the user.
                logging.getLogger("asyncio").setLevel(logging.CRITICAL)
                raise
            except (CellTimeoutError, DeadKernelError) as error:
                raise LabError(f"cell {cell.id} of {path.name} did not end: {error}") from error
            if graded:
                raise LabError(f"cell {cell.id} of {path.name} passed with nothing written.")
    raise LabError(f"{path.name} has no graded cell.")


def expect_no_process(mark: str) -> None:
    """LabError, after ending them, when processes with `mark` in their command line stay alive."""
    limit_s = time.monotonic() + STOP_LIMIT_S
    while left := [process for process in psutil.process_iter(["cmdline"]) if _has(process, mark)]:
        if time.monotonic() > limit_s:
            for process in left:
                process.kill()
            raise LabError(f"{len(left)} processes were left: {[p.pid for p in left]}.")
        time.sleep(0.1)


def _has(process: psutil.Process, mark: str) -> bool:
    return mark in " ".join(process.info["cmdline"] or ())
