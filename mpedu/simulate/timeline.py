"""What ran when: spans of work, messages, and the shares that follow from them."""

from typing import NamedTuple

from mpedu.simulate.costs import Seconds


class Span(NamedTuple):
    """One action as it ran: from `start_s` to `end_s` on `rank`.

    `kind` is an action's letter, or of a rank program "compute" or the operation's name, as
    "send" or "all_reduce"; `stage` and `microbatch` are -1 where they mean nothing.
    """

    rank: int
    kind: str
    stage: int
    microbatch: int
    start_s: Seconds
    end_s: Seconds


class Sent(NamedTuple):
    """One message as it went, in seconds on the model clock.

    From `start_s` to `end_s` it occupies the outgoing link of rank `source`, at `arrival_s` it is
    at `destination`, which takes it at `taken_s`. `kind` names the operation that sent it.
    """

    source: int
    destination: int
    kind: str
    n_bytes: int
    start_s: Seconds
    end_s: Seconds
    arrival_s: Seconds
    taken_s: Seconds
    tag: int


class Timeline(NamedTuple):
    """What ran when, on `n_ranks` ranks; the clock may start at any time.

    `messages` are those of a rank program, in any order.
    """

    spans: list[Span]
    n_ranks: int
    messages: tuple[Sent, ...] = ()

    @property
    def start_s(self) -> Seconds:
        """Start of the first span or message; ValueError without any."""
        starts_s = [span.start_s for span in self.spans] + [sent.start_s for sent in self.messages]
        if not starts_s:
            raise ValueError("this timeline has no spans; a share of nothing has no value")
        return min(starts_s)

    @property
    def makespan_s(self) -> Seconds:
        """From the first start to the last end, of spans and messages; ValueError without any."""
        start_s = self.start_s
        ends_s = [span.end_s for span in self.spans] + [sent.taken_s for sent in self.messages]
        return max(ends_s) - start_s

    @property
    def busy_s(self) -> Seconds:
        """Device seconds of work, summed over ranks."""
        return sum((span.end_s - span.start_s for span in self.spans), start=0)

    @property
    def idle_share(self) -> Seconds:
        """Idle share of device time, in [0, 1): 1 - busy / (ranks * makespan)."""
        return 1 - self.busy_s / (self.n_ranks * self.makespan_s)
