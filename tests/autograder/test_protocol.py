import math
import random
import socket
import struct
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from fractions import Fraction
from typing import Any, NamedTuple

import msgpack
import numpy as np
import pytest

from autograder.worker.plain import MAX_DEPTH, NotPlain
from autograder.worker.protocol import MAX_FRAME_BYTES, Channel, ProtocolError, decode, encode
from mpedu.families import gpipe
from mpedu.runs import RunReport
from mpedu.schedule import Action
from mpedu.simulate import Costs, Sent, Span, Timeline, simulate

HALF = Fraction(1, 2)
SENT = Sent(0, 1, "send", 8, 0.0, 1.0, 2.0, 2.0, 0)
RUN = RunReport(gpipe(2, 2), (2, 1), (0.5, 0.25), (1.0, 0.5), (1.0, 0.75))


class MyAction(Action):
    pass


class MyFloat(float):
    pass


class MyList(list[int]):
    pass


class Pair(NamedTuple):
    a: int
    b: int


class Level(IntEnum):
    LOW = 1


class MyArray(np.ndarray[Any, Any]):
    pass


class Liar(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise RuntimeError("no name")


class Nameless(metaclass=Liar):
    pass


def itself() -> list[Any]:
    loop: list[Any] = [1]
    loop.append(loop)
    return loop


def nested(depth: int) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = (value,)
    return value


def doubled(times: int) -> list[Any]:
    """A list of 2 ** times entries that takes a few bytes on the wire."""
    value: list[Any] = [0]
    for _ in range(times):
        value = [value, value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        -(2**63),
        2**63 - 1,
        0.1,
        -0.0,
        math.inf,
        -math.inf,
        "",
        "µ-batch \U0001f600",
        [],
        (),
        {},
        [1, [2.0, ["x"]], (None, False)],
        {"a": [1], 2: (3,), None: {}, (1, "b"): 0, 1.5: True},
        HALF,
        Action("F", 2, 0),
        Span(0, "B", 1, 2, HALF, 3.5),
        simulate(gpipe(3, 4)),
        Timeline([Span(0, "F", 0, 0, 0, 1)], 1),
        Costs(),
        Costs(forward_s=[1, HALF], backward_s=(2.0, 3.0), input_s=0.25, latency_s=HALF),
        gpipe(4, 8),
        RUN,
        nested(MAX_DEPTH),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_plain_values_come_back_equal_and_of_the_same_types(value: Any) -> None:
    back = decode(encode(value))
    assert back == value
    assert repr(back) == repr(value)


def test_a_timeline_passes_without_messages_only() -> None:
    assert decode(frame([18, [0], 1, [1]])) == Timeline([], 1)
    assert repr(decode(encode(Timeline([], 1, ())))) == repr(Timeline([], 1))


def test_nan_comes_back_as_nan() -> None:
    assert math.isnan(decode(encode([math.nan]))[0])


@pytest.mark.parametrize("code", "b1 i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16".split())
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 0, 3)])
def test_arrays_come_back_with_dtype_shape_and_values(code: str, shape: tuple[int, ...]) -> None:
    value = np.arange(math.prod(shape)).reshape(shape).astype(code)
    back = decode(encode(value))
    assert type(back) is np.ndarray
    assert (back.dtype, back.shape, back.flags.writeable) == (value.dtype, shape, True)
    assert np.array_equal(back, value)


@pytest.mark.parametrize(
    "value",
    [np.arange(6).reshape(2, 3).T, np.arange(6)[::2], np.arange(3).astype(">i4")],
    ids=["transposed", "strided", "big endian"],
)
def test_arrays_of_any_layout_come_back_equal(value: np.ndarray[Any, Any]) -> None:
    assert np.array_equal(decode(encode(value)), value)


