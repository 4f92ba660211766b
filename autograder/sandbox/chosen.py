"""The walls of a class: tried once, before any student's code runs, and refused where unsafe."""

from pathlib import Path

from autograder.sandbox.rungs import NOT_WALLED, SandboxError, Walls
from autograder.sandbox.sandbox import Sandbox
from mpedu.probes.walls import way_to_walls


def walls_here(runtime: Path, rung: str | None = None, trust: bool = False) -> Walls:
    """What students' code runs behind on this machine, tried with a runtime.

    rung: which is asked for, None for the best there is; trust: whether none will do. ValueError in
    one sentence, with the way out, where there is nothing of the kind.
    """
    try:
        with Sandbox(runtime, rung=rung, preload=()) as sandbox:
            walls = sandbox.walls
    except SandboxError as error:
        raise ValueError(
            f"the walls asked for cannot be had here ({error}); leave out --walls for the best"
            " there are."
        ) from None
    if walls.rung == NOT_WALLED and not trust:
        why = f" ({walls.note}): {way_to_walls()} Or, if" if walls.note else "; if"
        raise ValueError(
            "without walls students' code would run with all your rights, so nothing was run"
            f"{why} you trust every student, add --trust."
        )
    return walls
