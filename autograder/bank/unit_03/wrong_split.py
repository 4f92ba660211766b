"""Wrong answers to unit 03's `split_batch`, one mistake an entry."""

from textwrap import indent

from autograder.bank import Answer

_REFUSE = """
if not 0 < m <= n:
    raise ValueError(f"{n} samples, {m} pieces")
"""


def _split(id: str, body: str, score: int, diagnosis: str = "", refuse: str = _REFUSE) -> Answer:
    source = f"def split_batch(n, m):\n{indent((refuse + body).strip(), '    ')}\n"
    return Answer(id, source, {"split_batch": (score, diagnosis or id)})


_WEIGHTED = "\nreturn [(size, size / n) for size in sizes]"
_EVEN = "sizes = [n // m + (i < n % m) for i in range(m)]"
SPLITS = (
    _split("remainder_dropped", f"sizes = [n // m] * m{_WEIGHTED}", 0),
    _split("remainder_last", f"sizes = [n // m] * (m - 1) + [n // m + n % m]{_WEIGHTED}", 1),
    _split("equal_weights", f"{_EVEN}\nreturn [(size, 1 / m) for size in sizes]", 1),
    _split("weights_of_one", f"{_EVEN}\nreturn [(size, 1.0) for size in sizes]", 1),
    _split("empty_piece", f"{_EVEN}{_WEIGHTED}", 1, refuse=""),
    _split(
        "only_zero_refused",
        f"{_EVEN}{_WEIGHTED}",
        1,
        "no_error",
        'if m == 0 or m > n: raise ValueError(f"{n} samples, {m} pieces")\n',
    ),
    _split(
        "one_more_not_refused",
        f"{_EVEN}\nsizes = [size for size in sizes if size]{_WEIGHTED}",
        1,
        "no_error",
        'if not 0 < m <= n + 1: raise ValueError(f"{n} samples, {m} pieces")\n',
    ),
    _split("larger_last", f"{_EVEN}\nsizes.reverse(){_WEIGHTED}", 1, "size_order"),
    _split(
        "rounded_up",
        f"sizes = [-(-n // m)] * (m - 1)\nsizes.append(n - sum(sizes)){_WEIGHTED}",
        1,
        "uneven",
    ),
    _split("weights_are_sizes", f"{_EVEN}\nreturn [(size, size) for size in sizes]", 1, "weight"),
    _split("swapped_pair", f"{_EVEN}\nreturn [(size / n, size) for size in sizes]", 0),
    _split("halves", "return [(n / m, 1 / m)] * m", 0, "no_pairs"),
    _split("sizes_only", f"{_EVEN}\nreturn sizes", 0, "no_pairs"),
    _split(
        "names_one_number",
        f"{_EVEN}{_WEIGHTED}",
        1,
        "wrong_error",
        "if m > n: raise ValueError(m)\n",
    ),
    _split(
        "no_pieces_not_refused",
        f"size, more = divmod(n, m)\nsizes = [size + (i < more) for i in range(m)]{_WEIGHTED}",
        1,
        "wrong_error",
        'if m > n: raise ValueError(f"{m} > {n}")\n',
    ),
)
