"""Cells as plain Python: what IPython adds to the language, turned into calls that do nothing."""

import ast
import re
from functools import lru_cache

_TIMED = re.compile(r"get_ipython\(\)\.run_line_magic\('(?:time|prun)', (['\"].*['\"])\)")
_OPTIONS = re.compile(r"(?:--no-raise-error\s+|-[rq]\s+|-[lsTD]\s*\S+\s+)*")
_MAGIC_LINE = re.compile(r"^[ \t]*[%!?,;/]|\?[ \t]*$|=[ \t]*[%!]", re.MULTILINE)
_MAX_MAGICS = 20  # IPython reads the whole cell again for each
_MAX_LINES = 1000  # and takes a second for some thousands of lines
_SHORT = 5000  # characters of what is remembered
_BODY_RUNS = ("%%time", "%%timeit", "%%capture", "%%prun")


def statements_of(source: str) -> list[ast.stmt] | None:
    """The statements of a Python text, not to be changed; None if it is none."""
    return _parsed(source) if len(source) <= _SHORT else _parsed.__wrapped__(source)


@lru_cache(maxsize=128)  # of the cells of a unit most are handed in as they were given out
def _parsed(source: str) -> list[ast.stmt] | None:
    try:
        return ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def plain_python(source: str) -> str:
    """The cell's text with each magic turned into a call of `get_ipython()`, line by line.

    There, magics do nothing. `%time` and `%prun` run their statement; a cell magic that is not
    Python empties the cell. A cell that is no Python, or has more than 20 magics or 1000 lines,
    stays as it is: running it reports the error.
    """
    stripped = source.lstrip()
    if stripped.startswith("%%"):
        first, _, body = stripped.partition("\n")
        if first.split()[0] not in _BODY_RUNS:
            return ""
        source = f"# {first}\n{body}"  # as a comment, so that line numbers stay
    if statements_of(source) is not None or source.count("\n") > _MAX_LINES:
        return source
    if len(_MAGIC_LINE.findall(source)) > _MAX_MAGICS:
        return source
    # imported here: most submissions do without it
    from IPython.core.inputtransformer2 import TransformerManager

    try:
        python: str = TransformerManager().transform_cell(source)  # type: ignore[no-untyped-call]
        return _TIMED.sub(_timed, python)
    except Exception:  # IPython stumbles over unfinished lines in ways of its own
        return source


def _timed(magic: re.Match[str]) -> str:
    """The statement that a magic times; the magic, which does nothing, where that is no Python."""
    line = str(ast.literal_eval(magic[1]))
    statement = line[_OPTIONS.match(line).end() :]  # type: ignore[union-attr]
    return magic[0] if statements_of(statement) is None else statement
