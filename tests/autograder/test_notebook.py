import ctypes
import json
import os
import sys
import warnings

import pytest

from autograder import local
from autograder.notebook import (
    NOTES,
    CheckFailed,
    NotAsked,
    check,
    guess,
    hint,
    my_best,
    sealed_run,
    show,
)
from autograder.worker.walls import Limits
from mpedu.families import gpipe
from mpedu.schedule import Action
from mpedu.train_step import train_step


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def ask(exercise_id, source):
    """`check` as a cell of a notebook that holds `source` calls it."""
    namespace = {"check": check, "Action": Action, "get_ipython": None}
    exec(source, namespace)
    return eval(f"check({exercise_id!r})", namespace)


RIGHT = """
def gpipe(n_stages, n_microbatches):
    if n_stages < 1 or n_microbatches < 1:
        raise ValueError(f"{n_stages} {n_microbatches}")
    return [[Action(k, s, m) for k in "FB" for m in range(n_microbatches)] for s in range(n_stages)]
"""
SERIAL = RIGHT.replace(
    'for k in "FB" for m in range(n_microbatches)', 'for m in range(n_microbatches) for k in "FB"'
)


def test_full_points_are_none_partial_points_a_float_and_none_an_error(capsys):
    assert ask("gpipe", RIGHT) is None
    partial = ask("gpipe", SERIAL)
    assert type(partial) is float and partial == 2.0
    with pytest.raises(CheckFailed, match="makespan 96"):
        ask("gpipe_fast", SERIAL)
    out, err = capsys.readouterr()
    assert "3 of 3 points" in out and "2 of 3 points" in out and err == ""


@pytest.mark.parametrize(
    "source, sentence",
    [
        ("", "`gpipe` is not defined."),
        ("def gpipe(k, m):\n    raise NotImplementedError", "not written yet"),
        ("from mpedu.families import gpipe", "this is the exercise"),
        (
            "from mpedu.families import gpipe as g\ndef gpipe(k, m): return g(k, m)",
            "this is the exer",
        ),
        (
            "import mpedu.families as f\ndef gpipe(k, m): return f.one_f_one_b(m, k)",
            "this is the ex",
        ),
    ],
)
def test_no_answer_is_told_in_one_sentence(source, sentence):
    with pytest.raises(CheckFailed, match=sentence) as failed:
        ask("gpipe", source)
    assert "\n" not in str(failed.value)
    assert failed.value._render_traceback_() == [f"CheckFailed: {failed.value}"]


def test_the_course_works_again_after_a_check():
    with pytest.raises(CheckFailed):
        ask("gpipe", "from mpedu.families import gpipe")
    assert len(gpipe(2, 3)) == 2


NOISY = RIGHT.replace(
    "    if n_stages < 1",
    """    import os, sys, warnings
    print("a line on stdout")
    print("a line on stderr", file=sys.stderr)
    warnings.warn("a warning")
    os.write(2, b"a line of a C library\\n")
    if n_stages < 1""",
    1,
)


def test_what_the_code_prints_comes_shortened_on_stdout_and_nothing_on_stderr(capfd):
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        # pytest would keep the warning to itself; a kernel writes it to stderr
        warnings.showwarning = lambda message, *_: print(message, file=sys.stderr)
        assert ask("gpipe", NOISY) is None
    out, err = capfd.readouterr()
    assert err == ""
    assert out.count("a line on stdout") <= 8 and "more lines that your code printed" in out
    assert out.splitlines()[-1].endswith("3 of 3 points.")


def test_streams_and_descriptors_are_given_back_when_the_code_raises(capfd):
    streams = sys.stdout, sys.stderr
    with pytest.raises(CheckFailed):
        ask("gpipe", "def gpipe(k, m):\n    1 / 0")
    assert (sys.stdout, sys.stderr) == streams
    os.write(1, b"still there\n")
    ctypes.CDLL(None).fflush(None)
    assert "still there" in capfd.readouterr().out


def test_the_students_line_is_named():
    with pytest.raises(CheckFailed) as failed:
        ask("gpipe", "def gpipe(k, m):\n    return 1 / 0")
    assert "ZeroDivisionError" in str(failed.value) and "line 2" in str(failed.value)


def test_the_stop_button_stops_a_check_and_names_the_line():
    with pytest.raises(KeyboardInterrupt) as stopped:
        ask("gpipe", "def gpipe(k, m):\n    raise KeyboardInterrupt")
    (line,) = stopped.value._render_traceback_()
    assert line == (
        "Stopped: `gpipe` was still running (your cell, line 2); does every loop in it end?"
    )


def in_a_notebook(cell):
    """What a cell's KeyboardInterrupt says in a notebook that holds `show` and `train_step`."""
    namespace = {"show": show, "train_step": train_step, "get_ipython": None}
    with pytest.raises(KeyboardInterrupt) as stopped:
        exec(cell, namespace)
    return stopped.value._render_traceback_()


