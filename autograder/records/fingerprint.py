"""What decides a verdict besides the submission, as short hashes of content, an exercise at a time.

A check is hashed with what it uses and no more, so that a mended check has only those exercises
graded again that rest on it: of its own module the definitions it names, of all other modules it
names, directly or through others, the whole text.
"""

import ast
import hashlib
import importlib.metadata
import json
import platform
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from autograder.exercise import Exercise, Unit

_PACKAGES = ("autograder", "mpedu")
# Besides the check: what asks, compares and keeps apart. What students' processes are made of is
# in the runtime folder.
_MACHINERY = ("autograder.judge", "autograder.submissions.own_cells", "autograder.sandbox")
_ASKS = "autograder/grader.py"
_UNIT_PACKAGE = re.compile(r"autograder\.checks\.unit_\d+")
_DECIDING_VERSIONS = ("numpy", "msgpack")


def short_hash(text: str | bytes) -> str:
    """Sixteen hex digits that name a text (a class secret, say) without telling it."""
    data = text.encode() if isinstance(text, str) else text
    return hashlib.sha256(data).hexdigest()[:16]


def versions(names: Iterable[str] = ("numpy", "msgpack", "torch")) -> dict[str, str]:
    """The versions that a verdict was made with."""
    found = {name: importlib.metadata.version(name) for name in names}
    return {"python": platform.python_version(), **found}


def environment_hash() -> str:
    """A hash of the versions that can decide a verdict."""
    return short_hash(json.dumps(versions(_DECIDING_VERSIONS)))


def files_hash(root: Path, files: Iterable[Path]) -> str:
    """A hash of the names below `root` and the contents of files."""
    digest = hashlib.sha256()
    for path in sorted(files):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(root)} {content}\n".encode())
    return digest.hexdigest()[:16]


def package_hash(root: Path, notebook: Path) -> str:
    """A hash of our code, data and the unit's notebook: what makes a result of verdicts.

    Without the units' checks, which have hashes of their own, and the banks, which decide nothing.
    """
    files = [*root.glob("autograder/**/*.py"), *root.glob("autograder/*.html"), notebook]
    files += [*root.glob("mpedu/**/*.py"), *root.glob("data/*.toml")]
    own = (root / "autograder" / "bank", *root.glob("autograder/checks/unit_*"))
    return files_hash(root, [path for path in files if not set(path.parents) & set(own)])


def checks_hash(fingerprints: Mapping[str, str]) -> str:
    """A hash of all of a unit's checks."""
    return short_hash(json.dumps(fingerprints, sort_keys=True))


class Sources:
    """The modules of a checkout, read and never imported."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._tree = cache(self._parsed)
        self._direct = cache(self._uses)

    def checks(self, unit: Unit) -> dict[str, str]:
        """A hash per exercise of its check and all that the check uses."""
        return {exercise.id: self._check(exercise) for exercise in unit.exercises}

    def machinery(self, runtime: Path) -> str:
        """A hash of what every verdict of a unit rests on: judge, walls, runtime, versions."""
        parts = [self._modules(_MACHINERY), files_hash(runtime, runtime.rglob("*.*"))]
        parts += [files_hash(self.root, [self.root / _ASKS]), environment_hash()]
        return short_hash(" ".join(parts))

    def _check(self, exercise: Exercise) -> str:
        check, module = exercise.check, exercise.check.__module__
        texts, modules = _definitions(self._tree(module), check.__name__)
        used = {name for one in modules for name in self._named(one)}
        return short_hash("\n".join([*texts, self._modules(used)]))

    def _modules(self, names: Iterable[str]) -> str:
        """A hash of these modules and of all that they import of ours, directly or not."""
        found: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += self._direct(name)
        return files_hash(self.root, filter(None, map(self._path, found)))

    def _uses(self, module: str) -> frozenset[str]:
        """Our modules that a module imports anywhere, and the packages that it lies in."""
        tree = ast.walk(self._tree(module))
        nodes = [node for node in tree if isinstance(node, ast.Import | ast.ImportFrom)]
        parts = module.split(".")
        packages = [".".join(parts[:n]) for n in range(1, len(parts))]
        named = {name for node in nodes for name in _imported(node).values()}
        found = {module for name in named for module in self._named(name)}
        # A unit's package holds its checks; what lies in it is not decided by them.
        return frozenset(found | {one for one in packages if not _UNIT_PACKAGE.fullmatch(one)})

    def _named(self, name: str) -> Iterator[str]:
        """The module that an import of `package.module` or `module.name` rests on, if ours."""
        for candidate in (name, name.rpartition(".")[0]):
            if self._path(candidate):
                yield candidate
                return

    def _path(self, module: str) -> Path | None:
        """Where a module of ours lies, None for others."""
        if module.partition(".")[0] not in _PACKAGES:
            return None
        base = self.root.joinpath(*module.split("."))
        paths = (base.with_suffix(".py"), base / "__init__.py")
        return next((path for path in paths if path.is_file()), None)

    def _parsed(self, module: str) -> ast.Module:
        path = self._path(module)
        if path is None:
            raise ValueError(f"{module} is no module below {self.root}")
        return ast.parse(path.read_bytes())


def _imported(node: ast.Import | ast.ImportFrom) -> dict[str, str]:
    """The full name of what an import binds, by the name it is bound to."""
    if isinstance(node, ast.Import):
        return {alias.asname or alias.name.partition(".")[0]: alias.name for alias in node.names}
    return {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}


def _definitions(tree: ast.Module, name: str) -> tuple[list[str], set[str]]:
    """The definitions of a module that the one called `name` rests on, and what they import.

    What a module does besides defining and importing always counts.
    """
    imports: dict[str, str] = {}
    made: dict[str, list[ast.stmt]] = {}
    waiting: list[ast.stmt] = []
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports |= _imported(node)
        elif not (bound := _bound(node)) and not _is_text(node):
            waiting.append(node)
        else:
            for one in bound:
                made.setdefault(one, []).append(node)
    waiting += made[name]
    used: list[ast.stmt] = []
    modules: set[str] = set()
    while waiting:
        node = waiting.pop()
        if node not in used:
            used.append(node)
            for part in ast.walk(_without_hints(node)):
                if isinstance(part, ast.Import | ast.ImportFrom):
                    modules.update(_imported(part).values())
                elif isinstance(part, ast.Name):
                    waiting += made.get(part.id, [])
                    modules |= {imports[part.id]} if part.id in imports else set()
    return [ast.dump(node) for node in sorted(used, key=lambda node: node.lineno)], modules


def _bound(node: ast.stmt) -> list[str]:
    """The names that a statement defines and does nothing else."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else []
    targets += [node.target] if isinstance(node, ast.AnnAssign) else []
    parts = [part for target in targets for part in _parts(target)]
    names = [part.id for part in parts if isinstance(part, ast.Name)]
    return names if len(names) == len(parts) else []


def _parts(target: ast.expr) -> list[ast.expr]:
    return target.elts if isinstance(target, ast.Tuple | ast.List) else [target]


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _without_hints(node: ast.stmt) -> ast.stmt:
    """The statement, changed in place: an exercise without its hints, which decide nothing."""
    for call in getattr(node, "decorator_list", []):
        if isinstance(call, ast.Call):
            call.keywords = [keyword for keyword in call.keywords if keyword.arg != "hints"]
    return node
