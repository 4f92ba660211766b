"""The doctor: every probe is a line whatever it meets, within its limit, and nothing is left."""

import argparse
import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from mpedu import doctor
from mpedu.probes import Finding
from mpedu.probes.examine import Probe, Programs, examine, look

FINE = Finding("ok", "cores", "2")
NOTE = Finding("note", "GPUs", "1, idle", "run `nvidia-smi`")
BAD = Finding("mend", "PyTorch", "not installed", "run `pip install torch`")


def run(monkeypatch, capsys, findings, *words):
    monkeypatch.setattr("mpedu.probes.examine.examine", lambda *_: iter(findings))
    parser = argparse.ArgumentParser()
    doctor.add_arguments(parser)
    return doctor.run(parser.parse_args(words)), capsys.readouterr().out


# ---- what a notebook's first cell prints ----


@pytest.mark.parametrize(
    ("torch", "n_gpus", "ranks"),
    [
        ("2.13.0+cpu", 0, "processes"),
        ("2.13.0", 0, "processes"),
        ("2.13.0+cpu", 4, "processes"),
        ("2.13.0", 4, "GPUs, for up to 4 ranks; processes for more"),
    ],
)
def test_the_first_cell_says_what_real_ranks_run_on(monkeypatch, torch, n_gpus, ranks):
    monkeypatch.setattr(doctor, "_version", lambda package: torch)
    monkeypatch.setattr(doctor, "_n_gpus", lambda: n_gpus)
    lines = doctor.environment_lines()
    assert lines[-1] == f"real ranks: {ranks}"
    assert [line.split()[0] for line in lines] == ["Python", "torch", "cores:", "GPUs:", "real"]


# ---- what is printed ----


@pytest.mark.parametrize(
    ("findings", "status", "last"),
    [
        ([FINE], 0, "Nothing to mend."),
        ([FINE, NOTE], 0, "Nothing to mend; 1 note."),
        ([BAD, NOTE, NOTE], 1, "1 to mend; 2 notes."),
    ],
)
def test_the_status_tells_whether_something_is_to_be_mended(
    monkeypatch, capsys, findings, status, last
):
    got, said = run(monkeypatch, capsys, findings)
    assert got == status and said.splitlines()[-1] == last


def test_a_finding_is_a_line_and_what_to_do_another(monkeypatch, capsys):
    _, said = run(monkeypatch, capsys, [FINE, BAD])
    assert said.splitlines()[:3] == [
        "ok    cores: 2",
        "mend  PyTorch: not installed",
        "      run `pip install torch`",
    ]


def test_json_holds_every_finding_and_nothing_else(monkeypatch, capsys):
    status, said = run(monkeypatch, capsys, [FINE, BAD], "--json")
    assert status == 1
    assert [Finding(**each) for each in json.loads(said)] == [FINE, BAD]


SHOW = """
import sys
from mpedu import doctor
from mpedu.probes import Finding
doctor._printer()(Finding("mend", "a", "[b] " + "word " * 30, "run `c`"))
"""


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_a_terminal_gets_colour_unless_asked_not_to_and_whole_lines(no_color, coloured):
    ours, theirs = pty.openpty()
    settings = {**os.environ, "NO_COLOR": no_color, "TERM": "xterm", "COLUMNS": "30"}
    subprocess.run(
        [sys.executable, "-c", SHOW], stdout=theirs, env=settings, timeout=60, check=True
    )
    os.close(theirs)
    said = os.read(ours, 4096).decode()
    os.close(ours)
    assert ("\x1b[" in said) == coloured
    plain = re.sub(r"\x1b\[[0-9;]*m", "", said).splitlines()
    assert plain == ["mend  a: [b] " + "word " * 30, "      run `c`"]


# ---- how probes are run ----


def test_a_probe_that_fails_is_a_line_with_the_mark_of_the_probe():
    def broken():
        raise RuntimeError("no such thing")

    def broken_later():
        yield FINE
        raise OSError("disk")

    first, second = look([Probe("a", broken, "mend"), Probe("b", broken_later)], 9.0)
    assert (first.mark, first.about) == ("mend", "a")
    assert "RuntimeError: no such thing" in first.found
    assert (second.mark, second.about) == ("note", "b")


