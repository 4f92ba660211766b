"""Withholding: while an answer is checked, the package's own version of it refuses.

In a notebook the function's code is swapped, so that an alias imported earlier refuses too. In the
grader the student's process gets a copy of the package from which the bodies are gone.
"""

import ast
import importlib
import importlib.util
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any

from mpedu.faults import Withheld


def refusal(name: str) -> str:
    """What a withheld function says; a property goes by its class, as students write it."""
    _, path = _split(name)
    name = ".".join(path) if len(path) > 1 else name
    return f"this is the exercise: {name} refuses while it is checked; write it yourself"


@contextmanager
def withheld(names: Iterable[str]) -> Iterator[None]:
    """Inside, every function or property of `names` ("mpedu.families.gpipe") raises Withheld."""
    functions = [(name, _function(name)) for name in names]
    codes = [function.__code__ for _, function in functions]
    try:
        for name, function in functions:
            function.__code__ = _refusing_code(name)
        yield
    finally:
        for (_, function), code in zip(functions, codes, strict=True):
            function.__code__ = code


def _function(name: str) -> FunctionType:
    module_name, path = _split(name)
    value: Any = importlib.import_module(module_name)
    for part in path:
        value = vars(value)[part] if isinstance(value, type) else getattr(value, part)
    value = value.fget if isinstance(value, property) else value
    if not isinstance(value, FunctionType) or value.__code__.co_freevars:
        raise ValueError(f"{name} is not a plain function; only those can be withheld")
    return value


def _split(name: str) -> tuple[str, list[str]]:
    """Module and path inside it: "mpedu.simulate", ["Timeline", "idle_share"].

    A module inside a package is named where the package does not hand the function on.
    """
    package, module, *path = name.split(".")
    owner = f"{package}.{module}"
    inside = f"{owner}.{path[0]}"
    found = importlib.util.find_spec(owner) if len(path) > 1 else None
    if found and found.submodule_search_locations and importlib.util.find_spec(inside):
        return inside, path[1:]
    return owner, path


def _refusing_code(name: str) -> CodeType:
    def refuse(*args: object, **kwargs: object) -> None:
        from mpedu.faults import Withheld  # runs with the globals of the withheld function

        raise Withheld("MESSAGE")

    code = refuse.__code__
    constants = tuple(refusal(name) if c == "MESSAGE" else c for c in code.co_consts)
    return code.replace(co_consts=constants)


def strip_source(source: str, module: str, names: Iterable[str]) -> str:
    """The module's source with the body of every withheld function replaced by a refusal.

    A name of a package is withheld in the module inside it that defines the function.
    ValueError naming a withheld function that the source neither defines nor has from such a one.
    """
    tree = ast.parse(source)
    inside = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and f"{node.module}".startswith(f"{module}.")
        for alias in node.names
    }
    for name in names:
        owner, path = _split(name)
        if not f"{module}.".startswith(f"{owner}."):
            continue
        definition = _definition(tree, path)
        if definition is None:
            if owner == module and path[0] not in inside:
                raise ValueError(f"{name} is withheld and {module} does not define it")
        else:
            definition.body = ast.parse(
                f"from mpedu.faults import Withheld\nraise Withheld({refusal(name)!r})"
            ).body
    return ast.unparse(tree) + "\n"


def _definition(tree: ast.AST, path: list[str]) -> ast.FunctionDef | None:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == path[0]:
            if isinstance(node, ast.FunctionDef):
                return node if len(path) == 1 else None
            return _definition(node, path[1:])
    return None


__all__ = ["Withheld", "refusal", "strip_source", "withheld"]
