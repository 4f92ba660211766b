"""Wrong answers to unit 01's `cost_s` and `sum_cause`, one mistake an entry."""

from textwrap import indent

from autograder.bank import Answer
from autograder.bank.unit_01.right import CAUSE, COST, with_part

_RING = "(n_ranks - 1) * (latency_s + whole_s / n_ranks)"
_TWICE = '    if op == "all_reduce":\n        return 2 * ring_s'
_TREE = "math.ceil(math.log2(n_ranks)) * (latency_s + whole_s)"
_NAIVE = "2 * latency_s + n_ranks * whole_s"


def _cost(id: str, old: str, new: str, score: int, diagnosis: str = "") -> Answer:
    if COST.count(old) != 1:
        raise ValueError(f"{id}: {old!r} stands {COST.count(old)} times in the right answer")
    source = with_part("cost_s", COST.replace(old, new))
    return Answer(f"cost_{id}", source, {"cost_s": (score, diagnosis or id)})


def _ring(id: str, new: str, score: int = 0, diagnosis: str = "") -> Answer:
    """Wrong for rings alone; the others are written out."""
    source = COST.replace(_RING, new).replace(
        'in ("all_gather", "reduce_scatter", "all_to_all"):', 'in ("all_gather", "reduce_scatter"):'
    )
    extra = f'    if op == "all_to_all":\n        return {_RING}\n'
    source = source.replace(_TWICE, extra + _TWICE)
    return Answer(f"cost_{id}", with_part("cost_s", source), {"cost_s": (score, diagnosis or id)})


COSTS = (
    _ring("latency_once", "latency_s + (n_ranks - 1) * whole_s / n_ranks", 1),
    _ring("no_latency", "(n_ranks - 1) * whole_s / n_ranks", 1),
    _ring("whole_each_step", "(n_ranks - 1) * (latency_s + whole_s)", 2),
    _ring("one_step_more", "n_ranks * (latency_s + whole_s / n_ranks)", 1),
    _cost("one_round", "return 2 * ring_s", "return ring_s", 1),
    _ring(
        "times_bandwidth",
        "(n_ranks - 1) * (latency_s + n_bytes * bandwidth_bytes_per_s / n_ranks)",
        2,
    ),
    _ring("bits", "(n_ranks - 1) * (latency_s + 8 * whole_s / n_ranks)", 2),
    _ring("added_up", "n_ranks * (n_ranks - 1) * (latency_s + whole_s / n_ranks)", 1),
    _ring(
        "whole_parts",
        "(n_ranks - 1) * (latency_s + n_bytes // n_ranks / bandwidth_bytes_per_s)",
        2,
        "differs",
    ),
    _cost("in_a_row", _TREE, "(n_ranks - 1) * (latency_s + whole_s)", 3),
    _cost("natural_logarithm", _TREE, "math.log(n_ranks) * (latency_s + whole_s)", 2),
    _cost("ring_of_parts", _TREE, "math.log2(n_ranks) * (latency_s + whole_s / n_ranks)", 3),
    _cost("collected_in_turn", _NAIVE, "2 * (n_ranks - 1) * (latency_s + whole_s)", 3),
    _cost("links_without_end", _NAIVE, "2 * (latency_s + whole_s)", 3),
    _cost(
        "whole_to_each",
        '"reduce_scatter", "all_to_all"):\n        return ring_s',
        '"reduce_scatter"):\n        return ring_s\n    if op == "all_to_all":\n'
        "        return (n_ranks - 1) * (latency_s + whole_s)",
        3,
    ),
    _cost("alone_it_pays", f"{_NAIVE} if n_ranks > 1 else 0.0", _NAIVE, 3),
    _cost("no_error", 'raise ValueError(f"op={op!r} is unknown")', "return 0.0", 3),
    _cost("error_without_name", 'f"op={op!r} is unknown"', '"unknown"', 3, "wrong_error"),
    _cost("nothing_returned", "        return 2 * ring_s", "        2 * ring_s", 1, "raised"),
)


def _cause(id: str, old: str, new: str, score: int, diagnosis: str = "") -> Answer:
    if CAUSE.count(old) != 1:
        raise ValueError(f"{id}: {old!r} stands {CAUSE.count(old)} times in the right answer")
    source = with_part("sum_cause", CAUSE.replace(old, new))
    return Answer(f"cause_{id}", source, {"sum_cause": (score, diagnosis or id)})


def _causes(id: str, body: str, score: int, diagnosis: str = "") -> Answer:
    source = f"\ndef sum_cause(run):\n{indent(body.strip(), '    ')}\n"
    answer = with_part("sum_cause", source)
    return Answer(f"cause_{id}", answer, {"sum_cause": (score, diagnosis or id)})


_BY_BYTES = CAUSE[CAUSE.index("    if sum(run.sent") :]
CAUSES = (
    _causes("one_name", 'return "none"', 0),
    _cause("results_alone", _BY_BYTES, '    return "none"\n', 1),
    _cause(
        "sum_of_bytes_alone",
        '    if run.sent_bytes[0] == (p - 1) * n_bytes:\n        return "through_rank_0"\n',
        "",
        2,
    ),
    _cause("time_ignored", '"in_turn" if run.time_s > 1.5 * ring_s else "none"', '"none"', 2),
    _cause(
        "rank_0_alone",
        '    if not all(right):\n        if right[0]:\n            return "only_rank_0"\n',
        "    if not right[0]:\n",
        2,
    ),
    _cause(
        "first_element_alone",
        "[np.array_equal(got, total) for got in run.got]",
        "[got[0] == total[0] for got in run.got]",
        2,
    ),
    _cause(
        "uneven_taken_for_slow",
        "run.time_s > 1.5 * ring_s",
        "run.time_s > ring_s + 1e-9",
        2,
    ),
    _cause("other_words", '"in_turn"', '"one after the other"', 2, "unknown_name"),
    _cause("no_word", '"in_turn"', "1", 2, "no_name"),
    _cause("latency_forgotten", "(run.latency_s + n_bytes", "(n_bytes", 2, "time_evidence"),
    _cause("mean_as_tail", '"divided" if', '"tail_lost" if', 2, "results_evidence"),
    _cause("half_of_the_bytes", "> 2 * (p - 1)", "> (p - 1)", 1, "bytes_evidence"),
)
