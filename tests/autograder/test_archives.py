import gzip
import io
import os
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest

from autograder.submissions import archives
from autograder.submissions.archives import FileError, member_names, read_member, read_plain


def a_zip(path: Path, *members: tuple[str | zipfile.ZipInfo, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return path


def a_tar(path: Path, *members: tuple[str | tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w" if path.suffix == ".tar" else "w:gz") as archive:
        for name, data in members:
            info = tarfile.TarInfo(name) if isinstance(name, str) else name
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


@pytest.mark.parametrize("name", ["a.zip", "a.tar", "a.tar.gz", "a.TGZ"])
def test_files_are_read_and_nothing_is_written(tmp_path: Path, name: str) -> None:
    make = a_zip if name == "a.zip" else a_tar
    members = [("x/a.ipynb", b"one"), (".hidden", b""), ("x/.ipynb_checkpoints/a", b"")]
    path = make(tmp_path / name, *members)
    assert member_names(path) == ["x/a.ipynb"]
    assert read_member(path, "x/a.ipynb") == b"one"
    assert list(tmp_path.iterdir()) == [path]


def linked(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


def special(kind: bytes) -> tarfile.TarInfo:
    info = tarfile.TarInfo("a.ipynb")
    info.type, info.linkname = kind, "/etc/passwd"
    return info


OUTSIDE = ["../a.ipynb", "/a.ipynb", "x/../../a", "C:\\a.ipynb", "\\\\host\\a", "x\\..\\..\\a"]


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_name_that_leads_out_is_refused(tmp_path: Path, name: str) -> None:
    for path in (a_zip(tmp_path / "a.zip", (name, b"")), a_tar(tmp_path / "a.tar", (name, b""))):
        with pytest.raises(FileError, match="leads out of it"):
            member_names(path)


def test_links_and_devices_are_refused(tmp_path: Path) -> None:
    kinds = (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE)
    made = [a_tar(tmp_path / f"{kind.decode()}.tar", (special(kind), b"")) for kind in kinds]
    for path in [*made, a_zip(tmp_path / "a.zip", (linked("a.ipynb"), b"/etc/passwd"))]:
        with pytest.raises(FileError, match="is a link or device"):
            member_names(path)


def test_an_archive_that_is_itself_a_link_or_a_pipe_is_refused(tmp_path: Path) -> None:
    right = a_zip(tmp_path / "right.zip", ("a.ipynb", b""))
    (tmp_path / "link.zip").symlink_to(right)
    os.mkfifo(tmp_path / "pipe.zip")
    for name, said in (("link.zip", "is a link"), ("pipe.zip", "pipe or device")):
        with pytest.raises(FileError, match=said):
            member_names(tmp_path / name)


def test_what_unpacks_to_too_much_is_read_to_its_limit_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "MAX_NOTEBOOK_BYTES", 2**20)
    monkeypatch.setattr(archives, "MAX_UNPACKED_BYTES", 2**21)
    zeros = bytes(2**22)
    with pytest.raises(FileError, match="in the archive is larger than 1 MB"):
        read_member(a_zip(tmp_path / "a.zip", ("a.ipynb", zeros[: 2**20 + 1])), "a.ipynb")
    for path in (
        a_zip(tmp_path / "b.zip", ("a.ipynb", zeros)),
        a_zip(tmp_path / "c.zip", *((name, zeros[: 2**20]) for name in ("a", "b", "c"))),
        a_tar(tmp_path / "a.tgz", ("a.ipynb", zeros)),
    ):
        with pytest.raises(FileError, match="holds more than 2 MB"):
            member_names(path)
    with pytest.raises(FileError, match="larger than 1 MB"):
        read_member(a_tar(tmp_path / "a.tar", ("a.ipynb", zeros[: 2**20 + 1])), "a.ipynb")


def test_a_size_that_lies_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_NOTEBOOK_BYTES", 2**20)
    path = a_zip(tmp_path / "a.zip", ("a.ipynb", bytes(2**22)))
    data = path.read_bytes().replace((2**22).to_bytes(4, "little"), (9).to_bytes(4, "little"))
    path.write_bytes(data)
    with pytest.raises(FileError):
        read_member(path, "a.ipynb")


def test_what_would_be_unpacked_whole_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("a.ipynb", bytes(2**20))
    with pytest.raises(FileError, match="packed in a rare way"):
        member_names(tmp_path / "a.zip")


def test_many_members_are_refused_before_they_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = [(str(number), b"") for number in range(archives.MAX_MEMBERS + 1)]
    made = a_zip(tmp_path / "a.zip", *members), a_tar(tmp_path / "a.tgz", *members)
    monkeypatch.setattr(zipfile, "ZipFile", None)
    for path in made:
        with pytest.raises(FileError, match="more than 1000 files"):
            member_names(path)


def encrypted(path: Path) -> bytes:
    data = bytearray(path.read_bytes())
    data[6] |= 1  # the flag, once before the member, once in the directory
    data[data.index(b"PK\x01\x02") + 8] |= 1
    return bytes(data)


def test_encrypted_and_broken_archives_are_refused_in_a_sentence(tmp_path: Path) -> None:
    good = a_zip(tmp_path / "good.zip", ("a.ipynb", b"some text" * 99))
    tar = gzip.decompress(a_tar(tmp_path / "a.tgz", ("a.ipynb", bytes(9999))).read_bytes())
    cases = {
        "1.zip": (encrypted(good), "encrypted"),
        "2.zip": (good.read_bytes()[:-30], "broken"),
        "3.zip": (b"", "broken"),
        "4.tar.gz": ((tmp_path / "a.tgz").read_bytes()[:-9], "broken"),
        "5.tar": (b"no archive at all" * 99, "broken"),
        "6.tar": (tar[:300], "broken"),
    }
    for name, (data, said) in cases.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(FileError, match=said):
            member_names(tmp_path / name)


def test_damage_inside_a_member_is_found_when_it_is_read(tmp_path: Path) -> None:
    path = a_zip(tmp_path / "a.zip", ("a.ipynb", os.urandom(999)))
    data = bytearray(path.read_bytes())
    data[200] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(FileError, match="broken"):
        read_member(path, "a.ipynb")


def test_a_name_twice_and_a_name_that_is_gone_are_refused(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="Duplicate"):
        path = a_zip(tmp_path / "a.zip", ("a.ipynb", b"1"), ("a.ipynb", b"2"))
    with pytest.raises(FileError, match="twice"):
        member_names(path)
    with pytest.raises(FileError, match="no longer holds b"):
        read_member(path, "b")


def test_a_plain_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"12345")
    assert read_plain(path, 5) == b"12345"
    with pytest.raises(FileError, match="larger than"):
        read_plain(path, 4)
