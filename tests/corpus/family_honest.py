"""Students who mean it: every point they earned is theirs, however their notebook looks."""

import json
from collections.abc import Callable
from functools import partial

from honest_sources import (
    ASYNC,
    CACHED,
    CLASS,
    HEAVY,
    INTERACTIVE,
    ITERATES,
    LAMBDAS,
    LOUD,
    MAGICS,
    MISSING,
    NUMPY_RESULT,
    QUIET,
    TUPLES,
    TYPED,
    WARNS,
    WRONG_WORD,
)
from making import (
    cell,
    changed,
    made,
    nothing_for,
    placed,
    released,
    right,
    solutions,
    text_of,
    with_cells,
)

from autograder.bank import Answer
from autograder.bank.unit_01 import RIGHT as RIGHT_01
from autograder.bank.unit_01 import WRONG as WRONG_01
from autograder.bank.unit_02 import RIGHT as RIGHT_02
from autograder.bank.unit_03 import RIGHT as RIGHT_03
from autograder.demo import DATA, answered, read_sections
from autograder.submissions.cells import Node

honest = partial(made, "honest")

_UNWRITTEN = {"gpipe": "unwritten", "gpipe_fast": "unwritten", "idle_share": "unwritten"}
_UNWRITTEN |= dict.fromkeys(
    ("bubble", "step_time", "best_microbatches", "split_batch", "cause"), "unwritten"
)
_LATE = ("step_time", "best_microbatches", "split_batch", "cause")


def sample(number: int) -> Callable[[], Node]:
    """A student of the sample class, on top of the first one's answers."""

    def make() -> Node:
        return answered(right("03"), dict(read_sections(DATA / f"student-{number:02}.py")))

    return make


def shown_in(answer: Answer, number: str = "03") -> Callable[[], Node]:
    """A bank's answer in the cells given out for it."""
    return lambda: placed(right(number), answer.source)


def within(first: str = "", last: str = "", number: str = "03") -> Callable[[], Node]:
    """The right notebook with a cell more at its beginning or end."""
    return lambda: with_cells(right(number), first, last)


def with_demo_edited() -> Node:
    """Demonstrations turned into other calls, and one that raises."""
    notebook = right("03")
    for one in notebook.cells:
        if one.id == "picture-gpipe":
            one.source = "show(gpipe, 6, 12)\nshow(gpipe, 2, 3)"
        if one.id == "blanks":
            one.source = one.source.replace("...", "Action('F', 0, 9)", 1)
        if one.id == "guess-best-m":
            one.source = 'guess("best-m", 12)'
        if one.id == "picture-optimum":
            one.source = "best = optimum(3)"
    return notebook


def with_set_up_added_to() -> Node:
    """Imports added to the set-up cell, on which the answers rest."""
    notebook = changed(
        {
            "solution-bubble": """
        def bubble_fraction(n_stages, n_microbatches):
            return float(Fraction(n_stages - 1, n_microbatches + n_stages - 1))

        def bubble_over_ideal(n_stages, n_microbatches):
            return float(Fraction(n_stages - 1, n_microbatches))
        """
        }
    )
    setup = next(one for one in notebook.cells if one.id == "setup")
    setup.source += "\nfrom fractions import Fraction"
    return notebook


def with_outputs() -> str:
    """As it is saved after it ran: outputs, counts, widget state, trusted marks."""
    tree = json.loads(text_of(right("03")))
    for count, one in enumerate(tree["cells"]):
        if one["cell_type"] == "code":
            one["execution_count"] = count
            text = ["score 3 of 3\n"] * 50
            one["outputs"] = [{"output_type": "stream", "name": "stderr", "text": text}]
            one["metadata"] = one["metadata"] | {"trusted": True, "collapsed": False}
    tree["metadata"]["widgets"] = {"application/vnd.jupyter.widget-state+json": {"state": {}}}
    return json.dumps(tree)


def with_markdown() -> Node:
    """A text of the student's own after every cell."""
    notebook = right("03")
    for place in range(len(notebook.cells), 0, -1):
        notebook.cells.insert(place, cell(f"Note {place}: so?", f"note-{place}", "markdown"))
    return notebook


def with_cells_of_tries() -> Node:
    """Trials between all cells, some of which raise."""
    notebook = right("03")
    for number, one in enumerate(solutions(notebook)):
        tries = ["gpipe(2, 2)", "1 / 0", "undefined + 1", "assert False", "print(idle_share)"]
        own = cell(tries[number % len(tries)], f"try-{number}")
        notebook.cells.insert(notebook.cells.index(one) + 1, own)
    return notebook


def written_twice() -> Node:
    """A first, wrong try left above the right answer, in one cell."""
    notebook = right("03")
    one = next(c for c in notebook.cells if c.id == "solution-split_batch")
    one.source = "def split_batch(n_samples, n_microbatches):\n    return []\n\n\n" + one.source
    return notebook