def test_the_stop_button_ends_ranks_and_blames_no_loop(monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("mpedu.train_step.run_ranks", interrupted)
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
    (line,) = in_a_notebook("from mpedu.families import gpipe\nshow(train_step, gpipe, 2, 4)")
    assert line == "Stopped by you. The ranks were ended; run the cell again."


def test_the_stop_button_names_the_function_that_train_step_was_asking():
    source = "def gpipe(k, m):\n    raise KeyboardInterrupt\nshow(train_step, gpipe, 2, 4)"
    (line,) = in_a_notebook(source)
    assert line.startswith("Stopped: `gpipe` was still running (your cell, line 2)")


def test_outside_a_notebook_an_interrupt_stays_what_it_is():
    def gpipe():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as stopped:
        local.LocalSubject({"gpipe": gpipe}, ["gpipe"])()
    assert type(stopped.value) is KeyboardInterrupt


def test_an_endless_loop_is_stopped_after_a_while(monkeypatch):
    monkeypatch.setattr(local, "Limits", lambda: Limits(call_s=0.3))
    with pytest.raises(CheckFailed, match=r"takes longer than 0\.3 s and was stopped .*line [23]"):
        ask("gpipe_fast", "def gpipe(k, m):\n    while True:\n        pass")


@pytest.mark.parametrize(
    "call, sentence",
    [
        (lambda: check("gpip"), "no exercise 'gpip'; known: .*gpipe, gpipe_fast"),
        (lambda: hint("E1"), "no exercise 'E1'; known"),
        (lambda: hint("gpipe", 7), "gpipe has hints 1 to 3; there is no hint 7"),
        (lambda: hint("gpipe", "a"), "there is no hint 'a'"),
        (lambda: guess("idle_m8", 0.3), "no guess 'idle_m8'; known"),
    ],
)
def test_what_is_not_there_is_told_in_one_line(call, sentence):
    with pytest.raises(ValueError, match=sentence) as raised:
        call()
    assert raised.value._render_traceback_() == [f"NotAsked: {raised.value}"]


@pytest.mark.parametrize("asked", [unwritten_gpipe := lambda: None, "min_microbatches"])
def test_hints_are_found_by_the_name_of_a_function_too(asked, capsys):
    if callable(asked):
        asked.__name__ = "gpipe"
    hint(asked)
    assert "Hint 1 of 3." in capsys.readouterr().out


def test_hints_come_one_by_one_and_any_can_be_asked_for(capsys):
    for step in (1, 2, 3, 3):
        hint("gpipe")
        assert f"Hint {step} of 3." in capsys.readouterr().out
    hint("gpipe", 1)
    assert "Hint 1 of 3." in capsys.readouterr().out


def test_a_guess_is_kept_beside_the_notebook_and_shown_with_the_result(capsys):
    guess("idle-m8", ...)
    assert "Your guess first" in capsys.readouterr().out
    guess("idle-m8", 0.25)
    guess("idle-m8")
    assert "You said 25.0 %; it is 27.3 %." in capsys.readouterr().out
    assert json.loads(NOTES.read_text())["guesses"] == {"idle-m8": 0.25}


@pytest.mark.parametrize("value", ["a lot", None, True, 40, -1, float("nan")])
def test_a_guess_that_cannot_be_is_asked_again(value, capsys):
    guess("idle-m8", value)
    assert "Your guess:" not in capsys.readouterr().out
    assert not NOTES.exists()


def test_broken_notes_cost_no_cell(capsys):
    NOTES.write_text("[1, 2")
    guess("idle-m8", 0.25)
    NOTES.write_text("[1, 2]")
    hint("gpipe")
    assert "Hint 1" in capsys.readouterr().out


def test_points_so_far_stand_beside_the_guesses(capsys):
    guess("best-m", 64)
    assert ask("gpipe", SERIAL) == 2.0
    my_best()
    out = capsys.readouterr().out
    assert "2 of 3" in out and "Points so far: 2 of 20." in out and "You said 64; it is 14." in out


def test_the_best_of_all_tries_counts():
    assert ask("gpipe", RIGHT) is None
    assert ask("gpipe", SERIAL) == 2.0
    assert json.loads(NOTES.read_text())["points"] == {"gpipe": 3}


@pytest.fixture
def in_unit_02(tmp_path, monkeypatch):
    folder = tmp_path / "02-naive"
    folder.mkdir()
    monkeypatch.chdir(folder)


def test_an_exercise_is_found_by_its_number_in_the_text(in_unit_02, capsys):
    hint("E2")
    assert "Idea: two areas." in capsys.readouterr().out
    with pytest.raises(NotAsked, match="E1 has several checks: naive, naive_busy; name one"):
        hint("E1")
    with pytest.raises(NotAsked, match=r"'E9' in this notebook; known: naive, .*bill_cause$"):
        check("E9")


def test_a_sealed_run_is_that_of_the_notebook(in_unit_02):
    assert sealed_run("A") == sealed_run("A", "02")


def test_a_notebook_is_known_by_its_functions_where_its_folder_has_another_name():
    namespace = {"sealed_run": sealed_run}
    exec("def boundary_bytes(*sizes): ...\ndef memory_bill(*sizes): ...", namespace)
    assert eval("sealed_run('A')", namespace) == sealed_run("A", "02")


def test_an_exercise_without_points_has_hints_too(capsys):
    for step in (1, 2, 3):
        hint("partition_layers")
        assert f"Hint {step} of 3." in capsys.readouterr().out
