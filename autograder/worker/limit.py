"""A time limit on a stretch of a student's code, by the alarm of the operating system."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

IN_ALL = "your code takes longer than an exercise may in all and was stopped"


def longer_than(limit_s: float) -> str:
    """The sentence, without its end, for a call that took longer than that."""
    return f"your code takes longer than {limit_s:g} s and was stopped"


class TooLong(BaseException):
    """Raised inside code that takes longer than it may; no `except Exception` catches it."""


def _interrupt(signal_number: int, frame: FrameType | None) -> NoReturn:
    raise TooLong


@contextmanager
def time_limit(limit_s: float) -> Iterator[None]:
    """Raises TooLong inside after `limit_s` seconds.

    Without limit where there is no alarm (Windows) or outside the main thread, which alone can be
    interrupted.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGALRM, _interrupt)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before or signal.SIG_DFL)
