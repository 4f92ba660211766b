"""The engine: every rank runs its list of a `Schedule`, action by action, on real tensors.

One engine for every schedule: what it does follows from the list alone. GPipe (Huang et al. 2019,
section 2.2), 1F1B (Narayanan et al. 2021, "Efficient large-scale language model training on GPU
clusters", section 2.2.1) and a student's list differ in nothing but their order.
"""

import hashlib
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge, get_gradient_edge

from mpedu.announce import Announcement, Announcer, Spec, Stage, takes_key
from mpedu.boxes import N_AHEAD, Expected, Inbox, Outbox, tag_of
from mpedu.clocks import DeviceClock, Stopwatch
from mpedu.comm import Comm, Link
from mpedu.keyed import Key
from mpedu.schedule import Action, Schedule, actions_of, stage_to_rank
from mpedu.simulate import Costs, Span
from mpedu.traffic import Message, messages, unsent_limit
from mpedu.validate import validate_schedule

Batch = tuple[Tensor, Tensor]
NAMES = {"F": "activations", "B": "gradient"}


class StepResult(NamedTuple):
    """What a rank knows after a step.

    loss: summed loss / number of targets that count, the same on every rank; aux: the sum over
    stages and micro-batches, likewise. n_tokens: that number.
    peak_in_flight: the most activations this rank held, in (stage, micro-batch) units.
    spans: what this rank ran when; start_s, end_s: of the whole step on this rank.
    outputs: per micro-batch, where asked for, on the rank of the last stage. input_gradient: on the
    rank of stage 0, where the inputs need one.
    """

    loss: float
    aux: float
    n_tokens: int
    peak_in_flight: int
    spans: list[Span]
    start_s: float
    end_s: float
    outputs: list[Tensor]
    input_gradient: Tensor | None


class _Held(NamedTuple):
    """What a forward leaves for its backward."""

    x: Tensor
    y: GradientEdge | None  # its node only: the data of y is freed once it is sent
    scalars: list[Tensor]  # the loss on the last stage, aux where a stage has one
    buffer: Tensor | None  # the receive buffer that x is


class PipelineEngine:
    """Runs one rank of a pipeline of `schedule`; the same on every rank but for `stages`.

    stages: this rank's stages by their number. A stage is called stage(x, key), or stage(x) where
    it takes one argument, and returns y or (y, aux), aux being a scalar.
    loss(y, targets): the SUMMED loss of a micro-batch. count(targets): how many targets count.
    Backward runs from sum of losses / count of the whole batch, plus aux_weight / n_microbatches
    times the sum of aux; gradients add up in the parameters' .grad.
    costs: emulate devices on which actions take so long; see `DeviceClock`.
    ValueError, on every rank and before any message: a schedule that is not legal, of another
    number of ranks, or with other work than F and B; other stages than the schedule gives the rank.
    """

    def __init__(
        self,
        schedule: Schedule,
        comm: Comm,
        stages: Mapping[int, Stage],
        loss: Callable[[Tensor, Tensor], Tensor],
        count: Callable[[Tensor], int],
        aux_weight: float = 0.0,
        costs: Costs | None = None,
        keep_outputs: bool = False,
    ) -> None:
        _check(schedule, comm, stages)
        self.schedule, self.comm, self.stages = schedule, comm, dict(stages)
        self._loss, self._keep_outputs, self._costs = loss, keep_outputs, costs
        self._owner = stage_to_rank(schedule)
        self._n_stages = len(self._owner)
        self._n_microbatches = 1 + max(action.microbatch for _, action in actions_of(schedule))
        self._aux_scale = aux_weight / self._n_microbatches
        self._takes_key = {number: takes_key(stage) for number, stage in stages.items()}
        self._announcer = Announcer(comm, self._owner, self.stages, self._n_microbatches, count)
        self._limit = unsent_limit(schedule, N_AHEAD)
        self._outgoing: dict[Action, Message] = {}
        self._incoming: dict[Link, list[Message]] = defaultdict(list)
        links = set()
        for message in messages(schedule):
            links.add(message.link)
            if message.link.source == comm.rank:
                self._outgoing[message.sender] = message
            if message.link.destination == comm.rank:
                self._incoming[message.link].append(message)
        self._link_of = {m.receiver: m.link for ms in self._incoming.values() for m in ms}
        self._channels = comm.channels(links)

    def run(self, batch: Batch | None, seed: int = 0, step: int = 0) -> StepResult:
        """One step: every action of this rank's list. Every rank calls it.

        batch: (inputs, targets), both [n_samples, ...]; read on the rank of stage 0, None elsewhere
        will do. Micro-batches take the samples in order; sizes differ by at most 1, larger first.
        seed, step: go into the `Key` of each micro-batch.
        ValueError, on every rank: fewer samples than micro-batches, no target that counts.
        """
        announced = self._announcer.announce(batch, stamp=self._costs is not None)
        return _Step(self, announced, batch, seed, step).run()


