"""The layers of the packages: who may import whom, and what may pull in a heavy library."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# mpedu by layer, lowest first; a module imports only what stands before it.
ORDER = [
    "faults",
    "schedule",
    "validate",
    "families.one_stage",
    "families.interleaved",
    "families.zero_bubble",
    "families.v_shaped",
    "families",
    "simulate.costs",
    "simulate.timeline",
    "simulate.replay",
    "simulate.clock",
    "simulate",
    "search.problem",
    "search.beam",
    "search.waves",
    "search.moves",
    "search",
    "published",
    "runs",
    "sealed",
    "meter",
    "arrays",
    "held",
    "calls",
    "recompute",
    "cost",
    "cut",
    "activations",
    "comm",
    "alone",
    "mesh",
    "agreement",
    "collectives",
    "ranks",
    "ranks.board",
    "ranks.deadlock",
    "ranks.outcome",
    "ranks.errors",
    "ranks.travel",
    "ranks.interrupts",
    "simulated.mail",
    "simulated.rounds",
    "simulated.exchange",
    "simulated.rank_state",
    "simulated.rank_lines",
    "simulated.baton",
    "simulated.machine",
    "simulated",
    "ranks.starting",
    "launch",
    "keyed",
    "tensors",
    "differentiable",
    "distributed.staging",
    "distributed.flights",
    "distributed.started",
    "distributed.checked",
    "ranks.unfinished",
    "distributed.world",
    "distributed.backend",
    "distributed",
    "ranks.rank",
    "ranks.output",
    "ranks.processes",
    "ranks.launching",
    "torchrun",
    "deferred",
    "pipeline.traffic",
    "pipeline.stages",
    "pipeline.sums",
    "pipeline.batches",
    "pipeline.announce",
    "pipeline.boxes",
    "pipeline.clocks",
    "pipeline.step",
    "pipeline.engine",
    "pipeline.torch_peer",
    "pipeline",
    "ranks.preload",
    "memory",
    "model",
    "layer_costs",
    "corpus",
    "checkpoint",
    "trace",
    "plot.layout",
    "plot.flaw",
    "plot.text",
    "plot.looks",
    "plot.pictures",
    "plot.lane_layout",
    "plot.lane_text",
    "plot.lanes",
    "plot.deadlocks",
    "plot.views",
    "plot.figures",
    "plot.checkpoint_figures",
    "plot.collective_figures",
    "plot.memory_figures",
    "plot.in_flight_figures",
    "plot.schedule_figures",
    "plot.bench_figures",
    "plot.runs",
    "plot",
    "train_config",
    "training",
    "ledger",
    "train_step",
    "saved",
    "array_stage",
    "own_engine",
    "bench.figures",
    "bench.goals",
    "bench.tables",
    "bench.engines",
    "bench.race",
    "probes",
    "probes.machine",
    "probes.programs",
    "probes.walls",
    "probes.examine",
    "arguments",
    "train_options",
    "train",
    "bench.command",
    "bench",
    "doctor",
    "__main__",
]
LAYER_0 = ORDER[: ORDER.index("launch") + 1]  # no torch
MODULES = sorted((ROOT / "mpedu").rglob("*.py")) + sorted((ROOT / "autograder").rglob("*.py"))


def imported(path):
    """Every module that a file imports anywhere, as dotted names."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide the layer"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def name_of(path):
    """A module of mpedu as it stands in the order: "plot.text", and "plot" for its package."""
    parts = path.relative_to(ROOT / "mpedu").with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def test_every_module_of_mpedu_has_its_place_in_the_order():
    assert {name_of(path) for path in (ROOT / "mpedu").rglob("*.py")} - {""} == set(ORDER)


@pytest.mark.parametrize("name", ORDER)
def test_a_module_imports_only_what_stands_before_it(name):
    path = next(path for path in (ROOT / "mpedu").rglob("*.py") if name_of(path) == name)
    below = {f"mpedu.{other}" for other in ORDER[ORDER.index(name) :]}
    assert not below & set(imported(path))


@pytest.mark.parametrize(
    "path", sorted((ROOT / "mpedu").rglob("*.py")), ids=lambda p: f"{p.parent.stem}.{p.stem}"
)
def test_mpedu_knows_nothing_of_the_autograder(path):
    assert not [name for name in imported(path) if name.split(".")[0] == "autograder"]


@pytest.mark.parametrize("path", MODULES, ids=lambda p: f"{p.parent.stem}.{p.stem}")
def test_matplotlib_is_imported_in_one_module_only(path):
    draws = [name for name in imported(path) if name.split(".")[0] == "matplotlib"]
    assert not draws or path == ROOT / "mpedu/plot/pictures.py"


def test_layer_0_loads_neither_torch_nor_matplotlib():
    names = ", ".join(f"mpedu.{name}" for name in [*LAYER_0, "plot", "doctor"])
    code = f"import sys, {names}; print([m for m in ('torch', 'matplotlib') if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "path", sorted((ROOT / "autograder/worker").glob("*.py")), ids=lambda p: p.stem
)
def test_what_runs_beside_students_code_knows_nothing_else_of_the_autograder(path):
    ours = {name for name in imported(path) if name.startswith("autograder.")}
    assert all(name.startswith("autograder.worker") for name in ours)
    packages = {name.split(".")[1] for name in imported(path) if name.startswith("mpedu.")}
    assert packages <= set(LAYER_0)
