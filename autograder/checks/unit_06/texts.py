"""The hints and guesses of unit 06: idea, neighbouring case, skeleton with blanks."""

from autograder import oracle_06
from autograder.checks.unit_06.sealed_runs import longer
from autograder.exercise import Guess
from mpedu.families import one_f_one_b
from mpedu.schedule import Schedule, peak_in_flight

K, M, V = 4, 8, 2  # the running example: ranks, micro-batches, chunks


def _idle(schedule: Schedule) -> float:
    """The idle share at equal costs of F, I and W."""
    seconds = oracle_06.makespan_s(schedule)
    return 1 - 3 * M / seconds


def _messages(n_chunks: int) -> int:
    """Messages between ranks of one step."""
    return 2 * (K * n_chunks - 1) * M


GUESSES = (
    Guess(
        "idle-v2",
        "The same 8 micro-batches on the same 4 devices, each with two chunks of half the size: "
        "which share of device time is idle?",
        lambda: float(oracle_06.bubble_interleaved(K, M, V)),
        "{:.1%}",
        least=0,
        most=1,
    ),
    Guess(
        "messages-v4",
        "How many times as many messages does a step send with 4 chunks per device as with one?",
        lambda: _messages(4) / _messages(1),
        least=0,
        most=1000,
    ),
    Guess(
        "held-v2",
        "In 1F1B the first device holds 4 micro-batches. With two chunks of half the size, how "
        "many whole-stage activations does it hold?",
        lambda: peak_in_flight(oracle_06.interleaved(K, M, V))[0] / V,
        least=0,
        most=100,
    ),
    Guess(
        "idle-halves",
        "1F1B of 4 stages and 8 micro-batches, backwards in halves, F, I and W equally long, every "
        "W where it fits best: which share of device time is idle?",
        lambda: _idle(oracle_06.filled(one_f_one_b(K, M))),
        "{:.1%}",
        least=0,
        most=1,
    ),
    Guess(
        "sealed-longer",
        "Four runs of one step, a fault in each. In how many of them does the step take longer "
        "than without the fault?",
        longer,
        least=0,
        most=4,
        whole=True,
    ),
)

