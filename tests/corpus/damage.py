"""What can happen to a notebook on its way: changes of its JSON in place."""

import json
from collections.abc import Callable
from typing import Any

from making import cell, released

Tree = dict[str, Any]


def as_colab(whole: Tree) -> None:
    """As Colab exports it: ids and nbgrader's marks gone, its own in their place."""
    for number, one in enumerate(whole["cells"]):
        one["metadata"] = {"id": f"x{number:011}"} | (
            {"colab": {"base_uri": "https://localhost/"}} if number % 3 == 0 else {}
        )
        one.pop("id", None)
        if one["cell_type"] == "code":
            one["execution_count"] = None
    whole["nbformat_minor"] = 0
    whole["metadata"] = {
        "colab": {"provenance": [], "toc_visible": True},
        "kernelspec": {"name": "python3", "display_name": "Python 3"},
        "language_info": {"name": "python"},
    }


def as_vs_code(whole: Tree) -> None:
    """As VS Code saves it: new ids, metadata of its own, outputs as data."""
    for number, one in enumerate(whole["cells"]):
        one["id"] = f"{number:08x}"
        one["metadata"] = {"vscode": {"languageId": "python"}}
        one["source"] = "".join(one["source"])
    whole["metadata"] = {
        "language_info": {"name": "python", "version": "3.12.1"},
        "orig_nbformat": 4,
    }


def as_nbformat_3(whole: Tree) -> None:
    """The old format: worksheets, `input`, headings, no ids."""
    cells = []
    for one in whole.pop("cells"):
        old = {"cell_type": one["cell_type"], "metadata": {}}
        key = "input" if one["cell_type"] == "code" else "source"
        old[key] = one["source"]
        if one["cell_type"] == "code":
            old |= {"language": "python", "outputs": [], "prompt_number": 1, "collapsed": False}
        cells.append(old)
    whole["worksheets"] = [{"cells": cells, "metadata": {}}]
    whole |= {"nbformat": 3, "nbformat_minor": 0, "metadata": {"name": "gpipe"}}


def stripped(whole: Tree) -> None:
    """Every id and mark of every cell gone."""
    for one in whole["cells"]:
        one["metadata"] = {}
        one.pop("id", None)
    whole["nbformat_minor"] = 4


def stripped_and_renamed(whole: Tree) -> None:
    """Marks gone, and the answer's text changed so that only its names are as given out."""
    stripped(whole)
    for one in whole["cells"]:
        if "def split_batch" in "".join(one["source"]):
            one["source"] = "# mine\n" + "".join(one["source"])


def found(whole: Tree, id: str) -> int:
    """Where the cell of that id stands."""
    return next(i for i, one in enumerate(whole["cells"]) if one["id"] == id)


def copied(whole: Tree) -> None:
    """A solution cell copied with its marks; the upper one is the unwritten one."""
    place = found(whole, "solution-split_batch")
    empty = dict(whole["cells"][place])
    empty["source"] = next(
        one.source for one in released("03").cells if one.id == "solution-split_batch"
    )
    whole["cells"].insert(place, empty)


def copied_below(whole: Tree) -> None:
    """The unwritten cell pasted again below the answer, under its check."""
    place = found(whole, "solution-split_batch")
    copied(whole)
    whole["cells"].insert(place + 2, whole["cells"].pop(place))


def split(whole: Tree) -> None:
    """A solution cell cut in two: the second half has no marks."""
    place = found(whole, "solution-bubble")
    first, _, second = "".join(whole["cells"][place]["source"]).partition("\n\n\n")
    whole["cells"][place]["source"] = first
    whole["cells"].insert(place + 1, json.loads(json.dumps(cell(second, "half"))) | _CODE)


_CODE = {"outputs": [], "execution_count": None}


def merged(whole: Tree) -> None:
    """The answers to E3 and E4 merged into the first of their cells."""
    names = ("solution-min_microbatches", "solution-step_time", "solution-best_microbatches")
    first = whole["cells"][found(whole, "solution-bubble")]
    for name in names:
        gone = whole["cells"].pop(found(whole, name))
        first["source"] = "".join(first["source"]) + "\n\n\n" + "".join(gone["source"])


def merged_with_the_check(whole: Tree) -> None:
    """An answer merged with the test cell under it."""
    gone = whole["cells"].pop(found(whole, "check-idle_share"))
    first = whole["cells"][found(whole, "solution-idle_share")]
    first["source"] = "".join(first["source"]) + "\n\n\n" + "".join(gone["source"])


def reordered(whole: Tree) -> None:
    """Sections moved: the solutions stand in reverse order, below all else."""
    moved = [one for one in whole["cells"] if one["id"].startswith("solution-")]
    rest = [one for one in whole["cells"] if not one["id"].startswith("solution-")]
    whole["cells"] = rest + moved[::-1]


def retyped(kind: str) -> Callable[[Tree], None]:
    """An answer turned into a cell of another type."""

    def change(whole: Tree) -> None:
        one = whole["cells"][found(whole, "solution-split_batch")]
        one["cell_type"] = kind
        one.pop("outputs", None)
        one.pop("execution_count", None)

    return change


def without_checks(whole: Tree) -> None:
    """Every test cell deleted."""
    whole["cells"] = [one for one in whole["cells"] if not one["id"].startswith("check-")]


def checks_edited(whole: Tree) -> None:
    """Test cells edited, unmarked, and worth a thousand points."""
    for one in whole["cells"]:
        if one["id"].startswith("check-"):
            one["source"] = "score = 1000\nscore"
            one["metadata"]["nbgrader"] |= {"grade": False, "points": 1000, "checksum": "0"}


def without_set_up(whole: Tree) -> None:
    """The set-up cell deleted."""
    del whole["cells"][found(whole, "setup")]


def one_id_for_all(whole: Tree) -> None:
    """A tool gave every cell the same id."""
    for one in whole["cells"]:
        one["id"] = "cell"


def ids_swapped(whole: Tree) -> None:
    """Two answers pasted over each other's cells: ids and texts disagree."""
    a, b = found(whole, "solution-gpipe"), found(whole, "solution-split_batch")
    cells = whole["cells"]
    cells[a]["source"], cells[b]["source"] = cells[b]["source"], cells[a]["source"]


def other_kernel(whole: Tree) -> None:
    """A kernel that nobody has."""
    whole["metadata"]["kernelspec"] = {"name": "julia-9.9", "display_name": "My env (3.7)"}


def without_metadata(whole: Tree) -> None:
    """No kernel and no language named."""
    whole["metadata"] = {}


def odd_shapes(whole: Tree) -> None:
    """Metadata of wrong types in cells that are no answers."""
    for number, one in enumerate(whole["cells"]):
        if not one["id"].startswith("solution-"):
            one["metadata"] = [None, 3, "x", []][number % 4]


def large_output(whole: Tree) -> None:
    """15 MB of output, which is under the limit."""
    one = whole["cells"][found(whole, "picture-gpipe")]
    one["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "x" * 15_000_000}]


def many_cells(whole: Tree) -> None:
    """20,000 cells."""
    whole["cells"] += [json.loads(json.dumps(cell("1", f"c{n}"))) | _CODE for n in range(20_000)]


def sources_as_strings(whole: Tree) -> None:
    """Each source one string, and no final line ends."""
    for one in whole["cells"]:
        one["source"] = "".join(one["source"])
