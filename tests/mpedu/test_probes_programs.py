"""What the doctor asks programs, with faked answers: good, bad, broken, too slow."""

import json
import sys
from pathlib import Path

import pytest

from mpedu.probes import Answer, programs

SLOW = Answer(None, "")
CRASHED = Answer(-11, "")
TRACEBACK = Answer(1, "Traceback:\n  File\nOSError: libgomp.so.1 is missing\n\n")


def asked(answer):
    """An `ask` that gives this answer and keeps the words."""

    def ask(words):
        ask.words = list(words)
        return answer

    return ask


def told(**values):
    """What a program says that ends with a JSON object, after a warning."""
    return Answer(0, "a warning {of sorts}\n" + json.dumps(values))


def torch_says(cuda=None, rocm=None, gpus=(), gloo=True):
    return asked(told(cuda=cuda, rocm=rocm, gpus=gpus, gloo=gloo))


@pytest.mark.parametrize(
    ("ask", "n_gpus", "built", "mark", "words"),
    [
        (torch_says(), 0, "the CPU", "ok", "none; real ranks compute on the CPU"),
        (
            torch_says(cuda="13.0", gpus=["X", "X"]),
            2,
            "CUDA 13.0",
            "ok",
            "2 (X); real ranks compute",
        ),
        (torch_says(), 1, "the CPU", "note", "1, but this PyTorch is built for the CPU"),
        (torch_says(cuda="13.0"), 1, "CUDA 13.0", "note", "1, but PyTorch cannot use them"),
        (torch_says(rocm="6.4"), 0, "ROCm 6.4", "ok", "none"),
    ],
)
def test_torch_and_gpus_are_told_apart(ask, n_gpus, built, mark, words):
    torch, gpus = programs.pytorch(ask, n_gpus)
    assert torch.mark == "ok" and torch.found.endswith(f"built for {built}")
    assert gpus.mark == mark and gpus.found.startswith(words)
    assert bool(gpus.advice) == (mark != "ok")


LOOKS = {
    "torch": lambda ask: next(programs.pytorch(ask, 0)),
    "ranks": programs.ranks,
    "lab": programs.lab,
    "kernels": programs.kernels,
}


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (SLOW, "no answer in time"),
        (CRASHED, "exit status -11 and not a word"),
        (TRACEBACK, "OSError: libgomp.so.1 is missing"),
    ],
)
@pytest.mark.parametrize("name", LOOKS)
def test_a_program_that_fails_is_to_be_mended_and_says_why(name, answer, reason):
    found = LOOKS[name](asked(answer))
    assert found.mark == "mend" and found.found.endswith(reason) and found.advice


@pytest.mark.parametrize("name", ["torch", "ranks", "kernels"])
def test_a_program_that_ends_well_without_its_answer_is_to_be_mended(name):
    found = LOOKS[name](asked(Answer(0, "nothing of use")))
    assert found.mark == "mend" and found.found.endswith("nothing of use")


def test_torch_without_gloo_is_to_be_mended():
    torch, _ = programs.pytorch(torch_says(gloo=False), 0)
    assert torch.mark == "mend" and "without gloo" in torch.found


def test_torch_that_is_not_there_is_not_asked(monkeypatch):
    monkeypatch.setattr(programs, "installed", lambda name: None)
    [found] = programs.pytorch(None, 0)
    assert (found.mark, found.found) == ("mend", "not installed")


@pytest.mark.parametrize("is_ours", [True, False])
def test_only_an_environment_that_course_made_is_to_be_removed(monkeypatch, tmp_path, is_ours):
    if is_ours:
        (tmp_path / ".course-stamp").touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    [found] = programs.pytorch(asked(CRASHED), 0)
    way = f"remove {tmp_path}; " if is_ours else "-m pip install --force-reinstall torch"
    assert way in found.advice


def test_ranks_start_where_there_is_a_fork_server(monkeypatch):
    assert programs.ranks(asked(Answer(0, "started\n"))).mark == "ok"
    monkeypatch.setattr("multiprocessing.get_all_start_methods", lambda: ["spawn"])
    assert programs.ranks(None).mark == "note"


LINE = "\t@jupyter/nbgrader v{} \x1b[32m{}\x1b[0m \x1b[32m{}\x1b[0m (python, nbgrader)\n"


@pytest.mark.parametrize(
    ("listed", "fault", "way"),
    [
        (LINE.format("1.2", "enabled", "OK"), "", ""),
        (LINE.format("1.2", "disabled", "OK"), "is disabled", "enable @jupyter/nbgrader"),
        (LINE.format("1.2", "enabled", "X"), "does not fit", "--upgrade nbgrader"),
        (LINE.format("1.1", "enabled", "OK"), "is of version 1.1", "nbgrader==1.2"),
        ("JupyterLab v4.6.6\n", "is missing", "nbgrader==1.2"),
    ],
)
def test_nbgrader_s_extension_must_be_enabled_and_fit(monkeypatch, listed, fault, way):
    monkeypatch.setattr(programs, "installed", lambda name: "1.2")
    found = programs.lab(asked(Answer(0, listed)))
    assert found.mark == ("note" if fault else "ok")
    assert fault in found.found and way in found.advice


def kernels(folder, program, *others):
    spec = {"resource_dir": str(folder), "spec": {"argv": [program, "-m", "ipykernel_launcher"]}}
    return asked(told(kernelspecs={"python3": spec, **dict.fromkeys(others, spec)}))


@pytest.mark.parametrize("program", ["python", "python3", sys.executable])
def test_the_kernel_of_this_environment_is_ok(program):
    found = programs.kernels(kernels(sys.prefix, program, "r"))
    assert (found.mark, found.found) == ("ok", "python3 runs this environment; there is also r")


@pytest.mark.parametrize(
    ("folder", "way"),
    [(Path(sys.prefix, "share"), "ipykernel install --sys-prefix"), ("/home/k", "rename /home/k,")],
)
def test_a_kernel_of_another_environment_is_told(tmp_path, folder, way):
    other = tmp_path / "bin" / "python"
    other.parent.mkdir()
    other.symlink_to(sys.executable)  # the same program, and yet another environment
    found = programs.kernels(kernels(folder, str(other)))
    assert found.mark == "mend" and str(other) in found.found and way in found.advice


def test_a_missing_kernel_comes_with_the_command_that_makes_it():
    found = programs.kernels(asked(told(kernelspecs={})))
    assert found.mark == "mend" and "ipykernel install" in found.advice