_WRONG_COST = next(a for a in WRONG_01 if set(a.expected) == {"cost_s"})


def _stub_notebook() -> Node:
    return released("03")


def _half() -> Node:
    notebook, answers = released("03"), dict(read_sections(DATA / "student-01.py"))
    late = ("solution-step_time", "solution-best_microbatches", "solution-split_batch")
    kept = {name: text for name, text in answers.items() if name not in (*late, "solution-cause")}
    return answered(notebook, kept)


def _one_cell_for_all() -> Node:
    """A blank notebook with every answer in one cell at its end."""
    return with_cells(released("03"), last=RIGHT_03[1].source)


SUBMISSIONS = [
    honest("right", "every answer right", lambda: right("03")),
    honest("blank", "as given out", _stub_notebook, points=nothing_for("03"), statuses=_UNWRITTEN),
    honest(
        "half",
        "the last four not written",
        _half,
        points=nothing_for("03", *_LATE),
        statuses=dict.fromkeys(_LATE, "unwritten"),
    ),
    *(
        honest(f"style-{one.id}", f"right, written with {one.id}", shown_in(one))
        for one in RIGHT_03
    ),
    *(
        honest(f"rings-{one.id}", f"right rank programs, {one.id}", shown_in(one, "01"), "01")
        for one in RIGHT_01[:2]
    ),
    honest(
        "rings-half",
        "right rank programs, a wrong closed form",
        shown_in(_WRONG_COST, "01"),
        "01",
        points={"cost_s": _WRONG_COST.expected["cost_s"][0]},
    ),
    honest("bills", "right answers to unit 02", shown_in(RIGHT_02[1], "02"), "02"),
    honest(
        "only-first-piece",
        "schedules of micro-batch 0 only",
        sample(4),
        points=nothing_for("03", "gpipe", "gpipe_fast"),
    ),
    honest(
        "wrong-share", "(K-1)/M given for the share of total time", sample(5), points={"bubble": 1}
    ),
    honest(
        "wrong-overhead",
        "overhead once per step",
        sample(6),
        points=nothing_for("03", "step_time", "best_microbatches"),
    ),
    honest(
        "wrong-weights",
        "equal weights, and no refusal",
        lambda: changed({"solution-split_batch": WRONG_WORD}),
        points={"split_batch": 0},
    ),
    honest(
        "types",
        "type hints, a NamedTuple, annotations put off",
        lambda: changed({"solution-split_batch": TYPED}),
    ),
    honest("lambdas", "lambdas for functions", lambda: changed({"solution-bubble": LAMBDAS})),
    honest(
        "callable-class",
        "objects of a class for functions",
        lambda: changed({"solution-bubble": CLASS}),
    ),
    honest(
        "decorated", "cached and partial functions", lambda: changed({"solution-bubble": CACHED})
    ),
    honest(
        "numpy-scalars",
        "NumPy numbers in the answer",
        lambda: changed({"solution-split_batch": NUMPY_RESULT}),
    ),
    honest("generators", "lists made by generators", lambda: changed({"solution-gpipe": ITERATES})),
    honest(
        "tuples-of-actions",
        "tuples where lists are asked, which the check at home says",
        lambda: changed({"solution-gpipe": TUPLES}),
        points=nothing_for("03", "gpipe", "gpipe_fast"),
    ),
    honest(
        "warns",
        "warnings.warn and NumPy's own warnings",
        lambda: changed({"solution-split_batch": WARNS}),
    ),
    honest("loud", "prints, logs and writes to the C-level stderr", within(last=LOUD)),
    honest("quiet", "redirects its output", within(last=QUIET)),
    honest("magics", "magics and shell lines", within(first=MAGICS)),
    honest("heavy", "cells that compute and hold 60 MB", within(first=HEAVY)),
    honest("imports-more", "a cell that imports what is missing", within(first=MISSING)),
    honest("asks-the-user", "calls input() and display()", within(first=INTERACTIVE)),
    honest("async", "awaits at the top of a cell", within(first=ASYNC)),
    honest("raises-in-own-cell", "own cells that raise between the answers", with_cells_of_tries),
    honest("demos-edited", "demonstrations changed", with_demo_edited),
    honest("set-up-added-to", "imports added to the set-up cell", with_set_up_added_to, notes=True),
    honest("outputs", "saved with outputs, one of them to stderr", with_outputs),
    honest("texts", "a text after every cell", with_markdown),
    honest("one-cell", "every answer in one cell at the end", _one_cell_for_all),
    honest("written-twice", "a first try left above the answer", written_twice),
    honest(
        "renamed",
        "a file name of the student's own",
        lambda: right("03"),
        file="my GPipe, final.ipynb",
    ),
    honest(
        "helper-above",
        "helpers in a cell above, used by the answers",
        lambda: placed(released("03"), RIGHT_03[0].source),
    ),
]
