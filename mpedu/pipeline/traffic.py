"""The messages that a schedule implies, and how many of them may be on their way at once."""

from collections import defaultdict
from itertools import pairwise
from typing import NamedTuple

from mpedu.comm import ENGINE_TAGS, Link
from mpedu.schedule import Action, Schedule, actions_of, all_needs, run_order, stage_to_rank

FIRST_TAG = ENGINE_TAGS
NAMES = {"F": "activations", "B": "gradient", "I": "gradient"}


class Message(NamedTuple):
    """The result of `sender`, which `receiver` on another rank needs; it travels on `link`.

    The tag after `tag` is free, for what goes with the message.
    """

    link: Link
    sender: Action
    receiver: Action
    tag: int

    def __str__(self) -> str:
        kind, stage, microbatch = self.receiver
        return f"{NAMES[kind]} for {kind}{microbatch} of stage {stage}"


def messages(schedule: Schedule) -> list[Message]:
    """Every message of a legal schedule, rank after rank in the order they are sent."""
    owner = stage_to_rank(schedule)
    receivers = {
        need: action
        for action, needed in all_needs(schedule, len(owner)).items()
        for need in needed
        if owner[need.stage] != owner[action.stage]
    }
    n_microbatches = 1 + max(action.microbatch for _, action in actions_of(schedule))
    found = []
    for rank, sender in actions_of(schedule):
        if sender in receivers:
            kind, stage, microbatch = receiver = receivers[sender]
            link = Link(rank, owner[stage], "F" if kind == "F" else "B")
            number = (stage * n_microbatches + microbatch) * 2 + (kind == "F")
            found.append(Message(link, sender, receiver, FIRST_TAG + 2 * number))
    return found


def unsent_limit(schedule: Schedule, n_ahead: int) -> int:
    """The fewest unsent results a rank must be able to hold so that a legal schedule never sticks.

    A result is sent once its receiver has posted the receive, and receives are posted `n_ahead`
    ahead on each link. A rank that waited for every send at once could wait for a rank that waits
    for it. 1 for GPipe and 1F1B; more where one rank's list runs far ahead of another's.
    """
    waits = all_needs(schedule, len(stage_to_rank(schedule)))
    just_before = {late: early for acts in schedule for early, late in pairwise(acts)}
    by_rank: dict[int, list[Message]] = defaultdict(list)
    on_link: dict[Link, list[Message]] = defaultdict(list)
    posted_after: dict[Message, list[Action]] = {}  # the work done once its receive is posted
    for message in messages(schedule):
        before = on_link[message.link]
        if len(before) >= n_ahead:
            taker = before[-n_ahead].receiver  # posts this receive when it has taken its own input
            earlier = [just_before[taker]] if taker in just_before else []
            posted_after[message] = earlier + waits[taker]
        before.append(message)
        by_rank[message.link.source].append(message)
    limit = 1
    while True:
        also = {action: list(needs) for action, needs in waits.items()}
        for sent in by_rank.values():
            for early, late in zip(sent, sent[limit:], strict=False):
                also[late.sender] += posted_after.get(early, [])
        if not run_order(schedule, also)[1]:
            return limit
        limit += 1
