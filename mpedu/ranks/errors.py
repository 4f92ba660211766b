"""What a reader is told when ranks fail: the cause first, its consequences as consequences."""

import linecache
import re
import signal
import sys
import sysconfig
import time
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path

from mpedu.ranks.board import Waiting
from mpedu.ranks.outcome import Failed, stacks_file
from mpedu.ranks.outcome import Interrupted as Interrupted  # importable from here too
from mpedu.ranks.outcome import RankError as RankError

MOST_FRAMES = 6
KILLER = "(by somebody, or by the system because memory ran out)"
PACKAGE = Path(__file__).parents[1]
LIBRARY = sysconfig.get_path("stdlib")


def in_causal_order(failures: Sequence[Failed]) -> list[Failed]:
    """Failures in the order they happened, those that a lost peer caused after all others."""
    return sorted(failures, key=lambda failed: (failed.is_consequence, failed.at_s))


def death(rank: int, exit_code: int | None, folder: str, server_died: bool = False) -> Failed:
    """The failure of a rank whose process ended without a word, or its fork server did."""
    frames: list[tuple[str, int, str]] = []
    how = "its process ended" if exit_code is None else f"its process ended with status {exit_code}"
    if server_died:
        how = f"the fork server, from which ranks are started, was killed {KILLER}; call again"
    elif exit_code is not None and exit_code < 0:
        frames = place(folder, rank)
        try:
            name = signal.Signals(-exit_code).name
        except ValueError:
            name = f"signal {-exit_code}"
        how = f"its process was killed by {name}"
        if name == "SIGKILL":
            how += f" {KILLER}"
    return Failed(rank, "Died", how, frames, False, time.monotonic())


def failure_text(failures: Sequence[Failed], waiting: Sequence[Waiting]) -> str:
    """The report on failed ranks: the first in full, the others in a line each."""
    first, *others = in_causal_order(failures)
    verb = "died" if first.type_name == "Died" else "failed"
    lines = [f"rank {first.rank} {verb}: {_what(first)}", *_indented(frame_lines(first.frames))]
    if first.is_consequence:
        lines.append(
            "  (no rank died before that: do all ranks give this operation "
            "the same shape, dtype and tag?)"
        )
    for (consequence, what), alike in groupby(others, lambda f: (f.is_consequence, _what(f))):
        how = "in consequence" if consequence else "then also"
        what = "the same" if what == _what(first) else what
        lines.append(f"  {_ranks([failed.rank for failed in alike])}, {how}: {what}")
    return "\n".join([*lines, *waiting_lines(waiting)])


def waiting_lines(waiting: Sequence[Waiting], folder: str = "") -> list[str]:
    """One line for each rank that waits; with the place in its program from `folder`, if given."""
    lines = []
    for w in waiting:
        at = _at(folder, w.rank) if folder else ""
        lines.append(f"  rank {w.rank} waits in {w.text}, for {w.for_s:.1f} s{at}")
    return lines


def stopped_lines(pids: Mapping[int, int]) -> list[str]:
    """What to do about ranks whose processes, given by rank, are stopped."""
    return [
        f"  rank {rank} is stopped, by a signal or a debugger; kill -CONT {pid} lets it go on"
        for rank, pid in pids.items()
    ]


def busy_lines(folder: str, ranks: Sequence[int]) -> list[str]:
    """What ranks that wait for nobody are doing, from the stacks they were asked to write."""
    return [f"  rank {rank} is running{_at(folder, rank)}" for rank in ranks]


def place(folder: str, rank: int) -> list[tuple[str, int, str]]:
    """Where a rank's main thread is, or was as it crashed: its innermost own frame, if it has one.

    From what faulthandler wrote for it.
    """
    try:
        written = stacks_file(folder, rank).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    last_thread = written.split("(most recent call first):")[-1]  # the main thread comes last
    found = re.findall(r'File "(.+?)", line (\d+) in (.+)', last_thread)
    return own_frames([(file, int(number), name) for file, number, name in found])[:1]


def frame_lines(frames: Sequence[tuple[str, int, str]]) -> list[str]:
    """The frames of the reader's own code, and the innermost of all.

    The source line is read here, since a rank cannot see the cells of a notebook.
    """
    own = own_frames(frames[:-1]) + list(frames[-1:])
    lines = []
    for file, number, name in own[-MOST_FRAMES:]:
        source = linecache.getline(file, number).strip()
        lines.append(f"{_shown(file)} line {number}, in {name}{': ' + source if source else ''}")
    return lines


def own_frames(frames: Sequence[tuple[str, int, str]]) -> list[tuple[str, int, str]]:
    """Those of the reader's own code."""
    return [frame for frame in frames if not _is_packaged(frame[0])]


def _what(failed: Failed) -> str:
    if failed.is_consequence or failed.type_name == "Died":
        return failed.message
    return f"{failed.type_name}: {failed.message}" if failed.message else failed.type_name


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _ranks(ranks: Sequence[int]) -> str:
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))}"


def _at(folder: str, rank: int) -> str:
    return "".join(f", at {line}" for line in frame_lines(place(folder, rank)))


def _is_packaged(file: str) -> bool:
    outside = "site-packages" in file or file.startswith((LIBRARY, "<frozen"))
    return outside or Path(file).is_relative_to(PACKAGE)


def _shown(file: str) -> str:
    """What a reader calls a file: "Cell In[5]" in a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    named = shell.compile.format_code_name(file) if shell is not None else None
    if named:
        return " ".join(named)
    return "cell" if "ipykernel" in file or file.startswith("<") else Path(file).name
