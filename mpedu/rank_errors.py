"""What a reader is told when ranks fail: the cause first, its consequences as consequences."""

import linecache
import re
import signal
from collections.abc import Sequence
from pathlib import Path

from mpedu.board import Waiting
from mpedu.ranks import Failed, stacks_file

MOST_FRAMES = 6
HERE = Path(__file__).parent


class RankError(RuntimeError):
    """Ranks failed, died or waited too long; the text names the first cause first.

    failures: the ranks that failed, causes before consequences. waiting: those that waited.
    """

    def __init__(self, text: str, failures: Sequence[Failed], waiting: Sequence[Waiting]) -> None:
        super().__init__(text)
        self.failures = list(failures)
        self.waiting = list(waiting)

    def _render_traceback_(self) -> list[str]:
        """What IPython shows: the sentences alone, since no frame here is the student's."""
        return [f"{type(self).__name__}: {self}"]


class Interrupted(KeyboardInterrupt):
    """Somebody stopped the ranks; the text says what each of them was doing."""

    def _render_traceback_(self) -> list[str]:
        return [f"Stopped: {self}"]


def in_causal_order(failures: Sequence[Failed]) -> list[Failed]:
    """Failures in order of arrival, with those that a dead or failed peer caused at the end."""
    return sorted(failures, key=lambda failed: failed.is_consequence)


def death(rank: int, exit_code: int | None) -> Failed:
    """The failure of a rank whose process ended without a word."""
    if exit_code is not None and exit_code < 0:
        try:
            name = signal.Signals(-exit_code).name
        except ValueError:
            name = f"signal {-exit_code}"
        return Failed(rank, "Died", f"its process was killed by {name}", [], False)
    return Failed(rank, "Died", f"its process ended with exit status {exit_code}", [], False)


def failure_text(failures: Sequence[Failed], waiting: Sequence[Waiting]) -> str:
    """The report on failed ranks: the first in full, the others in a line each."""
    first, *others = in_causal_order(failures)
    lines = [f"rank {first.rank} failed: {_what(first)}"]
    if first.type_name == "Died":
        lines = [f"rank {first.rank} died: {first.message}"]
    lines += [f"  {line}" for line in _frame_lines(first.frames)]
    for failed in others:
        verb = "in consequence" if failed.is_consequence else "then also"
        lines.append(f"  rank {failed.rank}, {verb}: {_what(failed)}")
    return "\n".join([*lines, *waiting_lines(waiting)])


def waiting_lines(waiting: Sequence[Waiting]) -> list[str]:
    """One line for each rank that waits."""
    return [f"  rank {w.rank} waits in {w.text}, for {w.for_s:.1f} s" for w in waiting]


def busy_lines(folder: str, ranks: Sequence[int]) -> list[str]:
    """What ranks that wait for nobody are doing, from the stacks they were asked to write."""
    return [f"  rank {rank} is running{_place(stacks_file(folder, rank))}" for rank in ranks]


def _what(failed: Failed) -> str:
    return failed.message if failed.is_consequence else f"{failed.type_name}: {failed.message}"


def _frame_lines(frames: Sequence[tuple[str, int, str]]) -> list[str]:
    """The frames of the reader's own code, and the innermost of all.

    The source line is read here, since a rank cannot see the cells of a notebook.
    """
    own = [frame for frame in frames[:-1] if not _is_packaged(frame[0])] + list(frames[-1:])
    lines = []
    for file, number, name in own[-MOST_FRAMES:]:
        source = linecache.getline(file, number).strip()
        lines.append(f"{_shown(file)} line {number}, in {name}{': ' + source if source else ''}")
    return lines


def _is_packaged(file: str) -> bool:
    return "site-packages" in file or Path(file).is_relative_to(HERE)


def _shown(file: str) -> str:
    return "cell" if "ipykernel" in file or file.startswith("<") else Path(file).name


def _place(stacks: Path) -> str:
    """Where the main thread is, from what faulthandler wrote: its innermost own frame."""
    try:
        written = stacks.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    last_thread = written.split("(most recent call first):")[-1]  # the main thread comes last
    found = re.findall(r'File "(.+?)", line (\d+) in (.+)', last_thread)
    for file, number, name in found:
        if not _is_packaged(file) and "multiprocessing" not in file:
            return f", at {_frame_lines([(file, int(number), name)])[0]}"
    return ""
