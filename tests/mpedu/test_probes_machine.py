"""What the doctor reads off the machine, with faked findings: good, bad, missing."""

import platform
import shlex
import shutil
import sys
import tempfile
from collections import namedtuple

import pytest

from mpedu.probes import machine

GB = 10**9


@pytest.mark.parametrize(
    ("name", "release", "mark", "words"),
    [
        ("Linux", "6.1", "ok", "Some Linux 12, "),
        ("Linux", "5.15-microsoft-standard-WSL2", "ok", "Some Linux 12 in WSL, "),
        ("Darwin", "23.1", "ok", "macOS"),
        ("Windows", "11", "note", "Windows 11, "),
    ],
)
def test_the_system_is_named(monkeypatch, name, release, mark, words):
    monkeypatch.setattr(platform, "system", lambda: name)
    monkeypatch.setattr(platform, "release", lambda: release)
    monkeypatch.setattr(
        platform, "freedesktop_os_release", lambda: {"PRETTY_NAME": "Some Linux 12"}
    )
    found = machine.system()
    assert found.mark == mark and found.found.startswith(words)
    assert ("wsl --install" in found.advice) == (name == "Windows")


def test_linux_without_a_release_file_is_still_linux(monkeypatch):
    def missing():
        raise OSError

    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "freedesktop_os_release", missing)
    assert machine.system().found.startswith("Linux")


@pytest.mark.parametrize(
    ("version", "mark"), [("3.12.1", "ok"), ("3.10.9", "mend"), ("3.15.0", "mend")]
)
def test_python_must_be_one_that_the_package_admits(monkeypatch, version, mark):
    monkeypatch.setattr(platform, "python_version", lambda: version)
    found = machine.python()
    assert found.mark == mark and found.found == f"{version}, {sys.executable}"
    assert ("<3.15" in found.advice and sys.prefix in found.advice) == (mark == "mend")


def test_missing_and_old_packages_come_with_the_command_that_installs_them(monkeypatch):
    assert machine.packages().mark == "ok"
    versions = {"rich": None, "nbgrader": "0.8", "jupyterlab": "4.5"}
    monkeypatch.setattr(machine, "installed", lambda name: versions.get(name, "999"))
    found = machine.packages()
    assert (found.mark, found.found) == ("mend", "nbgrader 0.8, no rich")
    wanted = "'nbgrader>=0.9.5' 'rich>=13.7'"
    assert found.advice == f"run `{shlex.quote(sys.executable)} -m pip install {wanted}`"


def test_packages_of_an_extra_are_not_missed(monkeypatch):
    monkeypatch.setattr(machine.metadata, "requires", lambda _: ['sphinx>=99; extra == "site"'])
    assert machine.packages().found == "all 0 that the course asks for"


def test_a_single_core_is_a_note():
    assert machine.cores(2).mark == "ok"
    assert machine.cores(1).mark == "note" and "slow" in machine.cores(1).advice


@pytest.mark.parametrize(("free_bytes", "mark"), [(2 * GB, "ok"), (2 * GB - 1, "note")])
def test_little_free_memory_is_a_note(monkeypatch, free_bytes, mark):
    memory = namedtuple("memory", "total available")
    monkeypatch.setattr("psutil.virtual_memory", lambda: memory(8 * GB, free_bytes))
    found = machine.memory()
    assert (found.mark, found.found) == (mark, "8.0 GB, 2.0 GB of it free")


def with_free_disk(monkeypatch, n_bytes):
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(n_bytes))


@pytest.mark.parametrize(("free_bytes", "mark"), [(GB, "ok"), (64 * 10**6, "note")])
def test_little_shared_memory_matters_to_gpus_only(monkeypatch, tmp_path, free_bytes, mark):
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    with_free_disk(monkeypatch, free_bytes)
    found = machine.shared_memory(tmp_path)
    assert found.mark == mark and ("only ranks on GPUs" in found.advice) == (mark == "note")


@pytest.mark.parametrize(("name", "mark"), [("Linux", "note"), ("Darwin", "ok")])
def test_no_shared_memory_is_missed_on_linux_only(monkeypatch, tmp_path, name, mark):
    monkeypatch.setattr(platform, "system", lambda: name)
    assert machine.shared_memory(tmp_path / "shm").mark == mark


@pytest.mark.parametrize(
    ("preferred", "chosen", "mark", "way"),
    [
        ("UTF-8", "", "ok", ""),
        ("utf8", "utf-8:replace", "ok", ""),
        ("utf8", ":replace", "ok", ""),
        ("UTF-8", "latin-1", "note", "unset PYTHONIOENCODING"),
        ("UTF-8", "nonsense", "note", "unset PYTHONIOENCODING"),
        ("cp1252", "", "note", "export PYTHONUTF8=1"),
    ],
)
def test_text_should_be_utf8(monkeypatch, preferred, chosen, mark, way):
    monkeypatch.setattr("locale.getpreferredencoding", lambda _: preferred)
    monkeypatch.setenv("PYTHONIOENCODING", chosen)
    found = machine.encoding()
    assert found.mark == mark and way in found.advice


@pytest.mark.parametrize(
    ("free_bytes", "mark", "size"),
    [(5 * GB, "ok", "5.0 GB"), (GB, "note", "1.0 GB"), (10**8, "mend", "100 MB")],
)
def test_disks_are_to_have_room(monkeypatch, tmp_path, free_bytes, mark, size):
    with_free_disk(monkeypatch, free_bytes)
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    for found, way in ((machine.disk(tmp_path), "build/"), (machine.temporary(), "TMPDIR=DIR")):
        assert (found.mark, found.found) == (mark, f"{size} free at {tmp_path}")
        assert (way in found.advice) == (mark != "ok")


def test_no_folder_for_temporary_files_is_to_be_mended(monkeypatch):
    def none():
        raise FileNotFoundError

    monkeypatch.setattr(tempfile, "gettempdir", none)
    assert machine.temporary().mark == "mend" and "export TMPDIR" in machine.temporary().advice


def test_a_checkout_that_cannot_be_written_names_the_options(monkeypatch, tmp_path):
    assert "run ./course there" in machine.checkout(tmp_path).advice
    (tmp_path / "pyproject.toml").touch()
    assert machine.checkout(tmp_path).mark == "ok"
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert "--folder DIR" in machine.checkout(tmp_path).advice
