"""Every number and formula a notebook states in words is yielded by an expression.

`numbers_NN.py` beside this file holds, for unit NN, `NUMBERS` (cell id -> number as printed ->
value, or an expression without arguments, or a tuple of these where one number means several
things) and `FORMULAS` (formula as printed -> expression that is True where the formula holds).
Hints and guesses are cells too, like "hint-gpipe-2" and "question-best-m".
"""

import ast
import importlib.util
import json
import math
import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from autograder.exercise import load_unit

HERE = Path(__file__).parent
NOTEBOOKS = HERE.parents[1] / "notebooks"
UNITS = sorted(path.stem.removeprefix("numbers_") for path in HERE.glob("numbers_*.py"))

Value = int | float | Fraction
Printed = dict[str, Any]  # number as printed -> Value | () -> Value | tuple of these

# What is a reference or a name and no number of the subject.
REFERENCES = re.compile(
    r"(?m:^ *\d+\. )"  # the number of a list's item
    r"|\[\d+\]"  # a cell
    r"|\b(?i:stages?|rank|micro-batch) \d+(?: to \d+)?\b"  # a name, as in stage 0
    r"|\bp\d+(?:-\d+)?\b"  # pages, as in p9-11
    r"|\b(?:page|pages|unit|units|section|sections|chapter) \d+(?:\.\d+)*(?:-\d+)?"
    r"|(?:\bin|\bal\.|\() ?(?:19|20)\d\d\b(?! ?%)"  # a year, as in 2019, et al. 2019, (2019)
)
CODE = re.compile(r"```.*?```|`[^`]*`", re.DOTALL)  # input, not a claim
CALL = re.compile(r"\w+\([^()]*\)")  # the same in docstrings, which have no backticks
LINK = re.compile(r"\]\([^)]*\)|https?://\S+")
MATH = re.compile(r"\$\$(.+?)\$\$|\$(.+?)\$", re.DOTALL)
SETTING = re.compile(r"[A-Za-z]\s*=\s*[\d.]+")  # $K = 4$ states a number
SYMBOL = re.compile(r"\\?[A-Za-z](?:_\w|_\{[^}]*\}|\^\*)?")  # $t_f$ states nothing
NUMBER = re.compile(r"(?<![\w.])\d+(?:/\d+|(?:\.\d+)?(?:e-?\d+)?)(?: ?%(?! ?\d))?(?!\w)")


def numbers_in(text: str) -> list[str]:
    """The numbers that a text prints, in order, "27.3 %" with its sign; references left out."""
    text = MATH.sub(lambda m: f" {_formula(m)} " if SETTING.fullmatch(_formula(m)) else " ", text)
    for pattern in (CODE, LINK, REFERENCES):
        text = pattern.sub(" ", text)
    return [found.replace(" ", "") for found in NUMBER.findall(text)]


def formulas_in(text: str) -> list[str]:
    """The formulas of a text, spacing removed; single symbols and settings left out."""
    formulas = [_formula(match) for match in MATH.finditer(CODE.sub(" ", text))]
    return [f for f in formulas if not SYMBOL.fullmatch(f) and not SETTING.fullmatch(f)]


def _formula(match: re.Match[str]) -> str:
    return re.sub(r"\\,|\s+", " ", match[1] or match[2]).strip()


def prose_of(cell: dict[str, Any]) -> str:
    """What a cell says in words: markdown, docstrings, and what its print and show calls spell."""
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return source
    return "\n".join(CALL.sub(" ", text) for text in _said_in_code(ast.parse(source)))


