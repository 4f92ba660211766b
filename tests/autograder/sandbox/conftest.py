"""Sandboxes on every rung that this machine has."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sandboxed import HASTY, LIMITS

from autograder.exercise import Exercise, Unit
from autograder.sandbox import NOT_WALLED, RUNGS, Limits, Sandbox, SandboxError, build_runtime

WALLED_RUNGS = [rung for rung in RUNGS if rung != NOT_WALLED]


@pytest.fixture(scope="session")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    withheld = ("mpedu.families.gpipe", "mpedu.simulate.Timeline.idle_share")
    exercise = Exercise("toy", "Toy", 1, ("f",), "data", withheld, (), "99", lambda s, d: None)
    folder = tmp_path_factory.mktemp("runtime") / "99"
    build_runtime(Unit("99", "toy", (exercise,), ()), folder)
    return folder


def started(runtime: Path, rung: str, limits: Limits) -> Iterator[Sandbox]:
    with Sandbox(runtime, limits, rung=rung) as sandbox:
        try:
            assert sandbox.rung == rung
        except SandboxError as error:
            pytest.skip(str(error))
        yield sandbox


@pytest.fixture(scope="module", params=RUNGS)
def sandbox(request: pytest.FixtureRequest, runtime: Path) -> Iterator[Sandbox]:
    yield from started(runtime, request.param, LIMITS)


@pytest.fixture(scope="module", params=RUNGS)
def hasty(request: pytest.FixtureRequest, runtime: Path) -> Iterator[Sandbox]:
    yield from started(runtime, request.param, HASTY)


@pytest.fixture(scope="module", params=WALLED_RUNGS)
def walled(request: pytest.FixtureRequest, runtime: Path) -> Iterator[Sandbox]:
    yield from started(runtime, request.param, LIMITS)
