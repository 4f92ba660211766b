"""When each action ran: on the CPU, on a GPU, or on an emulated device."""

import time

import torch

from mpedu.schedule import Action
from mpedu.simulate import Costs, Span


class Stopwatch:
    """Times actions on this rank's device, in seconds of `time.perf_counter`.

    A GPU works behind the program's back: its spans come from events on its stream.
    """

    def __init__(self, rank: int, device: str) -> None:
        self._rank, self._on_gpu = rank, device != "cpu"
        self._marks: list[tuple[Action, float, float]] = []
        self._events: list[tuple[Action, torch.cuda.Event, torch.cuda.Event]] = []
        if self._on_gpu:
            torch.cuda.synchronize()
            self._zero = _event()
        self._zero_s = time.perf_counter()

    def start(self, _stamp_s: float | None) -> None:
        """Marks that the next action starts, whose input is there."""
        if self._on_gpu:
            self._started = _event()
        self._started_s = time.perf_counter()

    def stop(self, action: Action) -> float:
        """Marks that it has ended; the time."""
        now_s = time.perf_counter()
        if self._on_gpu:
            self._events.append((action, self._started, _event()))
        else:
            self._marks.append((action, self._started_s, now_s))
        return now_s

    def spans(self) -> list[Span]:
        """What ran when, in order."""
        if self._on_gpu:
            torch.cuda.synchronize()
            self._marks = [
                (
                    action,
                    self._zero_s + _after_s(self._zero, a),
                    self._zero_s + _after_s(self._zero, b),
                )
                for action, a, b in self._events
            ]
        return [Span(self._rank, *action, start_s, end_s) for action, start_s, end_s in self._marks]


def _event() -> torch.cuda.Event:
    event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    event.record()
    return event


def _after_s(zero: torch.cuda.Event, event: torch.cuda.Event) -> float:
    return float(zero.elapsed_time(event)) / 1000


class DeviceClock:
    """An emulated device: every action ends a fixed time after its input came and it was free.

    costs: seconds of each action. Each message carries its sender's clock; the rank sleeps until
    the action's end on that clock, so that a late wake-up shortens the next sleep instead of adding
    up. This shows the order of the work and its bubble for many devices on few cores. It does NOT
    show this machine's speed, and is blind to a slow engine.
    """

    def __init__(self, costs: Costs, rank: int, start_s: float) -> None:
        self._costs, self._rank = costs, rank
        self._free_s, self._input_s = start_s, 0.0
        self._spans: list[Span] = []

    def start(self, stamp_s: float | None) -> None:
        """Marks that the next action's input was sent at `stamp_s` (None: it was there before)."""
        self._input_s = 0.0 if stamp_s is None else stamp_s + float(self._costs.latency_s)

    def stop(self, action: Action) -> float:
        """Sleeps until the action's end on the emulated device; that time."""
        start_s = max(self._free_s, self._input_s)
        self._free_s = start_s + float(self._costs.of(action))
        self._spans.append(Span(self._rank, *action, start_s, self._free_s))
        time.sleep(max(0.0, self._free_s - time.perf_counter()))
        return self._free_s

    def spans(self) -> list[Span]:
        """What ran when on the emulated device, in order."""
        return self._spans
