"""Two walled processes in turns: whoever has no turn is stopped, and the clock is the judge's."""

import mmap
import os
import secrets
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from fcntl import F_ADD_SEALS, F_SEAL_GROW, F_SEAL_SEAL, F_SEAL_SHRINK, fcntl
from typing import TYPE_CHECKING, Any

import numpy as np

from autograder.diagnosis import StudentError
from autograder.memory import Peaks
from autograder.sandbox.parent import Parent
from autograder.sandbox.rank_checks import REPORTED, is_trouble, shape_of
from autograder.sandbox.rungs import SandboxError
from autograder.sandbox.shown import shown
from autograder.speed import TooNoisy, Turn, parted
from autograder.worker.protocol import encode
from autograder.worker.timed import MOST_ANSWER_BYTES, NUMBERS, Array, array_at, places

if TYPE_CHECKING:
    from autograder.sandbox.remote import RemoteSubject

_OBEY_S = 20.0  # for a guardian to stop a process or let it go on
_CORE_S = 600.0  # to wait for a core
_LOOK_S = 0.05


@contextmanager
def _of_ours() -> Iterator[None]:
    """Inside, what a process of the reference does wrong is not the student's fault.

    But that there is no memory: the student's process, which shares it, has left none.
    """
    try:
        yield
    except StudentError as error:
        if error.kind == "out_of_memory":
            raise
        if error.kind == "timeout":
            raise TooNoisy(f"the reference got too little time: {error.message}") from None
        raise RuntimeError(f"the reference gives no answer: {error.message}") from None


class RemoteTurns:
    """A student's process and two of the reference, all standing still outside their turns."""

    shows_seconds = False

    def __init__(
        self, student: "Lane", references: "Sequence[Lane]", record: dict[str, Any]
    ) -> None:
        self._student, self._references, self.measured = student, references, record

    @property
    def cpu_outside_s(self) -> float:
        """Seconds of processor time that the student's process used outside its intervals."""
        return self._student.cpu_outside_s

    def quiet(self) -> AbstractContextManager[None]:
        """While no more speed tests run on this machine than it has cores."""
        return one_core()

    def reference(self, which: int, arguments: Sequence[Any]) -> Turn:
        """A turn of a reference; TooNoisy or RuntimeError where it gives no answer."""
        with _of_ours():
            return self._references[which].turn(arguments)

    def student(self, arguments: Sequence[Any]) -> Turn:
        """A turn of the student's function; StudentError where it gives no answer."""
        return self._student.turn(arguments)


class Observed:
    """What the functions of a student's process cost, as the operating system sees it.

    ValueError for a process that may have others or threads, where not all would be seen.
    """

    def __init__(self, student: "RemoteSubject", parent: Parent) -> None:
        if not student._is_alone:
            raise ValueError('time and memory need an exercise with the evidence "observed"')
        self._student, self._parent = student, parent

    def turns(self, name: str, reference: str, example: tuple[Any, ...]) -> RemoteTurns:
        """The function of that name, and the reference of that source in processes of its own."""
        # Two: with one, whoever comes after itself would find its own work in the caches.
        references = [self._fresh([("reference", reference)], name) for _ in range(2)]
        self._student._rivals += references
        student = Lane(self._student, name, example)
        with _of_ours():
            lanes = [Lane(one, name, example) for one in references]
        return RemoteTurns(student, lanes, self._student.measured.setdefault(name, {}))

    def peaks(
        self, name: str, reference: str, arguments: tuple[Any, ...]
    ) -> tuple[Peaks, Any, Any]:
        """Memory of one call of that function and of the reference, and both answers."""
        ours = [("reference", reference)]
        with _of_ours():
            idle, _ = _peak_bytes(self._fresh(ours, name), name, arguments, calls=False)
            most, expected = _peak_bytes(self._fresh(ours, name), name, arguments)
        used, got = _peak_bytes(self._fresh(self._student._cells, name), name, arguments)
        found = Peaks(used - idle, most - idle)
        self._student.measured[f"{name}, memory"] = found._asdict()
        return found, expected, got

    def _fresh(self, cells: Any, name: str) -> "RemoteSubject":
        """A process of the same kind."""
        kind = type(self._student)
        return kind(self._parent, cells, (name,), self._student._limits, alone=True)


def _peak_bytes(
    subject: "RemoteSubject", name: str, arguments: tuple[Any, ...], calls: bool = True
) -> tuple[int, Array | None]:
    """The most memory a process has taken in its life, with one call or none, and the answer."""
    with subject:
        lane = Lane(subject, name, arguments)
        answer = lane.turn(arguments).answer if calls else None
        report = subject._end_process()
    if report is None:
        raise SandboxError("a process ended without a report of its memory")
    return report.peak_bytes, answer


