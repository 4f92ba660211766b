"""Sandboxes for tests: limits, and short ways to ask what students' code gives and leaves."""

import os
import struct
import time
from pathlib import Path
from typing import Any

import msgpack
import pytest

from autograder.diagnosis import StudentError
from autograder.sandbox import Limits, Sandbox
from autograder.worker import walls

ROOT = Path(__file__).parents[3]
LIMITS = Limits(
    call_s=10,
    exercise_s=30,
    memory_bytes=200 * 2**20,
    n_processes=12,
    n_files=32,
    file_bytes=2**20,
    output_bytes=4000,
)
HASTY = LIMITS._replace(call_s=0.8, cell_s=0.8)


def ask(sandbox: Sandbox, source: str, *args: Any) -> Any:
    with sandbox.open([("solution", source)], ["f"]) as subject:
        assert subject.cell_errors == []
        return subject(*args)


def trouble(sandbox: Sandbox, source: str, *args: Any) -> StudentError:
    with sandbox.open([("solution", source)], ["f"]) as subject, pytest.raises(StudentError) as got:
        subject(*args)
    return got.value


def works(sandbox: Sandbox) -> bool:
    return bool(ask(sandbox, "def f(x): return x + 1", 1) == 2)


def running(marker: str) -> list[int]:
    """Processes of this machine whose command line holds the marker."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            try:
                line = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if marker.encode() in line:
                found.append(int(folder.name))
    return found


def descendants(pid: int) -> list[int]:
    return [pid, *(found for child in walls.children_of(pid) for found in descendants(child))]


def exists(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def within(seconds: float, holds: Any) -> bool:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def framed(tree: Any) -> bytes:
    data = msgpack.packb(tree)
    return struct.pack(">I", len(data)) + data


def sends(data: bytes) -> str:
    return f"import os, time\ndef f():\n  os.write(3, {data!r})\n  time.sleep(1000)"
