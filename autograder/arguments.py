"""Arguments that several of the grader's commands take, and their types."""

import argparse
import os
from pathlib import Path

from mpedu.arguments import ROOT


def add_out(command: argparse.ArgumentParser, what: str, folder: str) -> None:
    """Adds --out, whose folder for `what` is below the checkout unless given."""
    default = ROOT / folder
    text = f"{what} (default: {folder} in the checkout)"
    command.add_argument("--out", type=Path, default=default, metavar="DIR", help=text)


def add_jobs(command: argparse.ArgumentParser) -> None:
    """Adds --jobs, one per core unless given."""
    text = "submissions graded at a time (default: one per core, here %(default)s)"
    command.add_argument("--jobs", type=at_least_one, default=_cores(), metavar="N", help=text)


def add_walls(command: argparse.ArgumentParser) -> None:
    """Adds --walls and --trust."""
    from autograder.sandbox import RUNGS

    command.add_argument(
        "--walls",
        choices=RUNGS,
        metavar="NAME",
        # first, so that no line breaks within a name
        help=f"{', '.join(RUNGS)}: what students' code runs behind (default: the best there is)",
    )
    text = "let students' code run without walls, with all your rights, where there are none"
    command.add_argument("--trust", action="store_true", help=text)


def rung_of(args: argparse.Namespace) -> str | None:
    """The rung that --walls asks for, None for the best; ValueError where it needs --trust."""
    from autograder.sandbox import NOT_WALLED

    rung: str | None = args.walls
    if rung == NOT_WALLED and not args.trust:
        raise ValueError(
            "--walls none lets students' code run with all your rights; if you trust every"
            " student, add --trust."
        )
    return rung


def add_accept_lower(command: argparse.ArgumentParser) -> None:
    """Adds --accept-lower."""
    text = "publish lower scores, too, and take off points by hand that the gradebook lacks"
    command.add_argument("--accept-lower", action="store_true", help=text)


def add_gradebook(command: argparse.ArgumentParser) -> None:
    """Adds --gradebook."""
    command.add_argument(
        "--gradebook",
        metavar="URL",
        help="nbgrader's gradebook, like postgresql://user@host/name (default: the one that"
        " OUT/nbgrader/nbgrader_config.py names, OUT/nbgrader/gradebook.db)",
    )


def round_number(text: str) -> int:
    """The round that `text` names; argparse.ArgumentTypeError when there is no such round."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text} is no round; give a whole number from 0 on")
    return int(text)


def at_least_one(text: str) -> int:
    """The number of processes that `text` names; argparse.ArgumentTypeError for none."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is no number of processes; give 1 or more")
    return int(text)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