class _Step:
    """One step of an engine on this rank."""

    def __init__(
        self,
        engine: PipelineEngine,
        announced: Announcement,
        batch: Batch | None,
        seed: int,
        step: int,
    ) -> None:
        self.engine, self.announced, self.seed, self.step = engine, announced, seed, step
        self.device = engine.comm.device
        self.start_s = time.perf_counter()
        self.clock: Stopwatch | DeviceClock = Stopwatch(engine.comm.rank, self.device)
        if engine._costs is not None:
            self.start_s = announced.start_ns / 1e9
            self.clock = DeviceClock(engine._costs, engine.comm.rank, self.start_s)
        self.inputs, self.targets = engine._announcer.parts(batch, announced)
        self.inputs_need_gradient = batch is not None and batch[0].requires_grad
        self.inboxes = {
            link: Inbox(engine._channels[link], self._expected(ms), self.device, self._stamped)
            for link, ms in engine._incoming.items()
        }
        self.outbox = Outbox(engine._limit)
        self.held: dict[tuple[int, int], _Held] = {}
        self.local: dict[tuple[str, int, int], Tensor] = {}
        self.peak = 0
        self.losses = torch.zeros(2, dtype=torch.float64, device=self.device)  # summed loss, aux
        self.outputs: dict[int, Tensor] = {}
        self.input_gradients: dict[int, Tensor] = {}

    @property
    def _stamped(self) -> bool:
        return self.engine._costs is not None

    def _expected(self, incoming: list[Message]) -> list[Expected]:
        n_microbatches = self.engine._n_microbatches
        return [
            Expected(tag_of(m.receiver, n_microbatches), self._spec(m.receiver), _what(m.receiver))
            for m in incoming
        ]

    def _spec(self, receiver: Action) -> Spec:
        announcer = self.engine._announcer
        of = announcer.input_spec if receiver.kind == "F" else announcer.output_spec
        return of(receiver.stage, receiver.microbatch)

    def run(self) -> StepResult:
        comm = self.engine.comm
        for action in self.engine.schedule[comm.rank]:
            if action.kind == "F":
                self._forward(action)
            else:
                self._backward(action)
        self.outbox.drain()
        self.engine._announcer.finish()
        spans = self.clock.spans()
        end_s = time.perf_counter()
        loss, aux = comm.all_reduce(self.losses).tolist()
        gradients = [self.input_gradients[m] for m in sorted(self.input_gradients)]
        return StepResult(
            loss / self.announced.divisor,
            aux,
            self.announced.divisor,
            self.peak,
            spans,
            self.start_s,
            end_s,
            [self.outputs[m] for m in sorted(self.outputs)],
            torch.cat(gradients) if gradients else None,
        )

    def _forward(self, action: Action) -> None:
        _, number, microbatch = action
        x, stamp_s, buffer = self._input(action)
        self.clock.start(stamp_s)
        stage = self.engine.stages[number]
        key = Key(self.seed, self.step, microbatch)
        made = stage(x, key) if self.engine._takes_key[number] else stage(x)
        y, aux = made if isinstance(made, tuple) else (made, None)
        scalars = []
        if aux is not None:
            self.losses[1] += aux.detach()
            scalars.append(aux * self.engine._aux_scale)
        edge = None
        if number == self.engine._n_stages - 1:
            loss = self.engine._loss(y, self.targets[microbatch])
            self.losses[0] += loss.detach()
            scalars.append(loss / self.announced.divisor)
            if self.engine._keep_outputs:
                self.outputs[microbatch] = y.detach()
        else:
            edge = get_gradient_edge(y) if y.requires_grad else None
        self.held[number, microbatch] = _Held(x, edge, scalars, buffer)
        self.peak = max(self.peak, len(self.held))
        end_s = self.clock.stop(action)
        if number < self.engine._n_stages - 1:
            self._pass_on(action, Action("F", number + 1, microbatch), y.detach(), end_s)

    def _input(self, action: Action) -> tuple[Tensor, float, Tensor | None]:
        """What a forward works on, its sender's clock, and the receive buffer it lies in."""
        _, number, microbatch = action
        if number == 0:
            x = self.inputs[microbatch].detach()
            return x.requires_grad_(self.inputs_need_gradient), 0.0, None
        local = self.local.pop(action, None)
        if local is not None:
            return local.requires_grad_(), 0.0, None
        inbox = self.inboxes[self.engine._link_of[action]]
        buffer, stamp_s = inbox.take()
        inbox.post()
        return buffer.detach().requires_grad_(), stamp_s, buffer

    def _backward(self, action: Action) -> None:
        _, number, microbatch = action
        gradient, stamp_s, inbox = None, 0.0, None
        if number < self.engine._n_stages - 1:
            gradient = self.local.pop(action, None)
            if gradient is None:
                inbox = self.inboxes[self.engine._link_of[action]]
                gradient, stamp_s = inbox.take()
        self.clock.start(stamp_s)
        x, edge, scalars, buffer = self.held.pop((number, microbatch))
        roots: list[Any] = [s for s in scalars if s.requires_grad]  # and a GradientEdge
        weights: list[Tensor | None] = [None] * len(roots)
        if edge is not None:
            roots.append(edge)
            weights.append(gradient)
        if roots:
            torch.autograd.backward(roots, weights)
        del edge, scalars, roots
        end_s = self.clock.stop(action)
        if inbox is not None and gradient is not None:
            inbox.give(gradient)
            inbox.post()
        if buffer is not None:
            self.inboxes[self.engine._link_of[Action("F", number, microbatch)]].give(buffer)
        if number > 0:
            x_gradient = torch.zeros_like(x) if x.grad is None else x.grad
            self._pass_on(action, Action("B", number - 1, microbatch), x_gradient, end_s)
        elif x.grad is not None:
            self.input_gradients[microbatch] = x.grad

    def _pass_on(self, action: Action, receiver: Action, x: Tensor, end_s: float) -> None:
        message = self.engine._outgoing.get(action)
        if message is None:
            self.local[receiver] = x
            return
        stamp = torch.tensor([end_s], dtype=torch.float64) if self._stamped else None
        tag = tag_of(receiver, self.engine._n_microbatches)
        channel = self.engine._channels[message.link]
        self.outbox.send(channel, x, tag, _what(receiver), stamp)


