"""Communication that is checked before it happens, since gloo itself does not.

Where two ends do not fit, gloo gives garbage without a word, or aborts the process. So a message is
preceded by what it is, and a collective by an agreement on what it is, on a group of its own: both
kinds of traffic keep one order on all ranks, also where collectives run beside the program.
"""

import hashlib
import json
from collections import defaultdict, deque
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from mpedu.agreement import Mismatch, difference, message_difference
from mpedu.arrays import Array, Spec, kind_of
from mpedu.calls import ANNOUNCED
from mpedu.comm import USER_TAGS, Call, Request
from mpedu.distributed.flights import Seat
from mpedu.distributed.started import Waits, told_of_loss
from mpedu.tensors import bytes_of, made

MOST_AXES = 64
_INTS = 5 + MOST_AXES  # kind, bytes, axes, two of the dtype's name, shape
WORDS_BYTES = 128  # what a message is called
HEAD_BYTES = 4096
_ROOM = 8 * _INTS + WORDS_BYTES
ROOM_BYTES = HEAD_BYTES - _ROOM  # short messages go with their head
KINDS = ("array", "tensor", "tensor on the device")
_SAME = ("operation", "x", "op", "root", "sizes", "recv_sizes")  # of what members agree on
LONG = timedelta(days=7)
LINK_TAGS = {"F": ANNOUNCED, "B": ANNOUNCED + 1}  # of a link, by direction


class Messages:
    """The messages of one group: each goes behind a head, under a tag of its own, that tells it.

    Those of a link are all under one tag, so that order alone matches them, as with NCCL; there the
    receiver must call a message what its sender calls it.
    A send is over when the receiver has posted its receive, as without checks; the message itself
    is a copy by then. device: where a new tensor is made for one from a device.
    """

    def __init__(self, seat: Seat, members: tuple[int, ...], waits: Waits, device: str) -> None:
        self.seat, self.members, self.waits, self.device = seat, members, waits, device
        self.drained: list[tuple[Tensor, dist.Work]] = []  # into which nobody looks
        self._posted: defaultdict[tuple[int, int], deque[_Receive]] = defaultdict(deque)
        self._open: set[Request] = set()
        self._keeper = ThreadPoolExecutor(1)

    def isend(self, x: Array, destination: int, tag: int, name: str, what: str) -> Request:
        """Starts to send a copy of `x`, which is called `what`."""
        wire = bytes_of(x)
        payload = wire.cpu()
        head = _head(x, payload, what)
        work = self._isend(head, destination, tag + USER_TAGS, name)
        if payload.numel() > ROOM_BYTES:
            copy = payload.clone() if payload is wire else payload
            sent = self._isend(copy, destination, tag, name)
            # gloo forgets a message whose work nobody holds, and tells only who waits
            self._keeper.submit(sent.wait, LONG)
        request = _Send(self, work, name, destination)
        self._open.add(request)
        return request

    def irecv(self, source: int, out: Array, tag: int, name: str, words: str, what: str) -> Request:
        """Starts to receive into `out`, or a new array; words: `what` and tag for a report."""
        receive = _Receive(self, source, out, tag, name, words, what)
        self._posted[source, tag].append(receive)
        return receive

    def forget(self, request: Request) -> None:
        """It was waited for."""
        self._open.discard(request)

    def open_until(self, receive: "_Receive", line: tuple[int, int]) -> None:
        """Takes the heads of all receives on one line up to this, in the order of the messages."""
        posted = self._posted[line]
        while receive in posted:
            posted[0].open()
            posted.popleft()

    def post(self, wire: Tensor, source: int, tag: int, name: str) -> dist.Work:
        """Starts to receive bytes."""
        with told_of_loss(name):
            work = dist.irecv(wire, group=self.seat.group, group_src=source, tag=tag)
        assert work is not None
        return work

    def _isend(self, wire: Tensor, destination: int, tag: int, name: str) -> dist.Work:
        with told_of_loss(name):
            work = dist.isend(wire, group=self.seat.group, group_dst=destination, tag=tag)
        assert work is not None
        return work


