"""The numbers and formulas of unit 07 in words, each with the expression that yields it.

Gradients, messages and records are those of the notebook's own programs on the simulated machine.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from autograder.checks.unit_07.cases import gpipe as gpipe_list
from autograder.checks.unit_07.sealed_runs import RUNS, planted_run
from autograder.checks.unit_07.texts import GUESSES
from mpedu.families import gpipe, one_f_one_b
from mpedu.model import GPTConfig, GPTStage
from mpedu.runs import EngineRun
from mpedu.schedule import Action, peak_in_flight
from mpedu.simulated import run_simulated

NOTEBOOK = Path(__file__).parents[2] / "notebooks/07-real-pipeline/07-real-pipeline.ipynb"
CELLS = {cell["id"]: cell for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]}
SOURCES = {id: "".join(cell["source"]) for id, cell in CELLS.items()}
MINUTES = {
    letter: int(minutes)
    for source in SOURCES.values()
    for letter, minutes in re.findall(r"(?m)^## (\w)\. .* \((\d+) min", source)
}
FUNCTIONS: dict[str, Any] = {
    "__name__": "__main__",
    "np": np,
    "Action": Action,
    "EngineRun": EngineRun,
    "peak_in_flight": peak_in_flight,
}
for id, source in SOURCES.items():
    is_setup = "setup" in CELLS[id]["metadata"].get("tags", ())
    if id.startswith("solution-") or (is_setup and id != "setup"):
        exec(source, FUNCTIONS)

M, N_SAMPLES = 8, 16  # of the guesses
WORKED = planted_run("own_gradient", gpipe_list(3, 3), (2, 2, 2), 2, 0)
GUESSED = {guess.id: guess.result for guess in GUESSES}
REAL_SAMPLES = 2 * 4 + 1  # of `train_actions` with four micro-batches


def points(*cells: str) -> int:
    """Points the notebook gives for these graded cells, or for all that are checked."""
    wanted = cells or [id for id in CELLS if id.startswith("check-")]
    return sum(CELLS[id]["metadata"]["nbgrader"]["points"] for id in wanted)


def messages(n_ranks: int, n_microbatches: int) -> int:
    """Of one step of the notebook's engine."""
    lists, sizes = one_f_one_b(n_ranks, n_microbatches), [1] * n_microbatches
    run = run_simulated(FUNCTIONS["run_list"], n_ranks, (lists, sizes))
    return int(run.meter.total().messages)


def seconds(name: str) -> float:
    """What one call of the notebook's stage takes on the model clock."""

    def program(comm: Any) -> float:
        stage, x = FUNCTIONS["TanhStage"](comm), np.ones((2, 3))
        stage.forward(x) if name == "forward" else stage.backward((x, x), x)
        return float(comm.now_s())

    return float(run_simulated(program, 1).results[0])


def more_than_layers(stage: int) -> float:
    """Billions of parameters of GPT-3's size that a stage has besides its layers."""
    config = GPTConfig(50257, n_layers=8, d_model=12288, n_heads=96, n_positions=2048)
    with torch.device("meta"):
        module = GPTStage(config, 8, stage)
    named = module.named_parameters()
    return sum(p.numel() for name, p in named if not name.startswith("blocks.")) / 1e9


def gradient_of(lists: Any, sizes: list[int]) -> float:
    """The sum of all entries of rank 0's gradient, by the notebook's engine."""
    run = run_simulated(FUNCTIONS["run_list"], len(lists), (lists, sizes))
    return float(run.results[0]["gradient"])


def ten_samples() -> int:
    """How many samples the two runs of the engine have, whose gradients agree."""
    one, other = (gradient_of(gpipe(3, 1), [10]), gradient_of(one_f_one_b(3, 4), [3, 3, 2, 2]))
    assert abs(one - other) < 1e-6
    return 10


def drawn(value: Callable[[EngineRun], int]) -> set[int]:
    """What there is in the runs of the check."""
    return {value(run) for seed in range(20) for _, run in RUNS.drawn(seed)}


def ratios_when_reduced_each_time() -> list[float]:
    """Of the run of the hint: two replicas, three micro-batches of one size, GPipe."""
    run = planted_run("reduced_each_time", gpipe_list(2, 3), (2, 2, 2), 2, 0)
    return run.ratios[0]


