"""What must not be shared or left over: one run per output folder, one scratch folder per run.

Both rest on a lock of the operating system, which ends with the process however that ends.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mpedu.faults import Failure

_PREFIX = "mpedu-grading-"


class Busy(Failure):
    """Another run works in the same folder."""


@contextmanager
def only_run(out: Path) -> Iterator[None]:
    """Inside, no other run may write results below `out`; Busy if one does now.

    What a killed run left half written is cleared away.
    """
    out.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(out, os.O_RDONLY)
    try:
        _lock(descriptor, out)
        for part in (*out.glob(".*.part"), *out.glob("[!.]*/**/.*.part")):
            part.unlink(missing_ok=True)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, out: Path) -> None:
    with suppress(OSError):  # a file system without locks
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Busy(
                f"Another run is grading into {out}; let it end, or name another folder with --out."
            ) from None


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder for this run, gone afterwards; those that killed runs left are removed, too."""
    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            _remove_unless_locked(left)
    folder, descriptor = _locked_folder()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def _remove_unless_locked(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        if os.fstat(descriptor).st_uid == os.geteuid():
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(descriptor)


def _locked_folder() -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        with suppress(FileNotFoundError):
            descriptor = os.open(folder, os.O_RDONLY)
            with suppress(OSError):  # a file system without locks
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            # Another run may take it for left over before it is locked, never after.
            if folder.exists():
                return folder, descriptor
            os.close(descriptor)
