"""What a notebook cell calls: check an answer, get a hint, make a guess, look at a picture."""

import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

from autograder import arena as rules
from autograder.drawing import displayed
from autograder.drawing import show as show
from autograder.exercise import Exercise, Guess, find_exercise, find_guess, load_unit, unit_numbers
from autograder.judge import Verdict, judge
from autograder.local import LocalSubject
from autograder.withhold import withheld

NOTES = Path(".mpedu-notes.json")  # beside the notebook: guesses made, hints seen
MOST_PRINTED_LINES = 8


class CheckFailed(Exception):
    """No points: one sentence for the student, printed without a stack of library frames."""

    def _render_traceback_(self) -> list[str]:
        return [f"CheckFailed: {self}"]


class NotAsked(ValueError):
    """A call that asks for something that is not there, told in one sentence."""

    def _render_traceback_(self) -> list[str]:
        return [f"NotAsked: {self}"]


def _exercise(asked: Any, caller: Mapping[str, Any]) -> Exercise:
    """The exercise of an id, a function, its name, or of "E1" where the calling notebook is known.

    NotAsked for others, with the ids of that notebook, or of all.
    """
    name = asked if isinstance(asked, str) else getattr(asked, "__name__", repr(asked))
    try:
        return find_exercise(name)
    except ValueError as error:
        unit = _unit_of(caller)
        if unit is None:
            raise NotAsked(str(error)) from None
    exercises = load_unit(unit).exercises
    titled = [one for one in exercises if one.title.partition(" ")[0] == name]
    if len(titled) == 1:
        return titled[0]
    if titled:
        raise NotAsked(f"{name} has several checks: {_ids(titled)}; name one of them")
    raise NotAsked(f"there is no exercise {name!r} in this notebook; known: {_ids(exercises)}")


def _ids(exercises: Iterable[Exercise]) -> str:
    return ", ".join(one.id for one in exercises)


def _unit_of(caller: Mapping[str, Any]) -> str | None:
    """The number of a notebook's unit: by its folder, else by the functions that it has written."""
    number = Path.cwd().name.partition("-")[0]
    if number in unit_numbers():
        return number
    own = {
        name
        for name, value in caller.items()
        if callable(value) and not str(getattr(value, "__module__", "")).startswith("mpedu")
    }
    found = {
        unit: len(own & {name for one in load_unit(unit).exercises for name in one.names})
        for unit in unit_numbers()
    }
    most = max(found.values())
    units = [unit for unit, n in found.items() if n == most]
    return units[0] if most and len(units) == 1 else None


def check(exercise_id: str) -> float | None:
    """None for full points, the points as a float for some, CheckFailed for none.

    Finds the functions of the exercise among the names of the calling notebook and says on
    stdout what it found. Nothing is written to stderr, whatever the student's code prints: stock
    nbgrader gives no points to a graded cell with stderr output.
    """
    caller = sys._getframe(1).f_globals
    exercise = _exercise(exercise_id, caller)
    with _captured() as printed, withheld(exercise.withholds):
        verdict = judge(exercise, LocalSubject(caller, exercise.names))
    notes = _read_notes()
    points = notes.setdefault("points", {})
    points[exercise.id] = max(verdict.score, points.get(exercise.id, 0))
    _write_notes(notes)
    _print_shortened(printed)
    return _tell(verdict)


def _tell(verdict: Verdict) -> float | None:
    points = f"{verdict.score} of {verdict.points} points"
    if not verdict.points:
        points = verdict.status
    if verdict.status == "passed":  # an extra has no points to tell it by
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
    id, hints = _hints_of(exercise_id, sys._getframe(1).f_globals)
    n_hints = len(hints)
    notes = _read_notes()
    seen = notes.setdefault("hints", {})
    step = min(seen.get(id, 0) + 1, n_hints) if step is None else step
    if step not in range(1, n_hints + 1):
        raise NotAsked(f"{id} has hints 1 to {n_hints}; there is no hint {step!r}")
    seen[id] = max(step, seen.get(id, 0))
    _write_notes(notes)
    print(f"Hint {step} of {n_hints}.\n{hints[step - 1]}")


def _hints_of(asked: Any, caller: Mapping[str, Any]) -> tuple[str, Sequence[str]]:
    """The id and hints of an exercise, or of one without points among a unit's WORKED_HINTS."""
    name = asked if isinstance(asked, str) else getattr(asked, "__name__", "")
    for unit in unit_numbers():
        module = import_module(f"autograder.checks.unit_{unit}")
        if hints := getattr(module, "WORKED_HINTS", {}).get(name):
            return name, hints
    exercise = _exercise(asked, caller)
    return exercise.id, exercise.hints


_REVEAL = object()  # guess(id) without a value shows the result


def guess(guess_id: str, value: Any = _REVEAL) -> None:
    """Remembers a guess; without a value shows it beside the result. A guess is never scored."""
    try:
        asked = find_guess(guess_id)
    except ValueError as error:
        raise NotAsked(str(error)) from None
    notes = _read_notes()
    guesses = notes.setdefault("guesses", {})
    if value is _REVEAL:
        print(_revealed(asked, guesses.get(guess_id)))
    elif value is ...:
        print(f"{asked.question}\nYour guess first: put a number in place of the three dots.")
    elif problem := asked.problem(value):
        print(f"{asked.question}\n{problem}")
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


def sealed_run(which: str | int, unit: str | None = None) -> Any:
    """A run with a planted fault: "A" to "D" of the text, or by number one that the check asks.

    unit: like "03"; without it that of the calling notebook, and "03" where there is none.
    """
    unit = unit or _unit_of(sys._getframe(1).f_globals) or "03"
    runs = import_module(f"autograder.checks.unit_{unit}.sealed_runs")
    try:
        return runs.RUNS.known(which)
    except ValueError as error:
        raise NotAsked(str(error)) from None


def arena(schedule: Any, *sizes: Any) -> Any:
    """Enters a schedule, or what a function gives for `sizes`, into the arena of unit 06.

    Prints what it is worth and displays it; a new record is kept beside the notebook, with a
    picture to share. What breaks a rule, or is not written yet, gives a line that says so.
    """
    try:
        entry = rules.entered(schedule(*sizes) if callable(schedule) else schedule)
    except NotImplementedError:
        print(f"{getattr(schedule, '__name__', 'it')}: not written yet")
        return None
    except rules.NoEntry as error:
        print(f"No entry: {error}.")
        return None
    notes = _read_notes()
    record = rules.record_of(notes.get("arena", {}))
    print(rules.verdict(entry, record))
    picture = rules.picture_of(entry)
    if record is None or entry.seconds < record.seconds:
        notes["arena"] = rules.kept(entry)
        _write_notes(notes)
        with suppress(OSError):
            print(f"The picture is in {picture.save(rules.PICTURE)}.")
    return displayed(picture)


def my_best() -> None:
    """Prints the points earned so far in this notebook and each guess beside its result."""
    notes = _read_notes()
    points, guesses = notes.get("points", {}), notes.get("guesses", {})
    for unit in map(load_unit, unit_numbers()):
        begun = [one for one in unit.exercises if one.id in points]
        for one in begun:
            print(f"{one.title}: {points[one.id]} of {one.points}")
        if begun:
            total = sum(one.points for one in unit.exercises)
            print(f"Points so far: {sum(points[one.id] for one in begun)} of {total}.")
        for asked in unit.guesses:
            if asked.id in guesses:
                print(_revealed(asked, guesses[asked.id]))


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
