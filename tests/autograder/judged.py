"""A student's code as the subject of a check in this process, and the judge's word on it."""

from autograder.judge import judge
from autograder.local import LocalSubject
from autograder.withhold import withheld

SECRETS = (bytes(range(16)), b"another secret of a class")


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
