"""What a notebook cell calls: check an answer, get a hint, make a guess, look at a picture."""

import inspect
import json
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from autograder.exercise import (
    Guess,
    find_exercise,
    find_guess,
    load_unit,
    unit_numbers,
)
from autograder.judge import Verdict, judge
from autograder.local import LocalSubject
from autograder.withhold import withheld
from mpedu.plot import Picture, draw_schedule, draw_timeline
from mpedu.simulate import Timeline

NOTES = Path(".mpedu-notes.json")  # beside the notebook: guesses made, hints seen
MOST_PRINTED_LINES = 8


class CheckFailed(Exception):
    """No points: one sentence for the student, printed without a stack of library frames."""

    def _render_traceback_(self) -> list[str]:
        return [f"CheckFailed: {self}"]


def check(exercise_id: str) -> float | None:
    """None for full points, the points as a float for some, CheckFailed for none.

    Finds the functions of the exercise among the names of the calling notebook and says on
    stdout what it found. Nothing is written to stderr, whatever the student's code prints: stock
    nbgrader gives no points to a graded cell with stderr output.
    """
    exercise = find_exercise(exercise_id)
    caller = sys._getframe(1).f_globals
    with _captured() as printed, withheld(exercise.withholds):
        verdict = judge(exercise, LocalSubject(caller, exercise.names))
    notes = _read_notes()
    notes.setdefault("points", {})[exercise_id] = verdict.score
    _write_notes(notes)
    _print_shortened(printed)
    return _tell(verdict)


def _tell(verdict: Verdict) -> float | None:
    points = f"{verdict.score} of {verdict.points} points"
    if verdict.score == verdict.points:
        print(f"{verdict.title}: {points}.")
        return None
    if verdict.status == "unwritten":
        raise CheckFailed(verdict.messages[0])
    if verdict.score == 0 and len(verdict.messages) == 1 and "\n" not in verdict.messages[0]:
        raise CheckFailed(verdict.messages[0])
    print("\n".join([f"{verdict.title}: {points}.", *verdict.messages]))
    if verdict.score == 0:
        raise CheckFailed(f"{points}; what was found stands above.")
    return float(verdict.score)


def _print_shortened(printed: list[str]) -> None:
    lines = "".join(printed).splitlines()
    for line in lines[:MOST_PRINTED_LINES]:
        print(line[:200])
    if len(lines) > MOST_PRINTED_LINES:
        print(f"[{len(lines) - MOST_PRINTED_LINES} more lines that your code printed]")


@contextmanager
def _captured() -> Iterator[list[str]]:
    """Holds everything written to stdout and stderr, by Python or by C, and hands it over after."""
    printed: list[str] = []
    streams = sys.stdout, sys.stderr
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as held:
        sys.stdout = sys.stderr = held
        try:
            with _descriptors_into(held):
                yield printed
        finally:
            sys.stdout, sys.stderr = streams
            held.flush()
            held.seek(0)
            printed.append(held.read(1_000_000))


@contextmanager
def _descriptors_into(held: TextIO) -> Iterator[None]:
    saved = [os.dup(1), os.dup(2)]
    os.dup2(held.fileno(), 1)
    os.dup2(held.fileno(), 2)
    try:
        yield
    finally:
        for target, copy in zip((1, 2), saved, strict=True):
            os.dup2(copy, target)
            os.close(copy)


def hint(exercise_id: str, step: int | None = None) -> None:
    """Prints the next hint of an exercise, or hint number `step`, from 1.

    Three steps: the idea, a neighbouring case, a skeleton with blanks. Hints cost nothing.
    """
    exercise = find_exercise(exercise_id)
    n_hints = len(exercise.hints)
    if not n_hints:
        print(f"{exercise_id} has no hints.")
        return
    notes = _read_notes()
    seen = notes.setdefault("hints", {})
    step = min(seen.get(exercise_id, 0) + 1, n_hints) if step is None else step
    if not 1 <= step <= n_hints:
        raise ValueError(f"hint {step} of {exercise_id} does not exist; choose 1 to {n_hints}")
    seen[exercise_id] = max(step, seen.get(exercise_id, 0))
    _write_notes(notes)
    print(f"Hint {step} of {n_hints}.\n{exercise.hints[step - 1]}")