@pytest.mark.parametrize(
    "given, plain",
    [
        (np.float64(0.5), 0.5),
        (np.float32(0.5), 0.5),
        (np.int64(7), 7),
        (np.uint64(7), 7),
        (np.bool_(True), True),
        ([np.int8(-1)], [-1]),
        (Action("F", np.int64(1), np.int32(2)), Action("F", 1, 2)),  # type: ignore[arg-type]
        (Costs(forward_s=[np.float64(0.5)]), Costs(forward_s=[0.5])),
    ],
    ids=repr,
)
def test_numpy_numbers_become_the_numbers_they_stand_for(given: Any, plain: Any) -> None:
    back = decode(encode(given))
    assert (back, repr(back)) == (plain, repr(plain))


def test_a_list_that_appears_twice_comes_back_as_one_list() -> None:
    inner = [Action("F", 0, 0)]
    back = decode(encode([inner, [inner], list(inner)]))
    assert back[0] is back[1][0]
    assert back[0] is not back[2]


def test_equal_lists_come_back_as_different_lists() -> None:
    back = decode(encode([[], []]))
    assert back[0] is not back[1]


@pytest.mark.parametrize(
    "value, sentence",
    [
        (MyFloat(1.0), "the answer is a MyFloat, a subclass of float; return float itself"),
        ([[], [Action("F", 0, 0), MyAction("F", 0, 1)]], "answer[1][1] is a MyAction, a subclass"),
        ({"x": MyList()}, "answer['x'] is a MyList, a subclass of list; return list itself"),
        ({MyFloat(2.0): 1}, "answer[key 1] is a MyFloat"),
        ((Pair(1, 2),), "answer[0] is a Pair, a subclass of tuple; return tuple itself"),
        (Level.LOW, "the answer is a Level, a subclass of int"),
        (np.str_("x"), "the answer is a str_, a subclass of str"),
        (np.zeros(2).view(MyArray), "the answer is a MyArray, a subclass of ndarray"),
        ((i for i in [1]), "the answer is a generator, not yet its values; make a list of it"),
        ({1, 2}, "the answer is a set"),
        (range(3), "the answer is a range"),
        (b"x", "the answer is a bytes"),
        (Nameless(), "the answer is a Nameless"),
        (Action("F", "0", 1), "answer.stage is a str; give an int"),  # type: ignore[arg-type]
        (Action(0, 1, 1), "answer.kind is an int; give a str"),  # type: ignore[arg-type]
        ([Action("F", True, 1)], "answer[0].stage is a bool; give an int"),
        (Span(0, "F", 0, 0, None, 1), "answer.start_s is None; give a number"),  # type: ignore
        (Timeline((), 1), "answer.spans is a tuple; give a list of Span"),  # type: ignore[arg-type]
        (Timeline([Action("F", 0, 0)], 1), "answer.spans is a list; give a list of Span"),  # type: ignore[list-item]
        (Timeline([], 1, (SENT,)), "answer.messages is a tuple; give (), or leave it out"),
        (Timeline([], 1, []), "answer.messages is a list; give (), or leave it out"),  # type: ignore[arg-type]
        (SENT, "the answer is a Sent, a subclass of tuple; return tuple itself"),
        (
            RUN._replace(schedule=[Action("F", 0, 0)]),
            "answer.schedule is a list; give a list of lists of Action",
        ),  # type: ignore[list-item]
        (RUN._replace(losses=[1.0]), "answer.losses is a list; give a tuple of numbers"),  # type: ignore[arg-type]
        (2**63, "the answer is a whole number of 64 bits; 63 and a sign can pass"),
        ([1, -(2**70)], "answer[1] is a whole number of 71 bits"),
        (Fraction(1, 2**64), "the answer is a whole number of 65 bits"),
        ("a\ud800", "the answer is a str with a lone surrogate"),
        (
            np.array([object()]),
            "the answer is an array of dtype object; give a list, or an array of numbers",
        ),
        (np.array(["a"]), "the answer is an array of dtype <U1"),
        (np.broadcast_to(0.0, (10**9,)), "the answer is an array of 8000000000 bytes"),
        (itself(), "answer[1] is a list that contains itself"),
        ({"a": {"b": [itself()]}}, "answer['a']['b'][0][1] is a list that contains itself"),
        (nested(MAX_DEPTH + 1), "the answer is nested more than 64 deep"),
        ({i: i for i in range(10_001)}, "the answer has 10001 entries"),
        ("x" * MAX_FRAME_BYTES, "the answer takes 8388"),
    ],
    ids=lambda value: repr(value)[:40] if not isinstance(value, Nameless) else "nameless",
)
def test_what_is_not_plain_is_refused_with_place_and_reason(value: Any, sentence: str) -> None:
    with pytest.raises(NotPlain) as caught:
        encode(value)
    assert sentence in str(caught.value)


