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
