"""The corpus of submissions that the grader must stand, made from the release.

Run by its path: `python tests/corpus/make.py OUT` writes OUT/<student>/<assignment>/..., a class
that `./course grade OUT` takes, and prints what each student is and the verdict that is due.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import family_attack
import family_damaged
import family_excess
import family_honest
import family_ranks
import family_resource
import family_system
import family_walls
from making import FAMILIES, Submission, due_verdicts

SUBMISSIONS: tuple[Submission, ...] = (
    *family_honest.SUBMISSIONS,
    *family_damaged.SUBMISSIONS,
    *family_resource.SUBMISSIONS,
    *family_excess.SUBMISSIONS,
    *family_attack.SUBMISSIONS,
    *family_walls.SUBMISSIONS,
    *family_system.SUBMISSIONS,
    *family_ranks.SUBMISSIONS,
)


def told(submission: Submission) -> str:
    """One line on a submission: its name, family, the verdict due, and what it is."""
    verdicts = due_verdicts(submission)
    lost = [f"{name} {status}" for name, (status, _) in verdicts.items() if status != "passed"]
    due = ", ".join(lost) or "all points" if verdicts else submission.due.status
    unwalled = {True: " (succeeds without walls)", None: " (not run without walls)"}
    more = unwalled.get(submission.unwalled, "") if submission.family == "attack" else ""
    return f"{submission.name} [{submission.family}]: {submission.what}: {due}{more}"


def parser() -> argparse.ArgumentParser:
    """The parser of this command."""
    made = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    made.add_argument("out", type=Path, metavar="OUT", help="a new folder for the class")
    made.add_argument("--family", choices=FAMILIES, help="only this one (default: all)")
    made.add_argument("--list", action="store_true", help="only say what they are")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the class and says what it is; the exit status."""
    args = parser().parse_args(arguments)
    if args.out.exists() and not args.list:
        parser().error(f"{args.out} exists already; name a folder that does not")
    for submission in SUBMISSIONS:
        if args.family in (None, submission.family):
            if not args.list:
                submission.write(args.out)
            print(told(submission))
    return 0


if __name__ == "__main__":
    sys.exit(main())
