"""From a wrong answer to the sentence that puts the student right.

A cause is told only when it explains every answer; otherwise the message says what differs: a
wrong cause is worse than none.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol


class Diagnosis(NamedTuple):
    """What a student reads about one miss.

    `text` speaks of one public case, in at most 12 lines. `general` shows nothing of any case: it
    is all that is said of a secret one.
    """

    id: str
    text: str
    general: str


class Miss(Exception):
    """Raised by a check: this answer earns no points, for the reason in `diagnosis`."""

    def __init__(self, diagnosis: Diagnosis) -> None:
        super().__init__(diagnosis.text)
        self.diagnosis = diagnosis


class StudentError(Exception):
    """The student's code gave no answer.

    `kind` is one of unwritten, missing, withheld, raised, not_plain, timeout, out_of_memory,
    crashed, and of a rank program also deadlock, unreceived, mismatch; `message` is one sentence;
    `type_name` and `line` tell of the exception, if any.
    """

    def __init__(
        self, kind: str, message: str, type_name: str = "", line: int | None = None
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.type_name = type_name
        self.line = line

    def diagnosis(self, call: str = "") -> Diagnosis:
        """As a diagnosis; `call` is the public case, like "gpipe(4, 8)"."""
        where = f"{call}: " if call and self.kind not in ("unwritten", "missing") else ""
        return Diagnosis(self.kind, where + self.message, _GENERAL[self.kind])


_GENERAL = {
    "unwritten": "not written yet.",
    "missing": "the function asked for is not defined.",
    "withheld": "this is the exercise: the course's own version refuses while it is checked.",
    "raised": "your code raises an exception here.",
    "not_plain": "your code returns something that is not plain data.",
    "timeout": "your code does not finish in time.",
    "out_of_memory": "your code asks for more memory than there is.",
    "crashed": "the process that runs your code ended before it answered.",
    "deadlock": "your ranks wait for ever: for each other, or for one that has finished.",
    "unreceived": "your ranks leave over a message, or an operation, that has no other end.",
    "mismatch": "your ranks do not agree on what is sent, or on which collective they call.",
}


class Subject(Protocol):
    """The student's answer: functions to call, here or in another process.

    `subject(...)` where the exercise has one name, `subject.name(...)` where it has several.
    Results are plain data; raises `StudentError` where there is none.
    """

    def __call__(self, *args: Any) -> Any:
        """What the exercise's only function returns."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """The function of that name."""


class Case(NamedTuple):
    """One call of one function; prints as "gpipe(4, 8)"."""

    name: str
    args: tuple[Any, ...]

    def __str__(self) -> str:
        return f"{self.name}({', '.join(_short(arg) for arg in self.args)})"


def _short(value: object) -> str:
    text = "" if has_over(40, value) else repr(value)
    return text if 0 < len(text) <= 40 else f"{type(value).__name__}(..)"


def has_over(most: int, value: object) -> bool:
    """Has the value more parts than `most`? An answer may hold millions, too many to print."""
    parts, n_parts = [value], 0
    while parts:
        part = parts.pop()
        n_parts += 1
        if isinstance(part, list | tuple | dict | str | bytes):
            n_parts += len(part)
            if n_parts <= most and not isinstance(part, str | bytes):
                parts += part.items() if isinstance(part, dict) else part
        if n_parts > most:
            return True
    return False


Answers = list[tuple[Case, Any]]


class Mistake(NamedTuple):
    """A typical mistake; `matches` says whether it explains all the answers together."""

    id: str
    matches: Callable[[Answers], bool]
    text: Callable[[Case, Any], str]
    general: str


def each(matches_one: Callable[[Case, Any], bool]) -> Callable[[Answers], bool]:
    """`matches` for a mistake that must be seen in every single answer."""
    return lambda answers: all(matches_one(case, got) for case, got in answers)


def ask(subject: Subject, case: Case) -> Any:
    """The student's answer to one case; Miss naming the case where the code gives none."""
    try:
        return getattr(subject, case.name)(*case.args)
    except StudentError as error:
        raise Miss(error.diagnosis(str(case))) from None


def examine(
    subject: Subject,
    cases: Sequence[Case],
    differs: Callable[[Case, Any], Diagnosis | None],
    mistakes: Sequence[Mistake] = (),
) -> Answers:
    """All answers when none differs; otherwise Miss.

    `differs(case, answer)` says what is wrong with one answer, None for a right one. The first of
    `mistakes` that explains every answer gives the diagnosis (told on the first wrong case), else
    the first difference does.
    """
    if not cases:
        raise ValueError("a check without cases cannot fail; give at least one")
    answers = [(case, ask(subject, case)) for case in cases]
    differences = [(case, got, d) for case, got in answers if (d := differs(case, got))]
    if not differences:
        return answers
    case, got, difference = differences[0]
    for mistake in mistakes:
        if mistake.matches(answers):
            raise Miss(Diagnosis(mistake.id, mistake.text(case, got), mistake.general))
    raise Miss(difference)


# Where an exception was raised, at the end of a message: its digits name no value.
_PLACE = re.compile(r" \([^()]*line \d+\)\.$")


def _holds(text: str, value: str) -> bool:
    return re.search(rf"(?<!\d){re.escape(value)}(?!\d)", text) is not None


def expect_error(subject: Subject, case: Case, *named: object) -> None:
    """Nothing when the case raises ValueError and its message holds every value of `named`.

    Miss "no_error" when it returns, "wrong_error" when it raises otherwise.
    """
    try:
        got = getattr(subject, case.name)(*case.args)
    except StudentError as error:
        if error.kind != "raised":
            raise Miss(error.diagnosis(str(case))) from None
        if error.type_name != "ValueError":
            text = f"{case} raises {error.type_name}; the docstring promises a ValueError."
            general = f"{case.name}: a wrong argument must raise ValueError."
            raise Miss(Diagnosis("wrong_error", text, general)) from None
        said = _PLACE.sub("", error.message)
        missing = [str(value) for value in named if not _holds(said, str(value))]
        if missing:
            text = f"{case}: your ValueError does not name the value {missing[0]}."
            general = f"{case.name}: the ValueError must name the wrong value."
            raise Miss(Diagnosis("wrong_error", text, general)) from None
        return
    text = f"{case} returns {_short(got)}; the docstring promises a ValueError."
    raise Miss(Diagnosis("no_error", text, f"{case.name}: a wrong argument must raise ValueError."))
