"""The cases of unit 02, drawn: schedules, timelines, messages, models.

What no drawing may leave out is fixed, and asked with every secret.
"""

from typing import Any

from autograder import oracle, oracle_02
from autograder.checks.unit_03.cases import CROSSED, eighths_s, moved, scattered, timed
from autograder.diagnosis import Case
from autograder.exercise import Draw
from mpedu.published import ModelConfig, load_model
from mpedu.simulate import Timeline


def each(name: str, arguments: list[Any]) -> list[Case]:
    """One case of that function per argument."""
    return [Case(name, (argument,)) for argument in arguments]


def schedule_cases(draw: Draw, n_drawn: int) -> list[Case]:
    """Public: up to 8 stages and 12 micro-batches. Secret: mostly beyond these."""
    if draw.secret:
        pairs = [(draw.int(9, 12), draw.int(13, 40)), (1, draw.int(13, 40)), (draw.int(9, 12), 1)]
        pairs += [(draw.int(2, 8), draw.int(13, 40)), *draw.pairs(n_drawn // 2, most=(8, 12))]
    else:
        always = [(4, 4), (1, 1), (1, 5), (5, 1), (4, 2), (2, 2), (8, 3)]
        pairs = draw.pairs(n_drawn, most=(8, 12), always=always)
    return [Case("naive", pair) for pair in pairs]


def pipelines(draw: Draw) -> list[Timeline]:
    """Timelines of schedules, from second 0: one busy device, several, equal and unequal stages."""
    most = (8, 12) if draw.secret else (5, 5)
    drawn = []
    for family in (oracle_02.naive, oracle.gpipe, oracle.gpipe, oracle_02.naive, oracle.gpipe):
        n_stages, n_microbatches = draw.int(2, most[0]), draw.int(1, most[1])
        forward_s, backward_s = ([eighths_s(draw, 3) for _ in range(n_stages)] for _ in "FB")
        drawn.append(timed(family(n_stages, n_microbatches), forward_s, backward_s))
    first = timed(oracle_02.naive(4, 1), 8.0, 16.0)
    return [first, timed(oracle.gpipe(2, 3)), timed(oracle_02.naive(1, 3)), *drawn]


def odd_timelines(draw: Draw) -> list[Timeline]:
    """Late and early clocks, a device without work, boxes in any order."""
    most = (8, 12) if draw.secret else (5, 5)
    late = moved(timed(oracle.gpipe(2, 2)), 5 if not draw.secret else draw.int(6, 99))
    early = moved(timed(oracle_02.naive(3, 2)), -draw.int(30, 60))
    short = timed(oracle.gpipe(2, 3))._replace(n_ranks=3)
    return [late, early, short, CROSSED, *(scattered(draw, *most) for _ in range(5))]


def messages(draw: Draw) -> list[Case]:
    """Batch, sequence, width, bytes of an element, stages; one stage among them."""
    known = [(8, 1024, 512, 2, 4), (1, 16, 8, 4, 2), (3, 5, 7, 2, 1), (6, 10, 12, 8, 3)]
    top = 999 if draw.secret else 99
    drawn = [
        (*(draw.int(2, top) for _ in range(3)), draw.rng.choice([1, 2, 4, 8]), draw.int(2, 12))
        for _ in range(8)
    ]
    return [Case("boundary_bytes", sizes) for sizes in [*known, *drawn]]


def model(draw: Draw, *, tied: bool) -> ModelConfig:
    """A small model of any make, its parts all of different sizes."""
    n_kv_heads, group, d_head = draw.int(1, 3), draw.int(1, 3), draw.int(2, 6)
    n_heads = n_kv_heads * group
    return ModelConfig(
        "drawn",
        n_layers=draw.int(2, 12),
        d_model=n_heads * d_head,
        n_heads=n_heads,
        n_kv_heads=n_kv_heads,
        d_ff=draw.int(20, 60),
        vocab_size=draw.int(100, 400),
        n_positions=draw.int(10, 40),
        gated_ffn=draw.rng.random() < 0.5,
        biases=draw.rng.random() < 0.5,
        learned_positions=draw.rng.random() < 0.5,
        tied_embeddings=tied,
    )


def even_bills(draw: Draw) -> list[Case]:
    """Untied models in equal counts: known ones, learned positions and none, one rank."""
    known = [(load_model("llama2-7b"), 4, 1), (load_model("llama2-7b"), 1, 16)]
    table = model(draw, tied=False).__dict__ | {"n_layers": 7, "learned_positions": True}
    known += [(ModelConfig(**table), 7, 1)]
    return [Case("memory_bill", case) for case in [*known, *_any_bills(draw, tied=False)]]


def uneven_bills(draw: Draw) -> list[Case]:
    """Untied models with layers left over, one and several."""
    table = model(draw, tied=False).__dict__ | {"learned_positions": True}
    known = [(ModelConfig(**table | {"n_layers": n}), k, 2) for n, k in ((7, 3), (8, 5))]
    return [Case("memory_bill", case) for case in [*known, *_any_bills(draw, False, even=False)]]


def tied_bills(draw: Draw) -> list[Case]:
    """Tied models in equal counts, on one rank and on several."""
    table = model(draw, tied=True).__dict__ | {"learned_positions": True}
    known = [(load_model("gpt3-175b"), 8, 1), (ModelConfig(**table), 1, 3)]
    known += [(model(draw, tied=True), 1, draw.int(1, 9)) for _ in range(2)]
    return [Case("memory_bill", case) for case in [*known, *_any_bills(draw, tied=True)]]


def _any_bills(draw: Draw, tied: bool, even: bool = True) -> list[tuple[ModelConfig, int, int]]:
    """Models on 2 ranks or more, in equal counts or with layers left over."""
    drawn = []
    for _ in range(5):
        n_stages, size = draw.int(2, 12 if draw.secret else 5), draw.int(1, 3)
        n_layers = n_stages * size + (0 if even else draw.int(1, n_stages - 1))
        table = model(draw, tied=tied).__dict__ | {"n_layers": n_layers}
        drawn.append((ModelConfig(**table), n_stages, draw.int(1, 9)))
    return drawn