def test_a_probe_that_hangs_costs_the_limit_and_no_other_probe():
    never = threading.Event()
    probes = [Probe("a", never.wait, "mend"), Probe("b", lambda: FINE)]
    slow, fine = look(probes, 0.1)
    never.set()
    assert slow[:3] == ("mend", "a", "no answer within 0.1 s")
    assert fine == FINE


def test_findings_come_in_the_order_of_the_probes_though_all_look_at_once():
    second_looked = threading.Event()

    def first():
        assert second_looked.wait(20)
        return NOTE

    def second():
        second_looked.set()
        return FINE

    assert list(look([Probe("a", first), Probe("b", second)], 30.0)) == [NOTE, FINE]


STARTER = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(97)"])
print(child.pid, file=open(sys.argv[1], "w"), flush=True)
time.sleep(97)
"""


def wait_for(what):
    limit = time.monotonic() + 20
    while not (found := what()):
        assert time.monotonic() < limit
        time.sleep(0.02)
    return found


def is_gone(pid):
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_a_program_tells_its_status_and_all_that_it_printed():
    words = [sys.executable, "-c", "import sys; print('o', flush=True); sys.exit('e')"]
    assert Programs(30.0).ask(words) == (1, "o\ne\n")


@pytest.mark.parametrize(("limit_s", "is_slow"), [(3.0, True), (600.0, False)])
def test_no_program_outlives_its_limit_or_the_doctor(tmp_path, limit_s, is_slow):
    note = tmp_path / "pid"
    words = [sys.executable, "-c", STARTER, str(note)]
    started = Programs(limit_s)
    answers = []
    thread = threading.Thread(target=lambda: answers.append(started.ask(words)))
    thread.start()
    pid = int(wait_for(lambda: note.exists() and note.read_text().strip()))
    if not is_slow:
        started.close()
    thread.join(20)
    assert [answer.status for answer in answers] == [None if is_slow else -signal.SIGKILL]
    wait_for(lambda: is_gone(pid))


def test_nothing_starts_after_the_end():
    started = Programs(600.0)
    started.close()
    assert started.ask([sys.executable, "-c", "import time; time.sleep(97)"]).status is None


def test_an_interrupted_doctor_ends_with_130_and_leaves_no_program(tmp_path):
    note = tmp_path / "pid"
    hanging = f"import os, time; open({str(note)!r}, 'w').write(f'{{os.getpid()}}'); time.sleep(97)"
    (tmp_path / "torch.py").write_text(hanging, encoding="utf-8")
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "mpedu", "doctor"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    ) as process:
        pid = int(wait_for(lambda: note.exists() and note.read_text()))
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=20)
    assert process.returncode == 130 and said == b"course doctor: stopped.\n"
    wait_for(lambda: is_gone(pid))


# ---- this machine ----


@pytest.fixture(scope="module")
def here():
    root = Path(__file__).parents[2]
    return {finding.about: finding for finding in examine(root, 2, 0, 120.0)}


def test_every_probe_finds_something_on_this_machine(here):
    assert list(here) == [
        *("system", "Python", "packages", "PyTorch", "GPUs", "start of real ranks", "cores"),
        *("memory", "shared memory", "JupyterLab", "kernels", "text encoding", "checkout", "disk"),
        *("temporary files", "grader's walls"),
    ]
    assert not [each for each in here.values() if "cannot be found out" in each.found]


@pytest.mark.parametrize(
    "about", ["Python", "packages", "PyTorch", "start of real ranks", "JupyterLab", "kernels"]
)
def test_what_the_suite_itself_runs_on_is_ok(here, about):
    assert here[about].mark == "ok", here[about]


def test_the_doctor_works_where_torch_rich_and_packaging_are_broken(tmp_path):
    for name in ("torch", "rich", "packaging", "psutil"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise ImportError('broken by hand')")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "mpedu", "doctor"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1 and done.stderr == ""
    lines = {line[6:].partition(": ")[0]: line for line in done.stdout.splitlines()}
    assert lines["PyTorch"].startswith("mend") and "broken by hand" in lines["PyTorch"]
    assert lines["memory"].startswith("note") and "broken by hand" in lines["memory"]
    assert lines["start of real ranks"].startswith("ok")
