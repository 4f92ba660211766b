"""The hints and guesses of unit 01: idea, neighbouring case, skeleton with blanks."""

from fractions import Fraction

from autograder.checks.causes import LETTERS
from autograder.checks.unit_01.cost_mistakes import seconds
from autograder.checks.unit_01.sealed_runs import right_sums
from autograder.exercise import Guess

N_RANKS, LATENCY_S, BYTES_PER_S = 8, 5e-6, 10e9
_MACHINE = (N_RANKS, LATENCY_S, BYTES_PER_S)


def _share_of_rank_0() -> float:
    """Of the bytes of the naive all-reduce on eight ranks."""
    return (N_RANKS - 1) / (2 * (N_RANKS - 1))


def _break_even_kb() -> float:
    """The size from which a ring is faster than the way through rank 0, in kilobytes.

    Both times are straight lines in the bytes, so two points of each give where they cross.
    """
    gap_s = [
        seconds("all_reduce", n, *_MACHINE) - seconds("naive_all_reduce", n, *_MACHINE)
        for n in (0, 1_000_000)
    ]
    return float(Fraction(1000) * gap_s[0] / (gap_s[0] - gap_s[1]))


GUESSES = (
    Guess(
        "rank-0-share",
        "All-reduce through rank 0 on 8 ranks: which share of all bytes does rank 0 send?",
        _share_of_rank_0,
        "{:.0%}",
        least=0,
        most=1,
    ),
    Guess(
        "ring-faster",
        "An all-reduce of 80 MB on 8 ranks: how many times as fast is a ring as the way through "
        "rank 0?",
        lambda: float(
            seconds("naive_all_reduce", 80_000_000, *_MACHINE)
            / seconds("all_reduce", 80_000_000, *_MACHINE)
        ),
        "{:.1f}",
        least=0,
        most=1000,
    ),
    Guess(
        "break-even-kb",
        "8 ranks, latency 5 microseconds, 10 GB/s: from how many kilobytes on is a ring faster "
        "than the way through rank 0?",
        _break_even_kb,
        "{:.0f}",
        least=0,
        most=1_000_000,
    ),
    Guess(
        "sealed-right-sums",
        "Four all-reduces, a fault in each. In how many of them does every rank get the sum?",
        right_sums,
        least=0,
        most=len(LETTERS),
        whole=True,
    ),
)

