"""The command line: `./course lab | release | grade | demo`, and `tidy` for authors."""

import argparse
import shutil
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from autograder import lab
from autograder.arguments import add_jobs, add_out, round_number
from autograder.cells import tidy
from autograder.exercise import unit_numbers
from mpedu.arguments import FAILED, OK, Parser, parsed, print_in_any_encoding, run_command

if TYPE_CHECKING:
    from rich.console import Console

    from autograder.classroom import Settings
    from autograder.results import Result
    from autograder.submissions import Entry

# What a command needs beyond this is imported when it runs: nbgrader alone takes seconds.

# What Ctrl-C leaves, by command.
_STOPPED = {
    "grade": "stopped; what is recorded stays, and the same command grades the rest.",
    "demo": "stopped; run it again to see the whole class.",
    "release": "stopped; no file is half written, and the same command makes the release.",
    "tidy": "stopped; the same command goes on.",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; the exit status, 2 after one sentence on stderr for a misuse."""
    args = parsed(parser(), arguments)
    return run_command(args, _STOPPED.get(args.command, "stopped."))


def parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    top: argparse.ArgumentParser = Parser(
        prog="./course",
        description="The course's notebooks: given out, graded, kept tidy.",
        epilog="example: ./course grade submitted",
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    lab.add_parser(commands)
    _add_release(commands)
    _add_grade(commands)
    _add_demo(commands)
    _add_tidy(commands)
    for command in commands.choices.values():
        command.set_defaults(parser=command)
    return top


def _add_release(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = commands.add_parser(
        "release",
        help="write the students' notebooks, with proofs",
        description="Write the students' notebooks and nbgrader's settings. Proven before anything"
        " is written: no solution line is in a release, it scores 0, the source scores full marks.",
        epilog="example: ./course release 03",
    )
    command.add_argument(
        "units", nargs="*", metavar="UNIT", help="like 03 or 03-gpipe (default: all)"
    )
    add_out(command, "where release/ and nbgrader/ go", "build")
    command.set_defaults(run=_release)


def _release(args: argparse.Namespace) -> int:
    from autograder.grader import unit_of_assignment
    from autograder.release import release

    release([unit_of_assignment(name) for name in args.units or unit_numbers()], args.out, print)
    return OK


def _add_grade(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    from autograder.submissions import RULE

    command = commands.add_parser(
        "grade",
        help="grade a folder of submissions",
        description=f"Grade what is new or changed. {RULE}",
        epilog="exit status: 0 all graded or listed as unreadable, 1 something could not be graded"
        " or recorded, 2 wrong use. example: ./course grade submitted --jobs 4",
    )
    command.add_argument("directory", type=Path, metavar="DIR", help="the submissions")
    command.add_argument("--assignment", metavar="NAME", help="like 03 or 03-gpipe (default: all)")
    add_jobs(command)
    add_out(command, "where results go", "build")
    command.add_argument(
        "--secret", type=Path, metavar="FILE", help="class secret (default: OUT/secret-seed)"
    )
    command.add_argument(
        "--round",
        type=round_number,
        default=0,
        metavar="N",
        help="draws other secret cases (default: 0)",
    )
    command.add_argument("--force", action="store_true", help="grade what is graded already, too")
    command.set_defaults(run=_grade)


def _grade(args: argparse.Namespace) -> int:
    from autograder import report
    from autograder.classroom import Settings, class_secret
    from autograder.grader import unit_of_assignment
    from autograder.results import INFRASTRUCTURE, all_results, ensure_writable
    from autograder.submissions import find_submissions, some_of

    names = [args.assignment] if args.assignment else unit_numbers()
    wanted = [unit_of_assignment(name).assignment for name in names]
    entries, strays = find_submissions(args.directory, wanted, _as_given_out())
    places = [args.out / "feedback", *(args.out / "results" / name for name in wanted)]
    ensure_writable(args.out, *places)
    secret = class_secret(args.out, args.secret)
    settings = Settings(args.out, secret, args.jobs, args.round, args.force)
    out = report.console()
    results, n_new = _graded(entries, settings, out)
    graded = sorted({result.assignment for result in results})
    for assignment in graded:
        out.print(report.grades_table([r for r in results if r.assignment == assignment]))
    said = [report.summary(results, n_new)]
    said += [f"Not looked at: {some_of(strays, 20)}."] if strays else []
    said += [report.earlier(all_results(args.out), results), *map(report.by_hand, graded)]
    for text in filter(None, said):
        out.print(text, soft_wrap=True, markup=False)
    print(f"grades: {args.out / 'grades.csv'}; pages: {args.out / 'feedback'}")
    return FAILED if any(result.status == INFRASTRUCTURE for result in results) else OK


def _as_given_out() -> Callable[[str], str]:
    """What gives an assignment's released text; only asked where a student has two notebooks."""

    @cache
    def released(assignment: str) -> str:
        from autograder.grader import source_notebook, unit_of_assignment
        from autograder.release import student_notebook

        return student_notebook(source_notebook(unit_of_assignment(assignment)))

    return released


def _graded(
    entries: "Sequence[Entry]", settings: "Settings", out: "Console"
) -> "tuple[list[Result], int]":
    """The results of a class and how many are new, with progress; a warning where no walls are."""
    from autograder import classroom, report

    with report.Watcher(out) as watch:
        results = classroom.grade_class(entries, settings, watch, watch.warn)
    return results, watch.n_done


def _add_demo(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = commands.add_parser(
        "demo",
        help="grade a sample class of ten",
        description="Build ten submissions from data/sample_class, grade them, and print each"
        " verdict beside the expected one. Exit status 1 if one differs.",
        epilog="example: ./course demo --out build/demo",
    )
    add_out(command, "where results go", "build/demo")
    add_jobs(command)
    command.set_defaults(run=_demo)


def _demo(args: argparse.Namespace) -> int:
    from autograder import demo, report
    from autograder.classroom import Settings, class_secret
    from autograder.results import ensure_writable
    from autograder.submissions import find_submissions

    submitted = args.out / "submitted"
    ensure_writable(args.out, args.out / "results", args.out / "feedback", submitted)
    shutil.rmtree(submitted, ignore_errors=True)  # always the class that the data describe
    demo.build_class(submitted)
    assignment, students = demo.read_expected()
    entries = find_submissions(submitted, [assignment]).entries
    settings = Settings(args.out, class_secret(args.out, None), args.jobs, force=True)
    out = report.console()
    results, _ = _graded(entries, settings, out)
    out.print(demo.demo_table(students, results))
    n_right = len(students) - demo.n_unexpected(students, results)
    for text in filter(None, (report.open_walls(results), report.by_hand(assignment))):
        out.print(text, soft_wrap=True, markup=False)
    print(f"{n_right} of {len(students)} verdicts as expected; pages: {args.out / 'feedback'}")
    return OK if n_right == len(students) else FAILED


def _add_tidy(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = commands.add_parser(
        "tidy",
        help="write notebooks in canonical form",
        description="Rewrite notebooks in the form that is committed: no outputs, sorted keys.",
        # for authors, and so not among the commands of ./course
        epilog="example: python -m autograder tidy --check",
        prog="python -m autograder tidy",
    )
    command.add_argument(
        "notebooks",
        nargs="*",
        type=Path,
        metavar="NB.ipynb",
        help="default: all in the course's notebooks/",
    )
    command.add_argument(
        "--check", action="store_true", help="change nothing; exit status 1 if one is not tidy"
    )
    command.set_defaults(run=_tidy)


def _tidy(args: argparse.Namespace) -> int:
    paths = args.notebooks or sorted(lab.ROOT.glob("notebooks/*/*.ipynb"))
    untidy = [path for path in paths if not tidy(path, check=args.check)]
    for path in untidy:
        print(f"{path} {'is not tidy' if args.check else 'was rewritten'}")
    return FAILED if args.check and untidy else OK


if __name__ == "__main__":
    print_in_any_encoding()  # names in any script
    sys.exit(main())