def frame(tree: Any) -> bytes:
    data: bytes = msgpack.packb(tree)
    return data


ACTION = [16, "F", 0, 0]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        frame(1) + b"x",
        frame(2**63),
        frame(b"bytes"),
        frame({}),
        frame(msgpack.ExtType(5, b"")),
        frame(msgpack.Timestamp(1)),
        b"\xa1\xff",
        frame([]),
        frame(["x"]),
        frame([True]),
        frame([99]),
        frame([0, [0, [3, 5]]]),
        frame([0, [3, 0]]),
        frame([0, [0], [3, -1]]),
        frame([0, [0], [3, True]]),
        frame([3, 0]),
        frame([2, 1]),
        frame([2, 1, 1, 1, 2]),
        frame([2, [0], 1]),
        frame([2, *[0] * 20_002]),
        frame([5, 1, 0]),
        frame([5, 1.0, 2]),
        frame([5, 1, 2, 3]),
        frame([4, "|O8", [1], b"12345678"]),
        frame([4, "<f8", [2], b"12345678"]),
        frame([4, "<f8", [-1], b""]),
        frame([4, "<f8", [-1, -1], b"12345678"]),
        frame([4, "<f8", [2**62, 0], b""]),
        frame([4, "<f8", [1], "12345678"]),
        frame([4, "<f8", [1.0], b"12345678"]),
        frame([4, "|b1", [1], b"\x02"]),
        frame([4, "<f8", [1] * 100, b"12345678"]),
        frame(ACTION[:3]),
        frame([*ACTION, 0]),
        frame([16, 0, 0, 0]),
        frame([16, "F", 0.0, 0]),
        frame([16, "F", True, 0]),
        frame([17, 0, "F", 0, 0, "0", 1]),
        frame([18, [0, ACTION], 1, [1]]),
        frame([18, [1], 1, [1]]),
        frame([18, [0], 1]),
        frame([18, [0], 1, [0]]),
        frame([18, [0], 1, [1, 0]]),
        frame([19, -1.0, 1.0, None, None, 0]),
        frame([19, [0, "x"], 1.0, None, None, 0]),
        frame([20, [0, [0, [1]]], [1], [1], [1], [1]]),
        frame([20, [0], [0], [1], [1], [1]]),
        frame([20, [0], [1], [1, "0"], [1], [1]]),
        b"\x91" * 500_000,
        b"\xdd" + struct.pack(">I", 2_000_000) + b"\x91\x01" * 2_000_000,
        b"\x92\x01" * 500,
        b"\xdd\x00\x1e\x84\x80" * 1000,
        b"\xdd\xff\xff\xff\xff",
        encode(doubled(22)),
        encode([doubled(19)] * 8),
        encode([["x" * 10_000]] * 2000),
        encode([[np.zeros(10_000)]] * 300),
        frame([1, *[[1, *[None] * 1000]] * 2000]),
    ],
    ids=lambda data: repr(data[:24]),
)
def test_bytes_that_are_no_value_are_a_protocol_error(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode(data)


def test_keys_of_one_hash_are_refused_before_they_are_compared() -> None:
    prime = sys.hash_info.modulus  # of a Fraction a / b the hash is a / b modulo this
    alike = [(12345678901234567 * b % prime, b) for b in range(1, 1000)]
    keys = [[5, a, b] for a, b in alike if math.gcd(a, b) == 1]
    assert len({hash(Fraction(a, b)) for a, b in alike}) == 1
    with pytest.raises(ProtocolError, match="keys have the same hash"):
        decode(msgpack.packb([2, *(part for key in keys for part in (key, None))]))
    few = {Fraction(1, n): n for n in range(1, 2000)}
    assert decode(encode(few)) == few


def test_a_chain_of_shared_lists_cannot_get_deeper_than_the_limit() -> None:
    chain: list[Any] = [[]]
    for _ in range(MAX_DEPTH):
        chain.append([chain[-1]])
    with pytest.raises(ProtocolError, match="nested"):
        decode(encode(chain))


def test_no_bytes_at_all_raise_anything_but_a_protocol_error() -> None:
    rng = random.Random(3)
    seeds = [encode(v) for v in (gpipe(2, 2), simulate(gpipe(2, 1)), {"a": np.arange(3)}, [HALF])]
    refused = 0
    for _ in range(4000):
        data = bytearray(rng.choice(seeds))
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        try:
            decode(bytes(data[: rng.randint(1, len(data))]))
        except ProtocolError:
            refused += 1
    assert refused > 1000


@contextmanager
def channels() -> Iterator[tuple[Channel, socket.socket]]:
    near, far = socket.socketpair()
    with near, far:
        yield Channel(near), far


def test_messages_arrive_in_order_and_whole() -> None:
    with channels() as (channel, far):
        messages = [("call", 1, gpipe(2, 2)), ("big", np.zeros(100_000)), ("end",)]
        sender = threading.Thread(target=lambda: [Channel(far).send(m) for m in messages])
        sender.start()
        received = [channel.receive(10) for _ in messages]
        sender.join()
    assert [m[0] for m in received] == ["call", "big", "end"]
    assert received[0] == messages[0]


def test_a_refusal_speaks_of_the_answer_and_not_of_the_message() -> None:
    with channels() as (channel, _), pytest.raises(NotPlain, match=r"^answer\[1\] is a set"):
        channel.send(("answer", 1, [0, {1}]))


@pytest.mark.parametrize("sent", [b"", b"\0\0", b"\0\0\0\x09abc"])
def test_an_end_in_the_middle_is_an_eof(sent: bytes) -> None:
    with channels() as (channel, far):
        far.sendall(sent)
        far.close()
        with pytest.raises(EOFError):
            channel.receive(10)


def test_a_frame_that_promises_too_much_is_refused_unread() -> None:
    with channels() as (channel, far):
        far.sendall(struct.pack(">I", MAX_FRAME_BYTES + 1))
        with pytest.raises(ProtocolError, match="8388609 bytes"):
            channel.receive(10)


@pytest.mark.parametrize("sent", [b"", b"\0\0\0\x09abc"])
def test_silence_ends_with_the_limit(sent: bytes) -> None:
    with channels() as (channel, far):
        far.sendall(sent)
        with pytest.raises(TimeoutError):
            channel.receive(0.05)


def test_single_bytes_do_not_stretch_the_limit() -> None:
    with channels() as (channel, far):
        stop = threading.Event()

        def drip() -> None:
            far.sendall(struct.pack(">I", 1000))
            while not stop.wait(0.02):
                far.sendall(b"x")

        dripping = threading.Thread(target=drip)
        dripping.start()
        try:
            with pytest.raises(TimeoutError):
                channel.receive(0.2)
        finally:
            stop.set()
            dripping.join()


def test_sending_to_someone_who_does_not_read_ends_with_the_limit() -> None:
    with channels() as (channel, _), pytest.raises(TimeoutError):
        channel.send(("x", np.zeros(1_000_000)), timeout_s=0.05)
