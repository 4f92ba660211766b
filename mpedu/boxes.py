"""Where a rank's messages wait: receives posted ahead into reused buffers, sends until taken."""

from collections import defaultdict, deque
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from mpedu.announce import FIRST_MESSAGE_TAG, Spec
from mpedu.comm import Channel, Request
from mpedu.schedule import Action

N_AHEAD = 2  # receives posted ahead on each link


class Expected(NamedTuple):
    """One message to come: its tag, its shape, its name in reports."""

    tag: int
    spec: Spec
    what: str


class Inbox:
    """The receiving end of one link for one step, with at most `N_AHEAD` receives posted.

    Whoever takes a message calls `post` when it can bear another buffer, and `give` when it is
    done with the one it took.
    """

    def __init__(
        self, channel: Channel, expected: Sequence[Expected], device: str, stamped: bool
    ) -> None:
        self._channel, self._device, self._stamped = channel, device, stamped
        self._to_post = deque(expected)
        self._free: dict[Spec, list[Tensor]] = defaultdict(list)
        self._posted: deque[tuple[Tensor, Tensor, list[Request]]] = deque()
        for _ in range(N_AHEAD):
            self.post()

    def post(self) -> None:
        """Posts the next receive, if there is one to come."""
        if not self._to_post:
            return
        tag, spec, what = self._to_post.popleft()
        free = self._free[spec]
        buffer = free.pop() if free else spec.empty(self._device)
        requests = [self._channel.irecv(buffer, tag, what)]
        stamp = torch.zeros(int(self._stamped), dtype=torch.float64)
        if self._stamped:
            requests.append(self._channel.irecv(stamp, tag + 1, what))
        self._posted.append((buffer, stamp, requests))

    def take(self) -> tuple[Tensor, float]:
        """The next message, waited for, and its sender's clock in seconds (0 without a clock)."""
        buffer, stamp, requests = self._posted.popleft()
        for request in requests:
            request.wait()
        return buffer, float(stamp) if self._stamped else 0.0

    def give(self, buffer: Tensor) -> None:
        """Takes a buffer back for reuse; after the last receive its memory is given back."""
        if self._to_post:
            self._free[Spec.of(buffer)].append(buffer)


class Outbox:
    """What a rank has sent and nobody has taken yet: at most `limit` tensors."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._unsent: deque[tuple[list[Tensor], list[Request]]] = deque()

    def send(self, channel: Channel, x: Tensor, tag: int, what: str, stamp: Tensor | None) -> None:
        """Sends `x`, and keeps it until it has gone; waits where `limit` others have not."""
        while len(self._unsent) >= self._limit:
            self._wait_for_oldest()
        kept = [x] if x.is_contiguous() else [x.contiguous()]
        requests = [channel.isend(kept[0], tag, what)]
        if stamp is not None:
            kept.append(stamp)
            requests.append(channel.isend(stamp, tag + 1, what))
        self._unsent.append((kept, requests))

    def drain(self) -> None:
        """Returns when everything has gone."""
        while self._unsent:
            self._wait_for_oldest()

    def _wait_for_oldest(self) -> None:
        _, requests = self._unsent.popleft()
        for request in requests:
            request.wait()


def tag_of(receiver: Action, n_microbatches: int) -> int:
    """The tag of the message that `receiver` takes; the tag after it is its stamp's."""
    number = (receiver.stage * n_microbatches + receiver.microbatch) * 2 + (receiver.kind == "F")
    return FIRST_MESSAGE_TAG + 2 * number
