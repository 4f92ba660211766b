"""The command line: `./course lab | release | grade | feedback | demo`, and `tidy` for authors."""

import argparse
import shlex
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from autograder.arguments import (
    add_accept_lower,
    add_gradebook,
    add_jobs,
    add_out,
    add_walls,
    round_number,
    rung_of,
)
from mpedu.arguments import (
    FAILED,
    OK,
    Parser,
    end_at_interrupt,
    parsed,
    print_in_any_encoding,
    run_command,
)

# What a command or its parser needs beyond this is imported when it is asked for: nbgrader alone
# takes seconds, and by then Ctrl-C is looked after.

# What Ctrl-C leaves, by command.
_STOPPED = {
    "grade": "stopped; what is recorded stays, and the same command grades the rest.",
    "feedback": "stopped; no page is half written, and the same command writes the rest.",
    "demo": "stopped; run it again to see the whole class.",
    "release": "stopped; no file is half written, and the same command makes the release.",
    "tidy": "stopped; the same command goes on.",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; the exit status, 2 after one sentence on stderr for a misuse."""
    args = parsed(parser(), arguments)
    args.typed = shlex.join(sys.argv[1:] if arguments is None else arguments)
    return run_command(args, _STOPPED.get(args.command, "stopped."))


def parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    from autograder import lab

    top: argparse.ArgumentParser = Parser(
        prog="./course",
        description="The course's notebooks: given out, graded, kept tidy.",
        epilog="example: ./course grade submitted",
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    lab.add_parser(commands)
    _add_release(commands)
    _add_grade(commands)
    _add_feedback(commands)
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
    from autograder.exercise import unit_numbers
    from autograder.grader import unit_of_assignment
    from autograder.release import release

    release([unit_of_assignment(name) for name in args.units or unit_numbers()], args.out, print)
    return OK


def _add_grade(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    from autograder.submissions.finding import RULE

    command = commands.add_parser(
        "grade",
        help="grade a folder of submissions",
        description=f"Grade what is new or changed. {RULE}",
        epilog="exit status: 0 all graded or listed as unreadable, 1 something could not be graded"
        " or recorded or is held back, 2 wrong use. example: ./course grade submitted --jobs 4",
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
    add_accept_lower(command)
    add_walls(command)
    add_gradebook(command)
    command.set_defaults(run=_grade)


def _grade(args: argparse.Namespace) -> int:
    from autograder import classroom, report
    from autograder.changed import changes
    from autograder.exercise import unit_numbers
    from autograder.gradebook.handover import Handover
    from autograder.grader import unit_of_assignment
    from autograder.records.locks import only_run
    from autograder.records.names import told_apart
    from autograder.records.results import (
        INFRASTRUCTURE,
        all_results,
        damaged_results,
        ensure_writable,
    )
    from autograder.seeds import class_secret
    from autograder.submissions.finding import ensure_apart, find_submissions
    from autograder.submissions.naming import some_of

    ensure_apart(args.directory, args.out)
    known = [unit_of_assignment(name).assignment for name in unit_numbers()]
    wanted = [unit_of_assignment(args.assignment).assignment] if args.assignment else known
    entries, strays = find_submissions(args.directory, wanted, _work(), known)
    places = [args.out / "feedback", *(args.out / "results" / name for name in wanted)]
    ensure_writable(args.out, *places)
    secret = class_secret(args.out, args.secret)
    handover = Handover(args.out, args.gradebook, args.accept_lower)
    before = handover.marks()
    settings = classroom.Settings(
        args.out,
        secret,
        args.jobs,
        args.round,
        args.force,
        rung=rung_of(args),
        trust=args.trust,
        marks=before,
    )
    out = report.console()
    with only_run(args.out):
        entries, mixed = told_apart(entries, args.out)
        with report.Watcher(out, args.accept_lower) as watch:
            results = classroom.grade_class(entries, settings, watch, watch.warn, watch.confirm)
        marks = handover.publish(entries, results)
    # what is held back is made already, and not forced to be made again
    watch.command = f"./course {args.typed.replace(' --force', '')} --accept-lower"
    report.print_class(out, results, watch)
    said = [f"Not looked at: {some_of(strays, 20)}."] if strays else []
    said += [mixed, *changes(args.out, handover.lost, before, marks)]
    said += [report.look_again(marks, results), report.earlier(all_results(args.out), results)]
    said += map(report.by_hand, sorted({result.assignment for result in results}))
    report.tell(out, *said)
    print(f"grades: {args.out / 'grades.csv'}; pages: {args.out / 'feedback'}")
    print(handover.how_to_grade_by_hand())
    left_out = any([mixed, *watch.held, *damaged_results(args.out)])
    failed = left_out or any(result.status == INFRASTRUCTURE for result in results)
    return FAILED if failed else OK


def _work() -> Callable[[str, bytes], object]:
    """What tells the work in an assignment's notebook; asked only where there are two."""
    from autograder.grader import source_notebook, unit_of_assignment
    from autograder.submissions.cells import Node, read_notebook
    from autograder.submissions.ingest import work

    @cache
    def master(assignment: str) -> Node:
        notebook: Node = read_notebook(source_notebook(unit_of_assignment(assignment)))
        return notebook

    return lambda assignment, data: work(data, master(assignment))


def _add_feedback(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = commands.add_parser(
        "feedback",
        help="write the pages again after grading by hand",
        description="Write the students' pages and grades.csv again, with the points and comments"
        " that people gave in nbgrader's formgrader and with its late penalties. Nothing is graded:"
        " ./course grade does the same for what is in its folder, after it has graded that.",
        epilog="example: ./course feedback",
    )
    add_out(command, "where results are and pages go", "build")
    add_accept_lower(command)
    add_gradebook(command)
    command.set_defaults(run=_feedback)


def _feedback(args: argparse.Namespace) -> int:
    from autograder import report
    from autograder.changed import changes
    from autograder.gradebook.handover import Handover
    from autograder.records.locks import only_run
    from autograder.records.results import all_results, damaged_results

    results = list(all_results(args.out))
    if not results:
        raise ValueError(
            f"There are no results in {args.out}; grade first (./course grade DIR), or name the"
            " folder with --out."
        )
    out = report.console()
    with only_run(args.out):
        handover = Handover(args.out, args.gradebook, args.accept_lower)
        before = handover.marks()
        with report.Watcher(out, doing="pages", say=lambda one: one.assignment) as watch:
            marks = handover.publish([], results, watch)
    report.tell(out, *changes(args.out, handover.lost, before, marks))
    print(f"grades: {args.out / 'grades.csv'}; pages: {args.out / 'feedback'}")
    return FAILED if damaged_results(args.out) else OK


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
    from autograder import demo

    return demo.grade_demo(args.out, args.jobs)


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
    from autograder import lab
    from autograder.submissions.cells import tidy

    paths = args.notebooks or sorted(lab.ROOT.glob("notebooks/*/*.ipynb"))
    untidy = [path for path in paths if not tidy(path, check=args.check)]
    for path in untidy:
        print(f"{path} {'is not tidy' if args.check else 'was rewritten'}")
    return FAILED if args.check and untidy else OK


if __name__ == "__main__":
    end_at_interrupt()
    print_in_any_encoding()  # names in any script
    sys.exit(main())