SEALED = {"07": 7}  # the unit's number in a call
NUMBERS: dict[str, dict[str, Any]] = {
    "title": {
        "105": lambda: 5 * -(-sum(MINUTES.values()) // 5),
        "15": 15,  # minutes
        "20": points,
        "4": lambda: points("answer"),
    },
    "words": {"7": MINUTES["A"]},
    "stage": {"1": lambda: seconds("forward"), "2": lambda: seconds("backward")},
    "ask-messages": {"3": 3, "7": 7},
    "worked-pass": {"20": MINUTES["B"]},
    "e1": {"3": lambda: points("check-stage_forward")},
    "e2": {"3": lambda: points("check-stage_backward")},
    "worked-run": {"27": MINUTES["C"], "6": 6, "8": M},
    "ask-times": {"16": GUESSED["times-too-large"], "8": M},
    "e3": {
        "7": lambda: points("check-run_actions", "check-run_actions_fast"),
        "5": lambda: points("check-run_actions"),
        "2": (2, lambda: points("check-run_actions_fast")),
        "1": 1,
    },
    "ask-lists": {
        "10": ten_samples,
        "1": lambda: seconds("forward"),
        "2": lambda: seconds("backward"),
    },
    "styles": {"22": MINUTES["D"]},
    "e4": {"4": lambda: points("check-minibatch_steps"), "0": 0},
    "solution-minibatch_steps": {"0": 0},
    "torch-style": {"8": 8},  # minutes
    "meta": {
        "3": 3,
        "8": lambda: len(FUNCTIONS["parameters_by_stage"](8)),
        "0.6": (lambda: more_than_layers(0), lambda: more_than_layers(7)),
    },
    "ask-real": {"9": MINUTES["E"], "20": 20, "40": 2 * 20},
    "ask-train": {"9": REAL_SAMPLES, "4": 4, "5": 5},
    "ask-gpipe": {"2": 2, "4": 4},
    "know-real": {
        "4": lambda: min(peak_in_flight(gpipe(2, 4))),
        "2": lambda: peak_in_flight(one_f_one_b(2, 4))[0],
        "1": lambda: peak_in_flight(one_f_one_b(2, 4))[1],
    },
    "ask-sealed": {
        "15": MINUTES["F"],
        "3": lambda: len(RUNS.shown["A"].schedule),
        "2": lambda: RUNS.shown["A"].n_replicas,
    },
    "read-sealed": {"0": lambda: float(max(planted_run("none", *_HEALTHY).across))},
    "sealed-a": SEALED,
    "sealed-b": SEALED,
    "sealed-c": SEALED,
    "sealed-d": SEALED,
    "e5": {
        "3": (
            lambda: points("check-engine_cause"),
            len(WORKED.sizes),
            lambda: min(WORKED.held),
            lambda: max(WORKED.held),
        ),
        "2": (
            WORKED.sizes[0],
            lambda: min(drawn(lambda run: len(run.schedule))),
        ),
        "0.3333": (WORKED.ratios[-1][0], WORKED.ratios[-1][1], WORKED.ratios[-1][2]),
        "26": lambda: len(RUNS.drawn(0)),
        "4": lambda: max(drawn(lambda run: len(run.schedule))),
        "7": 7,
    },
    "show-causes": SEALED,
    "question": {"3": MINUTES["G"], "4": lambda: points("answer"), "100": 100},
    "ask-record": {"2": 2},  # minutes
    "hint-run_actions-2": {"0": 0, "1": 1},
    "hint-engine_cause-2": {
        "4/3": lambda: ratios_when_reduced_each_time()[0],
        "2/3": lambda: ratios_when_reduced_each_time()[1],
        "1/3": lambda: ratios_when_reduced_each_time()[2],
    },
    "question-messages-a-step": {"3": 3, "7": 7},
    "question-times-too-large": {"16": N_SAMPLES, "8": M},
    "question-most-kept": {"6": 6, "8": M},
}
_HEALTHY = gpipe_list(3, 3), (2, 2, 2), 2, 0


def _stage_is_tanh() -> bool:
    def program(comm: Any) -> bool:
        stage = FUNCTIONS["TanhStage"](comm)
        x = np.arange(6.0).reshape(2, 3) / 7
        return bool(np.array_equal(stage.forward(x)[0], np.tanh(x @ stage.weight)))

    return bool(run_simulated(program, 1).results[0])


FORMULAS: dict[str, Callable[[], bool]] = {
    r"y = \tanh(xW)": _stage_is_tanh,
    "2(K-1)M": lambda: (
        all(messages(k, m) == 2 * (k - 1) * m for k in (1, 2, 3, 4) for m in (1, 3, 8))
        and GUESSED["messages-a-step"]() == messages(3, 7)
    ),
}
