"""A notebook of two exercises, small enough to see whole: a source and what students make of it."""

import json
from typing import Any

SOLUTION = """def double(n):
    \"\"\"Twice n.\"\"\"
    ### BEGIN SOLUTION
    answer_of_the_author = n + n
    return answer_of_the_author
    ### END SOLUTION
"""
TITLE = "# Doubling\n\nA title that is long enough to be known again by its text."


def cell(cell_type: str, cell_id: str, source: str, **metadata: Any) -> dict[str, Any]:
    made = {"cell_type": cell_type, "id": cell_id, "metadata": metadata, "source": source}
    if cell_type == "code":
        made |= {"execution_count": None, "outputs": []}
    return made


def nbgrader(grade_id: str, points: int | None = None, **flags: bool) -> dict[str, Any]:
    made = {"grade": False, "solution": False, "locked": False, "task": False, **flags}
    return (
        made | {"schema_version": 3, "grade_id": grade_id} | ({"points": points} if points else {})
    )


def cells() -> list[dict[str, Any]]:
    solve = nbgrader("solution-double", solution=True)
    half = nbgrader("solution-half", solution=True)
    check = nbgrader("check-double", 2, grade=True, locked=True)
    return [
        cell("markdown", "title", TITLE),
        cell("code", "setup", "import math", tags=["setup"]),
        cell("code", "solution-double", SOLUTION, nbgrader=solve),
        cell("code", "check-double", 'check("double")', nbgrader=check),
        cell("code", "demo", "show(double, 21, 'a call that only shows something')"),
        cell("code", "solution-half", SOLUTION.replace("double", "half"), nbgrader=half),
    ]


def notebook(made: list[dict[str, Any]] | None = None, **top: Any) -> bytes:
    tree = {"cells": cells() if made is None else made, "metadata": {}, "nbformat": 4}
    return json.dumps(tree | {"nbformat_minor": 5} | top).encode()
