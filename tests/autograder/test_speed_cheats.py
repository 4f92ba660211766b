"""Tricks that make slow work look fast: each must earn nothing, and leave the judge as it was."""

import pytest
import speed_toy as toy
from speed_cheats import CHEATS

from autograder.sandbox import NOT_WALLED, Sandbox, build_runtime


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runtime") / "99"
    build_runtime(toy.TOY, folder)
    with Sandbox(folder) as made:
        if made.rung == NOT_WALLED:
            pytest.skip(f"no walls on this machine: {made.walls.note}")
        yield made


@pytest.mark.parametrize("name", CHEATS)
def test_a_trick_earns_nothing(sandbox, name):
    source, found_out = CHEATS[name]
    verdict = toy.graded(sandbox, source)
    assert verdict.score == 0
    assert verdict.groups[0].diagnosis in found_out, verdict.messages


def test_an_honest_answer_is_paid_after_all_of_them(sandbox):
    assert toy.graded(sandbox, toy.INDEXED).score == 3


def test_neither_threads_nor_processes_start_in_a_timed_process(sandbox):
    source = """
import os, threading
def dispatch(kind):
    threading.Thread(target=print).start() if kind else os.fork()
"""
    with sandbox.open([("solution", source)], ["dispatch"], alone=True) as subject:
        for kind, told in enumerate(("starts more processes", "starts more threads")):
            with pytest.raises(Exception, match=told):
                subject(kind)
