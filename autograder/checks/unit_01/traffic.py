"""What the meter and the clock say of unit 01's rank programs, and the mistakes they betray."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from autograder.checks.programs import called_collective, links, next_rank
from autograder.checks.unit_01.rings import (
    BYTES,
    EXPECTED,
    given,
    n_ranks,
    results_are,
    wrong_result,
)
from autograder.checks.unit_01.step_mistakes import STEP_TOO_MANY
from autograder.checks.values import shown
from autograder.diagnosis import Answers, Case, Diagnosis, Mistake, StudentError

Sent = Callable[[Case], list[int]]  # bytes by rank
TIME_TOLERANCE = 1e-9  # relative: the model clock adds floats
ROUNDS = {"ring_all_gather": 1, "ring_reduce_scatter": 1, "ring_all_reduce": 2}


def sent_by(run: Any, case: Case) -> list[int]:
    """Bytes that each rank sent, whatever the operation."""
    return [run.meter.total(rank).bytes for rank in range(n_ranks(case))]


def array_bytes(case: Case) -> int:
    """n: bytes of the whole array, as every rank has it, or as it is gathered."""
    if case.name == "ring_all_gather":
        return int(sum(x.nbytes for x in given(case)))
    return int(given(case)[0].nbytes)


def is_even(case: Case) -> bool:
    """Whether all parts have one size."""
    sizes = {len(x) for x in given(case)}
    return len(sizes) == 1 and array_bytes(case) % (BYTES * n_ranks(case)) == 0


def least_sent(case: Case) -> int:
    """Bytes that all ranks together must send: every part p-1 times, in each round."""
    return ROUNDS[case.name] * (n_ranks(case) - 1) * array_bytes(case)


def _formula(case: Case) -> str:
    return "2(p-1)" if ROUNDS[case.name] == 2 else "(p-1)"


def wrong_bytes(case: Case, got: Any) -> Diagnosis | None:
    """For `examine`: None where all send as little as can be, to the right, evenly if parts are."""
    bad = wrong_result(EXPECTED[case.name])(case, got)
    if bad:
        return bad
    sent, least, p = sent_by(got, case), least_sent(case), n_ranks(case)
    n, rule = array_bytes(case), _formula(case)
    if sum(sent) != least:
        many = "more" if sum(sent) > least else "fewer"
        text = (
            f"{case}, n = {n} bytes: together they send {sum(sent)} bytes, expected {least}, "
            f"which is {rule}n for p = {p}."
        )
        general = f"the ranks together send {many} bytes than {rule}n."
        return Diagnosis(f"{many}_bytes", text, general)
    if is_even(case) and p >= 3 and len(set(sent)) > 1:
        busiest = max(range(p), key=lambda rank: sent[rank])
        text = (
            f"{case}, n = {n} bytes: rank {busiest} sends {sent[busiest]} bytes, expected "
            f"{least // p} from every rank, which is {rule}/p n for p = {p}."
        )
        return Diagnosis("uneven_bytes", text, f"not every rank sends {rule}/p n bytes.")
    return not_a_ring(case, got)


def not_a_ring(case: Case, got: Any) -> Diagnosis | None:
    """What is wrong with a run that sends elsewhere than to the right, None for a ring."""
    p = n_ranks(case)
    off = next((link for link in links(got) if link[1] != next_rank(link[0], p)), None)
    if off is None:
        return None
    text = (
        f"{case}: rank {off[0]} sends to rank {off[1]}; in a ring each rank sends to its right "
        f"neighbour only, here to rank {next_rank(off[0], p)}."
    )
    general = "a rank sends to another than its right neighbour; in a ring none does."
    return Diagnosis("not_a_ring", text, general)


def traffic_mistake(id: str, predictions: Sequence[Sent], why: str, general: str) -> Mistake:
    """A mistake seen when one of the predictions gives the bytes of every rank in every run."""

    def matches(answers: Answers) -> bool:
        return any(
            all(_sends(predicted, case, got) for case, got in answers) for predicted in predictions
        )

    def text(case: Case, got: Any) -> str:
        sent = ", ".join(map(str, sent_by(got, case)))
        share = f"{_formula(case)}/p n = {shown(Fraction(least_sent(case), n_ranks(case)))}"
        return (
            f"{case}, n = {array_bytes(case)} bytes: rank by rank {sent} are sent; {share}. {why}"
        )

    return Mistake(id, matches, text, general)


def _sends(predicted: Sent, case: Case, got: Any) -> bool:
    if isinstance(got, StudentError) or called_collective(case, got):
        return False
    return sent_by(got, case) == predicted(case) and results_are(EXPECTED[case.name], case, got)


def _sizes(case: Case) -> list[int]:
    return [x.nbytes for x in given(case)]


def _all_so_far(case: Case) -> list[int]:
    """In each step everything collected, the own part and those of the ranks to the left."""
    p, sizes = n_ranks(case), _sizes(case)
    return [
        sum(sizes[(rank - back) % p] for step in range(p - 1) for back in range(step + 1))
        for rank in range(p)
    ]


def _gathered_on_0(case: Case) -> list[int]:
    sizes = _sizes(case)
    return [(n_ranks(case) - 1) * sum(sizes), *sizes[1:]]


def _own_part_kept(case: Case) -> list[int]:
    """Rank 0 hands back to each rank only what that rank lacks."""
    sizes = _sizes(case)
    return [sum(sum(sizes) - size for size in sizes[1:]), *sizes[1:]]


def _whole_each_step(case: Case) -> list[int]:
    return [(n_ranks(case) - 1) * array_bytes(case)] * n_ranks(case)


def _both_rounds_whole(case: Case) -> list[int]:
    return [2 * n for n in _whole_each_step(case)]


def _summed_on_0(case: Case) -> list[int]:
    """Rank 0 sums whole arrays, then hands to each rank what is asked."""
    n, p = array_bytes(case), n_ranks(case)
    if case.name == "ring_all_reduce":
        back = (p - 1) * n
    else:
        back = sum(EXPECTED[case.name](case, rank).nbytes for rank in range(1, p))
    return [back] + [n] * (p - 1)


GATHER_BYTES = (
    STEP_TOO_MANY,
    traffic_mistake(
        "all_so_far",
        [_all_so_far],
        "You send all you have so far; send only the part that came last, the right has the rest.",
        "each step sends all parts so far; only the one that came last is new to the right.",
    ),
    traffic_mistake(
        "through_rank_0",
        [_gathered_on_0, _own_part_kept],
        "Rank 0 does the sending for all; on a ring every rank sends as much as the others.",
        "rank zero sends for all the others.",
    ),
)
SCATTER_BYTES = (
    STEP_TOO_MANY,
    traffic_mistake(
        "whole_array",
        [_whole_each_step],
        "Whole arrays travel, (p-1)n bytes from each rank; send one part in each step.",
        "whole arrays travel; send one part in each step.",
    ),
    traffic_mistake(
        "through_rank_0",
        [_summed_on_0],
        "Rank 0 sums for all; on a ring every rank adds its own part to what comes by.",
        "rank zero does the summing for all.",
    ),
)
REDUCE_BYTES = (
    traffic_mistake(
        "whole_array",
        [_whole_each_step, _both_rounds_whole],
        "The sum is right, with (p-1)n bytes or more from each rank: pass parts, not whole arrays.",
        "the sum is right, but whole arrays travel: pass parts.",
    ),
    traffic_mistake(
        "through_rank_0",
        [_summed_on_0],
        "All goes through rank 0: the same sum of bytes as a ring, but its link carries half.",
        "everything goes through rank zero, whose link carries half of all bytes.",
    ),
)


def ring_s(case: Case) -> float:
    """Seconds of a ring: in each step one part, the largest, in as many rounds as there are."""
    link, p = case.args[2], n_ranks(case)
    part_s = BYTES * -(-array_bytes(case) // (BYTES * p)) / link.bytes_per_s
    return float(ROUNDS[case.name] * (p - 1) * (link.latency_s + part_s))


def through_rank_0_s(case: Case) -> float:
    """Seconds of the naive all-reduce."""
    link, p = case.args[2], n_ranks(case)
    return float(2 * link.latency_s + p * array_bytes(case) / link.bytes_per_s)


def in_turn_s(case: Case) -> float:
    """Seconds of a ring in which a rank sends only after it has received."""
    return n_ranks(case) * ring_s(case)


def slower(has_right_bytes: bool) -> Callable[[Case, Any], Diagnosis | None]:
    """For `examine`: None where a right run is a ring and takes no longer than one."""
    look = (
        "In each of its 2(p-1) steps all ranks send at once: is there a rank that waits before it "
        "sends?"
        if has_right_bytes
        else "Mend the bytes first; time follows from them."
    )

    def differs(case: Case, got: Any) -> Diagnosis | None:
        bad = wrong_result(EXPECTED[case.name])(case, got)
        if bad:
            return bad
        if got.makespan_s <= ring_s(case) * (1 + TIME_TOLERANCE):
            return not_a_ring(case, got)
        general = "it takes longer than a ring whose ranks all send at once."
        return Diagnosis("slow", f"{_takes(case, got)} {look}", general)

    return differs


def _takes(case: Case, got: Any) -> str:
    link = case.args[2]
    return (
        f"{case}, n = {array_bytes(case)} bytes, latency {shown(link.latency_s)} s, "
        f"{shown(link.bytes_per_s)} bytes/s: it takes {shown(got.makespan_s)} s, a ring "
        f"{shown(ring_s(case))} s."
    )


def clock_mistake(id: str, predicted: Callable[[Case], float], why: str, general: str) -> Mistake:
    """A mistake seen when it explains the time of every run."""

    def matches(answers: Answers) -> bool:
        return all(
            not isinstance(got, StudentError)
            and results_are(EXPECTED[case.name], case, got)
            and abs(got.makespan_s - predicted(case)) <= TIME_TOLERANCE * predicted(case)
            for case, got in answers
        )

    return Mistake(id, matches, lambda case, got: f"{_takes(case, got)} {why}", general)


REDUCE_CLOCK = (
    clock_mistake(
        "through_rank_0_clock",
        through_rank_0_s,
        "That is 2L + pn/B, the time through rank 0: p whole arrays on one link after another.",
        "it takes the time of everything through rank zero.",
    ),
    clock_mistake(
        "in_turn",
        in_turn_s,
        "That is p times as long: each rank waits for its left before it sends. Start the send, "
        "then receive.",
        "the ranks send one after the other; start the send, then receive.",
    ),
)