class _Send(Request):
    def __init__(self, post: Messages, work: dist.Work, name: str, peer: int) -> None:
        self._post, self._work, self._name, self._peer = post, work, name, peer
        self._is_over = False

    def wait(self) -> Array:
        """Returns when the receiver has posted the receive."""
        if not self._is_over:
            self._is_over = True  # gloo must not be waited for twice
            self._post.forget(self)
            self._post.waits.wait(self._work, self._name, (self._post.members[self._peer],))


class _Receive(Request):
    def __init__(
        self,
        post: Messages,
        source: int,
        out: Array,
        tag: int,
        name: str,
        words: str,
        what: str,
    ) -> None:
        self._post, self._name, self._words, self._what = post, name, words, what
        self._line = (source, tag)
        self._head = torch.empty(HEAD_BYTES, dtype=torch.uint8)
        self._work: dist.Work | None = post.post(self._head, source, tag + USER_TAGS, name)
        self._out, self._error, self._is_over = out, "", False
        self._wire: Tensor | None = None

    def wait(self) -> Array:
        """The message; Mismatch where it does not fit."""
        if not self._is_over:
            self._post.open_until(self, self._line)
            self._is_over = True
            if self._work is not None and not self._error:
                self._wait()
                if self._wire is not None:
                    bytes_of(self._out).copy_(self._wire)
        if self._error:
            raise Mismatch(self._error)
        return self._out

    def open(self) -> None:
        """Takes the head, and starts to receive what does not go with it."""
        self._wait()
        self._work = None
        kind, spec, n_bytes, called, room = _read(self._head)
        self._head = room
        source, tag = self._line
        members, rank = self._post.members, self._post.seat.rank
        if tag in LINK_TAGS.values() and called != _called(self._what):
            self._error = (
                f"recv on rank {members[rank]}: rank {members[source]} sends {called}, and here it "
                f"is taken for {self._what}; both ends of a link need one order"
            )
        elif self._out is None:
            self._out = made(spec, kind != KINDS[0])
            if kind == KINDS[2]:
                self._out = self._out.to(self._post.device)
        else:
            own = kind_of(self._out).spec(self._out)
            self._error = message_difference(members[source], members[rank], spec, own, self._words)
        if n_bytes <= ROOM_BYTES:
            if not self._error:
                bytes_of(self._out).copy_(room)
            return
        wire = None if self._error else bytes_of(self._out)
        if wire is None or not wire.is_cpu:
            wire = self._wire = torch.empty(n_bytes, dtype=torch.uint8)
        self._work = self._post.post(wire, source, tag, self._name)
        if self._error:
            self._post.drained.append((wire, self._work))

    def _wait(self) -> None:
        assert self._work is not None
        peers = (self._post.members[self._line[0]],)
        self._post.waits.wait(self._work, self._name, peers)


def _head(x: Array, payload: Tensor, what: str) -> Tensor:
    """What goes before a message, and with it the message itself where there is room for it."""
    whole = np.zeros(HEAD_BYTES, dtype=np.uint8)
    spec = kind_of(x).spec(x)
    kind = 0 if isinstance(x, np.ndarray) else 1 if x.is_cpu else 2
    ints = whole.view(np.int64)
    ints[:3] = kind, payload.numel(), len(spec.shape)
    whole[24:40] = np.frombuffer(spec.dtype.encode().ljust(16, b"\0"), dtype=np.uint8)
    ints[5 : 5 + len(spec.shape)] = spec.shape
    called = _called(what).encode()
    whole[8 * _INTS : 8 * _INTS + len(called)] = np.frombuffer(called, dtype=np.uint8)
    if payload.numel() <= ROOM_BYTES:
        whole[_ROOM : _ROOM + payload.numel()] = payload.numpy()
    return torch.from_numpy(whole)


def _called(what: str) -> str:
    """As much of a message's name as its head has room for."""
    return what.encode()[:WORDS_BYTES].decode(errors="ignore")


