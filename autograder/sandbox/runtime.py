"""What a student's process can import: the package as far as a unit may use it, and the worker."""

import shutil
from pathlib import Path

import mpedu
from autograder import worker
from autograder.exercise import Unit
from autograder.withhold import strip_source

# What a unit's cells may import. Named one by one: a module that is not here cannot be reached.
_MODULES = (
    *("faults", "schedule", "validate", "runs", "cost", "published"),
    *(f"families.{name}" for name in ("__init__", "one_stage", "interleaved", "zero_bubble")),
    *("families.v_shaped", "simulate.__init__", "simulate.costs", "simulate.timeline"),
    *("simulate.replay", "simulate.clock"),
    *("doctor", "arrays", "held", "recompute", "meter", "calls", "comm", "agreement"),
    *("ranks.__init__", "ranks.travel"),
)
_DATA = ("models.toml", "hardware.toml")  # read by `published`
# What draws, talks to the student or starts processes does nothing: the judge asks the functions
# itself. So does what gradients flow through: graded programs send NumPy arrays. And the search:
# schedules are what is asked for.
_SILENT_MODULES = (
    *("plot", "launch", "train_step", "own_engine", "saved"),
    *("simulated", "differentiable", "search"),
)
_SILENT = '''"""For grading: every function of this module does nothing and returns None."""


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return lambda *args, **kwargs: None
'''


def build_runtime(unit: Unit, destination: Path) -> None:
    """Fills the folder `destination`, made anew, with all that the unit's students may import.

    Functions the unit withholds are left without their bodies; no check, answer, bank, seed or
    oracle is in it.
    """
    package = Path(mpedu.__file__).parent
    shutil.rmtree(destination, ignore_errors=True)
    for module in ("__init__", *_MODULES):
        file = f"{module.replace('.', '/')}.py"
        source = (package / file).read_text(encoding="utf-8")
        name = f"mpedu.{module}".removesuffix(".__init__")
        stripped = strip_source(source, name, unit.withholds)
        _write(destination, f"mpedu/{file}", stripped)
    for module in _SILENT_MODULES:
        _write(destination, f"mpedu/{module}.py", _SILENT)
    for name in _DATA:
        text = (package.parent / "data" / name).read_text(encoding="utf-8")
        _write(destination, f"data/{name}", text)
    for path in Path(worker.__file__).parent.glob("*.py"):
        source = path.read_text(encoding="utf-8")
        _write(destination, f"autograder/worker/{path.name}", source)
    _write(destination, "autograder/__init__.py", "")
    _write(destination, "autograder/notebook.py", _SILENT)


def _write(destination: Path, name: str, text: str) -> None:
    """Writes a file that the worker can read as another user, whatever the umask."""
    path = destination / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o644)
    for folder in path.relative_to(destination).parents:
        (destination / folder).chmod(0o755)
