"""What a student's process can import: all that it needs, and nothing that answers."""

import ast
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from autograder.exercise import Exercise, Unit, load_unit, unit_numbers
from autograder.sandbox import NAMESPACES, PER_EXERCISE, WALLED, rungs, view
from autograder.sandbox.runtime import build_runtime
from autograder.seeds import PUBLIC_SECRET

ROOT = Path(__file__).parents[2]
WITHHELD = ("mpedu.families.gpipe", "mpedu.simulate.Timeline.idle_share")
TOY = Unit(
    "99",
    "toy",
    (Exercise("toy", "Toy", 1, ("f",), "data", WITHHELD, (), "99", lambda s, d: None),),
    (),
)
UNITS = [TOY, *map(load_unit, unit_numbers())]
FILES = {
    "mpedu": "__init__ faults schedule validate runs cost published"
    " doctor arrays held recompute meter calls comm agreement".split(),
    "mpedu/families": "__init__ one_stage interleaved zero_bubble v_shaped".split(),
    "mpedu/simulate": "__init__ costs timeline replay clock".split(),
    "mpedu/ranks": "__init__ travel".split(),
    "autograder": "__init__ notebook".split(),
    "autograder/worker": "__init__ __main__ plain protocol records walls trouble limit"
    " kernel inner outer standing timed cells"
    " student ranks seccomp".split(),
}
FACTS = ["data/models.toml", "data/hardware.toml"]
SILENT = "plot launch train_step own_engine saved simulated differentiable search".split()
SECRETS = ["checks", "bank"]  # folders of the autograder that tell answers


@pytest.fixture(scope="module", params=UNITS, ids=lambda unit: unit.number)
def unit(request: pytest.FixtureRequest) -> Unit:
    made: Unit = request.param
    return made