_GATHER = (
    "Idea: in every step each rank sends one part to its right and receives one from its left. In "
    "the first step it sends its own, in every later one the part that came last. Start the send "
    "with `isend`, receive, then `wait` for the send.",
    "Neighbouring case: 3 ranks, seen from rank 0. Step 0: send part 0, receive part 2. Step 1: "
    "send part 2, receive part 1. So in step s rank 0 sends part 0 - s and receives part 0 - s - "
    "1, counted round the ring. What are the two numbers on rank 1?",
    "Skeleton of the loop's body:\n"
    "    sent = comm.isend(parts[(comm.rank - ...) % comm.size], right)\n"
    "    parts[(comm.rank - ... - 1) % comm.size] = comm.recv(...)\n"
    "    sent.wait()",
)
_SCATTER = (
    "Idea: the ring of E1 once more, but what travels are partial sums. A rank adds its own "
    "numbers to what came, and sends the sum on in the next step. Part r must end on rank r, so it "
    "must start on the rank to the right of r.",
    "Neighbouring case: 3 ranks, part 0. Rank 1 sends its part 0 to rank 2. Rank 2 adds its own "
    "and sends the sum to rank 0. Rank 0 adds its own: done, after 2 steps. So rank 1 begins with "
    "part 0. With which part does rank 0 begin?",
    "Skeleton:\n"
    "    parts = np.array_split(x, comm.size)\n"
    "    for step in range(...):\n"
    "        sent = comm.isend(parts[(comm.rank - step - ...) % comm.size], right)\n"
    "        place = (comm.rank - step - ...) % comm.size\n"
    "        parts[place] = parts[place] + comm.recv(...)\n"
    "        sent.wait()\n"
    "    return parts[...]",
)
_REDUCE = (
    "Idea: after a reduce-scatter each rank has one part of the sum. Which collective puts the "
    "parts of all ranks together on every rank?",
    "Neighbouring case: 2 ranks with 1 2 and 10 20. After the reduce-scatter rank 0 has 11, rank 1 "
    "has 22. After the all-gather both have 11 22.",
    "Skeleton:\n    return ring_all_gather(comm, ...(comm, ...))",
)
_FAST = (
    "Idea: a sum needs no whole array on the way. Cut it in p parts: each part goes round twice, "
    "once to be summed and once to be handed out.",
    "Neighbouring case: 2 ranks with 8 bytes each. Each sends 4 bytes to be summed and 4 bytes of "
    "the sum: 8 bytes from each. Whole arrays would also be 8 bytes from each; on 4 ranks they are "
    "24, and parts 12.",
    "Skeleton: count your messages with `print(run_ranks(...).meter)`. On p ranks each should send "
    "... messages of ... bytes. If the bytes are right and the time is not, look for a rank that "
    "receives before it has ... its own part.",
)
_COST = (
    "Idea: a message of b bytes takes the latency plus b over the bandwidth. How many of them "
    "follow one another, and how large is each? What happens at the same time on other links costs "
    "nothing more.",
    "Neighbouring case: reduce_scatter of 12 bytes on 3 ranks, latency 1 second, 4 bytes per "
    "second. Parts of 4 bytes, so a message takes 1 + 1 seconds; 2 steps, 4 seconds. An all_reduce "
    "takes 8.",
    "Skeleton:\n"
    "    if n_ranks == 1: return ...\n"
    "    part_s = n_bytes / ... / ...\n"
    "    whole_s = n_bytes / ...\n"
    '    if op in ("all_gather", ...): return (...) * (latency_s + part_s)\n'
    '    if op == "all_reduce": return ... * (...) * (latency_s + part_s)\n'
    '    if op == "broadcast": return math.log2(...) * (...)\n'
    '    if op == "naive_all_reduce": return ... * latency_s + ... * whole_s\n'
    "    raise ValueError(...)",
)
_TREE = (
    "Idea: in every round each rank that has the array passes it to one that has not. So 1, 2, 4, "
    "8 ranks have it.",
    "Neighbouring case: 4 ranks. Round 0: rank 0 to rank 2. Round 1: rank 0 to rank 1, and rank 2 "
    "to rank 3. The distance is halved from round to round. Who sends to rank 6 among 8 ranks, and "
    "when?",
    "Skeleton:\n"
    "    distance = ...  # the largest power of two below comm.size\n"
    "    while distance >= 1:\n"
    "        if comm.rank % (2 * distance) == 0 and comm.rank + distance < ...:\n"
    "            comm.send(x, ...)\n"
    "        elif comm.rank % (2 * distance) == distance:\n"
    "            x = comm.recv(...)\n"
    "        distance //= 2\n"
    "    return x",
)
_CAUSE = (
    "Idea: three kinds of evidence, in this order. Do all ranks get the sum? Do they send the "
    "bytes of a ring, each of them? Does it take the time of a ring?",
    "Neighbouring case: 3 ranks with 6 elements, 48 bytes each. On a ring each sends 4 parts of 16 "
    "bytes, 64 bytes, 192 together. Whole arrays would be 96 from each. Through rank 0 it would be "
    "96 from rank 0 and 48 from the others: 192 together.",
    "Skeleton:\n"
    "    p, total = len(run.given), np.sum(run.given, axis=0)\n"
    "    right = [np.array_equal(got, total) for got in run.got]\n"
    "    if not all(right):\n"
    '        if right[0]: return "..."\n'
    '        return "divided" if np.allclose(run.got[0][0] * p, ...) else "..."\n'
    "    n_bytes = 8 * len(...)\n"
    '    if sum(run.sent_bytes) > ...: return "whole_arrays"\n'
    '    if run.sent_bytes[0] == ...: return "..."\n'
    "    ring_s = 2 * (p - 1) * (run.latency_s + ...)\n"
    '    return "in_turn" if run.time_s > 1.5 * ring_s else "none"',
)
HINTS = {
    "ring_all_gather": _GATHER,
    "ring_reduce_scatter": _SCATTER,
    "ring_all_reduce": _REDUCE,
    "ring_all_reduce_fast": _FAST,
    "cost_s": _COST,
    "tree_broadcast": _TREE,
    "sum_cause": _CAUSE,
}