def _said_in_code(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield ast.get_docstring(node) or ""
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("print", "show"):
            yield from (
                part.value
                for part in ast.walk(node)
                if isinstance(part, ast.Constant) and isinstance(part.value, str)
            )


def yields(printed: str, expected: Any) -> bool:
    """Whether an expression gives the printed number, at the decimals it is printed with."""
    if isinstance(expected, tuple):
        return all(yields(printed, one) for one in expected)
    value: Value = expected() if callable(expected) else expected
    digits = printed.removesuffix("%")
    if "/" in digits or "e" in digits:
        return math.isclose(float(Fraction(digits)), value, rel_tol=1e-12)
    n_decimals = len(digits.partition(".")[2])
    if printed.endswith("%"):
        return f"{100 * float(value):.{n_decimals}f}" == digits
    if not n_decimals:  # a whole number is never a rounded one
        return abs(float(value) - int(digits)) < 1e-9
    return f"{float(value):.{n_decimals}f}" == digits


def problems(
    cells: list[dict[str, Any]],
    numbers: dict[str, Printed],
    formulas: dict[str, Callable[[], bool]],
) -> list[str]:
    """One line for each number or formula that is unmapped, not yielded, or no longer printed."""
    said = {cell["id"]: prose_of(cell) for cell in cells}
    found = []
    for id in dict.fromkeys([*said, *numbers]):
        printed, mapped = set(numbers_in(said.get(id, ""))), numbers.get(id, {})
        found += [f"{id}: {number} has no expression" for number in printed - mapped.keys()]
        found += [f"{id}: {number} is not printed any more" for number in mapped.keys() - printed]
        found += [
            f"{id}: {number} is printed, its expression gives something else"
            for number in printed & mapped.keys()
            if not yields(number, mapped[number])
        ]
    stated = {formula for text in said.values() for formula in formulas_in(text)}
    found += [f"formula {formula} has no expression" for formula in stated - formulas.keys()]
    found += [f"formula {formula} is not stated any more" for formula in formulas.keys() - stated]
    found += [f"formula {f} does not hold" for f in stated & formulas.keys() if not formulas[f]()]
    return sorted(found)


def cells_of(unit: str) -> list[dict[str, Any]]:
    """The cells of a unit's source notebook, then its hints and guesses as cells."""
    (path,) = NOTEBOOKS.glob(f"{unit}-*/{unit}-*.ipynb")
    cells: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return cells + asked_for(unit)


def asked_for(unit: str) -> list[dict[str, Any]]:
    """The hints and the guesses' questions, which a notebook prints when asked, as cells."""
    loaded = load_unit(unit)
    texts = {
        f"hint-{exercise.id}-{step}": words_of_hint(hint)
        for exercise in loaded.exercises
        for step, hint in enumerate(exercise.hints, 1)
    }
    texts |= {f"question-{guess.id}": guess.question for guess in loaded.guesses}
    return [{"id": id, "cell_type": "markdown", "source": text} for id, text in texts.items()]


def words_of_hint(hint: str) -> str:
    """A hint without its code, the lines indented by four spaces; comments in these are words."""
    return "\n".join(
        line.partition("#")[2] if line.startswith("    ") else line for line in hint.splitlines()
    )


def map_of(unit: str) -> Any:
    """The module numbers_NN of a unit."""
    spec = importlib.util.spec_from_file_location(f"numbers_{unit}", HERE / f"numbers_{unit}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("unit", UNITS)
def test_every_number_and_formula_of_a_notebook_is_yielded(unit: str) -> None:
    assert problems(cells_of(unit), map_of(unit).NUMBERS, map_of(unit).FORMULAS) == []


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("idle 27.3 % of 33 seconds, 3/11 of all, within 1e-12", ["27.3%", "33", "3/11", "1e-12"]),
        ("makespan 285.0. Then 4-1 and 0 .. 7", ["285.0", "4", "1", "0", "7"]),
        ("see [7], p9-11, L16 p9, page 12, unit 04, section 2.3", []),
        ("in 2019, Huang et al. 2019 (2019) trained 2019 models of 2000", ["2019", "2000"]),
        ("F0, 1B0, E3, idle-m8, `gpipe(4, 8)`, [text](https://a.org/12)", []),
        ("in 20 s, in 1900 %, in 2.5 s", ["20", "1900%", "2.5"]),
        ("with $K = 4$ and $M=57$, $t_f$ and $M+K-1$", ["4", "57"]),
        ("```\nrun(3)\n```\nthen 5", ["5"]),
        ("stage 0, stages 0 to 3, rank 1, micro-batch 0, 4 stages, 8 micro-batches", ["4", "8"]),
        ("1. first, of 3\n2. second", ["3"]),
        ("7 // 3 = 2 and 7 % 3 = 1, of 7 %", ["7", "3", "2", "7", "3", "1", "7%"]),
    ],
)
def test_numbers_are_told_from_references_by_rule(text: str, numbers: list[str]) -> None:
    assert numbers_in(text) == numbers