class Lane:
    """One process with memory that only it and the judge have; stopped but for its turns."""

    def __init__(self, subject: "RemoteSubject", name: str, example: Sequence[Any]) -> None:
        self.cpu_outside_s = 0.0
        self._subject = subject
        self._limits = subject._limits
        plain, at, forms = parted(example)
        starts = places(forms)
        descriptor = _memory(starts[-1])
        try:
            self._share(descriptor, (name, plain, at, forms))
            self._map = mmap.mmap(descriptor, starts[-1])
        finally:
            os.close(descriptor)
        self._answer_at = starts[-2]
        self._at = at
        self._places = [array_at(self._map, *each) for each in zip(starts, forms, strict=False)]
        self._kept = np.empty(0, np.uint8)
        self._pause()

    def _share(self, descriptor: int, what: tuple[Any, ...]) -> None:
        one = self._subject
        one._require_process()
        with one._losing(self._limits.call_s) as limit_s:
            channel = one._process.channel
            channel.send(("timed", *what), limit_s)
            self._expect(channel.receive(limit_s), ("memory",))
            socket.send_fds(channel.sock, [b"."], [descriptor])
            self._expect(channel.receive(limit_s), ("prepared",))

    def _expect(self, reply: Any, expected: tuple[str]) -> None:
        if type(reply) is not tuple or len(reply) != 1 or type(reply[0]) is not str:
            reply = None
        if reply != expected:
            self._subject._lose("crashed", "your code broke the connection to the judge.")

    def turn(self, arguments: Sequence[Any]) -> Turn:
        """One call: seconds from before the arrays are there until the answer is copied out.

        The answer lies in memory that the next turn uses again. StudentError as of a plain call.
        """
        one, number = self._subject, secrets.randbits(62)
        if one._error:
            raise StudentError(one._error.kind, one._error.message)
        channel, go = one._process.channel, [encode(("go", number), envelope=1)]
        arrays = [arguments[at] for at in self._at]
        before_s = self._command(one._process.go_on)
        with one._losing(self._limits.call_s) as limit_s:
            start = time.perf_counter()
            for place, array in zip(self._places, arrays, strict=True):
                place[...] = array
            channel.send_frames(go, limit_s)
            reply = channel.receive(limit_s)
            answer = self._copied(reply, number)
            seconds = time.perf_counter() - start
        used_s = self._pause() - before_s
        self.cpu_outside_s += max(0.0, used_s - seconds)
        if answer is None:
            kind, message, type_name, line = reply[2:]
            raise StudentError(kind, shown(message), shown(type_name), line)
        return Turn(seconds, answer)

    def _copied(self, reply: Any, number: int) -> Array | None:
        """A copy of the answer, None for a reply that tells of trouble."""
        parts = list(reply) if type(reply) is tuple else []
        # types first: what was sent may be an array, and compare as one
        if [type(part) for part in parts[:2]] == [str, int] and parts[1] == number:
            if parts[0] == "trouble" and is_trouble(tuple(parts[2:]), REPORTED):
                return None
            if parts[0] == "done" and len(parts) == 4:
                form = self._form(*parts[2:])
                if form is not None:
                    return self._copy(array_at(self._map, self._answer_at, form))
        self._subject._lose("crashed", "your code broke the connection to the judge.")

    def _form(self, dtype: Any, shape: Any) -> tuple[str, tuple[int, ...]] | None:
        """Dtype and shape as they were sent, None where no answer has them."""
        try:
            known = type(dtype) is str and dtype[0] in "<|" and dtype[1:] in NUMBERS
            form = dtype, shape_of(shape)
            n_bytes = np.dtype(dtype).itemsize if known else MOST_ANSWER_BYTES + 1
            for length in form[1]:
                n_bytes *= length
        except Exception:
            return None
        return form if n_bytes <= MOST_ANSWER_BYTES else None

    def _copy(self, answer: Array) -> Array:
        if self._kept.nbytes != answer.nbytes:
            self._kept = np.empty(answer.nbytes, np.uint8)
        copy = self._kept.view(answer.dtype).reshape(answer.shape)
        copy[...] = answer
        if copy.dtype == bool and copy.view(np.uint8).max(initial=0) > 1:
            self._subject._lose("crashed", "your code broke the connection to the judge.")
        return copy

    def _pause(self) -> float:
        return self._command(self._subject._process.stop)

    def _command(self, command: Callable[[float], float]) -> float:
        try:
            return command(_OBEY_S)
        except EOFError:
            self._subject._lose(*self._subject._why_ended())


def _memory(n_bytes: int) -> int:
    """A descriptor of memory whose size nobody can change: cut off, it would kill its reader."""
    descriptor = os.memfd_create("turns", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, n_bytes)
    fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
    return descriptor


@contextmanager
def one_core(wait_s: float = _CORE_S, of: str = "mpedu speed test") -> Iterator[None]:
    """While this process may run a speed test: at most one at a time per core of this machine.

    A name of a socket is the lock: the kernel frees it with its holder, however that ends, and it
    leaves no file. TooNoisy when no core gets free in time.
    """
    deadline = time.monotonic() + wait_s
    while True:
        for core in range(len(os.sched_getaffinity(0))):
            with socket.socket(socket.AF_UNIX) as lock:
                try:
                    lock.bind(f"\0{of} {core}")
                except OSError:
                    continue  # another one's
                yield
                return
        if time.monotonic() > deadline:
            raise TooNoisy(f"no core was free for a speed test within {wait_s:g} s.")
        time.sleep(_LOOK_S)
