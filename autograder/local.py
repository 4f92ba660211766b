"""The student's answer in the student's own notebook, asked under the same rules as in grading."""

from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any

from autograder.diagnosis import StudentError
from autograder.worker.protocol import decode, encode
from autograder.worker.trouble import Trouble, Troubles


class LocalSubject:
    """The functions of an exercise among the names of a notebook.

    Arguments and results go through the same plain data as in grading, so that what passes at
    home passes there, and nothing of the check is in the hands of the student's function.
    """

    def __init__(self, namespace: Mapping[str, Any], names: Sequence[str]) -> None:
        self._namespace = namespace
        self._names = names
        self._troubles = Troubles()
        for value in namespace.values():
            if isinstance(value, FunctionType) and value.__globals__ is namespace:
                self._troubles.cells[value.__code__.co_filename] = "your cell"

    def __call__(self, *args: Any) -> Any:
        """What the exercise's only function returns."""
        return self._call(self._names[0], args)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """The function of that name."""
        return lambda *args: self._call(name, args)

    def _call(self, name: str, args: tuple[Any, ...]) -> Any:
        if name not in self._namespace:
            raise StudentError("missing", f"`{name}` is not defined.")
        try:
            return decode(encode(self._namespace[name](*decode(encode(args)))))
        except KeyboardInterrupt:
            raise  # the stop button is no answer
        except BaseException as error:
            trouble: Trouble = self._troubles.explain(name, error)
            raise StudentError(*trouble) from None