def _what(receiver: Action) -> str:
    kind, number, microbatch = receiver
    return f"{NAMES[kind]} for {kind}{microbatch} of stage {number}"


def _check(schedule: Schedule, comm: Comm, stages: Mapping[int, Stage]) -> None:
    faults = validate_schedule(schedule)
    if faults:
        raise ValueError(f"this schedule cannot run: {faults[0].text}")
    other = {action.kind for _, action in actions_of(schedule)} - {"F", "B"}
    if other:
        kinds = ", ".join(sorted(other))
        raise ValueError(f"this engine runs F and B; the schedule also has {kinds}")
    if len(schedule) != comm.size:
        raise ValueError(
            f"the schedule has lists for {len(schedule)} ranks and {comm.size} run; "
            f"start {len(schedule)} ranks, or make a schedule for {comm.size}"
        )
    due = sorted(stage for stage, rank in stage_to_rank(schedule).items() if rank == comm.rank)
    if sorted(stages) != due:
        raise ValueError(
            f"rank {comm.rank} was given stages {sorted(stages)}; its list works on stages {due}"
        )
    digest = hashlib.sha256(repr(schedule).encode()).digest()
    number = int.from_bytes(digest[:7], "big")
    highest, lowest = comm.all_reduce(torch.tensor([number, -number]), "max").tolist()
    if highest != -lowest:
        raise ValueError("the ranks were given different schedules; give every rank the same")
