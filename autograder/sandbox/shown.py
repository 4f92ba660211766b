"""What may be shown of a text that a student's process has sent, or be sent to it."""

import re
from typing import Any

from autograder.worker.protocol import ProtocolError

_MOST_CELL_ERRORS = 50
_MOST_CHARACTERS = 500
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}")  # differs from run to run


def shown(text: str) -> str:
    """A student's text, short and without anything a terminal or a page could act on."""
    printable = "".join(c if c.isprintable() else "\ufffd" for c in text[:_MOST_CHARACTERS])
    return _ADDRESS.sub("0x...", printable)


def told_of_cells(reply: Any) -> tuple[list[str], list[tuple[int, int]]]:
    """How cells ran: errors, and which were stopped at which line; ProtocolError for nonsense."""
    parts: tuple[Any, ...] = reply if type(reply) is tuple and len(reply) == 3 else (0, 0, 0)
    _, errors, stopped = parts
    for values, kind in ((errors, str), (stopped, int)):
        if type(values) is not list or any(type(value) is not kind for value in values):
            raise ProtocolError("what it says of the cells makes no sense")
    pairs = zip(stopped[::2], stopped[1::2], strict=False)
    places = [(index, line) for index, line in pairs if index >= 0]
    return [shown(text) for text in errors[:_MOST_CELL_ERRORS]], places


def characters(text: str) -> str:
    """Without lone surrogates, which JSON can hold: they are no characters and no Python."""
    return text.encode(errors="replace").decode()
