"""The messages that the wrong answers of a unit's bank draw, and the numbers in them.

`told_NN.py` beside this file holds, for unit NN, `TOLD` ("function diagnosis" -> what the numbers
of such a message are, in their order, from the call that the message names) and `SAME_AS` (for a
diagnosis that passes on another one's sentence: which of a call). Where a message names a call in
words of its own, `TOLD` has them too: "function in words" -> [the words].
"""

import importlib
import math
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

from autograder.diagnosis import StudentError
from autograder.exercise import Exercise, find_exercise
from autograder.judge import judge
from autograder.local import LocalSubject
from autograder.withhold import withheld

# A formula in K and M, whose value is compared; a fraction; a number, also inside 0F8 and F1..F7.
TOKEN = re.compile(
    r"\(?[KM](?: M\)|[-+/()]+[KM1]\)?)+|(?:(?<!\w)-)?\d+(?:/\d+|(?:\.\d+)?(?:e[+-]?\d+)?)"
)
DIGITS = (6, 9, 12, 17)  # significant ones: the first that tell two numbers apart


class Call(NamedTuple):
    """One call of a student's function: what came back, and how to make the call once more."""

    name: str
    args: tuple[Any, ...]
    got: Any  # a StudentError where nothing did
    again: Callable[[], Any]


class Message(NamedTuple):
    """What one group of an exercise said to a student, and every call made before."""

    answer: str
    diagnosis: str
    text: str
    calls: tuple[Call, ...]


Told = dict[str, Callable[[Call], list[Any]]]
SameAs = dict[str, Callable[[Call], str]]


class Noted:
    """A student's functions whose calls are noted."""

    def __init__(self, exercise: Exercise, source: str) -> None:
        self.namespace: dict[str, Any] = {"__name__": "__main__"}
        exec(source, self.namespace)
        self.names = exercise.names
        self.subject = LocalSubject(self.namespace, self.names)
        self.calls: list[Call] = []

    def __call__(self, *args: Any) -> Any:
        return getattr(self, self.names[0])(*args)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def asked(*args: Any) -> Any:
            def again() -> Any:
                return self.namespace[name](*args)

            try:
                got = getattr(self.subject, name)(*args)
            except StudentError as error:
                self.calls.append(Call(name, args, error, again))
                raise
            self.calls.append(Call(name, args, got, again))
            return got

        return asked


@cache
def messages_of(unit: str) -> list[Message]:
    """The public messages to the wrong answers of a unit's bank, each once for an answer."""
    found: dict[tuple[str, str], Message] = {}
    for answer in importlib.import_module(f"autograder.bank.unit_{unit}").WRONG:
        for id in answer.expected:
            exercise = find_exercise(id)
            noted = Noted(exercise, answer.source)
            with withheld(exercise.withholds):
                verdict = judge(exercise, noted)
            for group in (group for group in verdict.groups if group.message):
                message = Message(answer.id, group.diagnosis, group.message, tuple(noted.calls))
                found.setdefault((answer.id, group.message), message)
    return list(found.values())


def spelled(call: Call) -> str:
    """The call as code."""
    return f"{call.name}({', '.join(map(repr, call.args))})"


def words_after(text: str, call: Call, in_words: str = "") -> str | None:
    """What a message says of a call but its name and arguments, None if it names another."""
    heads = (spelled(call), f"{call.name}(Timeline(..))", "A timeline of ", "Run ", in_words)
    for head in filter(None, heads):
        if text.startswith(head):
            drawn = ", ".join([call.name, *map(repr, call.args)])
            return text.removeprefix(head).replace(f"`show({drawn})`", "")
    return None


def is_shown(printed: str, value: Any, call: Call) -> bool:
    """Whether a message's number or formula is that value; a string stands for itself alone."""
    if isinstance(value, str) or value is None:
        return printed == value
    if "K" in printed or "M" in printed:
        symbols = dict(zip("KM", map(Fraction, call.args[:2]), strict=True))
        result: Fraction = eval(printed.replace(" ", "*"), {"__builtins__": {}}, symbols)
        return math.isclose(result, value, rel_tol=1e-9)
    if "/" in printed:
        return bool(Fraction(printed) == value)
    return float(printed) in {float(f"{float(value):.{n}g}") for n in DIGITS}


def off(tokens: list[str], values: list[Any], call: Call) -> list[str]:
    """What is wrong with the numbers of a message, of those that a call gives."""
    found = [
        f"number {place}, {token}, is not what its expression gives"
        for place, (token, value) in enumerate(zip(tokens, values, strict=False), 1)
        if not is_shown(token, value, call)
    ]
    found += [f"{token} has no expression" for token in tokens[len(values) :]]
    return found + [f"{value} is not told any more" for value in values[len(tokens) :]]


class Reading(NamedTuple):
    """A message read as one about a certain call."""

    call: Call
    key: str  # of `TOLD`
    tokens: list[str]
    values: list[Any]


def readings(message: Message, told: Told, same_as: SameAs) -> list[Reading]:
    """Every call that a message may speak of; one without numbers needs no entry."""
    found = []
    for call in message.calls:
        in_words = told.get(f"{call.name} in words", lambda call: [""])(call)
        words = words_after(message.text, call, *in_words)
        if words is None:
            continue
        key = f"{call.name} {message.diagnosis}"
        tokens = TOKEN.findall(words)
        values: list[Any] = []
        with suppress(Exception):  # unmapped, or another call in the same words: no number fits
            key = same_as.get(key, lambda _, key=key: key)(call)
            values = told[key](call)
        found.append(Reading(call, key, tokens, values))
    return found


def message_problems(messages: Iterable[Message], told: Told, same_as: SameAs) -> list[str]:
    """One line for each number of a message that is unmapped or not yielded, each stale entry."""
    found, used = [], set()
    for message in messages:
        read = readings(message, told, same_as)
        used |= {reading.key for reading in read if reading.tokens}
        used |= {f"{reading.call.name} in words" for reading in read}
        if read:
            problems = [(off(one.tokens, one.values, one.call), one.key) for one in read]
            least, key = min(problems, key=lambda pair: len(pair[0]))
            found += [f"{key} ({message.answer}): {problem}" for problem in least]
        elif TOKEN.search(message.text):
            found.append(f"{message.diagnosis} ({message.answer}): names no call that was made")
    return found + [f"{key} is told of no number any more" for key in told.keys() - used]
