"""Where a rank's messages wait: receives posted ahead of their use, sends until they were taken."""

from collections import deque
from collections.abc import Sequence

import torch
from torch import Tensor

from mpedu.comm import Channel, Request
from mpedu.pipeline.stages import Spec
from mpedu.pipeline.traffic import Message

N_AHEAD = 2  # receives posted ahead on each link


class Inbox:
    """The receiving end of one link for one step, with at most `N_AHEAD` receives posted.

    Whoever takes a message calls `post` when it can bear another buffer. A buffer is never filled a
    second time: a stage may pass on or keep a view of its input, and the gradient of a view is a
    view of the gradient. torch's allocator hands the same memory out again once it is free.
    stamped: each message comes with its sender's clock.
    """

    def __init__(
        self,
        channel: Channel,
        expected: Sequence[tuple[Message, Spec]],
        device: str,
        stamped: bool,
    ) -> None:
        self._channel, self._device, self._stamped = channel, device, stamped
        self._to_post = deque(expected)
        self._posted: deque[tuple[Tensor, Tensor | None, list[Request]]] = deque()
        for _ in range(N_AHEAD):
            self.post()

    def post(self) -> None:
        """Posts the next receive, if there is one to come."""
        if not self._to_post:
            return
        message, spec = self._to_post.popleft()
        buffer, stamp = spec.empty(self._device), None
        requests = [self._channel.irecv(buffer, message.tag, str(message))]
        if self._stamped:
            stamp = torch.zeros(1, dtype=torch.float64)
            requests.append(self._channel.irecv(stamp, message.tag + 1, str(message)))
        self._posted.append((buffer, stamp, requests))

    def take(self) -> tuple[Tensor, float | None]:
        """The next message, waited for, and its sender's clock in seconds where it has one."""
        buffer, stamp, requests = self._posted.popleft()
        for request in requests:
            request.wait()
        return buffer, None if stamp is None else float(stamp)


class Outbox:
    """What a rank has sent and nobody has taken yet: at most `limit` messages."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._unsent: deque[tuple[list[Tensor], list[Request]]] = deque()

    def send(self, channel: Channel, x: Tensor, message: Message, stamp_s: float | None) -> None:
        """Sends `x`, and keeps it until it has gone; waits where `limit` others have not.

        stamp_s: this rank's clock in seconds, where the receiver expects it.
        """
        while len(self._unsent) >= self._limit:
            self._wait_for_oldest()
        kept = [x.contiguous()]
        requests = [channel.isend(kept[0], message.tag, str(message))]
        if stamp_s is not None:
            kept.append(torch.tensor([stamp_s], dtype=torch.float64))
            requests.append(channel.isend(kept[1], message.tag + 1, str(message)))
        self._unsent.append((kept, requests))

    def drain(self) -> None:
        """Returns when everything has gone."""
        while self._unsent:
            self._wait_for_oldest()

    def _wait_for_oldest(self) -> None:
        _, requests = self._unsent.popleft()
        for request in requests:
            request.wait()
