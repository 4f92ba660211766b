"""Numbers that students return: whether they are any, how near they are, how they are printed."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from autograder.diagnosis import Answers, Case, Diagnosis, Mistake

Number = int | float | Fraction
Formula = Callable[..., Number]
Text = Callable[[Case, Any], str]


def number_problem(got: object) -> str:
    """What keeps an answer from being a finite number, "" where nothing does."""
    if got is None:
        return "gives None; is a return missing?"
    if isinstance(got, bool) or not isinstance(got, int | float | Fraction):
        return f"gives {shown(got)}; a number is asked."
    if isinstance(got, float) and not math.isfinite(got):
        return f"gives {got}, which is no finite number."
    return ""


def whole_problem(got: object) -> str:
    """What keeps an answer from being an int, "" where nothing does."""
    problem = number_problem(got)
    if problem or isinstance(got, int):
        return problem
    # Where a fraction came back, int(..) would hide what is wrong with it.
    way_out = ", so use int(..) or //" if got == int(got) else ""  # type: ignore[call-overload]
    return f"gives the {type(got).__name__} {shown(got)}; the docstring promises an int{way_out}."


def close(got: object, truth: Number, tolerance: float = 1e-9) -> bool:
    """Is it a finite number, and as near as `tolerance` times the larger of 1 and the truth?"""
    if number_problem(got):
        return False
    exact: Number = got  # type: ignore[assignment]  # number_problem has just shown it
    # Fractions: an int or Fraction from a student may be too large for a float.
    return abs(Fraction(exact) - Fraction(truth)) <= tolerance * max(1.0, abs(float(truth)))


def shown(value: Any, digits: int = 6) -> str:
    """A number for a message, in a few digits; whatever is none by its type and size only."""
    if value is None or isinstance(value, bool):
        return str(value)
    if isinstance(value, int) and abs(value) < 10**12:
        return str(value)
    if isinstance(value, int | float | Fraction):
        try:
            return f"{float(value):.{digits}g}"
        except OverflowError:
            return "a number of over three hundred digits"
    if isinstance(value, list | tuple | dict | str):
        return f"{article(type(value).__name__)} of length {len(value)}"
    return article(type(value).__name__)


def shown_apart(got: Any, truth: Number) -> tuple[str, str]:
    """Both for a message, with as many digits as it takes to tell them apart."""
    digits = next((d for d in (6, 9, 12) if shown(got, d) != shown(truth, d)), 17)
    return shown(got, digits), shown(truth, digits)


def article(noun: str) -> str:
    """The noun with its article."""
    return f"{'an' if noun[:1] in 'aeiouAEIOU' else 'a'} {noun}"


def wrong_number(truth: Formula) -> Text:
    """The sentence of what came back and what was expected."""

    def text(case: Case, got: Any) -> str:
        given, right = shown_apart(got, truth(*case.args))
        return f"{case} gives {given}, expected {right}."

    return text


def differs_from(
    truth: Formula, look: str, general: str, tolerance: float = 1e-9, text: Text | None = None
) -> Callable[[Case, Any], Diagnosis | None]:
    """For `examine`: what is wrong with a number, None where it is the truth.

    `look` says what to look at next; `text` replaces the sentence before it.
    """
    sentence = text or wrong_number(truth)

    def differs(case: Case, got: Any) -> Diagnosis | None:
        problem = number_problem(got)
        if problem:
            return Diagnosis("no_number", f"{case} {problem}", f"{case.name} gives no number.")
        if close(got, truth(*case.args), tolerance):
            return None
        return Diagnosis("differs", f"{sentence(case, got)} {look}", general)

    return differs


def formula_mistake(id: str, formulas: Sequence[Formula], text: Text, general: str) -> Mistake:
    """A mistake seen when one of the formulas gives every answer."""

    def matches(answers: Answers) -> bool:
        return any(all(close(got, f(*case.args)) for case, got in answers) for f in formulas)

    return Mistake(id, matches, text, general)


def constant(text: Text) -> Mistake:
    """The same number for every case."""

    def matches(answers: Answers) -> bool:
        first = answers[0][1]
        return all(not number_problem(got) and got == first for _, got in answers)

    return Mistake("constant", matches, text, "your number is the same for every case.")


def rounded(truth: Formula, text: Text) -> Mistake:
    """Right numbers cut to a few digits, perhaps because a docstring shows so many."""

    def one(digits: int) -> Formula:
        return lambda *args: round(float(truth(*args)), digits)

    why = "It is rounded; return the number itself."
    formulas = [one(digits) for digits in range(2, 9)]
    return formula_mistake("rounded", formulas, lambda case, got: f"{text(case, got)} {why}", why)


def percent(truth: Formula, text: Text) -> Mistake:
    """Right numbers as percent."""
    why = "It is a percentage; a share has no factor of a hundred."
    formulas = [lambda *args: 100 * truth(*args)]
    return formula_mistake("percent", formulas, lambda case, got: f"{text(case, got)} {why}", why)
