"""The command line: `python -m autograder lab | release | grade | demo | tidy`."""

import argparse
import io
import os
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from autograder import lab
from autograder.cells import tidy
from autograder.errors import Failure
from autograder.exercise import load_unit, unit_numbers

# What a command needs beyond this is imported when it runs: nbgrader alone takes seconds.

OK, FAILED, MISUSED, INTERRUPTED = 0, 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; the exit status, 2 after one sentence on stderr for a misuse."""
    args = parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        status: int = args.run(args)
        return status
    except KeyboardInterrupt:
        print("Stopped; what was recorded before stays.", file=sys.stderr)
        return INTERRUPTED
    except ValueError as error:
        return _complain(error, MISUSED)
    except Failure as error:
        return _complain(error, FAILED)
    except OSError as error:
        status = MISUSED if isinstance(error, FileNotFoundError) else FAILED
        return _complain(f"{error.filename or 'A file'}: {error.strerror}.", status)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _complain(error: object, status: int) -> int:
    print(error, file=sys.stderr)
    return status


def parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    top = argparse.ArgumentParser(
        prog="python -m autograder",
        description="The course's notebooks: given out, graded, kept tidy.",
        epilog="example: python -m autograder grade submitted",
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    lab.add_parser(commands)
    _add_release(commands)
    _add_grade(commands)
    _add_demo(commands)
    _add_tidy(commands)
    return top


def _add_release(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = commands.add_parser(
        "release",
        help="write the students' notebooks, with proofs",
        description="Write the students' notebooks and nbgrader's settings. Proven before anything"
        " is written: no solution line is in a release, it scores 0, the source scores full marks.",
        epilog="example: python -m autograder release 03",
    )
    command.add_argument("units", nargs="*", metavar="UNIT", help="like 03 (default: all)")
    _add_out(command, "build/release")
    command.set_defaults(run=_release)


def _release(args: argparse.Namespace) -> int:
    from autograder.release import release

    units = [load_unit(number) for number in args.units or unit_numbers()]
    release(units, args.out, print)
    return OK


def _add_grade(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    from autograder.submissions import RULE

    command = commands.add_parser(
        "grade",
        help="grade a folder of submissions",
        description=f"Grade what is new or changed. {RULE}",
        epilog="exit status: 0 all graded or listed as unreadable, 1 something could not be graded"
        " or recorded, 2 wrong use. example: python -m autograder grade submitted --jobs 4",
    )
    command.add_argument("directory", type=Path, metavar="DIR", help="the submissions")
    command.add_argument("--assignment", metavar="NAME", help="like 03-gpipe (default: all known)")
    _add_jobs(command)
    _add_out(command, "build")
    command.add_argument(
        "--secret", type=Path, metavar="FILE", help="class secret (default: OUT/secret-seed)"
    )
    command.add_argument(
        "--round", type=int, default=0, metavar="N", help="draws other secret cases (default: 0)"
    )
    command.add_argument("--force", action="store_true", help="grade what is graded already, too")
    command.set_defaults(run=_grade)


def _grade(args: argparse.Namespace) -> int:
    from autograder import report
    from autograder.classroom import Settings, class_secret, grade_class
    from autograder.grader import unit_of_assignment
    from autograder.results import INFRASTRUCTURE
    from autograder.submissions import find_submissions

    known = [load_unit(number).assignment for number in unit_numbers()]
    wanted = [unit_of_assignment(args.assignment).assignment] if args.assignment else known
    entries = find_submissions(args.directory, wanted)
    secret = class_secret(args.out, args.secret)
    settings = Settings(args.out, secret, args.jobs, args.round, args.force)
    out = report.console()
    with report.Watcher(out) as watch:
        results = grade_class(entries, settings, watch)
    for assignment in sorted({result.assignment for result in results}):
        out.print(report.grades_table([r for r in results if r.assignment == assignment]))
    out.print(report.summary(results, watch.n_done), soft_wrap=True, markup=False)
    print(f"grades: {args.out / 'grades.csv'}; pages: {args.out / 'feedback'}")
    return FAILED if any(result.status == INFRASTRUCTURE for result in results) else OK


def _add_demo(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = commands.add_parser(
        "demo",
        help="grade a sample class of ten",
        description="Build ten submissions from data/sample_class, grade them, and print each"
        " verdict beside the expected one. Exit status 1 if one differs.",
        epilog="example: python -m autograder demo --out build/demo",
    )
    _add_out(command, "build/demo")
    _add_jobs(command)
    command.set_defaults(run=_demo)


def _demo(args: argparse.Namespace) -> int:
    from autograder import demo, report
    from autograder.classroom import Settings, class_secret, grade_class
    from autograder.submissions import find_submissions

    submitted = args.out / "submitted"
    shutil.rmtree(submitted, ignore_errors=True)  # always the class that the data describe
    demo.build_class(submitted)
    assignment, students = demo.read_expected()
    entries = find_submissions(submitted, [assignment])
    settings = Settings(args.out, class_secret(args.out, None), args.jobs, force=True)
    out = report.console()
    with report.Watcher(out) as watch:
        results = grade_class(entries, settings, watch)
    out.print(demo.demo_table(students, results))
    n_right = len(students) - demo.n_unexpected(students, results)
    print(f"{n_right} of {len(students)} verdicts as expected; pages: {args.out / 'feedback'}")
    return OK if n_right == len(students) else FAILED


def _add_tidy(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = commands.add_parser(
        "tidy",
        help="write notebooks in canonical form",
        description="Rewrite notebooks in the form that is committed: no outputs, sorted keys.",
        epilog="example: python -m autograder tidy notebooks/03-gpipe/03-gpipe.ipynb --check",
    )
    command.add_argument("notebooks", nargs="+", type=Path, metavar="NB.ipynb")
    command.add_argument(
        "--check", action="store_true", help="change nothing; exit status 1 if one is not tidy"
    )
    command.set_defaults(run=_tidy)


def _tidy(args: argparse.Namespace) -> int:
    untidy = [path for path in args.notebooks if not tidy(path, check=args.check)]
    for path in untidy:
        print(f"{path} {'is not tidy' if args.check else 'was rewritten'}")
    return FAILED if args.check and untidy else OK


def _add_out(command: argparse.ArgumentParser, folder: str) -> None:
    default = lab.ROOT / folder
    text = f"where results go (default: {folder} in the checkout)"
    command.add_argument("--out", type=Path, default=default, metavar="DIR", help=text)


def _add_jobs(command: argparse.ArgumentParser) -> None:
    text = "submissions graded at a time (default: one per core, here %(default)s)"
    command.add_argument("--jobs", type=_at_least_one, default=_cores(), metavar="N", help=text)


def _at_least_one(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is no number of processes; give 1 or more")
    return int(text)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # names in any script, on any terminal
    sys.exit(main())
