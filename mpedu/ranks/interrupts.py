"""Interrupts that come when it suits: nothing half started, nothing half cleaned up."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

Handler = Callable[[int, FrameType | None], Any]


class Interrupts:
    """Puts off SIGINT inside `with`, except in its parts `with interrupts.allowed()`.

    What was put off is done at the start of the next such part, or at the end. Only the main thread
    is ever interrupted; in others nothing happens here.
    """

    def __init__(self) -> None:
        self._handler: Handler | None = None
        self._allowed = self._pending = False

    def __enter__(self) -> "Interrupts":
        handler = signal.getsignal(signal.SIGINT)
        # A handler that Python does not know, or none, never raises anything.
        if threading.current_thread() is threading.main_thread() and callable(handler):
            self._handler = handler
            signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *error: object) -> None:
        if self._handler is None:
            return
        signal.signal(signal.SIGINT, self._handler)
        # An error that is on its way already tells enough.
        ignored = () if error[0] is None else (KeyboardInterrupt,)
        with contextlib.suppress(*ignored):
            self._catch_up()

    @contextlib.contextmanager
    def allowed(self) -> Iterator[None]:
        """A part that may be interrupted at any point, once."""
        self._allowed = True
        try:
            self._catch_up()
            yield
        finally:
            self._allowed = False

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._pending = True
        if self._allowed:
            self._catch_up(number, frame)

    def _catch_up(self, number: int = signal.SIGINT, frame: FrameType | None = None) -> None:
        if self._pending and self._handler is not None:
            allowed, self._allowed, self._pending = self._allowed, False, False
            self._handler(number, frame)  # raises, as a rule
            self._allowed = allowed
