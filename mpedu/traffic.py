"""The messages that a schedule implies, and how many of them may be on their way at once."""

from collections import defaultdict
from typing import NamedTuple

from mpedu.comm import Link
from mpedu.schedule import Action, Schedule, all_needs, run_order, stage_to_rank


class Message(NamedTuple):
    """The result of `sender`, which `receiver` on another rank needs; it travels on `link`."""

    link: Link
    sender: Action
    receiver: Action


def messages(schedule: Schedule) -> list[Message]:
    """Every message of a legal schedule, rank after rank in the order they are sent."""
    n_stages = 1 + max(stage_to_rank(schedule))
    waits = all_needs(schedule, n_stages)
    owner = stage_to_rank(schedule)
    receivers = {
        need: action
        for action, needed in waits.items()
        for need in needed
        if owner[need.stage] != owner[action.stage]
    }
    return [
        Message(_link(owner, action, receivers[action]), action, receivers[action])
        for actions in schedule
        for action in actions
        if action in receivers
    ]


def _link(owner: dict[int, int], sender: Action, receiver: Action) -> Link:
    direction = "F" if receiver.kind == "F" else "B"
    return Link(owner[sender.stage], owner[receiver.stage], direction)


def unsent_limit(schedule: Schedule, n_ahead: int) -> int:
    """The fewest unsent results a rank must be able to hold so that a legal schedule never sticks.

    A result is sent once its receiver has posted the receive, and receives are posted `n_ahead`
    ahead on each link. A rank that waited for every send at once could wait for a rank that waits
    for it. 1 for GPipe and 1F1B; more where one rank's list runs far ahead of another's.
    """
    waits = all_needs(schedule, 1 + max(stage_to_rank(schedule)))
    by_rank: dict[int, list[Message]] = defaultdict(list)
    on_link: dict[Link, list[Message]] = defaultdict(list)
    taken_after: dict[Message, Action] = {}  # the work whose start posts the message's receive
    for message in messages(schedule):
        before = on_link[message.link]
        if len(before) >= n_ahead:
            taken_after[message] = before[-n_ahead].receiver
        before.append(message)
        by_rank[message.link.source].append(message)
    limit = 1
    while True:
        also = {action: list(needs) for action, needs in waits.items()}
        for sent in by_rank.values():
            for early, late in zip(sent, sent[limit:], strict=False):
                if early in taken_after:
                    also[late.sender].append(taken_after[early])
        if not run_order(schedule, also)[1]:
            return limit
        limit += 1
