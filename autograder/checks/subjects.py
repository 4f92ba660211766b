"""Subjects that stand between a check and the student's functions."""

from collections.abc import Callable
from typing import Any

from autograder.diagnosis import Answers, Case, Diagnosis, Miss, Subject, has_over


class Bounded:
    """A subject whose first answer of more than `most` parts ends its group with a Miss.

    An answer may hold millions; reading one for every case would take the judge seconds.
    """

    def __init__(self, subject: Subject, most: int) -> None:
        self._subject, self._most = subject, most

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """The function of that name."""
        function = getattr(self._subject, name)
        return lambda *args: self._sized(Case(name, args), function(*args))

    def _sized(self, case: Case, got: Any) -> Any:
        if has_over(self._most, got):
            text = f"{case}: the answer has over {self._most} parts, far more than is asked for."
            raise Miss(
                Diagnosis("too_large", text, "the answer has far more parts than asked for.")
            )
        return got


class Answered:
    """A subject that was asked before: gives its answers again, in the same order."""

    def __init__(self, answers: Answers) -> None:
        self._left = iter(answers)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Gives the next answer, whatever is asked."""
        return lambda *args: next(self._left)[1]
