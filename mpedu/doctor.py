"""What this machine offers to the course, in lines a student can send to a teacher."""

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpedu.probes import Finding

# The probes are imported when the doctor runs: a notebook's first cell needs the lines only.


def environment_lines() -> list[str]:
    """Python, torch, cores and GPUs of this machine, and what real ranks run on, a line each.

    Reads package metadata and device files only: importing torch would take over a second.
    """
    torch, n_gpus = _version("torch"), _n_gpus()
    with_gpus = n_gpus and not torch.endswith("+cpu")
    ranks = f"GPUs, for up to {n_gpus} ranks; processes for more" if with_gpus else "processes"
    return [
        f"Python {platform.python_version()}",
        f"torch {torch}",
        f"cores: {_n_cores()}",
        f"GPUs: {n_gpus}",
        f"real ranks: {ranks}",
    ]


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _n_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _n_gpus() -> int:
    return len(list(Path("/dev").glob("nvidia[0-9]*")))


# ---- ./course doctor ----


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds what `./course doctor` can be told."""
    parser.description = "Look at everything the course needs on this machine, and say what to do"
    parser.description += " about it. Nothing is changed. A line is ok, a note, or a thing to mend."
    parser.epilog = "exit status: 0 nothing to mend, 1 something. example: ./course doctor --json"
    parser.add_argument("--json", action="store_true", help="for support: print it as JSON")


def run(args: argparse.Namespace) -> int:
    """Prints what every probe finds; exit status 1 where something is to be mended."""
    from mpedu.arguments import FAILED, OK, ROOT
    from mpedu.probes.examine import examine

    show = (lambda _: None) if args.json else _printer()
    findings = []
    for finding in examine(ROOT, _n_cores(), _n_gpus()):
        show(finding)
        findings.append(finding)
    if args.json:
        print(json.dumps([finding._asdict() for finding in findings], indent=1))
    else:
        print(f"\n{summary(findings)}")
    return FAILED if any(finding.mark == "mend" for finding in findings) else OK


def check_up() -> None:
    """In a notebook: what `./course doctor` prints."""
    print("looking at this machine, some seconds ...", flush=True)
    run(argparse.Namespace(json=False))


def summary(findings: "list[Finding]") -> str:
    """One sentence on all of them, like "Nothing to mend; 2 notes."."""
    n_mend, n_notes = (sum(each.mark == mark for each in findings) for mark in ("mend", "note"))
    mend = f"{n_mend} to mend" if n_mend else "Nothing to mend"
    notes = f"; {n_notes} note{'s' * (n_notes > 1)}" if n_notes else ""
    return f"{mend}{notes}."


def text(finding: "Finding") -> str:
    """A finding in one line, and in a second one what to do. No line is broken for a terminal:

    a command that it wraps by itself can still be copied whole.
    """
    line = f"{finding.mark:4}  {finding.about}: {finding.found}"
    return f"{line}\n      {finding.advice}" if finding.advice else line


def _printer() -> "Callable[[Finding], None]":
    """What prints a finding: with the mark in colour on a terminal, unless NO_COLOR is set."""
    if sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        try:
            from rich.console import Console
            from rich.text import Text
        except ImportError:  # then that is one of the findings
            pass
        else:
            console = Console(highlight=False)
            styles = {"ok": "green", "note": "yellow", "mend": "bold red"}

            def show(finding: "Finding") -> None:
                line = Text(text(finding))
                line.stylize(styles[finding.mark], 0, len(finding.mark))
                console.print(line, soft_wrap=True)

            return show
    return lambda finding: print(text(finding), flush=True)
