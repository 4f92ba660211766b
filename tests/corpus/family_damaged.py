"""Notebooks that came to harm on the way: repaired and told, or refused with the reason.

No student here loses a point: what cannot be graded with confidence gets no score, never 0.
"""

import io
import json
import os
import tarfile
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from damage import (
    Tree,
    as_colab,
    as_nbformat_3,
    as_vs_code,
    checks_edited,
    copied,
    copied_below,
    ids_swapped,
    large_output,
    many_cells,
    merged,
    merged_with_the_check,
    odd_shapes,
    one_id_for_all,
    other_kernel,
    reordered,
    retyped,
    sources_as_strings,
    split,
    stripped,
    stripped_and_renamed,
    without_checks,
    without_metadata,
    without_set_up,
)
from making import (
    Due,
    Submission,
    at,
    cell,
    made,
    placed,
    released,
    right,
    text_of,
    unit,
)

from autograder.bank.unit_03 import RIGHT as RIGHT_03
from autograder.records.results import UNREADABLE
from autograder.submissions.cells import MAX_NOTEBOOK_BYTES, Node

damaged = partial(made, "damaged")
_TOLD = Due(notes=True)


def tree(change: Callable[[Tree], object], indent: int | None = 1) -> Callable[[], str]:
    """The right notebook's JSON after a change in place."""

    def make() -> str:
        whole = json.loads(text_of(right("03")))
        change(whole)
        return json.dumps(whole, indent=indent)

    return make


def text(change: Callable[[str], str | bytes]) -> Callable[[], str | bytes]:
    """The right notebook's text, changed as text."""
    return lambda: change(text_of(right("03")))


def huge_cell() -> bytes:
    """A text cell of 60 MB."""
    whole = json.loads(text_of(right("03")))
    whole["cells"][0]["source"] = "x" * 60_000_000
    return json.dumps(whole).encode()


def deep(place: str, n_levels: int) -> Callable[[], str | bytes]:
    """The right notebook with lists so deep in each other where `place` first stands in it."""
    lists = "[" * n_levels + "]" * n_levels
    return text(lambda whole: whole.replace(place, f"{place}{lists}, ", 1))


def other_notebook() -> str:
    """A notebook of something else."""
    cells = [cell("# Homework 7", "t", "markdown"), cell("x = 1\nprint(x)", "a")]
    return text_of(Node(cells=cells, metadata=Node(), nbformat=4, nbformat_minor=5))


def refused(
    name: str, what: str, make: Callable[[], Any], reason: str, file: str = ""
) -> Submission:
    """A file that cannot be graded: no score, and the reason."""
    return damaged(name, what, make, file=file, status=UNREADABLE, reason=reason)


def place(name: str, what: str, write: Callable[[Path], object], due: Due) -> Submission:
    """Something else than one file in the student's folder; `write` gets the file's path."""
    assignment = unit("03").assignment
    return Submission(
        name, what, "damaged", assignment, lambda folder: write(at(folder, name, assignment)), due
    )


def link(path: Path) -> None:
    """A link to a file that is not the student's."""
    path.symlink_to("/etc/passwd")


def folder_in_place(path: Path) -> None:
    """A folder with the notebook's name."""
    path.mkdir()
    (path / "inside.txt").write_text("x")


def two_that_differ(path: Path) -> None:
    """Two notebooks with different work."""
    path.write_text(text_of(right("03")))
    path.with_name("03-gpipe-v2.ipynb").write_text(text_of(placed(right("03"), RIGHT_03[1].source)))


def two_of_which_one_is_untouched(path: Path) -> None:
    """The notebook as given out, and the work in `03-gpipe (1).ipynb`."""
    path.write_text(text_of(released("03")))
    path.with_name("03-gpipe (1).ipynb").write_text(text_of(right("03")))


def with_shadows(path: Path) -> None:
    """Files beside the notebook named like libraries."""
    path.write_text(text_of(right("03")))
    for name in ("numpy", "math", "msgpack", "mpedu", "json", "autograder", "sitecustomize"):
        path.with_name(f"{name}.py").write_text("raise SystemExit('shadow')\n")
    path.with_name(".env").write_text("x")


def archive(kind: str) -> Callable[[Path], None]:
    """An archive in place of the notebook."""

    def write(path: Path) -> None:
        if kind.startswith("zip"):
            with zipfile.ZipFile(path.with_suffix(".zip"), "w", zipfile.ZIP_DEFLATED) as zipped:
                _fill_zip(zipped, kind)
        else:
            with tarfile.open(path.with_suffix(".tar.gz"), "w:gz") as tar:
                _fill_tar(tar, kind)

    return write


def _fill_zip(zipped: zipfile.ZipFile, kind: str) -> None:
    notebook = text_of(right("03"))
    if kind == "zip escape":
        zipped.writestr("../../../../escaped.ipynb", notebook)
        zipped.writestr("/tmp/escaped-absolute.ipynb", notebook)
    elif kind == "zip bomb":
        with zipped.open("03-gpipe.ipynb", "w", force_zip64=True) as file:
            for _ in range(300):
                file.write(b"\0" * 2**20)
    elif kind == "zip of 40":
        padded = notebook.ljust(MAX_NOTEBOOK_BYTES - 1)
        for number in range(40):
            zipped.writestr(f"03-gpipe ({number}).ipynb", padded, compresslevel=1)
    else:
        zipped.writestr("03-gpipe.ipynb", notebook)


def _fill_tar(tar: tarfile.TarFile, kind: str) -> None:
    member = tarfile.TarInfo("03-gpipe.ipynb")
    if kind == "tar link":
        member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(member)
    elif kind == "tar device":
        member.type = tarfile.CHRTYPE
        tar.addfile(member)
    else:
        data = text_of(right("03")).encode()
        member.size = len(data)
        member.name = "../../escaped.ipynb" if kind == "tar escape" else member.name
        tar.addfile(member, io.BytesIO(data))


