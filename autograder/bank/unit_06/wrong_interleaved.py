"""Wrong answers to unit 06's `interleaved_1f1b`, one mistake an entry."""

from textwrap import indent

from autograder.bank import Answer

_REFUSE = """
if min(n_ranks, n_microbatches, n_chunks) < 1:
    raise ValueError(f"{n_ranks} ranks, {n_microbatches} micro-batches, {n_chunks} chunks")"""
_GROUPS = """
n_groups = max(1, n_microbatches // n_ranks)
cuts = [-(-g * n_microbatches // n_groups) for g in range(n_groups + 1)]
groups = [range(a, b) for a, b in zip(cuts, cuts[1:])]"""
_GROUPS_OF_K = """
starts = range(0, n_microbatches, n_ranks)
groups = [range(a, min(a + n_ranks, n_microbatches)) for a in starts]"""
_FORWARDS = "forwards = [(c, m) for group in groups for c in range(n_chunks) for m in group]"
_BACKWARDS = (
    "backwards = [(c, m) for group in groups for c in reversed(range(n_chunks)) for m in group]"
)
_WARM_UP = "2 * (n_ranks - 1 - rank) + (n_chunks - 1) * len(groups[0])"
_STAGE = "c * n_ranks + rank"


def _list(stage: str = _STAGE, warm_up: str = _WARM_UP) -> str:
    return f"""
schedule = []
for rank in range(n_ranks):
    f = [Action("F", {stage}, m) for c, m in forwards]
    b = [Action("B", {stage}, m) for c, m in backwards]
    warm_up = min(len(f), {warm_up})
    steady = [a for pair in zip(f[warm_up:], b) for a in pair]
    schedule.append(f[:warm_up] + steady + b[len(f) - warm_up:])
return schedule"""


def _schedule(
    id: str,
    legal: tuple[int, str],
    fast: tuple[int, str],
    *parts: str,
    refuse: str = _REFUSE,
) -> Answer:
    body = "\n".join(part.strip() for part in (refuse, *parts))
    source = (
        "from mpedu.schedule import Action\n\n\n"
        f"def interleaved_1f1b(n_ranks, n_microbatches, n_chunks):\n{indent(body, '    ')}\n"
    )
    return Answer(
        f"interleaved_{id}", source, {"interleaved_1f1b": legal, "interleaved_1f1b_fast": fast}
    )


def _illegal(id: str, *parts: str, diagnosis: str = "", score: int = 0) -> Answer:
    return _schedule(id, (score, diagnosis or id), (0, "illegal"), *parts)


