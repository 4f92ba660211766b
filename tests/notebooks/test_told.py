"""Every number in the messages to wrong answers is yielded by an expression, in its place."""

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from told import TOKEN, Call, Message, SameAs, Told, message_problems, messages_of, off, readings

HERE = Path(__file__).parent
UNITS = sorted(path.stem.removeprefix("told_") for path in HERE.glob("told_[0-9][0-9].py"))


def told_of(unit: str) -> Any:
    """The module told_NN of a unit."""
    return importlib.import_module(f"told_{unit}")


@pytest.mark.parametrize("unit", UNITS)
def test_every_number_of_a_message_is_yielded(unit: str) -> None:
    messages, module = messages_of(unit), told_of(unit)
    assert sum(len(TOKEN.findall(message.text)) for message in messages) > 100
    assert message_problems(messages, module.TOLD, module.SAME_AS) == []


def changes(printed: str) -> Iterator[str]:
    """The number with another first digit, and with another last one; M+K with a minus."""
    digits = [match.start() for match in re.finditer(r"\d", printed)]
    for place in {*digits[:1], *digits[-1:]}:
        yield f"{printed[:place]}{(int(printed[place]) + 1) % 10}{printed[place + 1 :]}"
    if not digits:
        yield printed.replace("+", "-")


@pytest.mark.parametrize("unit", UNITS)
def test_no_number_of_a_message_can_be_another_one(unit: str) -> None:
    module = told_of(unit)
    for message in messages_of(unit):
        read = readings(message, module.TOLD, module.SAME_AS)
        for reading in read:
            for place, token in enumerate(reading.tokens):
                for other in changes(token):
                    tokens = [*reading.tokens[:place], other, *reading.tokens[place + 1 :]]
                    assert all(off(tokens, one.values, one.call) for one in read), (message, other)


CALL = Call("gpipe", (4, 8), 7, lambda: None)
MESSAGE = Message("a", "slow", "gpipe(4, 8) takes 7, 27.3 % of K-1. `show(gpipe, 4, 8)`", (CALL,))


def told(*values: Any, key: str = "gpipe slow") -> Told:
    return {key: lambda call: [call.got, *values]}


@pytest.mark.parametrize(
    ("map_of_messages", "same_as", "problem"),
    [
        (told("27.3", 3), {}, None),
        (told("27.3", 3, key="gpipe b"), {"gpipe slow": lambda call: "gpipe b"}, None),
        ({}, {}, "gpipe slow (a): 7 has no expression"),
        (told("27.3"), {}, "gpipe slow (a): K-1 has no expression"),
        (told("27.3", 2), {}, "gpipe slow (a): number 3, K-1, is not what"),
        (told("27.4", 3), {}, "gpipe slow (a): number 2, 27.3, is not what"),
        (told("27.3", 3, 8), {}, "gpipe slow (a): 8 is not told any more"),
        (told("27.3", 3) | told(key="gpipe old"), {}, "gpipe old is told of no number any more"),
    ],
)
def test_each_kind_of_problem_in_a_message_is_found(
    map_of_messages: Told, same_as: SameAs, problem: str | None
) -> None:
    found = message_problems([MESSAGE], map_of_messages, same_as)
    assert found[0].startswith(problem) if problem else found == []


@pytest.mark.parametrize("text", ["gpipe(4, 9) takes long", "gpipe(4, 8): `show(gpipe, 4, 9)`"])
def test_a_call_that_was_not_made_is_found(text: str) -> None:
    message = MESSAGE._replace(text=text)
    assert message_problems([message], {}, {})


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("0F8 and F1..F7, link 1->0, 0,1,2..", "0 8 1 7 1 0 0 1 2"),
        ("(K-1)/(K M): K-1 of (M+K-1), M alone, K=1", "(K-1)/(K|M) K-1 (M+K-1) 1"),
        ("from -45 to 1.5e-09 s, 3/8, 1..16, -1", "-45 1.5e-09 3/8 1 16 -1"),
    ],
)
def test_every_number_of_a_message_is_seen(text: str, tokens: str) -> None:
    assert TOKEN.findall(text) == [token.replace("|", " ") for token in tokens.split()]
