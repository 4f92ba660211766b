"""What only a program can tell, since it may hang, crash or be broken: torch, ranks, Jupyter."""

import json
import multiprocessing
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mpedu.probes import Answer, Ask, Finding
from mpedu.probes.machine import installed, pip_install

_CPU = "the CPU"
_PYTHON = (sys.executable, "-P")
_TORCH = """
import json, torch
from torch import distributed, cuda
names = [cuda.get_device_name(i) for i in range(cuda.device_count())] if cuda.is_available() else []
gloo = distributed.is_available() and distributed.is_gloo_available()
told = {"cuda": torch.version.cuda, "rocm": torch.version.hip, "gpus": names, "gloo": gloo}
print("\\n" + json.dumps(told))
"""
_FORK_SERVER = """
import multiprocessing
context = multiprocessing.get_context("forkserver")
process = context.Process(target=print, args=("started",))
process.start()
process.join()
"""
_LAB_EXTENSION = re.compile(r"@jupyter/nbgrader v(\S+) (enabled|disabled) (OK|X)")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
# Jupyter takes each of these for the Python that it runs itself.
_OWN_PYTHON = ("python", "python3", "python{}.{}".format(*sys.version_info[:2]))


# ---- PyTorch and real ranks ----


def pytorch(ask: Ask, n_gpus: int) -> Iterator[Finding]:
    """PyTorch: its version, what it was built for, whether it imports; and the GPUs it sees.

    n_gpus: how many the system has, as device files.
    """
    version = installed("torch")
    if version is None:
        yield Finding("mend", "PyTorch", "not installed", _anew("torch"))
        return
    answer = ask([*_PYTHON, "-c", _TORCH])
    told = _read_json(answer)
    if answer.status != 0 or told is None:
        found = f"{version} cannot be imported: {answer.last_line()}"
        yield Finding("mend", "PyTorch", found, _anew("torch"))
        return
    built = f"{version}, built for {_platform_of(told)}"
    if told["gloo"]:
        yield Finding("ok", "PyTorch", built)
    else:
        yield Finding("mend", "PyTorch", f"{built}, without gloo for real ranks", _anew("torch"))
    yield _gpus(told, n_gpus)


def _platform_of(told: dict[str, Any]) -> str:
    if told["cuda"]:
        return f"CUDA {told['cuda']}"
    return f"ROCm {told['rocm']}" if told["rocm"] else _CPU


def _gpus(told: dict[str, Any], n_gpus: int) -> Finding:
    names = told["gpus"]
    if names:
        found = f"{len(names)} ({', '.join(sorted(set(names)))}); real ranks compute on them when"
        return Finding("ok", "GPUs", f"{found} there is one for each, else on the CPU")
    if not n_gpus:
        return Finding("ok", "GPUs", "none; real ranks compute on the CPU")
    if _platform_of(told) != _CPU:
        found = f"{n_gpus}, but PyTorch cannot use them; so real ranks compute on the CPU"
        return Finding("note", "GPUs", found, "the driver may be too old: look at `nvidia-smi`")
    found = f"{n_gpus}, but this PyTorch is built for the CPU; so real ranks compute there"
    wanted = f"COURSE_TORCH='torch=={(installed('torch') or '').partition('+')[0]}'"
    advice = f"to use them, remove {sys.prefix}, unset PIP_EXTRA_INDEX_URL and run"
    return Finding("note", "GPUs", found, f"{advice} `{wanted} ./course doctor` (several GB)")


def ranks(ask: Ask) -> Finding:
    """Whether the fork server, from which real ranks are started, starts a process."""
    about = "start of real ranks"
    if "forkserver" not in multiprocessing.get_all_start_methods():
        advice = "each start takes seconds; Linux, macOS and WSL have a fork server"
        return Finding("note", about, "no fork server on this system", advice)
    answer = ask([*_PYTHON, "-c", _FORK_SERVER])
    if answer.status == 0 and "started" in answer.text:
        return Finding("ok", about, "by a fork server")
    advice = "a socket's path must be short and its folder yours: run `export TMPDIR=/tmp`"
    return Finding("mend", about, f"the fork server fails: {answer.last_line()}", advice)


