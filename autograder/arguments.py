"""What the commands' arguments have in common: the parser's way to complain, and their types."""

import argparse
import os
import sys
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[1]
MISUSED = 2


class Parser(argparse.ArgumentParser):
    """A parser that complains as everything here does: "course grade: one sentence."."""

    def error(self, message: str) -> NoReturn:
        """Prints the usage and the message; exit status 2."""
        self.print_usage(sys.stderr)
        self.exit(MISUSED, f"{self.prog.removeprefix('./')}: {message}\n")


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
