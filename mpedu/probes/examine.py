"""All probes at once, each within a time limit: a probe that fails is a line like any other."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import NamedTuple

from mpedu.probes import Answer, Ask, Finding, Mark, machine, programs, walls

_DIES_WITHIN_S = 5.0
LIMIT_S = 60.0  # a loaded machine needs many seconds to import torch


class Probe(NamedTuple):
    """What looks, what it is about, and the mark for when it fails or does not answer."""

    about: str
    look: Callable[[], Finding | Iterable[Finding]]
    failing: Mark = "note"


class Programs:
    """The programs that probes have started; none outlives `close`."""

    def __init__(self, limit_s: float) -> None:
        self._end_s = time.monotonic() + limit_s
        self._started: list[subprocess.Popen[str]] = []

    def ask(self, words: Sequence[str]) -> Answer:
        """What the program answers before the time limit; see `Ask`."""
        with subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        ) as process:
            self._started.append(process)
            try:
                text, _ = process.communicate(timeout=max(self._end_s - time.monotonic(), 0.0))
            except subprocess.TimeoutExpired:
                _kill(process)
                return Answer(None, "")
            return Answer(process.returncode, text)

    def close(self) -> None:
        """Ends what still runs, with all that it started."""
        self._end_s = 0.0  # for one that is just being started
        for process in self._started:
            _kill(process)


def _kill(process: "subprocess.Popen[str]") -> None:
    if process.poll() is not None:
        return
    with suppress(ProcessLookupError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_DIES_WITHIN_S)


def probes(ask: Ask, root: Path, n_cores: int, n_gpus: int) -> tuple[Probe, ...]:
    """All probes, in the order of the report; `root` is the checkout."""
    return (
        Probe("system", machine.system),
        Probe("Python", machine.python),
        Probe("packages", machine.packages, "mend"),
        Probe("PyTorch", partial(programs.pytorch, ask, n_gpus), "mend"),
        Probe("start of real ranks", partial(programs.ranks, ask), "mend"),
        Probe("cores", partial(machine.cores, n_cores)),
        Probe("memory", machine.memory),
        Probe("shared memory", machine.shared_memory),
        Probe("JupyterLab", partial(programs.lab, ask), "mend"),
        Probe("kernels", partial(programs.kernels, ask), "mend"),
        Probe("text encoding", machine.encoding),
        Probe("checkout", partial(machine.checkout, root)),
        Probe("disk", partial(machine.disk, root)),
        Probe("temporary files", machine.temporary),
        Probe("grader's walls", partial(walls.walls, ask)),
    )


def examine(root: Path, n_cores: int, n_gpus: int, limit_s: float = LIMIT_S) -> Iterator[Finding]:
    """What every probe finds, in their order, each as soon as it and those before it are known."""
    # A program's time ends before its probe's, so that the line can say which program is too slow.
    with closing(Programs(limit_s - _DIES_WITHIN_S)) as started:
        yield from look(probes(started.ask, root, n_cores, n_gpus), limit_s)


def look(probes: Iterable[Probe], limit_s: float) -> Iterator[Finding]:
    """The findings of `probes`, which all look at the same time."""
    end_s = time.monotonic() + limit_s
    waiting = [(probe, _begin(probe)) for probe in probes]
    for probe, answers in waiting:
        try:
            yield from answers.get(timeout=max(end_s - time.monotonic(), 0.0))
        except Empty:
            found = f"no answer within {limit_s:g} s"
            yield Finding(probe.failing, probe.about, found, "try again when less else is running")


def _begin(probe: Probe) -> "SimpleQueue[list[Finding]]":
    """Where the findings will be. In a thread that nobody waits for: a dead disk never answers."""
    answers: SimpleQueue[list[Finding]] = SimpleQueue()
    threading.Thread(target=lambda: answers.put(_findings(probe)), daemon=True).start()
    return answers


def _findings(probe: Probe) -> list[Finding]:
    try:
        found = probe.look()
        return [found] if isinstance(found, Finding) else list(found)
    except Exception as error:  # whatever is broken here is what the doctor is asked about
        text = f"cannot be found out ({type(error).__name__}: {error})"
        return [Finding(probe.failing, probe.about, text, "tell whoever teaches the course")]
