import random

import pytest
from judged import SECRETS, Asked

from autograder import oracle
from autograder.exercise import load_unit
from autograder.judge import judge
from mpedu.runs import CAUSES
from mpedu.schedule import Action

UNIT = load_unit("03")


def swapped_forwards(schedule, args, rng):
    stage = rng.randrange(len(schedule))
    a, b = rng.sample(range(args[1]), 2)
    schedule[stage][a], schedule[stage][b] = schedule[stage][b], schedule[stage][a]
    return schedule


def early_backward(schedule, args, rng):
    """On stage 0 the first backward one place earlier: legal, and the pipeline waits for it."""
    actions, m = schedule[0], args[1]
    actions[m - 1], actions[m] = actions[m], actions[m - 1]
    return schedule


def dropped_action(schedule, args, rng):
    actions = rng.choice(schedule)
    del actions[rng.randrange(len(actions))]
    return schedule


def repeated_action(schedule, args, rng):
    actions = rng.choice(schedule)
    actions.insert(rng.randrange(len(actions)), rng.choice(actions))
    return schedule


def shifted_action(schedule, args, rng):
    actions = rng.choice(schedule)
    place = rng.randrange(len(actions))
    kind, stage, microbatch = actions[place]
    actions[place] = rng.choice(
        [
            Action(kind, stage + rng.choice([-1, 1]), microbatch),
            Action(kind, stage, microbatch + rng.choice([-1, 1])),
            Action("B" if kind == "F" else "F", stage, microbatch),
            Action("W", stage, microbatch),
        ]
    )
    return schedule


def missing_stage(schedule, args, rng):
    return schedule[:-1]


def more(number, args, rng):
    return number + rng.choice([-1, 1]) * rng.choice([1e-3, 1e-6]) * max(1, number)


def one_off(number, args, rng):
    return number + rng.choice([-1, 1])


def worst_count(number, args, rng):
    """The largest of the worst: where all are equally good, the smallest is asked."""
    return max(range(1, args[1] + 1), key=lambda m: (oracle.step_time_s(args[0], m, *args[1:]), m))


def lighter(pieces, args, rng):
    piece = rng.randrange(len(pieces))
    size, weight = pieces[piece]
    pieces[piece] = (size, weight - 1e-3)
    return pieces


def moved_sample(pieces, args, rng):
    (first, _), (last, _) = pieces[0], pieces[-1]
    pieces[0] = (first + 1, (first + 1) / args[0])
    pieces[-1] = (last - 1, (last - 1) / args[0])
    return pieces


def extra_piece(pieces, args, rng):
    return [*pieces, (0, 0.0)]


def other_cause(name, args, rng):
    return rng.choice([cause for cause in CAUSES if cause != name])


SPOILED = {
    "gpipe": [
        swapped_forwards,
        early_backward,
        dropped_action,
        repeated_action,
        shifted_action,
        missing_stage,
    ],
    "idle_share": [more],
    "bubble_fraction": [more],
    "bubble_over_ideal": [more],
    "min_microbatches": [one_off],
    "step_time_s": [more],
    "best_microbatches": [worst_count],
    "split_batch": [lighter, moved_sample, extra_piece],
    "cause": [other_cause],
}


def spoilable(name, args):
    """Does an answer come back, and is every change of it wrong?"""
    if name in ("gpipe", "split_batch"):
        return min(args) > 1 and (name == "gpipe" or args[1] <= args[0])
    if name == "min_microbatches":
        return 0 < args[1] < 1
    return name != "idle_share" or bool(args[0].spans)


@pytest.mark.parametrize("secret", [None, SECRETS[0]], ids=["public", "secret"])
@pytest.mark.parametrize("exercise", UNIT.exercises, ids=lambda one: one.id)
def test_one_spoiled_answer_among_all_is_caught(exercise, secret):
    rng = random.Random(exercise.id)
    public, right = Asked("03"), Asked("03")
    judge(exercise, public)
    assert judge(exercise, right, secret).status == "passed"
    asked = list(enumerate(right.calls))[len(public.calls) if secret else 0 :]
    asked = [call for call in asked if spoilable(*call[1])]
    for number, (name, args) in rng.sample(asked, min(8, len(asked))):
        for change in SPOILED[name]:
            subject = Asked("03", change, number, random.Random(number))
            verdict = judge(exercise, subject, secret)
            assert verdict.score < verdict.points, (change.__name__, name, args)
            if secret:
                assert all(m.startswith("On other cases") for m in verdict.messages)