_ORDERS = (_GROUPS, _FORWARDS, _BACKWARDS)
SCHEDULES = (
    _illegal("contiguous_stages", *_ORDERS, _list("rank * n_chunks + c")),
    _illegal("first_chunk_only", "n_chunks = 1", *_ORDERS, _list()),
    _illegal("chunk_for_stage", *_ORDERS, _list("c")),
    _illegal(
        "chunk_0_first",
        _GROUPS,
        _FORWARDS,
        _BACKWARDS.replace("reversed(range(n_chunks))", "range(n_chunks)"),
        _list(),
    ),
    _illegal("warm_up_of_1f1b", *_ORDERS, _list(warm_up="n_ranks - 1 - rank")),
    _schedule(
        "small_last_group",
        (3, "small_last_group"),
        (3, ""),
        _GROUPS_OF_K,
        _FORWARDS,
        _BACKWARDS,
        _list(),
    ),
    _schedule(
        "one_at_a_time",
        (4, ""),
        (0, "one_at_a_time"),
        "groups = [[m] for m in range(n_microbatches)]",
        _FORWARDS,
        _BACKWARDS,
        _list(warm_up="len(f)"),
    ),
    _schedule(
        "one_at_a_time_in_turns",
        (0, "one_at_a_time"),
        (0, "one_at_a_time"),
        "groups = [[m] for m in range(n_microbatches)]",
        _FORWARDS,
        _BACKWARDS,
        _list(warm_up="2 * (n_ranks - 1 - rank) + (n_chunks - 1) * n_ranks"),
    ),
    _schedule(
        "all_forwards_first",
        (4, ""),
        (1, "all_forwards_first"),
        "groups = [range(n_microbatches)]",
        _FORWARDS,
        _BACKWARDS,
        _list(warm_up="len(f)"),
    ),
    _schedule(
        "one_forward_too_many",
        (4, ""),
        (1, "holds_more"),
        *_ORDERS,
        _list(warm_up=f"{_WARM_UP} + (rank < n_ranks - 1)"),
    ),
    _schedule(
        "small_last_group_and_warm_up_of_k",
        (3, "small_last_group"),
        (3, ""),
        _GROUPS_OF_K,
        _FORWARDS,
        _BACKWARDS,
        _list(warm_up=_WARM_UP.replace("len(groups[0])", "n_ranks")),
    ),
    _schedule(
        "warm_up_of_k",
        (3, "warm_up_of_k"),
        (3, ""),
        *_ORDERS,
        _list(warm_up=_WARM_UP.replace("len(groups[0])", "n_ranks")),
    ),
    _schedule(
        "all_forwards_of_one_piece_first",
        (4, ""),
        (0, "one_at_a_time"),
        "forwards = [(c, m) for m in range(n_microbatches) for c in range(n_chunks)]",
        "backwards = forwards[::-1]",
        _list(warm_up="len(f)"),
    ),
    _schedule(
        "first_rank_s_warm_up_everywhere",
        (4, ""),
        (0, "slow"),
        *_ORDERS,
        _list(warm_up="2 * (n_ranks - 1) + (n_chunks - 1) * len(groups[0])"),
    ),
    _illegal(
        "warm_up_by_rank",
        *_ORDERS,
        _list(warm_up="2 * rank + (n_chunks - 1) * n_ranks"),
        diagnosis="cycle",
    ),
    _schedule(
        "drains_after_each_group",
        (4, ""),
        (0, "slow"),
        _GROUPS,
        """
schedule = []
for rank in range(n_ranks):
    actions = []
    for group in groups:
        actions += [Action("F", c * n_ranks + rank, m) for c in range(n_chunks) for m in group]
        actions += [
            Action("B", c * n_ranks + rank, m) for c in reversed(range(n_chunks)) for m in group
        ]
    schedule.append(actions)
return schedule""",
    ),
    _illegal(
        "no_drain", *_ORDERS, _list().replace(" + b[len(f) - warm_up:]", ""), diagnosis="missing"
    ),
    _illegal(
        "pieces_from_one",
        *_ORDERS,
        _list().replace(", m) for", ", m + 1) for"),
        diagnosis="out_of_range",
    ),
    _illegal(
        "stages_not_ranks",
        *_ORDERS,
        """
schedule = []
for stage in range(n_ranks * n_chunks):
    f = [Action("F", stage, m) for m in range(n_microbatches)]
    b = [Action("B", stage, m) for m in range(n_microbatches)]
    schedule.append(f + b)
return schedule""",
        diagnosis="n_lists",
    ),
    _illegal(
        "strings", *_ORDERS, _list().replace('Action("F", ', '("F", '), diagnosis="not_a_schedule"
    ),
    _illegal(
        "halves", *_ORDERS, _list().replace('Action("B"', 'Action("I"'), diagnosis="wrong_kind"
    ),
    _illegal(
        "work_twice", *_ORDERS, _list().replace("b[len(f) - warm_up:]", "b"), diagnosis="repeated"
    ),
    _illegal(
        "nothing_returned",
        *_ORDERS,
        _list().replace("return schedule", "schedule"),
        diagnosis="not_a_schedule",
    ),
    _schedule(
        "too_much",
        (0, "too_large"),
        (0, "too_large"),
        "return [[Action('F', rank, 0)] * 10_000 for rank in range(n_ranks)]",
    ),
    _schedule("nothing_refused", (3, "wrong_error"), (3, ""), *_ORDERS, _list(), refuse="pass"),
    _schedule(
        "value_not_named",
        (3, "wrong_error"),
        (3, ""),
        *_ORDERS,
        _list(),
        refuse="if min(n_ranks, n_microbatches, n_chunks) < 1:\n    raise ValueError('no')",
    ),
    _schedule(
        "asserted",
        (3, "wrong_error"),
        (3, ""),
        *_ORDERS,
        _list(),
        refuse="assert min(n_ranks, n_microbatches, n_chunks) > 0, (n_ranks, n_chunks)",
    ),
    _schedule(
        "chunks_not_refused",
        (3, "no_error"),
        (3, ""),
        *_ORDERS,
        _list(),
        refuse="if min(n_ranks, n_microbatches) < 1:\n"
        "    raise ValueError(f'{n_ranks}, {n_microbatches}')",
    ),
    _schedule(
        "rest_refused",
        (3, "raised"),
        (3, ""),
        "if n_microbatches % n_ranks:\n    raise ValueError('no')",
        *_ORDERS,
        _list(),
    ),
)
