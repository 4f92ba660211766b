from collections import Counter, defaultdict, deque
from random import Random

import pytest
from drawn import drawn_placement, drawn_schedule

from mpedu.comm import ENGINE_TAGS, TAGS, Link
from mpedu.families import SCHEDULES, gpipe, make_schedule, naive, one_f_one_b
from mpedu.pipeline.traffic import messages, unsent_limit
from mpedu.schedule import Action
from mpedu.validate import validate_schedule


def drawn(seed):
    rng = Random(seed)
    placement, n_microbatches = drawn_placement(1 + seed % 4, rng), rng.randrange(1, 7)
    return drawn_schedule(placement, n_microbatches, rng, split=(seed // 8) % 3 / 2)


class Machine:
    """Ranks whose sends wait until the receive is posted, written apart from `unsent_limit`.

    What a rank waits for never becomes untrue again, so the order in which ranks run does not
    matter: they all end, or the same ones are stuck.
    """

    def __init__(self, schedule, limit, n_ahead=2):
        self.owner = {a.stage: rank for rank, actions in enumerate(schedule) for a in actions}
        self.limit, self.n_ahead = limit, n_ahead
        self.posted = defaultdict(lambda: n_ahead)
        self.sent, self.taken = Counter(), Counter()
        self.ranks = [self.run(rank, actions) for rank, actions in enumerate(schedule)]

    def run(self, rank, actions):
        """Yields conditions; goes on once they are true."""
        unsent = deque()
        for kind, stage, _ in actions:
            if kind == "W":
                continue
            kind = "B" if kind == "I" else kind
            before, after = (stage - 1, stage + 1) if kind == "F" else (stage + 1, stage - 1)
            source, target = self.owner.get(before, rank), self.owner.get(after, rank)
            if source != rank:
                link = source, rank, kind
                yield lambda link=link: self.sent[link] > self.taken[link]
                self.taken[link] += 1
                self.posted[link] += 1
            if target != rank:
                link = rank, target, kind
                while len(unsent) >= self.limit:
                    to, number = unsent.popleft()
                    yield lambda to=to, number=number: self.posted[to] > number
                unsent.append((link, self.sent[link]))
                self.sent[link] += 1
        while unsent:
            to, number = unsent.popleft()
            yield lambda to=to, number=number: self.posted[to] > number

    def ends(self):
        waiting = {rank: next(program, None) for rank, program in enumerate(self.ranks)}
        moved = True
        while moved:
            moved = False
            for rank, condition in waiting.items():
                while condition is not None and condition():
                    condition = waiting[rank] = next(self.ranks[rank], None)
                    moved = True
        return not any(waiting.values())


@pytest.mark.parametrize("family", [naive, gpipe, one_f_one_b])
@pytest.mark.parametrize("n_stages", [1, 2, 4, 8])
def test_the_named_schedules_need_to_hold_one_unsent_result(family, n_stages):
    for n_microbatches in (1, 3, 8, 20):
        assert unsent_limit(family(n_stages, n_microbatches), 2) == 1


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("n_ranks", [2, 3, 4])
def test_no_named_schedule_sticks_with_so_many_unsent_results(name, n_ranks):
    for n_microbatches in (2 * n_ranks, 2 * n_ranks + 3):
        schedule = make_schedule(name, n_ranks, n_microbatches)
        limit = unsent_limit(schedule, 2)
        assert Machine(schedule, limit).ends()
        assert not any(Machine(schedule, n).ends() for n in range(1, limit))


@pytest.mark.parametrize("part", range(4))
def test_the_unsent_limit_is_the_least_that_never_sticks(part):
    found = Counter()
    for seed in range(part, 1600, 4):
        schedule = drawn(seed)
        assert validate_schedule(schedule) == []
        for n_ahead in (1, 2):
            limit = unsent_limit(schedule, n_ahead)
            assert Machine(schedule, limit, n_ahead).ends(), seed
            stuck = [n for n in range(1, limit) if not Machine(schedule, n, n_ahead).ends()]
            found[limit - 1 - len(stuck)] += 1
    assert set(found) == {0}, found


def test_messages_are_listed_rank_by_rank_as_they_are_sent():
    schedule = [
        [Action("F", 0, 0), Action("B", 0, 0)],
        [Action("F", 1, 0), Action("F", 2, 0), Action("B", 2, 0), Action("B", 1, 0)],
    ]
    forward, backward = messages(schedule)
    assert forward[:3] == (Link(0, 1, "F"), Action("F", 0, 0), Action("F", 1, 0))
    assert backward[:3] == (Link(1, 0, "B"), Action("B", 1, 0), Action("B", 0, 0))
    assert str(forward) == "activations for F0 of stage 1"
    assert str(backward) == "gradient for B0 of stage 0"


def test_one_rank_sends_nothing():
    assert messages(one_f_one_b(1, 4)) == []


@pytest.mark.parametrize("seed", range(20))
def test_every_message_has_two_tags_to_itself_above_those_of_programs(seed):
    sent = messages(drawn(seed))
    tags = sorted(tag for message in sent for tag in (message.tag, message.tag + 1))
    assert len(set(tags)) == len(tags)
    assert all(ENGINE_TAGS <= tag < TAGS for tag in tags)
