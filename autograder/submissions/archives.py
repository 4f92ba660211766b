"""Files as students hand them in, read with limits: plain ones, and archives without unpacking.

Nothing is written to disk and no link is followed. An archive counts only if every name in it is
harmless, even of members that nobody reads.
"""

import gzip
import io
import os
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from autograder.submissions.cells import MAX_NOTEBOOK_BYTES

MAX_ARCHIVE_BYTES = 50 * 2**20
MAX_UNPACKED_BYTES = 100 * 2**20
MAX_MEMBERS = 1000
SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz")
_MOST_LISTED = 5  # of what a folder holds
_ZIP_MEMBER = b"PK\x01\x02"  # how each one's entry in the directory begins
_ENCRYPTED = 0x1
_PACKED_IN_STEPS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # zipfile unpacks others whole


class FileError(ValueError):
    """Why a file cannot be taken, in one sentence for whoever handed it in."""


class Member(NamedTuple):
    """A file in an archive, and what gives its bytes up to a number of them."""

    name: str
    read: Callable[[int], bytes]


def archive_suffix(name: str) -> str:
    """The ending that makes a file name that of an archive, "" where there is none."""
    return next((end for end in SUFFIXES if name.lower().endswith(end)), "")


def read_plain(path: Path, most_bytes: int = MAX_NOTEBOOK_BYTES) -> bytes:
    """The bytes of a plain file; FileError for one that is larger, or a link, pipe or device."""
    try:
        # O_NONBLOCK: opening a pipe without a writer would wait for ever
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        kind = "is a link" if path.is_symlink() else f"cannot be opened ({error.strerror})"
        raise FileError(f"The file {kind}; hand in the notebook itself.") from None
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        kind = f"folder ({_listed(descriptor)})" if stat.S_ISDIR(mode) else "pipe or device"
        os.close(descriptor)
        raise FileError(f"The file is a {kind}; hand in the notebook itself.")
    with os.fdopen(descriptor, "rb") as file:
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise FileError(
            f"The file is larger than {most_bytes // 2**20} MB; clear the notebook's outputs and"
            " hand it in again."
        )
    return data


def _listed(folder: int) -> str:
    """The names in an open folder, the first few of them, as they can be printed."""
    names = sorted(name for name in os.listdir(folder) if not name.startswith("."))
    shown = ["".join(c if c.isprintable() else "?" for c in name) for name in names[:_MOST_LISTED]]
    more = [f"{len(names) - _MOST_LISTED} more"] if len(names) > _MOST_LISTED else []
    return f"in it: {', '.join(shown + more)}" if names else "an empty one"


def member_names(path: Path) -> list[str]:
    """The names of the files in an archive, hidden ones left out; FileError if it is not sound."""
    members = _members(path)
    names = [member.name for member in members if not _is_hidden(member.name)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise FileError(f"The archive holds {_shown(twice[0])} twice; hand in the notebook itself.")
    return names


def read_member(path: Path, name: str) -> bytes:
    """The bytes of one file of at most 20 MB in an archive; FileError if they cannot be had."""
    found = [member for member in _members(path) if member.name == name]
    if len(found) != 1:
        raise FileError(f"The archive no longer holds {_shown(name)}; grade again.")
    try:
        data = found[0].read(MAX_NOTEBOOK_BYTES + 1)
    except Exception as error:  # these formats' readers fail in ways of their own
        raise _broken(error) from None
    if len(data) > MAX_NOTEBOOK_BYTES:
        raise FileError(
            f"{_shown(name)} in the archive is larger than {MAX_NOTEBOOK_BYTES // 2**20} MB; clear"
            " its outputs and hand it in again."
        )
    return data


def _members(path: Path) -> list[Member]:
    data = read_plain(path, MAX_ARCHIVE_BYTES)
    try:
        if archive_suffix(path.name) == ".zip":
            return _in_zip(data)
        return _in_tar(data)
    except FileError:
        raise
    except Exception as error:  # these formats' readers fail in ways of their own
        raise _broken(error) from None


def _broken(error: Exception) -> FileError:
    return FileError(
        f"The archive is broken ({type(error).__name__}); hand in the notebook itself."
    )


def _in_zip(data: bytes) -> list[Member]:
    _refuse_many(data.count(_ZIP_MEMBER))  # before a list of millions is made
    archive = zipfile.ZipFile(io.BytesIO(data))
    found = []
    # zipfile gives no more of a file than its entry in the directory says
    _refuse_much(sum(info.file_size for info in archive.infolist()))
    for info in archive.infolist():
        _refuse_path(info.orig_filename)
        if info.flag_bits & _ENCRYPTED:
            raise FileError("The archive is encrypted; hand in the notebook itself.")
        kind = stat.S_IFMT(info.external_attr >> 16)
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise FileError(f"{_shown(info.filename)} in the archive is a link or device.")
        if info.compress_type not in _PACKED_IN_STEPS:
            raise FileError(f"{_shown(info.filename)} in the archive is packed in a rare way.")
        if not info.is_dir():
            found.append(Member(info.filename, lambda n, info=info: archive.open(info).read(n)))  # type: ignore[misc]
    return found


def _in_tar(data: bytes) -> list[Member]:
    if data[:2] == b"\x1f\x8b":
        data = gzip.GzipFile(fileobj=io.BytesIO(data)).read(MAX_UNPACKED_BYTES + 1)
        _refuse_much(len(data))
    archive = tarfile.TarFile(fileobj=io.BytesIO(data))
    found = []
    for number, info in enumerate(archive, start=1):
        _refuse_many(number)
        _refuse_path(info.name)
        if not (info.isreg() or info.isdir()):
            raise FileError(f"{_shown(info.name)} in the archive is a link or device.")
        if info.isreg():
            found.append(Member(info.name, lambda n, info=info: archive.extractfile(info).read(n)))  # type: ignore
    return found


def _refuse_many(n_members: int) -> None:
    if n_members > MAX_MEMBERS:
        raise FileError(
            f"The archive holds more than {MAX_MEMBERS} files; hand in the notebook alone."
        )


def _refuse_much(n_bytes: int) -> None:
    if n_bytes > MAX_UNPACKED_BYTES:
        raise FileError(
            f"The archive holds more than {MAX_UNPACKED_BYTES // 2**20} MB; hand in the notebook"
            " alone."
        )


def _refuse_path(name: str) -> None:
    """FileError for a name that would lead out of the folder it were unpacked in."""
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or ":" in name.split("/")[0] or "\0" in name:
        raise FileError(f"{_shown(name)} in the archive leads out of it; hand in the notebook.")


def _is_hidden(name: str) -> bool:
    """Whether it is what systems and editors add by themselves."""
    return any(part.startswith((".", "__MACOSX")) for part in PurePosixPath(name).parts)


def _shown(name: str) -> str:
    """A member's name as it can be printed."""
    return "".join(c if c.isprintable() else "?" for c in name[-80:])
