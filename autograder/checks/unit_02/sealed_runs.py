"""The sealed bills of unit 02, drawn: what a run planned to keep, and what it was found to keep.

Where a fault may be on some ranks only, the runs of the check have it on the first and not on the
last, or the other way round: no single rank tells every cause.
"""

import random
from collections.abc import Callable, Sequence

from autograder import oracle_02
from autograder.checks.causes import LETTERS, SealedRuns
from autograder.oracle_02 import PARTS, Bill
from mpedu.published import ModelConfig, load_model

Bills = list[Bill]
Run = tuple[Bills, Bills]  # planned, measured
CAUSES = (
    "none",
    "whole_model_everywhere",
    "remainder_on_last",
    "float32_weights",
    "gradients_stop",
    "graph_kept",
)
_SHOWN = CAUSES[1:]  # four of these
_NOISE = 0.01  # a measured number is above the planned by at most this share
_OF_EACH = 4


def _drawn(rng: random.Random) -> list[tuple[str, Run]]:
    """Each cause with its runs."""
    return [(cause, _run(cause, rng, n)) for cause in CAUSES for n in range(_OF_EACH)]


def _shown_runs(rng: random.Random) -> list[Run]:
    """One model on four ranks, a fault in each run."""
    config = ModelConfig(**load_model("llama2-7b").__dict__ | {"name": "llama", "n_layers": 30})
    causes = rng.sample(_SHOWN, len(LETTERS))
    planned = oracle_02.memory_bill(config, 4, 8)
    return [(planned, measured(cause, config, 4, 8, rng, range(4))) for cause in causes]


RUNS = SealedRuns("02", "bill_cause", _shown_runs, _drawn)


def over_the_limit(limit_bytes: int) -> int:
    """In how many of the notebook's runs some rank keeps more than a device has."""
    found = [max(sum(bill.values()) for bill in kept) for _, kept in RUNS.shown.values()]
    return sum(most > limit_bytes for most in found)


def _run(cause: str, rng: random.Random, number: int) -> Run:
    """A run of an untied model, large enough that a layer more or less is far above the noise."""
    n_stages = rng.randint(2, 6)
    # Some layers are left over.
    n_layers = n_stages * rng.randint(2, 6) + rng.randint(1, n_stages - 1)
    n_heads = rng.choice([4, 8])
    width = n_heads * rng.choice([16, 32])
    config = ModelConfig(
        "drawn", n_layers, width, n_heads, n_heads, 4 * width, rng.randint(10, 20) * width,
        rng.choice([64, 128]), biases=False, learned_positions=False, tied_embeddings=False,
    )  # fmt: skip
    n_held = rng.randint(1, 8)
    planned = oracle_02.memory_bill(config, n_stages, n_held)
    return planned, measured(cause, config, n_stages, n_held, rng, _places(number, n_stages, rng))


def _places(number: int, n_stages: int, rng: random.Random) -> Sequence[int]:
    """Ranks in a row that a fault is on: without the last, without the first, or any."""
    cut = rng.randint(1, n_stages - 1)
    first = rng.randrange(n_stages)
    places = (range(cut), range(cut, n_stages), range(first, rng.randint(first, n_stages - 1) + 1))
    return places[min(number, 2)]


def measured(
    cause: str,
    config: ModelConfig,
    n_stages: int,
    n_held: int,
    rng: random.Random,
    places: Sequence[int],
) -> Bills:
    """What each rank was found to keep when that cause is planted, on some ranks if it can be."""
    planned = oracle_02.memory_bill(config, n_stages, n_held)
    faulty = _PLANTED[cause](config, planned)
    if cause in _ON_SOME:
        pairs = enumerate(zip(faulty, planned, strict=True))
        kept = [bad if rank in places else good for rank, (bad, good) in pairs]
    elif cause == "gradients_stop":  # all ranks before a boundary
        n_without = rng.randint(1, n_stages - 1)
        kept = [*faulty[:n_without], *planned[n_without:]]
    else:
        kept = faulty
    return [
        {part: int(bill[part] * (1 + rng.uniform(0, _NOISE))) for part in PARTS} for bill in kept
    ]


def _whole_model(config: ModelConfig, planned: Bills) -> Bills:
    total = sum(bill["parameters"] for bill in planned)
    return [bill | {"parameters": total} for bill in planned]


def _remainder_on_last(config: ModelConfig, planned: Bills) -> Bills:
    """Every rank n_layers // n_stages layers, the last one what is left."""
    before = oracle_02.layers_of(config.n_layers, len(planned))
    size = config.n_layers // len(planned)
    after = [size] * (len(planned) - 1)
    after.append(config.n_layers - sum(after))
    moved = []
    for bill, n_before, n_after in zip(planned, before, after, strict=True):
        more = (n_after - n_before) * config.layer_parameters
        states = {part: bill[part] + n * more for part, n in oracle_02.BYTES.items()}
        activations = bill["activations"] // n_before * n_after
        moved.append(states | {"activations": activations})
    return moved


def _float32(config: ModelConfig, planned: Bills) -> Bills:
    return [
        bill | {part: 2 * bill[part] for part in ("parameters", "gradients")} for bill in planned
    ]


def _gradients_stop(config: ModelConfig, planned: Bills) -> Bills:
    """Without gradients; Adam makes its moments with the first gradient it sees."""
    return [bill | {"gradients": 0, "optimiser": bill["optimiser"] // 3} for bill in planned]


def _graph_kept(config: ModelConfig, planned: Bills) -> Bills:
    return [bill | {"activations": 2 * bill["activations"]} for bill in planned]


_ON_SOME = ("float32_weights", "graph_kept")
_PLANTED: dict[str, Callable[[ModelConfig, Bills], Bills]] = {
    "none": lambda config, planned: planned,
    "whole_model_everywhere": _whole_model,
    "remainder_on_last": _remainder_on_last,
    "float32_weights": _float32,
    "gradients_stop": _gradients_stop,
    "graph_kept": _graph_kept,
}