_CHUNK_LAYERS = (
    "Idea: first cut the model into n_ranks * n_chunks stages, in order, as equal as can be. Then "
    "deal the stages out like cards: one to each rank, round and round.",
    "Neighbouring case: 10 layers, 2 ranks, 2 chunks. Four stages of 3, 3, 2 and 2 layers: 1-3, "
    "4-6, 7-8, 9-10. Rank 0 gets the first and the third: [(1, 3), (7, 8)].",
    "Skeleton:\n"
    '    if n_ranks < ...: raise ValueError(f"n_ranks={n_ranks} ...")\n'
    "    ...  # the same for n_chunks, and for too few layers\n"
    "    size, n_larger = divmod(n_layers, ...)\n"
    "    stages, last = [], 0\n"
    "    for stage in range(...):\n"
    "        first = last + 1\n"
    "        last = last + size + (stage < ...)\n"
    "        stages.append((first, last))\n"
    "    return [stages[rank::...] for rank in range(n_ranks)]",
)
_INTERLEAVED = (
    "Idea: write two orders first, alike on every rank: (chunk, micro-batch) of all forwards, and "
    "of all backwards. A group of n_ranks micro-batches goes through chunk 0, then the same group "
    "through chunk 1; backwards take the last chunk first. A rank's list is made of both: some "
    "forwards to warm up, then one forward and one backward in turns, then the backwards left.",
    "Neighbouring case: 2 ranks, 2 micro-batches, 2 chunks. Forwards: chunk 0 of 0 and 1, chunk 1 "
    "of 0 and 1. Rank 1 holds stages 1 and 3, warms up with 2 forwards, and runs "
    "1F0 1F1 3F0 3B0 3F1 3B1 1B0 1B1. Rank 0 warms up with 4.",
    "Skeleton:\n"
    "    groups = [range(start, min(start + n_ranks, ...)) for start in range(0, ..., n_ranks)]\n"
    "    ...  # a last group smaller than n_ranks: share it out\n"
    "    forwards = [(c, m) for group in groups for c in range(...) for m in group]\n"
    "    backwards = [(c, m) for group in groups for c in reversed(...) for m in group]\n"
    "    for rank in range(n_ranks):\n"
    "        warm_up = min(len(forwards), 2 * (...) + (n_chunks - 1) * ...)\n"
    '        f = [Action("F", c * n_ranks + rank, m) for c, m in forwards]\n'
    "        b = [...]\n"
    "        steady = [a for pair in zip(f[warm_up:], b) for a in pair]\n"
    "        schedule.append(f[:warm_up] + steady + b[...:])",
)
_INTERLEAVED_FAST = (
    "Idea: the last rank of a good schedule never pauses once it has begun, and no rank runs "
    "further ahead than the first backward asks for.",
    "Neighbouring case: 2 ranks, 2 micro-batches, 2 chunks, a chunk costs 1 and 2. The last rank "
    "waits 1, works 4 forwards and 4 backwards, 12 seconds, and one backward of 2 is left after "
    "it: 15. All forwards first takes 15 too, and holds 4 chunks on each rank; in turns rank 1 "
    "holds 3.",
    "Skeleton: count slots of a chunk. The last rank waits for ... forwards, works ... slots, and "
    "... backwards follow: (... + ... - 1) slots. Compare with `show(interleaved_1f1b, 4, 8, 2)`.",
)
_BUBBLE = (
    "Idea: count in slots of a chunk, one forward plus one backward of it. How many slots does a "
    "rank work, how many does it wait?",
    "Neighbouring case: 2 ranks, 4 micro-batches, 3 chunks. Each rank works 3 * 4 = 12 slots and "
    "waits 1: share of total time 1/13, ratio to ideal time 1/12.",
    "Skeleton:\n    return (...) / (n_chunks * ... + ...)",
)
_DELAY = (
    "Idea: go through each rank's list. A forward stays. A whole backward becomes an I in the same "
    "place, and a W that waits in a queue. When does a W leave the queue? At the latest at the end "
    "of the list.",
    "Neighbouring case: one stage, two micro-batches, F0 B0 F1 B1. All of F0 I0 W0 F1 I1 W1, "
    "F0 I0 F1 W0 I1 W1 and F0 I0 F1 I1 W0 W1 are legal. F0 I0 F1 I1 W0 is not: a W is missing.",
    "Skeleton:\n"
    "    for rank, actions in enumerate(schedule):\n"
    "        halves, waiting = [], []\n"
    "        for action in actions:\n"
    '            if action.kind == "F": ...\n'
    "            else:\n"
    '                halves.append(action._replace(kind="I"))\n'
    "                waiting.append(action._replace(kind=...))\n"
    "                if len(waiting) > ...: halves.append(waiting.pop(0))\n"
    "        made.append(halves + ...)",
)
_DELAY_FAST = (
    "Idea: where does each rank of 1F1B wait between its backwards? The first rank waits before "
    "every one of its last backwards, the last rank never. So how long should a W wait on each?",
    "Neighbouring case: 2 stages, 2 micro-batches, F, I and W take 1 second each. Rank 1 never "
    "waits: F0 I0 F1 I1 W0 W1, from second 1 to 7. Rank 0: F0 F1, one second of waiting, I0, and "
    "where it would wait for the next gradient W0, then I1 and W1: 7 seconds too. Undivided "
    "backwards take 9.",
    "Skeleton: two ways. Let rank r run each W ... backwards later than its I. Or go second by "
    "second: each rank runs its next F or I if all that it needs has ended, and ... otherwise.",
)
_ZERO_BUBBLE_H1 = (
    "Idea: 1F1B's own order, with each backward as I and W. Rank 0 is full already; those after it "
    "have room. How many W may wait on each, so that all are as full as rank 0?",
    "Neighbouring case: stage 1 of 2, three micro-batches: F0 I0 F1 I1 W0 F2 I2 W1 W2. Stage 0: "
    "F0 F1 I0 W0 F2 I1 W1 I2 W2.",
    "Skeleton: from your two functions of section F, or\n"
    "    for stage in range(n_stages):\n"
    "        warm_up = min(n_microbatches, ...)\n"
    "        ...  # forwards and I as in 1F1B\n"
    "        ...  # after I number j the W number j - ...",
)
_TIMELINE_CAUSE = (
    "Idea: five questions to the boxes, each of which one fault alone answers with yes. Where do "
    "the stages lie? Is all work there? Is one rank slow? Do messages take time? Is every W last?",
    "Neighbouring case: two ranks, F of 1 second on rank 0 and of 1.5 on rank 1: one rank is slow, "
    "if F is the kind on both. An F of stage 0 ends at second 1, that of stage 1 starts at 1.25: "
    "the message took a quarter, if no receiver waits less.",
    "Skeleton:\n"
    "    n, spans = timeline.n_ranks, timeline.spans\n"
    '    if any(s.stage % n != ... for s in spans): return "contiguous_chunks"\n'
    '    count = {kind: sum(s.kind == kind for s in spans) for kind in "FIW"}\n'
    '    if count["W"] < ...: return ...\n'
    "    lengths = {(s.kind, s.end_s - s.start_s) for s in spans}\n"
    "    if len(lengths) > 3: return ...\n"
    '    ends = {(s.stage, s.microbatch): s.end_s for s in spans if s.kind == "F"}\n'
    "    if min(s.start_s - ends[s.stage - 1, ...] for s in spans if ...) > 0: return ...\n"
    "    ...  # per rank: does the first W come after the last I?",
)
HINTS = {
    "chunk_layers": _CHUNK_LAYERS,
    "interleaved_1f1b": _INTERLEAVED,
    "interleaved_1f1b_fast": _INTERLEAVED_FAST,
    "bubble_interleaved": _BUBBLE,
    "delay_weight_gradients": _DELAY,
    "delay_weight_gradients_fast": _DELAY_FAST,
    "zero_bubble_h1": _ZERO_BUBBLE_H1,
    "timeline_cause": _TIMELINE_CAUSE,
}