@pytest.fixture(scope="module")
def runtime(unit: Unit, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runtime") / unit.number
    build_runtime(unit, folder)
    return folder


def functions(source: str) -> dict[str, ast.FunctionDef]:
    """Every function of a module by its path, like "Timeline.idle_share"."""
    found = {}

    def look(node: ast.AST, path: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                if isinstance(child, ast.FunctionDef):
                    found[path + child.name] = child
                look(child, f"{path}{child.name}.")

    look(ast.parse(source), "")
    return found


def inside(runtime: Path, code: str) -> str:
    """What Python prints that sees the runtime folder and no editable install."""
    finders = "import sys, importlib.machinery as m\n"
    finders += "sys.meta_path[:] = [m.BuiltinImporter, m.FrozenImporter, m.PathFinder]\n"
    done = subprocess.run(
        [sys.executable, "-P", "-s", "-c", finders + code],
        env={"PYTHONPATH": str(runtime)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout


def test_it_holds_these_files_and_nothing_else(runtime: Path) -> None:
    found = {str(path.relative_to(runtime)) for path in runtime.rglob("*") if path.is_file()}
    ours = {f"{package}/{name}.py" for package, names in FILES.items() for name in names}
    assert found == ours | {f"mpedu/{name}.py" for name in SILENT} | set(FACTS)


def test_published_facts_can_be_read_in_it(runtime: Path) -> None:
    code = "from mpedu.published import load_model; print(load_model('llama2-7b').n_layers)"
    assert inside(runtime, code) == "32\n"


def ours_of_the_package() -> list[str]:
    """The modules of mpedu that a student reaches with their code, like "families/one_stage"."""
    packages = ("families", "simulate")
    inside = [f"{package}/{name}" for package in packages for name in FILES[f"mpedu/{package}"]]
    return [*FILES["mpedu"], *inside]


def test_withheld_functions_have_no_body_and_all_others_are_unchanged(
    runtime: Path, unit: Unit
) -> None:
    seen = set()
    for module in ours_of_the_package():
        file = f"mpedu/{module}.py"
        ours = functions((ROOT / file).read_text(encoding="utf-8"))
        theirs = functions((runtime / file).read_text(encoding="utf-8"))
        assert ours.keys() == theirs.keys()
        for name, function in ours.items():
            names = {
                f"mpedu.{module.split('/')[0]}.{name}",
                f"mpedu.{module}.{name}".replace("/", "."),
            }
            if withheld := names & {*unit.withholds}:
                seen |= withheld
                kinds = [type(statement) for statement in theirs[name].body]
                assert kinds == [ast.ImportFrom, ast.Raise]
            else:
                assert ast.dump(function) == ast.dump(theirs[name])
    # what a module that is not there computes needs no taking out
    there = {
        name
        for name in unit.withholds
        if name.split(".")[1] in {*FILES["mpedu"], "families", "simulate"}
    }
    assert seen == there


def texts(path: Path) -> set[str]:
    """Every text of some length in a module: messages, docstrings, code kept as text."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    strings = {node.value for node in nodes if isinstance(node, ast.Constant)}
    return {text for text in strings if isinstance(text, str) and len(text) > 30}


def bodies(path: Path) -> set[str]:
    """Every function's statements, those of a single one left out."""
    found = functions(path.read_text(encoding="utf-8")).values()
    return {ast.dump(ast.Module(f.body[1:], [])) for f in found if len(f.body) > 2}


@pytest.mark.parametrize("told", [texts, bodies])
def test_nothing_of_checks_banks_or_seeds_is_in_it(
    runtime: Path, told: Callable[[Path], set[str]]
) -> None:
    secret = [path for name in SECRETS for path in (ROOT / "autograder" / name).glob("*.py")]
    telling = set().union(*map(told, [*secret, ROOT / "autograder" / "seeds.py"]))
    assert telling
    shown = set().union(*map(told, runtime.rglob("*.py")))
    assert telling & shown == set()
    assert PUBLIC_SECRET.decode() not in "".join(p.read_text() for p in runtime.rglob("*.py"))


def test_nothing_else_of_ours_can_be_imported_from_it(runtime: Path) -> None:
    code = """
import importlib
for name in ("autograder.checks", "autograder.bank", "autograder.judge", "autograder.seeds",
             "autograder.oracle", "autograder.exercise", "autograder.programs", "mpedu.bench",
             "mpedu.sealed", "mpedu.collectives", "mpedu.simulated.baton", "mpedu.distributed"):
    try: importlib.import_module(name); print(name)
    except ModuleNotFoundError: pass
"""
    assert inside(runtime, code) == ""


def test_drawing_talking_and_starting_ranks_are_there_and_do_nothing(runtime: Path) -> None:
    code = """
from autograder.notebook import check, guess, hint, show
from mpedu.launch import run_ranks
from mpedu.plot import draw_schedule, whatever_comes_later
from mpedu.train_step import train_step
def student(): raise SystemExit("was called")
from mpedu.simulated import Wire
from mpedu.simulated import Simulated, run_simulated
silent = check, guess, hint, show, run_ranks, draw_schedule, whatever_comes_later, train_step
silent += Wire, Simulated, run_simulated
print([f(student, 1, x=2) for f in silent])
"""
    assert inside(runtime, code) == f"{[None] * 11}\n"


def test_a_second_build_leaves_nothing_of_the_first(tmp_path: Path) -> None:
    (tmp_path / "99" / "mpedu").mkdir(parents=True)
    (tmp_path / "99" / "mpedu" / "old.py").touch()
    build_runtime(TOY, tmp_path / "99")
    assert not (tmp_path / "99" / "mpedu" / "old.py").exists()


def test_others_can_read_it_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        build_runtime(TOY, tmp_path / "99")
    finally:
        os.umask(before)
    modes = {p.stat().st_mode & 0o777 for p in (tmp_path / "99").rglob("*") if p.is_dir()}
    files = {p.stat().st_mode & 0o777 for p in (tmp_path / "99").rglob("*") if p.is_file()}
    assert (modes | {(tmp_path / "99").stat().st_mode & 0o777}, files) == ({0o755}, {0o644})


def words_after(command: list[str], flag: str, n_words: int) -> list[list[str]]:
    return [command[at + 1 : at + 1 + n_words] for at, word in enumerate(command) if word == flag]


def test_the_outer_wall_shows_nothing_of_the_checkout(tmp_path: Path) -> None:
    made = view.steps(tmp_path / "runtime", 2**20)
    shown = {Path(step[1]) for step in made if step[0].startswith(("ro-bind", "dev-bind"))}
    allowed = {
        Path("/usr"),
        Path(sys.prefix).resolve(),
        Path(sys.base_prefix).resolve(),
        tmp_path / "runtime",
    }
    system = {Path("/bin"), Path("/lib"), Path("/lib64"), *Path("/etc").glob("*")}
    assert shown - system <= allowed


@pytest.mark.parametrize("is_checkout", [True, False])
def test_our_own_code_within_the_environment_is_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_checkout: bool
) -> None:
    packages = tmp_path / "venv" / "lib" / "site-packages"
    packages.mkdir(parents=True)
    if is_checkout:
        (packages / "pyproject.toml").touch()
    monkeypatch.setattr(view, "__file__", str(packages / "autograder/sandbox/view.py"))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
    made = view.steps(tmp_path / "runtime", 2**20)
    inside = "/opt/venv/lib/site-packages"
    names = [inside] if is_checkout else [f"{inside}/autograder", f"{inside}/mpedu"]
    assert [step[1] for step in made if step[0] == "tmpfs"] == names


@pytest.mark.parametrize("rung", [WALLED, PER_EXERCISE, NAMESPACES])
@pytest.mark.parametrize("gpu", [None, 0, 3])
def test_of_the_gpus_only_the_one_asked_for_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rung: str, gpu: int | None
) -> None:
    monkeypatch.setattr(rungs, "which", lambda name: "bwrap")
    words, variables = rungs.command(rungs.Place(rung, tmp_path, 2**20, gpu))
    if rung == NAMESPACES:
        view = next(json.loads(word) for word in words if word.startswith("["))
        nodes = [step[1] for step in view if step[0] == "dev-bind-try"]
    else:
        nodes = [source for source, _ in words_after(words, "--dev-bind-try", 2)]
    common = [f"/dev/nvidia{name}" for name in ("ctl", "-uvm", "-uvm-tools")]
    assert nodes == ([] if gpu is None else [f"/dev/nvidia{gpu}", *common])
    assert variables["CUDA_VISIBLE_DEVICES"] == ("" if gpu is None else str(gpu))
