"""What can be read without starting anything: system, packages, memory, encoding, disks."""

import codecs
import locale
import os
import platform
import shlex
import shutil
import sys
import tempfile
from importlib import metadata
from pathlib import Path

from mpedu.probes import Finding

GB = 10**9
MB = 10**6
LITTLE_MEMORY_BYTES = 2 * GB
LITTLE_SHARED_BYTES = 256 * MB
LITTLE_DISK_BYTES, NO_DISK_BYTES = 3 * GB, 200 * MB


def system() -> Finding:
    """The operating system and the kind of processor."""
    found = f"{_system_name()}, {platform.machine()}"
    if platform.system() != "Windows":
        return Finding("ok", "system", found)
    advice = "real ranks start slowly here and the grader has no walls; `wsl --install` brings both"
    return Finding("note", "system", found, advice)


def _system_name() -> str:
    if platform.system() == "Darwin":
        return f"macOS {platform.mac_ver()[0]}"
    if platform.system() != "Linux":
        return f"{platform.system()} {platform.release()}"
    try:
        name = platform.freedesktop_os_release()["PRETTY_NAME"]
    except OSError:
        name = "Linux"
    return f"{name} in WSL" if "microsoft" in platform.release().lower() else name


def python() -> Finding:
    """This Python, and whether the package admits its version."""
    from packaging.specifiers import SpecifierSet

    version = platform.python_version()
    found = f"{version}, {sys.executable}"
    wanted = metadata.metadata("mpedu")["Requires-Python"]
    if SpecifierSet(wanted).contains(version, prereleases=True):
        return Finding("ok", "Python", found)
    advice = f"the course needs Python {wanted}: install one, remove {sys.prefix}, and start anew"
    return Finding("mend", "Python", found, advice)


def packages() -> Finding:
    """Whether every package that the course asks for is here in a version that fits."""
    from packaging.requirements import Requirement

    asked = [Requirement(line) for line in metadata.requires("mpedu") or ()]
    asked = [each for each in asked if each.marker is None or each.marker.evaluate({"extra": ""})]
    wrong, why = [], []
    for each in asked:
        version = installed(each.name)
        if version is None or not each.specifier.contains(version, prereleases=True):
            wrong.append(f"{each.name}{each.specifier}")
            why.append(f"{each.name} {version}" if version else f"no {each.name}")
    if not wrong:
        return Finding("ok", "packages", f"all {len(asked)} that the course asks for")
    return Finding("mend", "packages", ", ".join(why), f"run `{pip_install(*wrong)}`")


def installed(package: str) -> str | None:
    """The version of an installed package, None where there is none."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def pip_install(*words: str) -> str:
    """The command that installs these words into this environment."""
    return shlex.join([sys.executable, "-m", "pip", "install", *words])


def cores(n_cores: int) -> Finding:
    """How many cores this process may use."""
    if n_cores > 1:
        return Finding("ok", "cores", str(n_cores))
    return Finding("note", "cores", "1", "real ranks take turns on it: results are right, but slow")


def memory() -> Finding:
    """Memory in all, and how much of it is free."""
    import psutil  # type: ignore[import-untyped]

    now = psutil.virtual_memory()
    found = f"{now.total / GB:.1f} GB, {now.available / GB:.1f} GB of it free"
    if now.available >= LITTLE_MEMORY_BYTES:
        return Finding("ok", "memory", found)
    advice = "close other programs before you start real ranks: each takes 0.2 GB or more"
    return Finding("note", "memory", found, advice)


def shared_memory(folder: Path = Path("/dev/shm")) -> Finding:
    """The memory that processes can share, on Linux a folder of limited size."""
    if platform.system() != "Linux":
        return Finding("ok", "shared memory", "not limited on this system")
    if not os.access(folder, os.W_OK):
        advice = "locks between processes need it: run `mount -t tmpfs tmpfs /dev/shm` as root"
        return Finding("note", "shared memory", f"{folder} cannot be written", advice)
    free_bytes = shutil.disk_usage(folder).free
    found = f"{folder}, {_size(free_bytes)} free"
    if free_bytes >= LITTLE_SHARED_BYTES:
        return Finding("ok", "shared memory", found)
    advice = "only ranks on GPUs need more: start a container with `--shm-size=1g`"
    return Finding("note", "shared memory", found, advice)


def encoding() -> Finding:
    """How text is read and written where a program does not say: it should be UTF-8."""
    preferred = locale.getpreferredencoding(False)
    chosen = os.environ.get("PYTHONIOENCODING", "")
    if not _is_utf8(preferred):
        advice = "some letters may come out wrong; run `export PYTHONUTF8=1`"
        return Finding("note", "text encoding", f"{preferred}, not UTF-8", advice)
    if chosen.partition(":")[0] and not _is_utf8(chosen.partition(":")[0]):
        found = f"UTF-8, but PYTHONIOENCODING={chosen}"
        return Finding("note", "text encoding", found, "run `unset PYTHONIOENCODING`")
    return Finding("ok", "text encoding", "UTF-8")


def _is_utf8(name: str) -> bool:
    try:
        return codecs.lookup(name).name == "utf-8"
    except LookupError:
        return False


def disk(root: Path) -> Finding:
    """Free disk at the checkout `root`."""
    return _free("disk", root, "remove what you do not need, such as build/ in the checkout")


def temporary() -> Finding:
    """The folder for temporary files and its free disk."""
    advice = "run `export TMPDIR=DIR` with a folder of yours on a larger disk"
    try:
        folder = Path(tempfile.gettempdir())
    except FileNotFoundError:
        return Finding("mend", "temporary files", "no folder for them can be written", advice)
    return _free("temporary files", folder, advice)


def _free(about: str, folder: Path, advice: str) -> Finding:
    free_bytes = shutil.disk_usage(folder).free
    found = f"{_size(free_bytes)} free at {folder}"
    if free_bytes < NO_DISK_BYTES:
        return Finding("mend", about, found, advice)
    if free_bytes < LITTLE_DISK_BYTES:
        return Finding("note", about, found, f"little is left: {advice}")
    return Finding("ok", about, found)


def checkout(root: Path) -> Finding:
    """Whether the commands can write below the checkout `root`, as they do unless told not to."""
    if not (root / "pyproject.toml").is_file():
        advice = "the notebooks are in the course's checkout: run ./course there"
        return Finding("note", "checkout", f"there is none at {root}", advice)
    if os.access(root, os.W_OK):
        return Finding("ok", "checkout", f"{root} can be written")
    advice = "name folders of yours: `./course lab --folder DIR`, and --out DIR for other commands"
    return Finding("note", "checkout", f"{root} cannot be written", advice)


def _size(n_bytes: int) -> str:
    return f"{n_bytes / GB:.1f} GB" if n_bytes >= GB else f"{n_bytes / MB:.0f} MB"
