"""What the numbers and formulas of unit 02 are compared with.

Boxes counted on the model clock, cuts tried one after the other, bytes added up part by part: the
notebook's own solutions and the checks' truths are used nowhere.
"""

import json
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

from autograder.exercise import Draw, find_exercise
from autograder.local import LocalSubject
from mpedu.families import naive
from mpedu.published import count_parameters, load_hardware, load_model
from mpedu.simulate import Costs, Timeline, simulate

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "02-naive" / "02-naive.ipynb"
MINUTES = {"A": 5, "B": 13, "C": 12, "D": 8, "E": 8, "F": 22, "G": 5, "H": 15, "I": 3}

K = 4  # the running example: stages
BATCH = 16  # sequences of section F
COSTS = [3, 1, 1, 1, 1, 1, 1, 1, 1, 4]  # layers of section B
GPT3 = load_model("gpt3-175b")
LLAMA, A100 = load_model("llama2-7b"), load_hardware("a100-80gb")
WEIGHT, GRADIENT, STATES = 2, 2, 3 * 4  # bytes of a parameter
ATTENTION, FEED_FORWARD, NORMS = 11, 19, 4  # bytes of a layer, per token and column
GB = 10**9
NOISE = Fraction(1, 100)


def points(*cells: str) -> int:
    """Points the notebook gives for these graded cells."""
    marks = {
        cell["id"]: cell["metadata"].get("nbgrader", {})
        for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    }
    wanted = cells or [id for id in marks if id.startswith("check-")]
    return sum(marks[id]["points"] for id in wanted)


def group(exercise: str, number: int) -> int:
    """Points of one group of an exercise's check, told by what an empty notebook misses."""
    found = find_exercise(exercise)
    return found.run(LocalSubject({}, found.names), Draw(b""))[number].points


def gpt3_gb(rank: int, n_held: int = 1) -> float:
    """What a rank of GPT-3 on 64 keeps: 32 of two layers, 32 of one, the matrix on both ends."""
    layers = 2 if rank < GPT3.n_layers - 64 else 1
    n = layers * GPT3.layer_parameters + GPT3.vocab_size * GPT3.d_model * (rank in (0, 63))
    n += GPT3.n_positions * GPT3.d_model * (rank == 0) + 2 * GPT3.d_model * (rank == 63)
    held = (ATTENTION + FEED_FORWARD + NORMS) * GPT3.d_model * GPT3.n_positions
    return (n * (WEIGHT + GRADIENT + STATES) + layers * n_held * held) / GB


def clock(
    n_stages: int, n_microbatches: int, f: Any = 1, b: Any = 2, latency_s: Any = 0
) -> Timeline:
    """The naive order on the model clock, in exact fractions."""
    costs = Costs(Fraction(f), Fraction(b), latency_s=latency_s)
    return simulate(naive(n_stages, n_microbatches), costs)


def busy(timeline: Timeline) -> Fraction:
    """Share of device time that boxes fill, added up box by box."""
    work_s = sum(Fraction(span.end_s) - Fraction(span.start_s) for span in timeline.spans)
    return work_s / (timeline.n_ranks * Fraction(timeline.makespan_s))


def everywhere(holds: Callable[[int, int, int, int, Timeline], bool]) -> Callable[[], bool]:
    """Whether something holds of (K, M, t_f, t_b, timeline) for many of each."""
    return lambda: all(
        holds(k, m, f, b, clock(k, m, f, b))
        for k in range(1, 7)
        for m in range(1, 6)
        for f, b in ((1, 2), (3, 1), (5, 7))
    )


def stages(costs: list[int], counts: list[int]) -> list[int]:
    """The cost of each stage."""
    ends = [sum(counts[:i]) for i in range(len(counts) + 1)]
    return [sum(costs[a:b]) for a, b in pairwise(ends)]


def cuts(n_layers: int, n_stages: int) -> list[list[int]]:
    """Every way to cut layers into stages, as counts."""
    places = combinations(range(1, n_layers), n_stages - 1)
    return [[b - a for a, b in pairwise([0, *place, n_layers])] for place in places]


def lightest(costs: list[int], n_stages: int) -> int:
    """The heaviest stage of the best cut, all tried."""
    return min(max(stages(costs, counts)) for counts in cuts(len(costs), n_stages))


def best_cuts(costs: list[int], n_stages: int) -> list[list[int]]:
    """The best cuts, all tried."""
    least = lightest(costs, n_stages)
    return [c for c in cuts(len(costs), n_stages) if max(stages(costs, c)) == least]


def message_s(bytes_per_s: float, latency_s: float) -> float:
    """Seconds of a naive step's messages: Llama 2, one sequence, 2 bytes a number."""
    one = LLAMA.n_positions * LLAMA.d_model * 2
    return 2 * (K - 1) * (one / bytes_per_s + latency_s)


def work_s() -> float:
    """Seconds of its work at peak: 6 FLOPs per token and parameter that is multiplied with."""
    n = count_parameters(LLAMA).active_without_embedding
    return 6 * n * LLAMA.n_positions / A100.flops_per_s


def states_gb(rank: int, n_stages: int = K) -> float:
    """Weights, gradients and Adam's states of a rank of Llama 2; n_stages divides its layers."""
    n = LLAMA.n_layers // n_stages * LLAMA.layer_parameters
    n += LLAMA.vocab_size * LLAMA.d_model * (rank == 0)
    n += (LLAMA.vocab_size + 1) * LLAMA.d_model * (rank == n_stages - 1)
    return n * (WEIGHT + GRADIENT + STATES) / GB


def activations_gb(n_held: int, n_stages: int = K) -> float:
    """Activations of a rank of Llama 2."""
    per_token = (ATTENTION + FEED_FORWARD + NORMS) * LLAMA.d_model
    return LLAMA.n_layers // n_stages * per_token * LLAMA.n_positions * n_held / GB


def largest_gb(n_held: int) -> float:
    """What the fullest rank keeps."""
    return max(states_gb(rank) for rank in range(K)) + activations_gb(n_held)