_REFUSED = Due(status=UNREADABLE)

SUBMISSIONS = [
    damaged("colab", "as Colab exports it", tree(as_colab), due=_TOLD),
    damaged("vs-code", "as VS Code saves it", tree(as_vs_code), due=_TOLD),
    damaged("stripped", "no ids and no metadata", tree(stripped), due=_TOLD),
    damaged(
        "stripped-edited",
        "no metadata, a comment above an answer",
        tree(stripped_and_renamed),
        due=_TOLD,
    ),
    damaged("nbformat-3", "the format of 2013", tree(as_nbformat_3), due=_TOLD),
    damaged("copied", "an answer's cell copied, the upper one unwritten", tree(copied), due=_TOLD),
    damaged(
        "copied-below", "the unwritten cell copied below the answer", tree(copied_below), due=_TOLD
    ),
    damaged("split", "an answer's cell cut in two", tree(split)),
    damaged("merged", "four answers merged into one cell", tree(merged), due=_TOLD),
    damaged("merged-check", "an answer merged with its test cell", tree(merged_with_the_check)),
    damaged("reordered", "answers in reverse order at the end", tree(reordered)),
    damaged("markdown", "an answer turned into text", tree(retyped("markdown")), due=_TOLD),
    damaged("raw", "an answer turned into a raw cell", tree(retyped("raw")), due=_TOLD),
    damaged("no-checks", "all test cells deleted", tree(without_checks)),
    damaged("checks-edited", "test cells edited and worth 1000 points", tree(checks_edited)),
    damaged("no-set-up", "the set-up cell deleted", tree(without_set_up), due=_TOLD),
    damaged("one-id", "all cells with one id", tree(one_id_for_all)),
    damaged("swapped", "two answers in each other's cells", tree(ids_swapped)),
    damaged("kernel", "a kernel that nobody has", tree(other_kernel)),
    damaged("no-metadata", "no kernel and no language", tree(without_metadata)),
    damaged("odd-shapes", "metadata of wrong types", tree(odd_shapes)),
    damaged("strings", "sources as strings", tree(sources_as_strings)),
    damaged("no-indent", "on one line", tree(lambda whole: None, indent=None)),
    damaged("bom", "a byte order mark", text(lambda t: "\ufeff" + t)),
    damaged("utf-16", "another encoding", text(lambda t: t.encode("utf-16")), due=_TOLD),
    damaged("crlf", "line ends of Windows", text(lambda t: t.replace("\n", "\r\n"))),
    damaged(
        "crlf-inside",
        "line ends of Windows in every source",
        text(lambda t: t.replace("\\n", "\\r\\n")),
    ),
    damaged(
        "numbered", "named `03-gpipe (1).ipynb`", lambda: right("03"), file="03-gpipe (1).ipynb"
    ),
    damaged("upper-case", "an upper-case ending", lambda: right("03"), file="03-GPIPE.IPYNB"),
    damaged("large-output", "15 MB of output", tree(large_output, None)),
    refused("truncated", "the first half of the file", text(lambda t: t[: len(t) // 2]), ""),
    refused("empty", "no byte", lambda: b"", "empty"),
    refused("not-json", "a letter", lambda: "Dear teacher, my notebook is attached.\n", ""),
    refused("json-list", "JSON, but no notebook", lambda: "[1, 2]", ""),
    refused("pdf", "a PDF", lambda: b"%PDF-1.7\n1 0 obj\n", "PDF"),
    refused("html", "a web page", lambda: "<!doctype html><title>GPipe</title>", "HTML"),
    refused("huge-cell", "a text of 60 MB", huge_cell, "20 MB"),
    refused("deep", "lists 100,000 deep", deep('"cells": [', 100_000), "nests deeper"),
    refused("deep-cell", "a text of lists 5,000 deep", deep('"source": [', 5_000), "nests deeper"),
    refused("many-cells", "20,000 cells", tree(many_cells), "cells"),
    refused("other-notebook", "a notebook of something else", other_notebook, "recognised"),
    place("link", "a link to a file of the system", link, Due(UNREADABLE, reason="link")),
    place("pipe", "a pipe nobody writes to", os.mkfifo, Due(UNREADABLE, reason="")),
    place("folder", "a folder with the notebook's name", folder_in_place, _REFUSED),
    place(
        "two",
        "two notebooks with different work",
        two_that_differ,
        Due(UNREADABLE, reason="2 notebooks"),
    ),
    place(
        "two-one-untouched",
        "the work beside the notebook as given out",
        two_of_which_one_is_untouched,
        Due(),
    ),
    place("shadows", "files beside the notebook named like libraries", with_shadows, Due()),
    place("zip", "the notebook in an archive", archive("zip"), Due()),
    place("tar", "the notebook in another archive", archive("tar"), Due()),
    place("zip-bomb", "an archive of 300 MB in 300 kB", archive("zip bomb"), _REFUSED),
    place(
        "zip-of-40",
        "an archive of 40 notebooks, each just under the limit",
        archive("zip of 40"),
        Due(UNREADABLE, reason="100 MB"),
    ),
    place("zip-escape", "an archive with ways out of its folder", archive("zip escape"), _REFUSED),
    place("tar-link", "an archive with a link", archive("tar link"), _REFUSED),
    place("tar-device", "an archive with a device", archive("tar device"), _REFUSED),
    place("tar-escape", "an archive with a way out of its folder", archive("tar escape"), _REFUSED),
]
