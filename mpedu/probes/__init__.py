"""The doctor's probes: each looks at one thing of this machine and says what to do about it."""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

Mark = Literal["ok", "note", "mend"]


class Finding(NamedTuple):
    """What was found about one thing; `advice` says what to do where it is not "ok".

    mark: "mend" where the course or a part of it does not work until something is done; "note"
    where it works, but not all of it or not as well.
    """

    mark: Mark
    about: str
    found: str
    advice: str = ""


class Answer(NamedTuple):
    """All that a program printed, and its exit status: None when it did not end in time."""

    status: int | None
    text: str

    def last_line(self) -> str:
        """The last line that says something, which of a traceback is the reason."""
        if self.status is None:
            return "no answer in time"
        lines = [line.strip() for line in self.text.splitlines() if line.strip()]
        return lines[-1][:300] if lines else f"exit status {self.status} and not a word"


# Runs the words as a program, within the probe's time limit; OSError where it cannot start.
Ask = Callable[[Sequence[str]], Answer]
