"""The collectives of a group, and each rank's part in one, as far as its pattern has come."""

from typing import NamedTuple

from mpedu.arrays import Array, kind_of
from mpedu.collectives import Pattern, pattern_of
from mpedu.comm import Call
from mpedu.simulated.mail import Key, Mail, Pending


class Group(NamedTuple):
    """The ranks of one `Comm`, by their numbers among all ranks."""

    number: int
    members: tuple[int, ...]


class Round:
    """One collective of a group: who has come to it, by rank in the group, with which call."""

    def __init__(self, group: Group, number: int, operation: str) -> None:
        self.group, self.number, self.operation = group, number, operation
        self.calls: dict[int, Call] = {}
        self.any_gradient = False
        self.n_ended = 0


class Task:
    """One rank's part in a round: its pattern and its clock. For the pattern it is the port."""

    def __init__(self, mail: Mail, round_: Round, pending: Pending, at_s: float) -> None:
        self.mail, self.round, self.pending = mail, round_, pending
        self.rank, self.size = round_.group.members.index(pending.rank), len(round_.group.members)
        self.clock_s = self.start_s = at_s
        self._x = round_.calls[self.rank].x
        self.pattern: Pattern = pattern_of(self, round_.calls[self.rank])

    def isend(self, x: Array, destination: int) -> Pending:
        """Posts a copy of `x`, or an empty message."""
        pending = Pending(self.pending.rank, self.round.operation)
        self.mail.post(self._key(self.rank, destination), x, pending, self.clock_s, 1)
        return pending

    def irecv(self, source: int) -> Pending:
        """Posts a receive."""
        pending = Pending(self.pending.rank, self.round.operation)
        self.mail.want(self._key(source, self.rank), None, pending)
        return pending

    def taken(self, x: Array) -> Array:
        """What was received, as an array of the kind that this rank has given."""
        if x is None or type(x) is type(self._x) or kind_of(x) is (kind := kind_of(self._x)):
            return x
        own = kind.empty(self._x, tuple(x.shape))
        kind.fill(own, x)
        return own

    def _key(self, source: int, destination: int) -> Key:
        members = self.round.group.members
        tag = -1 - self.round.number
        return Key(self.round.group.number, members[source], members[destination], tag)
