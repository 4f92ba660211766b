"""The command line of the package: `./course doctor`, and what else COMMANDS lists."""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from mpedu.arguments import Parser, end_at_interrupt, parsed, print_in_any_encoding, run_command

# A command NAME is the module mpedu.NAME, with `add_arguments(parser)` and `run(args) -> int`. Only
# the chosen one is imported: `doctor` must work where torch is broken.
COMMANDS = {
    "train": "train a small GPT on a pipeline of real ranks",
    "bench": "time our engine beside torch's",
    "doctor": "say what this machine has, and what to mend",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; the exit status, 2 after one sentence on stderr for a misuse."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    top = Parser(prog="./course", description="The package of the course at work.")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, text in COMMANDS.items():
        command = commands.add_parser(name, help=text)
        if words[:1] == [name]:
            _fill(command, name)
    return run_command(parsed(top, words))


def _fill(command: argparse.ArgumentParser, name: str) -> None:
    module = import_module(f"mpedu.{name}")
    command.set_defaults(run=module.run, parser=command)
    module.add_arguments(command)


if __name__ == "__main__":
    end_at_interrupt()  # a module takes a second to import: time enough to press Ctrl-C
    print_in_any_encoding()
    sys.exit(main())
