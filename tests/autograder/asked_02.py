"""What the tests of unit 02 share."""

from banks import causes_of, run_check
from judged import names_of

from autograder.bank.unit_02 import RIGHT
from autograder.diagnosis import StudentError
from autograder.exercise import load_unit

UNIT = load_unit("02")
CAUSES = causes_of(
    "02",
    "naive_mistakes",
    "share_mistakes",
    "bytes_mistakes",
    "bill_mistakes",
    "held_mistakes",
    "cause_mistakes",
)


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


__all__ = ["CAUSES", "UNIT", "Asked", "run_check"]
