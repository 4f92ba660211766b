"""What was judged so far of one submission: a line per exercise, written as soon as it is decided.

Only whole lines count, so that a process ended at any moment costs the exercise it was on. A line
is found again by its key, a hash of all that decided the verdict; a second line with one key
changes nothing.
"""

import json
import os
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

from autograder.judge import GroupVerdict, Verdict


class Judged(NamedTuple):
    """One exercise judged: its verdict, the cells that stopped, and `run`, what varies by run."""

    key: str
    verdict: Verdict
    cell_errors: list[str]
    run: dict[str, Any]


def verdict_tree(verdict: Verdict) -> dict[str, Any]:
    """The verdict as plain data."""
    return verdict._asdict() | {"groups": [group._asdict() for group in verdict.groups]}


def verdict_of(tree: dict[str, Any]) -> Verdict:
    """The verdict in plain data; TypeError or KeyError if it is none of this version."""
    return Verdict(**tree | {"groups": [GroupVerdict(**one) for one in tree["groups"]]})


def journal_path(out: Path, assignment: str, student: str) -> Path:
    """Where a submission's journal lies, beside its result."""
    return out / "results" / assignment / f"{student}.journal"


class Journal:
    """The journal in a file, or in memory only without a path; a context manager.

    A verdict of an earlier run counts unless `force`. A file that cannot be read or written stops
    nothing: then a run that is killed loses more, and what it did not lose is the same.
    """

    def __init__(self, path: Path | None = None, run: str = "", force: bool = False) -> None:
        self.n_new = 0  # verdicts of this run
        self._path = path
        self._run = run
        self._force = force
        self._judged: dict[str, Judged] = {}
        self._begun: Counter[str] = Counter()
        self._descriptor: int | None = None
        self._torn = False  # whether the file ends within a line
        with suppress(OSError):
            self._read_all(b"" if path is None else path.read_bytes())

    def _read_all(self, text: bytes) -> None:
        self._torn = text != b"" and not text.endswith(b"\n")
        for line in text.splitlines():
            with suppress(ValueError, TypeError, KeyError):  # torn, or of another version
                self._read(json.loads(line))

    def _read(self, line: dict[str, Any]) -> None:
        same_run = line["of_run"] == self._run
        if "verdict" not in line:
            self._begun[line["key"]] += same_run
        elif same_run or not self._force:
            verdict = verdict_of(line["verdict"])
            judged = Judged(line["key"], verdict, line["cell_errors"], line["run"])
            self._judged.setdefault(judged.key, judged)
            self.n_new += same_run

    def known(self, key: str) -> Judged | None:
        """What was judged under this key, None if nothing was."""
        return self._judged.get(key)

    def n_begun(self, key: str) -> int:
        """How often this run has begun on it."""
        return self._begun[key]

    def begin(self, key: str) -> None:
        """Notes that work on it begins: without a verdict after it, its process has died."""
        self._begun[key] += 1
        self._append({"key": key})

    def add(self, judged: Judged) -> None:
        """Records one exercise."""
        self._judged[judged.key] = judged
        self.n_new += 1
        self._append(judged._asdict() | {"verdict": verdict_tree(judged.verdict)})

    def _append(self, line: dict[str, Any]) -> None:
        if self._path is None:
            return
        data = json.dumps({"of_run": self._run, **line}).encode() + b"\n"
        with suppress(OSError):  # a full disk; the result, which cannot be written either, says so
            if self._descriptor is None:
                self._descriptor = _open(self._path)
            # One call: what another process appends cannot come in between.
            data = b"\n" * self._torn + data
            self._torn = os.write(self._descriptor, data) != len(data)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        if self._descriptor is not None:
            with suppress(OSError):
                os.fsync(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = None


def _open(path: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o644)
