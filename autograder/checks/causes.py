"""Exercises that name the cause of a planted fault: their runs, their sentences, their groups.

A sentence says which evidence to look at, never which cause it speaks for.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from autograder.checks.subjects import Answered, outcomes
from autograder.checks.values import shown
from autograder.diagnosis import Answers, Case, Diagnosis, Mistake, Subject, examine
from autograder.exercise import Draw
from autograder.seeds import PUBLIC_SECRET, case_seed

LETTERS = "ABCD"
Run = Any  # what a unit plants its faults in; a tuple of several arguments, or one
Seen = list[tuple[Run, str, str]]  # run, right cause, answer


def wrong_where(causes: tuple[str, ...], given: tuple[str, ...] = ()) -> Callable[[Seen], bool]:
    """Are exactly the runs of these causes wrong, all answered with one of `given`, if any are?"""

    def explains(seen: Seen) -> bool:
        wrong = [got for _, right, got in seen if got != right]
        exactly = all((got != right) == (right in causes) for _, right, got in seen)
        return bool(wrong) and exactly and (not given or set(wrong) <= set(given))

    return explains


class SealedRuns:
    """The sealed runs of a unit: some by letter in its notebook, others by number in its check.

    shown: draws those of the notebook, one per letter; drawn: those of the exercise's check, each
    with the cause that was planted, None where a check asks for none.
    """

    def __init__(
        self,
        unit: str,
        exercise: str,
        shown: Callable[[random.Random], Sequence[Run]],
        drawn: Callable[[random.Random], list[tuple[str, Run]]] | None = None,
    ) -> None:
        self._unit, self._exercise, self._shown, self._drawn = unit, exercise, shown, drawn
        # Of a whole class: with one secret all students get the same runs.
        self.drawn = lru_cache(maxsize=8)(self._of_seed)

    def _of_seed(self, seed: int) -> tuple[tuple[str, Run], ...]:
        """Each planted cause with its run, shuffled."""
        rng = random.Random(seed)
        runs = self._drawn(rng) if self._drawn else []
        rng.shuffle(runs)
        return tuple(runs)

    def asked(self, draw: Draw) -> tuple[tuple[str, Run], ...]:
        """The runs of a check."""
        return self.drawn(draw.rng.getrandbits(64))

    @cached_property
    def public(self) -> dict[int, Run]:
        """The runs that the check asks in a notebook, by number from 1."""
        draw = Draw(case_seed(PUBLIC_SECRET, self._unit, self._exercise))
        return dict(enumerate((run for _, run in self.asked(draw)), start=1))

    @cached_property
    def shown(self) -> dict[str, Run]:
        """The runs of the notebook by letter."""
        rng = random.Random(case_seed(PUBLIC_SECRET, self._unit, "sealed runs"))
        return dict(zip(LETTERS, self._shown(rng), strict=True))

    def known(self, which: str | int) -> Run:
        """A run that a notebook may look at, by letter or number; ValueError for others."""
        known = [*self.shown.items(), *self.public.items()]
        for name, run in known:
            if name == which:
                return run
        number = f" or a number 1 to {len(self.public)}" if self.public else ""
        raise ValueError(
            f"there is no sealed run {which!r}; give a letter A to {LETTERS[-1]}{number}"
        )


class Causes(NamedTuple):
    """What an exercise asks: which of the causes `names` a run, the arguments, speaks for.

    truth: the right one. evidence: of (run, answer, right cause) the id and the sentence of what a
    wrong answer overlooks. groups: by label the causes of a unit of partial credit. word, look: how
    a run is called, and how to look at the one of a number. about: what a message says of a run.
    """

    exercise: str
    names: Sequence[str]
    runs: SealedRuns
    truth: Callable[..., str]
    evidence: Callable[[Run, str, str], tuple[str, str]]
    groups: Mapping[str, Sequence[str]]
    about: Callable[[Run], str]
    look: str
    word: str = "Run"

    def differs(self, case: Case, got: Any) -> Diagnosis | None:
        """For `examine`: which evidence a wrong cause overlooks, None for the right one."""
        if not isinstance(got, str):
            text = f"{self.gives(case, got)}; the name of a cause is asked, a str."
            general = f"{self.exercise} gives no str; the name of a cause is asked."
            return Diagnosis("no_name", text, general)
        if got not in self.names:
            known = ", ".join(self.names)
            text = f"{self.gives(case, got)}, which is no cause; the causes are {known}."
            return Diagnosis("unknown_name", text, "the name is not among the causes.")
        right = self.truth(*case.args)
        if got == right:
            return None
        id, look = self.evidence(run_of(case), got, right)
        text = f"{self.gives(case, got)}. {look}"
        return Diagnosis(id, text, f"a cause is not the right one. {look}")

    def named(self, case: Case) -> str:
        """A run by its number, with the way to look at it, where it is a public one."""
        number = next((n for n, run in self.runs.public.items() if run == run_of(case)), None)
        return f"{self.word} {number} (`{self.look.format(number)}`)" if number else self.word

    def gives(self, case: Case, got: Any) -> str:
        """A run in words and the answer to it."""
        given = repr(got) if isinstance(got, str) and len(got) <= 40 else shown(got)
        about = self.about(run_of(case))
        return f"{self.named(case)} of {about}: {self.exercise} gives {given}"

    def mistake(self, id: str, explains: Callable[[Seen], bool], why: str) -> Mistake:
        """A mistake seen in all answers together."""

        def matches(answers: Answers) -> bool:
            return explains([(run_of(c), self.truth(*c.args), got) for c, got in answers])

        general = why.replace("rank 0", "rank zero")  # no digit in it may be one of a case
        return Mistake(id, matches, lambda case, got: f"{self.gives(case, got)}. {why}", general)

    def examine(self, subject: Subject, draw: Draw, mistakes: Sequence[Mistake]) -> None:
        """The whole check: 24 runs or so, in groups by their causes."""
        runs = [run if type(run) is tuple else (run,) for _, run in self.runs.asked(draw)]
        cases = [Case(self.exercise, run) for run in runs]
        answers: Answers = []
        for label, names in self.groups.items():
            with draw.group(label, points=1):
                # All at once, so that nothing but its evidence tells which group a run belongs to.
                answers = answers or outcomes(subject, cases, self.named)
                own = [answer for answer in answers if self.truth(*answer[0].args) in names]
                known = self._that_explain(mistakes, answers)
                examine(Answered(own), [case for case, _ in own], self.differs, known)

    def _that_explain(self, mistakes: Sequence[Mistake], answers: Answers) -> list[Mistake]:
        """The mistakes that explain all answers, told alike in every group of them."""
        if not all(isinstance(got, str) and got in self.names for _, got in answers):
            return []
        wrong = [(case, got) for case, got in answers if got != self.truth(*case.args)]
        if not wrong:
            return []
        told = [(one, one.text(*wrong[0])) for one in mistakes if one.matches(answers)]
        return [
            one._replace(matches=lambda _: True, text=lambda *_, text=text: text)
            for one, text in told
        ]


def run_of(case: Case) -> Run:
    """The run that a case asks."""
    return case.args[0] if len(case.args) == 1 else case.args