# ---- JupyterLab ----


def lab(ask: Ask) -> Finding:
    """JupyterLab and nbgrader, and whether nbgrader's extension is enabled and fits."""
    versions = f"{installed('jupyterlab')} with nbgrader {installed('nbgrader')}"
    answer = ask([*_PYTHON, "-m", "jupyterlab.labextensions", "list"])
    if answer.status != 0:
        found = f"{versions}, does not answer: {answer.last_line()}"
        return Finding("mend", "JupyterLab", found, _anew("jupyterlab"))
    wrong = _extension_fault(answer.text)
    if wrong is None:
        return Finding("ok", "JupyterLab", f"{versions}, its extension enabled")
    fault, command = wrong
    advice = f"only nbgrader's menus need it, `check` does not: run `{command}`"
    return Finding("note", "JupyterLab", f"{versions}; {fault}", advice)


def _extension_fault(listed: str) -> tuple[str, str] | None:
    """What is wrong with nbgrader's extension and the command against it, None for nothing."""
    again = pip_install("--force-reinstall", "--no-deps", f"nbgrader=={installed('nbgrader')}")
    found = _LAB_EXTENSION.search(_COLOUR.sub("", listed))
    if found is None:
        return "nbgrader's extension is missing", again
    version, enabled, fits = found.groups()
    if fits == "X":
        return f"nbgrader's extension {version} does not fit", pip_install("--upgrade", "nbgrader")
    if enabled == "disabled":
        command = [sys.executable, "-m", "jupyterlab.labextensions", "enable", "@jupyter/nbgrader"]
        return "nbgrader's extension is disabled", " ".join(command)
    if version != installed("nbgrader"):
        return f"nbgrader's extension is of version {version}", again
    return None


def kernels(ask: Ask) -> Finding:
    """Whether the kernel `python3`, which the notebooks name, runs this environment's Python."""
    about = "kernels"
    answer = ask([*_PYTHON, "-m", "jupyter_client.kernelspecapp", "list", "--json"])
    told = _read_json(answer)
    install = f"run `{sys.executable} -m ipykernel install --sys-prefix`"
    if answer.status != 0 or told is None:
        found = f"cannot be listed: {answer.last_line()}"
        return Finding("mend", about, found, _anew("jupyter_client"))
    specs = told["kernelspecs"]
    if "python3" not in specs:
        return Finding("mend", about, "none is called python3, as the notebooks ask", install)
    folder, program = Path(specs["python3"]["resource_dir"]), specs["python3"]["spec"]["argv"][0]
    if _is_ours(program):
        others = ", ".join(sorted(set(specs) - {"python3"}))
        found = "python3 runs this environment" + (f"; there is also {others}" if others else "")
        return Finding("ok", about, found)
    if not folder.is_relative_to(sys.prefix):
        install = f"rename {folder}, or unset JUPYTER_PATH and JUPYTER_PREFER_ENV_PATH"
    return Finding("mend", about, f"python3 runs another Python, {program}", install)


def _is_ours(program: str) -> bool:
    # Folders are compared, not files: the programs of two environments may be links to one.
    ours = Path(sys.executable).parent.resolve()
    return program in _OWN_PYTHON or Path(program).parent.resolve() == ours


def _read_json(answer: Answer) -> dict[str, Any] | None:
    """The JSON object that ends the answer, after whatever warnings; None where there is none."""
    at = answer.text.find("\n{")
    try:
        told = json.loads(answer.text[at + 1 :])
    except ValueError:
        return None
    return told if isinstance(told, dict) else None


def _anew(package: str) -> str:
    """How to have a broken package as new."""
    if (Path(sys.prefix) / ".course-stamp").is_file():
        return f"remove {sys.prefix}; the next ./course command makes it anew"
    return f"run `{pip_install('--force-reinstall', package)}`"
