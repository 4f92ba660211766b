"""What may be shown of a text that a student's process has sent, or be sent to it."""

import re

_MOST_CHARACTERS = 500
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}")  # differs from run to run


def shown(text: str) -> str:
    """A student's text, short and without anything a terminal or a page could act on."""
    printable = "".join(c if c.isprintable() else "\ufffd" for c in text[:_MOST_CHARACTERS])
    return _ADDRESS.sub("0x...", printable)


def characters(text: str) -> str:
    """Without lone surrogates, which JSON can hold: they are no characters and no Python."""
    return text.encode(errors="replace").decode()