def _read(head: Tensor) -> tuple[str, Spec, int, str, Tensor]:
    """Kind, spec, bytes and name of a message, and what of it came with its head."""
    whole = head.numpy()
    kind, n_bytes, n_axes = whole[:24].view(np.int64).tolist()
    dtype = whole[24:40].tobytes().rstrip(b"\0").decode()
    shape = whole[40 : 40 + 8 * n_axes].view(np.int64).tolist()
    called = whole[8 * _INTS : _ROOM].tobytes().rstrip(b"\0").decode()
    return KINDS[kind], Spec(dtype, tuple(shape)), n_bytes, called, head[_ROOM : _ROOM + n_bytes]


class Agreement:
    """What the members of one group are about to do together, compared before they do it.

    talk: a gloo group of the same members, for the first round; what is told where they differ goes
    in place of the collective itself, so that each group has one order.
    """

    def __init__(self, seat: Seat, talk: dist.ProcessGroup, members: tuple[int, ...]) -> None:
        self._seat, self._talk, self._members = seat, talk, members

    def begin(self, call: Call) -> tuple[Call, Tensor, dist.Work]:
        """Starts to tell the others; in the order of the program's calls."""
        told, size = _told(call), self._seat.size
        words = json.dumps(told).encode()
        sizes = (call.sizes or (), call.recv_sizes or ()) if call.recv_sizes else ((), ())
        row = [_digest(told), len(words), int(call.needs_gradient)]
        for part in sizes:
            row += [*part, *[0] * (size - len(part))]
        rows = torch.empty((size, len(row)), dtype=torch.int64)
        work = dist.all_to_all_single(
            rows, torch.tensor(row).repeat(size), group=self._talk, async_op=True
        )
        return call, rows, work

    def settle(self, begun: tuple[Call, Tensor, dist.Work]) -> bool:
        """Whether some member's array needs a gradient; Mismatch where they do not agree."""
        call, rows, work = begun
        work.wait()
        size = self._seat.size
        given, taken = rows[:, 3 : 3 + size], rows[:, 3 + size :]
        if bool((rows[:, 0] == rows[0, 0]).all()) and torch.equal(given, taken.T):
            return bool(rows[:, 2].any())
        calls = self._calls(call, rows[:, 1].tolist())
        for one, other in combinations_with_replacement(enumerate(calls), 2):
            if text := difference(self._members, one, other):
                raise Mismatch(text)
        raise AssertionError(f"members differ, and nothing tells how: {calls}")

    def _calls(self, call: Call, n_bytes: list[int]) -> list[Call]:
        """The calls of all members, their arrays as Specs."""
        most, size = max(n_bytes), self._seat.size
        words = json.dumps(_told(call)).encode().ljust(most)
        own = torch.from_numpy(np.frombuffer(words, dtype=np.uint8).copy())
        rows = torch.empty((size, most), dtype=torch.uint8)
        dist.all_to_all_single(rows.view(-1), own.repeat(size), group=self._seat.group)
        return [_call(json.loads(bytes(row.tolist()))) for row in rows]


def _told(call: Call) -> dict[str, Any]:
    """A call as plain data, its array as a Spec that tells also a device."""
    told: dict[str, Any] = {name: getattr(call, name) for name in _SAME}
    if call.x is not None:
        dtype, shape = kind_of(call.x).spec(call.x)
        device = (
            "" if isinstance(call.x, np.ndarray) or call.x.is_cpu else f" on {call.x.device.type}"
        )
        told["x"] = [dtype + device, shape]
    return told


def _call(told: dict[str, Any]) -> Call:
    spec = None if told["x"] is None else Spec(told["x"][0], tuple(told["x"][1]))
    sizes, recv_sizes = (told[name] and tuple(told[name]) for name in ("sizes", "recv_sizes"))
    return Call(told["operation"], spec, told["op"], told["root"], sizes, recv_sizes)


def _digest(told: dict[str, Any]) -> int:
    """A number that is the same for all members of a collective, of what must be the same."""
    same = dict(told, recv_sizes=None)
    if told["operation"] == "all_to_all":
        same["sizes"] = None
    if told["operation"] == "all_to_all" or (told["operation"] == "all_gather" and told["sizes"]):
        same["x"] = [told["x"][0], told["x"][1][1:]]
    digest = hashlib.blake2b(json.dumps(same).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)
