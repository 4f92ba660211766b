"""The typical mistakes of unit 06's `chunk_layers`, and the sentences they draw."""

from collections.abc import Callable
from itertools import accumulate, pairwise
from typing import Any

from autograder import oracle, oracle_06
from autograder.checks.values import shown, whole_problem
from autograder.diagnosis import Case, Diagnosis, Mistake, each

_SHAPE = "a list with one list of (first, last) pairs per rank is asked"
_LOOK = "Number the chunks through the model from 0: chunk number s lies on rank s % n_ranks."
_SIZES = (
    "They lie on the right ranks; their sizes differ by at most one layer, the longer ones first."
)
Layers = Callable[[int, int, int], Any]


def differs_layers(case: Case, got: Any) -> Diagnosis | None:
    """For `examine`: the first chunk that lies elsewhere, None where all lie where they should."""
    problem = _form_problem(case, got)
    if problem:
        return Diagnosis("form", f"{case}: {problem}", f"{case.name}: {_SHAPE}.")
    for rank, (given, due) in enumerate(zip(got, oracle_06.chunk_layers(*case.args), strict=True)):
        if list(map(tuple, given)) != due:
            look = _SIZES if _goes_round(case, got) else _LOOK
            text = f"{case}: {_held(rank, given)}; asked {_spelled(due)}. {look}"
            return Diagnosis("differs", text, "a rank holds other layers than it should.")
    return None


def _form_problem(case: Case, got: Any) -> str:
    """What keeps an answer from being pairs of whole numbers, in lists; "" where nothing does."""
    n_ranks, n_chunks = case.args[1:]
    if got is None:
        return "None came back: a return seems to be missing."
    if not isinstance(got, list):
        return f"{shown(got)} came back; {_SHAPE}."
    if len(got) != n_ranks:
        return f"{len(got)} entries came back for n_ranks={n_ranks}; {_SHAPE}."
    for rank, chunks in enumerate(got):
        if not isinstance(chunks, list | tuple) or len(chunks) != n_chunks:
            what = f"{shown(chunks)}; {n_chunks} chunk{'s' * (n_chunks > 1)}, each a pair,"
            return f"rank {rank} is {what} {'are' if n_chunks > 1 else 'is'} asked."
        for chunk, pair in enumerate(chunks):
            if not isinstance(pair, list | tuple) or len(pair) != 2:
                return (
                    f"rank {rank}, chunk {chunk} is {shown(pair)}; a pair (first, last) is asked."
                )
            if any(whole_problem(layer) for layer in pair):
                return f"rank {rank}, chunk {chunk} does not hold two ints; (first, last) is asked."
    return ""


def _goes_round(case: Case, got: Any) -> bool:
    """Does every chunk, round and round, begin where the one before it ends?"""
    n_layers, n_ranks, n_chunks = case.args
    ends = [got[s % n_ranks][s // n_ranks] for s in range(n_ranks * n_chunks)]
    begins = all(after[0] == before[1] + 1 for before, after in pairwise(ends))
    return bool(begins and ends[0][0] == 1 and ends[-1][1] == n_layers)


def _spelled(chunks: Any) -> str:
    return " and ".join(f"{first}-{last}" for first, last in chunks)


def _held(rank: int, chunks: Any) -> str:
    return f"rank {rank} holds {_spelled(chunks)}"


def _stages(n_layers: int, n_ranks: int, n_chunks: int) -> list[tuple[int, int]]:
    looped = oracle_06.chunk_layers(n_layers, n_ranks, n_chunks)
    return [looped[stage % n_ranks][stage // n_ranks] for stage in range(n_ranks * n_chunks)]


def _contiguous(n_layers: int, n_ranks: int, n_chunks: int) -> Any:
    stages = _stages(n_layers, n_ranks, n_chunks)
    return [stages[rank * n_chunks : (rank + 1) * n_chunks] for rank in range(n_ranks)]


def _moved(by: tuple[int, int]) -> Layers:
    def layers(*sizes: int) -> Any:
        looped = oracle_06.chunk_layers(*sizes)
        return [[(first + by[0], last + by[1]) for first, last in own] for own in looped]

    return layers


def _v_shaped(n_layers: int, n_ranks: int, n_chunks: int) -> Any:
    looped = oracle_06.chunk_layers(n_layers, n_ranks, n_chunks)
    return [
        [looped[-1 - rank if chunk % 2 else rank][chunk] for chunk in range(n_chunks)]
        for rank in range(n_ranks)
    ]


def _of_sizes(sizes_of: Callable[[int, int], list[int]]) -> Layers:
    """Looped chunks of other sizes, given layers and chunks in all."""

    def layers(n_layers: int, n_ranks: int, n_chunks: int) -> Any:
        sizes = sizes_of(n_layers, n_ranks * n_chunks)
        stages = [(start + 1, end) for start, end in pairwise([0, *accumulate(sizes)])]
        return [stages[rank::n_ranks] for rank in range(n_ranks)]

    return layers


def _last_takes_rest(n_layers: int, n_stages: int) -> list[int]:
    size, over = divmod(n_layers, n_stages)
    return [size] * (n_stages - 1) + [size + over]


def _plain(got: Any) -> Any:
    """An answer with its pairs as tuples, whatever else it is."""
    if not isinstance(got, list):
        return None
    chunks = [list(own) for own in got if isinstance(own, list | tuple)]
    return [[tuple(p) if isinstance(p, list) else p for p in own] for own in chunks]


def _mistake(id: str, layers: Layers, why: str) -> Mistake:
    def matches(case: Case, got: Any) -> bool:
        return bool(_plain(got) == layers(*case.args))

    def text(case: Case, got: Any) -> str:
        due = oracle_06.chunk_layers(*case.args)
        rank = next(r for r, own in enumerate(_plain(got)) if own != due[r])
        return f"{case}: {_held(rank, got[rank])}; asked {_spelled(due[rank])}. {why}"

    return Mistake(id, each(matches), text, why)


CHUNKS = (
    _mistake(
        "contiguous_chunks",
        _contiguous,
        "Neighbouring chunks on one rank make one long stage again; the next chunk of a rank comes "
        "after one of every other rank.",
    ),
    _mistake("from_zero", _moved((-1, -1)), "Layers are counted from one."),
    _mistake("half_open", _moved((0, 1)), "The second number of a pair is the chunk's last layer."),
    _mistake(
        "half_open_from_zero",
        _moved((-1, 0)),
        "Layers are counted from one, and the second number of a pair is the chunk's last layer.",
    ),
    _mistake(
        "v_shaped",
        _v_shaped,
        "That is the V: its second chunks lie in reverse. Looped chunks go round in one direction.",
    ),
)
LEFT_OVER = (
    _mistake(
        "last_takes_rest",
        _of_sizes(_last_takes_rest),
        "The last chunk takes all layers left over; sizes may differ by one layer.",
    ),
    _mistake(
        "smaller_first",
        _of_sizes(lambda n, k: oracle.split_sizes(n, k)[::-1]),
        "The longer chunks come first.",
    ),
    _mistake(
        "rest_dropped",
        _of_sizes(lambda n, k: [n // k] * k),
        "The layers left over lie nowhere: together the chunks must hold them all.",
    ),
)
