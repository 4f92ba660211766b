"""A student's code as the subject of a check in this process, and the judge's word on it."""

from autograder.bank.unit_03 import RIGHT
from autograder.checks.unit_03 import bubble_mistakes as bubbles
from autograder.checks.unit_03 import cause_mistakes as causes
from autograder.checks.unit_03 import pieces_mistakes as pieces
from autograder.checks.unit_03 import schedule_mistakes as schedules
from autograder.checks.unit_03 import time_mistakes as times
from autograder.checks.unit_03 import timeline_mistakes as timelines
from autograder.diagnosis import Mistake, StudentError
from autograder.exercise import Draw, load_unit
from autograder.judge import judge
from autograder.local import LocalSubject
from autograder.seeds import PUBLIC_SECRET, case_seed
from autograder.withhold import withheld

UNIT = load_unit("03")
SECRETS = (bytes(range(16)), b"another secret of a class")

CAUSES = {
    mistake.id
    for module in (bubbles, causes, pieces, schedules, times, timelines)
    for known in vars(module).values()
    for mistake in (known if isinstance(known, tuple) else ())
    if isinstance(mistake, Mistake)
}


def names_of(source):
    namespace = {"__name__": "__main__"}
    exec(source, namespace)
    return namespace


def judged(exercise, source, secret=None):
    """The verdict on code that runs while the exercise's answers are withheld."""
    with withheld(exercise.withholds):
        return judge(exercise, LocalSubject(names_of(source), exercise.names), secret)


def first_diagnosis(verdict):
    return next((group.diagnosis for group in verdict.groups if group.diagnosis), "")


class Asked:
    """A right student's functions; `change(answer, args, rng)` spoils the call number `spoiled`."""

    def __init__(self, change=None, spoiled=None, rng=None):
        self.names = names_of(RIGHT[0].source)
        self.change, self.spoiled, self.rng = change, spoiled, rng
        self.calls = []

    def __getattr__(self, name):
        def answer(*args):
            self.calls.append((name, args))
            try:
                got = self.names[name](*args)
            except ValueError as error:
                raise StudentError("raised", str(error), "ValueError") from None
            spoils = self.change and len(self.calls) - 1 == self.spoiled
            return self.change(got, args, self.rng) if spoils else got

        return answer


def run(exercise, subject, secret=False, seed=PUBLIC_SECRET):
    draw = Draw(case_seed(seed, "03", exercise.id, 0), secret=secret)
    return exercise.run(subject, draw)
