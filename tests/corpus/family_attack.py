"""Students who want points they did not earn, by what they do within their own process."""

import textwrap
from collections.abc import Callable
from functools import partial

from attack_sources import (
    AFTER_PUBLIC,
    ASKS_THE_IMPORTER,
    EXCEPTIONS,
    FAKE_OUTPUT,
    FORGED_ANSWERS,
    FORK_TWICE,
    INJECTS,
    LYING_RECORD,
    NOT_A_NUMBER,
    OWN_CHECK,
    PATCHED_MSGPACK,
    PATCHED_WORKER,
    PATCHED_WRITER,
    READS_CELLS,
    REFUSES_ALL,
    SEARCHES,
    SESSION,
    SUBCLASSES,
    TELLS,
    TRANSFORMERS,
)
from borrowed import CRASHES
from family_honest import sample
from making import (
    Due,
    Submission,
    changed,
    made,
    nothing_for,
    placed,
    released,
    right,
    with_cells,
)

from autograder.bank import Answer
from autograder.bank.unit_03 import CHEATS
from autograder.submissions.cells import Node

attack = partial(made, "attack")


def wrong_split(name: str, what: str, source: str, status: str = "failed") -> Submission:
    """A right notebook but for `split_batch`, which is in this cell at its end."""
    code = textwrap.dedent(source)
    due = Due(points={"split_batch": 0}, statuses={"split_batch": status})
    return attack(name, what, lambda: with_cells(right("03"), last=code), due=due)


def tricked(name: str, what: str, source: str) -> Submission:
    """This cell before all answers, and a wrong `split_batch`."""
    code = textwrap.dedent(source)
    wrong = "def split_batch(n_samples, n_microbatches):\n    return [(n_samples, 1.0)]"
    due = Due(points={"split_batch": 0})
    return attack(
        name,
        what,
        lambda: with_cells(changed({"solution-split_batch": wrong}), first=code),
        due=due,
    )


# These spoil what their own right answer to `cause` is made with, np.allclose.
_SPOIL_CAUSE = ("patches_builtins", "patches_numpy_testing")


def cheat(answer: Answer) -> Submission:
    """A cheat of the unit's bank among right answers; what it answers is as the bank has it."""
    points = {name: score for name, (score, _) in answer.expected.items()}
    if answer.id in _SPOIL_CAUSE:
        points["cause"] = 0
    # Names that are imported must stand below the right answers, or those would replace them.
    below = partial(with_cells, last=answer.source) if answer.id == "imports_the_answers" else None
    make = below or partial(placed, source=answer.source)
    return attack(
        f"bank-{answer.id}",
        f"the bank's {answer.id.replace('_', ' ')}",
        lambda: make(right("03")),
        points=points,
    )


def crash(how: str) -> Submission:
    """What breaks the line to the judge, in `split_batch`."""
    source = f"{CRASHES[how][0]}\nsplit_batch = lambda *args: f()"
    lost = nothing_for("03", "split_batch")
    due = Due(points=lost, statuses=dict.fromkeys(lost, "crashed"))
    return attack(
        f"line-{how.replace(' ', '-')}",
        f"{how}, on the line to the judge",
        lambda: with_cells(right("03"), last=source),
        due=due,
    )


def patched(name: str, what: str, source: str) -> Submission:
    """An answer's cell that spoils what speaks to the judge, and with it what it answers."""
    cells = {"solution-gpipe": "def gpipe(*args): return []\n" + textwrap.dedent(source)}
    lost = nothing_for("03", "gpipe", "gpipe_fast")
    due = Due(points=lost, statuses=dict.fromkeys(lost, "crashed"))
    return attack(name, what, partial(changed, cells), due=due)


def late(name: str, what: str, then: str, status: str) -> Submission:
    """Right on what it has seen at home, something else on the secret cases."""
    code = AFTER_PUBLIC.format(then)
    return wrong_split(name, f"right on public cases, then {what}", code, status)


def _blank(source: str) -> Callable[[], Node]:
    return lambda: with_cells(released("03"), last=textwrap.dedent(source))


SUBMISSIONS = [
    *map(cheat, CHEATS),
    *map(crash, CRASHES),
    attack(
        "sample-class",
        "patched asserts and a float that lies, everywhere",
        sample(10),
        points=nothing_for("03"),
    ),
    attack(
        "not-a-number",
        "NaN, infinity, True and -0.0 for numbers",
        _blank(NOT_A_NUMBER),
        points=nothing_for("03"),
    ),
    attack(
        "subclasses",
        "numbers, names and lists that equal everything",
        _blank(SUBCLASSES),
        points=nothing_for("03"),
    ),
    attack(
        "lying-record",
        "an action whose kind depends on who asks",
        lambda: with_cells(right("03"), last=textwrap.dedent(LYING_RECORD)),
        points=nothing_for("03", "gpipe", "gpipe_fast"),
    ),
    attack(
        "refuses-all",
        "raises the promised error at every call",
        lambda: with_cells(right("03"), last=textwrap.dedent(REFUSES_ALL)),
        points=nothing_for("03", "gpipe", "gpipe_fast", "split_batch"),
    ),
    attack(
        "tells-its-arguments",
        "prints, raises and returns what it was asked",
        lambda: with_cells(right("03"), last=textwrap.dedent(TELLS)),
        points={
            "split_batch": 0,
            "idle_share": 0,
            "cause": 0,
            "bubble": 2,
            "step_time": 0,
            "best_microbatches": 0,
        },
    ),
    wrong_split("forged-answers", "answers to calls to come, on descriptor 3", FORGED_ANSWERS),
    wrong_split("two-answers", "two processes answer, one of them wrong", FORK_TWICE),
    wrong_split("searches-memory", "looks for cases in modules, objects and frames", SEARCHES),
    wrong_split("asks-the-importer", "imports oracle, bank, checks and judge", ASKS_THE_IMPORTER),
    wrong_split("injects", "HTML, terminal codes and formulas in its errors", INJECTS),
    tricked("transformers", "IPython's transformers drop what checks", TRANSFORMERS),
    tricked("session", "a patched kernel session", SESSION),
    tricked("fake-output", "prints a score and writes a result", FAKE_OUTPUT),
    tricked("reads-cells", "looks for tests in In[]", READS_CELLS),
    tricked("own-check", "redefines check, judge and run_ranks", OWN_CHECK),
    patched("patched-worker", "the worker's own functions replaced", PATCHED_WORKER),
    patched("patched-writer", "every answer turned into None on the wire", PATCHED_WRITER),
    patched("patched-msgpack", "the wire's own library replaced", PATCHED_MSGPACK),
    attack(
        "patched-exceptions",
        "exceptions that are no exceptions",
        lambda: with_cells(right("03"), last=textwrap.dedent(EXCEPTIONS)),
        points={"gpipe": 2, "idle_share": 2, "bubble": 2, "split_batch": 1},
    ),
    late("late-exit", "ends its process", "import os; os._exit(0)", "crashed"),
    late("late-kill", "kills its process", "import os; os.abort()", "crashed"),
    late("late-sys-exit", "leaves by sys.exit", "raise SystemExit(0)", "failed"),
    late("late-close", "closes the line", "import os; os.closerange(0, 64)", "crashed"),
    late("late-none", "returns None", "return None", "failed"),
    late("late-interrupt", "raises KeyboardInterrupt", "raise KeyboardInterrupt", "failed"),
    late("late-unwritten", "says it is not written", "raise NotImplementedError", "unwritten"),
]
