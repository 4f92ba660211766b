"""What all commands of ./course have in common: how they read words, complain and end."""

import argparse
import io
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

from mpedu.faults import Failure

ROOT = Path(__file__).resolve().parents[1]
OK, FAILED, MISUSED, INTERRUPTED = 0, 1, 2, 130


class Parser(argparse.ArgumentParser):
    """A parser that complains as everything here does: "course grade: one sentence."."""

    def error(self, message: str) -> NoReturn:
        """Prints the usage and the message; exit status 2."""
        self.print_usage(sys.stderr)
        self.exit(MISUSED, f"{self.prog.removeprefix('./')}: {message}\n")


def parsed(
    top: argparse.ArgumentParser, arguments: Sequence[str] | None = None
) -> argparse.Namespace:
    """The arguments, once they are all known; the command's own usage if one is not.

    Every command of `top` has itself as the default `parser`, and what runs it as `run`.
    """
    args, unknown = top.parse_known_args(arguments)
    if unknown:
        args.parser.error(f"{' '.join(unknown)} is not known; the usage above lists what is")
    return args


def end_at_interrupt() -> None:
    """Nothing; until a command runs, Ctrl-C ends this process at once with one line.

    An exception out of the middle of an import would be a traceback, or get lost there.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is to be ignored
        signal.signal(signal.SIGINT, _end)


def run_command(args: argparse.Namespace, stopped: str = "stopped.") -> int:
    """The exit status of `args.run(args)`: 2 after one sentence on stderr for a misuse.

    A Failure gives 1; Ctrl-C, a polite kill or a closed terminal 130 and the sentence `stopped`.
    """
    signal.signal(signal.SIGTERM, _interrupt)
    hang_up = getattr(signal, "SIGHUP", None)  # Windows has none
    if hang_up is not None and signal.getsignal(hang_up) != signal.SIG_IGN:  # as nohup sets it
        signal.signal(hang_up, _interrupt)
    try:
        if signal.getsignal(signal.SIGINT) is _end:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        status: int = args.run(args)
        return status
    except KeyboardInterrupt:
        return _complain(args, stopped, INTERRUPTED)
    except ValueError as error:
        return _complain(args, error, MISUSED)
    except Failure as error:
        return _complain(args, error, FAILED)
    except OSError as error:
        status = MISUSED if isinstance(error, FileNotFoundError) else FAILED
        return _complain(args, f"{error.filename or 'A file'}: {error.strerror}.", status)


def print_in_any_encoding() -> None:
    """Nothing; from now on what a terminal cannot show is printed as an escape, not an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _end(_number: int, _frame: FrameType | None) -> None:
    with suppress(OSError):
        os.write(2, f"course {' '.join(sys.argv[1:2])}: stopped.\n".encode(errors="replace"))
    os._exit(INTERRUPTED)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _complain(args: argparse.Namespace, error: object, status: int) -> int:
    with suppress(OSError):  # a closed terminal takes no words
        print(f"course {args.command}: {error}", file=sys.stderr)
    return status
