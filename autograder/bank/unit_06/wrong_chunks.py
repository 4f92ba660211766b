"""Wrong answers to unit 06's `chunk_layers`, one mistake an entry."""

from textwrap import indent

from autograder.bank import Answer

_REFUSE = """
if n_ranks < 1 or n_chunks < 1 or n_layers < n_ranks * n_chunks:
    raise ValueError(f"{n_layers} layers, {n_ranks} ranks, {n_chunks} chunks")"""
_STAGES = """
size, n_larger = divmod(n_layers, n_ranks * n_chunks)
stages, last = [], 0
for stage in range(n_ranks * n_chunks):
    first, last = last + 1, last + size + (stage < n_larger)
    stages.append((first, last))"""
_LOOPED = "return [stages[rank::n_ranks] for rank in range(n_ranks)]"


def _chunks(
    id: str,
    end: str = _LOOPED,
    score: int = 0,
    diagnosis: str = "",
    stages: str = _STAGES,
    refuse: str = _REFUSE,
) -> Answer:
    body = "\n".join((refuse.strip(), stages.strip(), end.strip()))
    source = f"def chunk_layers(n_layers, n_ranks, n_chunks):\n{indent(body, '    ')}\n"
    return Answer(f"chunks_{id}", source, {"chunk_layers": (score, diagnosis or id)})


CHUNKS = (
    _chunks(
        "contiguous_chunks",
        "return [stages[rank * n_chunks:(rank + 1) * n_chunks] for rank in range(n_ranks)]",
    ),
    _chunks("from_zero", stages=f"{_STAGES}\nstages = [(a - 1, b - 1) for a, b in stages]"),
    _chunks("half_open", _LOOPED, stages=f"{_STAGES}\nstages = [(a, b + 1) for a, b in stages]"),
    _chunks(
        "half_open_from_zero",
        _LOOPED,
        stages=f"{_STAGES}\nstages = [(a - 1, b) for a, b in stages]",
    ),
    _chunks(
        "v_shaped",
        """
rounds = [stages[c * n_ranks:(c + 1) * n_ranks] for c in range(n_chunks)]
rounds = [one[::-1] if c % 2 else one for c, one in enumerate(rounds)]
return [[one[rank] for one in rounds] for rank in range(n_ranks)]""",
    ),
    _chunks(
        "last_takes_rest",
        stages="""
size = n_layers // (n_ranks * n_chunks)
stages = [(s * size + 1, (s + 1) * size) for s in range(n_ranks * n_chunks)]
stages[-1] = (stages[-1][0], n_layers)""",
        score=2,
    ),
    _chunks(
        "rest_dropped",
        stages="""
size = n_layers // (n_ranks * n_chunks)
stages = [(s * size + 1, (s + 1) * size) for s in range(n_ranks * n_chunks)]""",
        score=2,
    ),
    _chunks(
        "smaller_first",
        stages=_STAGES.replace("stage < n_larger", "stage >= n_ranks * n_chunks - n_larger"),
        score=2,
    ),
    _chunks(
        "rounded_up",
        stages="""
size = -(-n_layers // (n_ranks * n_chunks))
stages = [(s * size + 1, min(n_layers, (s + 1) * size)) for s in range(n_ranks * n_chunks)]""",
        score=2,
        diagnosis="differs",
    ),
    _chunks(
        "one_stage_per_rank",
        "return [[whole] for whole in stages]",
        diagnosis="form",
        stages=_STAGES.replace("n_ranks * n_chunks", "n_ranks"),
    ),
    _chunks(
        "list_per_chunk",
        "return [stages[c * n_ranks:(c + 1) * n_ranks] for c in range(n_chunks)]",
        diagnosis="form",
    ),
    _chunks(
        "counts",
        "return [[b - a + 1 for a, b in own] for own in held]",
        diagnosis="form",
        stages=f"{_STAGES}\n{_LOOPED.replace('return', 'held =')}",
    ),
    _chunks(
        "all_layers",
        "return [[list(range(a, b + 1)) for a, b in own] for own in held]",
        diagnosis="form",
        stages=f"{_STAGES}\n{_LOOPED.replace('return', 'held =')}",
    ),
    _chunks("flat", "return stages", diagnosis="form"),
    _chunks("nothing_returned", "stages[0::n_ranks]", diagnosis="form"),
    _chunks(
        "reversed_ranks",
        "return [stages[rank::n_ranks] for rank in reversed(range(n_ranks))]",
        diagnosis="differs",
    ),
    _chunks(
        "longer_by_rank_first",
        "return [stages[rank::n_ranks] for rank in range(n_ranks)]",
        stages="""
n = n_ranks * n_chunks
size, over = divmod(n_layers, n)
order = [c * n_ranks + rank for rank in range(n_ranks) for c in range(n_chunks)]
sizes = [size + (order.index(stage) < over) for stage in range(n)]
stages = [(sum(sizes[:s]) + 1, sum(sizes[:s + 1])) for s in range(n)]""",
        score=2,
        diagnosis="differs",
    ),
    _chunks("nothing_refused", refuse="pass", score=2, diagnosis="no_error"),
    _chunks(
        "counts_alone_refused",
        refuse="""
if n_ranks < 1 or n_chunks < 1:
    raise ValueError(f"{n_ranks} ranks, {n_chunks} chunks")""",
        score=2,
        diagnosis="no_error",
    ),
    _chunks(
        "value_not_named",
        refuse=_REFUSE.replace('f"{n_layers} layers, {n_ranks} ranks, {n_chunks} chunks"', '"bad"'),
        score=2,
        diagnosis="wrong_error",
    ),
)
