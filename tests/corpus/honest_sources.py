"""Cells of the honest students of the corpus."""

TYPED = """
    from __future__ import annotations
    from collections.abc import Sequence
    from typing import NamedTuple, TypeAlias
    Pieces: TypeAlias = list[tuple[int, float]]
    class Piece(NamedTuple):
        size: int
        weight: float
    def split_batch(n_samples: int, n_microbatches: int) -> Pieces:
        if not 1 <= n_microbatches <= n_samples:
            raise ValueError(f"{n_samples=} {n_microbatches=}")
        base, extra = divmod(n_samples, n_microbatches)
        sizes: Sequence[int] = [base + 1] * extra + [base] * (n_microbatches - extra)
        pieces = [Piece(size, size / n_samples) for size in sizes]
        return [(piece.size, piece.weight) for piece in pieces]
"""
LAMBDAS = """
    bubble_fraction = lambda K, M: (K - 1) / (M + K - 1)
    bubble_over_ideal = lambda K, M: (K - 1) / M
"""
CLASS = """
    class Bubble:
        def __init__(self, shift):
            self.shift = shift
        def __call__(self, n_stages, n_microbatches):
            return (n_stages - 1) / (n_microbatches + self.shift * (n_stages - 1))
    bubble_fraction, bubble_over_ideal = Bubble(1), Bubble(0)
"""
CACHED = """
    import functools
    @functools.lru_cache(maxsize=None)
    def bubble_fraction(n_stages, n_microbatches):
        return (n_stages - 1) / (n_microbatches + n_stages - 1)
    bubble_over_ideal = functools.partial(lambda a, b: (a - 1) / b)
"""
NUMPY_RESULT = """
    def split_batch(n_samples, n_microbatches):
        if not 1 <= n_microbatches <= n_samples:
            raise ValueError(f"{n_samples} {n_microbatches}")
        base, extra = divmod(n_samples, n_microbatches)
        sizes = np.full(n_microbatches, base)
        sizes[:extra] += 1
        return list(zip(sizes, sizes / n_samples))
"""
WARNS = """
    import warnings
    def split_batch(n_samples, n_microbatches):
        warnings.warn("sizes may differ by one")
        if not 1 <= n_microbatches <= n_samples:
            raise ValueError(f"{n_samples} {n_microbatches}")
        base, extra = divmod(n_samples, n_microbatches)
        sizes = [base + 1] * extra + [base] * (n_microbatches - extra)
        np.float64(1) / np.float64(0)
        return [(size, size / n_samples) for size in sizes]
"""
LOUD = """
    import logging, os, sys
    inner = split_batch
    def split_batch(n_samples, n_microbatches):
        os.write(2, b"[W socket.cpp] address in use\\n")
        logging.error("splitting %s", n_samples)
        print("n =", n_samples, file=sys.stderr)
        print("n =", n_samples)
        return inner(n_samples, n_microbatches)
"""
QUIET = """
    import contextlib, io, logging, sys
    logging.disable(logging.CRITICAL)
    inner = bubble_fraction
    def bubble_fraction(*args):
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            print("inside")
            return inner(*args)
"""
MAGICS = """
    %matplotlib inline
    !ls
    %timeit sum(range(3))
    %load_ext autoreload
    ?split_batch
    files = !echo hello
"""
HEAVY = """
    table = {}
    for a in range(400):
        for b in range(400):
            table[a, b] = a * b % 7
    grid = np.arange(4_000_000.0).reshape(2000, 2000)
    total = (grid[:300] @ grid[:, :300]).sum()
    text = "x" * 30_000_000
"""
MISSING = """
    import json, re, itertools
    import no_such_library
"""
INTERACTIVE = """
    from IPython.display import HTML, display
    answer = input("how many?")
    display(HTML("<b>hello</b>"))
"""
ASYNC = """
    import asyncio
    async def later():
        await asyncio.sleep(0)
        return 3
    asyncio.run(later())
    await later()
"""
ITERATES = """
    def gpipe(n_stages, n_microbatches):
        def one(stage):
            for kind in "FB":
                for m in range(n_microbatches):
                    yield Action(kind, stage, m)
        if n_stages < 1 or n_microbatches < 1:
            raise ValueError(f"n_stages={n_stages}, n_microbatches={n_microbatches}")
        return [list(one(stage)) for stage in range(n_stages)]
"""
TUPLES = """
    def gpipe(n_stages, n_microbatches):
        if n_stages < 1 or n_microbatches < 1:
            raise ValueError(f"{n_stages=} {n_microbatches=}")
        return [tuple(Action(k, s, m) for k in "FB" for m in range(n_microbatches))
                for s in range(n_stages)]
"""
WRONG_WORD = """
    def split_batch(n_samples, n_microbatches):
        base, extra = divmod(n_samples, n_microbatches)
        sizes = [base + 1] * extra + [base] * (n_microbatches - extra)
        return [(size, 1 / n_microbatches) for size in sizes]
"""