def test_code_in_a_hint_is_no_claim_and_a_comment_in_it_is() -> None:
    text = "Skeleton, 3 lines:\n    n = 1\n    return 2  # at least 4\nor 5"
    assert numbers_in(words_of_hint(text)) == ["3", "4", "5"]


@pytest.mark.parametrize("unit", UNITS)
def test_a_hint_or_guess_needs_an_expression_for_each_number_and_no_other(unit: str) -> None:
    numbers, asked = map_of(unit).NUMBERS, asked_for(unit)
    assert len({cell["id"] for cell in cells_of(unit)}) == len(cells_of(unit))
    assert len(asked) == 3 * len(load_unit(unit).exercises) + len(load_unit(unit).guesses)
    for cell in asked:
        mapped, id = numbers.get(cell["id"], {}), cell["id"]
        assert problems([cell], {id: mapped | {"77": 77}}, {}) == [
            f"{id}: 77 is not printed any more"
        ]
        for number in mapped:
            left = {key: value for key, value in mapped.items() if key != number}
            assert problems([cell], {id: left}, {}) == [f"{id}: {number} has no expression"]


def test_formulas_are_told_from_symbols_and_settings() -> None:
    text = r"$K$, $t_f$, $M^*$, $b_{\max}$, $K = 4$, $k\,t_f$ and $$\frac{K-1}{M}$$"
    assert formulas_in(text) == ["k t_f", r"\frac{K-1}{M}"]


def test_docstrings_and_printed_strings_are_prose_and_comments_and_arguments_are_not() -> None:
    source = (
        'def f():\n    """Gives 7. f(3) -> 9"""\n    return 5  # 6\nprint(f"so {2} is", 8, "11")'
    )
    cell = {"id": "a", "cell_type": "code", "source": source}
    assert sorted(numbers_in(prose_of(cell))) == ["11", "7", "9"]


@pytest.mark.parametrize(
    ("printed", "value", "right"),
    [
        ("27.3%", 3 / 11, True),
        ("27.2%", 3 / 11, False),
        ("13.9", math.sqrt(192), True),
        ("14", math.sqrt(192), False),
        ("3/11", Fraction(3, 11), True),
        ("3/11", 0.2727, False),
        ("1e-12", 1e-12, True),
        ("4", (4, lambda: 4.0), True),
        ("4", (4, lambda: 5), False),
    ],
)
def test_a_number_is_yielded_only_at_its_printed_decimals(
    printed: str, value: Any, right: bool
) -> None:
    assert yields(printed, value) is right


CELL = [{"id": "a", "cell_type": "markdown", "source": ["idle 75 %, ", "$k+1$"]}]


@pytest.mark.parametrize(
    ("numbers", "formulas", "problem"),
    [
        ({}, {"k+1": lambda: True}, "a: 75% has no expression"),
        ({"a": {"75%": 0.7}}, {"k+1": lambda: True}, "a: 75% is printed, its"),
        ({"a": {"75%": 0.75, "8": 8}}, {"k+1": lambda: True}, "a: 8 is not printed any more"),
        ({"a": {"75%": 0.75}, "b": {"8": 8}}, {"k+1": lambda: True}, "b: 8 is not printed"),
        ({"a": {"75%": 0.75}}, {}, "formula k+1 has no expression"),
        ({"a": {"75%": 0.75}}, {"k+1": lambda: False}, "formula k+1 does not hold"),
        ({"a": {"75%": 0.75}}, {"k+1": lambda: True, "k": lambda: True}, "formula k is not"),
    ],
)
def test_each_kind_of_problem_is_found(
    numbers: dict[str, Printed], formulas: dict[str, Callable[[], bool]], problem: str
) -> None:
    (found,) = problems(CELL, numbers, formulas)
    assert found.startswith(problem)