_REVEAL = object()  # guess(id) without a value shows the result


def guess(guess_id: str, value: Any = _REVEAL) -> None:
    """Remembers a guess; without a value shows it beside the result. A guess is never scored."""
    asked = find_guess(guess_id)
    notes = _read_notes()
    guesses = notes.setdefault("guesses", {})
    if value is _REVEAL:
        print(_revealed(asked, guesses.get(guess_id)))
    elif value is ...:
        print(f"{asked.question}\nYour guess first: put a number in place of the three dots.")
    elif isinstance(value, bool) or not isinstance(value, int | float):
        print(f"{asked.question}\n{value!r} is not a number; give one, like 0.25.")
    else:
        guesses[guess_id] = value
        _write_notes(notes)
        print(f"{asked.question}\nYour guess: {_in_form(asked, value)}. The answer comes below.")


def _revealed(asked: Guess, value: float | None) -> str:
    result = _in_form(asked, asked.result())
    if value is None:
        return f"{asked.question}\nIt is {result}. (No guess was made above.)"
    return f"{asked.question}\nYou said {_in_form(asked, value)}; it is {result}."


def _in_form(asked: Guess, value: float) -> str:
    return asked.form.format(value).replace("%", " %")


def show(what: Any, *args: Any, **kwargs: Any) -> Any:
    """A picture of a schedule, a timeline, or of what a function gives.

    `show(gpipe, 4, 8)` calls the function and draws its schedule; `show(schedule, costs)` draws a
    list, faulty or not; a drawing function is called as it is. A function that is not written yet
    gives a line that says so, and one that raises a line that says where: never an exception.
    """
    if isinstance(what, Timeline):
        return draw_timeline(what, *args, **kwargs)
    if not callable(what):
        return draw_schedule(what, *args, **kwargs)
    try:
        if getattr(what, "__module__", "").startswith("mpedu."):
            return what(*args, **kwargs)
        return _draw_answer(what, args, kwargs)
    except NotImplementedError as error:
        print(f"{_innermost_function(error)}: not written yet")
    except Exception as error:  # whatever a student's code raises
        name = _innermost_function(error)
        print(f"{name} raised {type(error).__name__}: {error}"[:300])
    return None


def _draw_answer(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Picture | None:
    """What a student's function gives: its schedule drawn, its timeline drawn, or its value."""
    options = {name: kwargs.pop(name) for name in ("costs", "shade", "title") if name in kwargs}
    answer = function(*args, **kwargs)
    if isinstance(answer, Timeline):
        return draw_timeline(answer, **options)
    counts = _counts(function, args, kwargs)
    if len(counts) == 2 and not isinstance(answer, int | float):
        return draw_schedule(answer, **options, **counts)
    print(f"{function.__name__}: {answer!r}"[:2000])
    return None


def _counts(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """The numbers of stages and micro-batches a call was given, where it takes them."""
    bound = inspect.signature(function).bind(*args, **kwargs).arguments
    return {name: bound[name] for name in ("n_stages", "n_microbatches") if name in bound}


def _innermost_function(error: BaseException) -> str:
    return traceback.extract_tb(error.__traceback__)[-1].name


def my_best() -> None:
    """Prints the points earned so far in this notebook and each guess beside its result."""
    notes = _read_notes()
    points = notes.get("points", {})
    for exercise in (one for n in unit_numbers() for one in load_unit(n).exercises):
        if exercise.id in points:
            print(f"{exercise.title}: {points[exercise.id]} of {exercise.points}")
    print(f"Points so far: {sum(points.values())}.")
    for guess_id, value in notes.get("guesses", {}).items():
        print(_revealed(find_guess(guess_id), value))


def _read_notes() -> dict[str, dict[str, Any]]:
    try:
        notes = json.loads(NOTES.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return notes if isinstance(notes, dict) else {}


def _write_notes(notes: dict[str, dict[str, Any]]) -> None:
    """Keeps the notes beside the notebook; where that is impossible they are lost, not the cell."""
    with suppress(OSError):
        NOTES.write_text(json.dumps(notes, indent=1, sort_keys=True), encoding="utf-8")
