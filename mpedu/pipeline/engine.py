"""The engine: every rank runs its list of a `Schedule`, action by action, on real tensors.

One engine for every schedule: what it does follows from the list alone. GPipe (Huang et al. 2019,
section 2.2), 1F1B (Narayanan et al. 2021, section 2.2.1) and a student's list differ in order only.
"""

import hashlib
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge, get_gradient_edge

from mpedu.comm import Comm, Link
from mpedu.deferred import WeightQueue, deferring, opened
from mpedu.keyed import Key
from mpedu.pipeline.announce import Announcement, Announcer, Batch
from mpedu.pipeline.boxes import N_AHEAD, Inbox, Outbox
from mpedu.pipeline.clocks import DeviceClock, Stopwatch
from mpedu.pipeline.stages import Spec, Stage, require_spec, takes_key, unpacked
from mpedu.pipeline.traffic import Message, messages, unsent_limit
from mpedu.schedule import Action, Schedule, actions_of, stage_to_rank
from mpedu.simulate import Costs, Span
from mpedu.validate import validate_schedule


class StepResult(NamedTuple):
    """What a rank knows after a step.

    loss: summed loss / number of targets that count, the same on every rank; n_tokens: that
    number. aux: the sum over micro-batches and this rank's own stages.
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
    owed: WeightQueue | None  # where the backward is split


class PipelineEngine:
    """Runs one rank of a pipeline of `schedule`; the same on every rank but for `stages`.

    stages: this rank's stages by their number. A stage is called stage(x, key) where its second
    argument is required or named `key` (a `mpedu.keyed.Key`), else stage(x), and returns y or
    (y, aux), aux being a scalar. For inputs of one shape y is always of one shape and dtype, which
    a run on zeros finds before the first step. A stage must not change x in place.
    loss(y, targets): the SUMMED loss of a micro-batch. count(targets): how many targets count.
    Backward runs from sum of losses / count of the whole batch, plus aux_weight / n_microbatches
    times the sum of aux; gradients add up in the parameters' .grad.
    costs: emulate devices on which actions take so long; see `DeviceClock`.
    Where a backward is split, W computes the weight products of our layers (`mpedu.deferred`), I
    all the rest; of a stage without such layers I does everything, and its W nothing.
    ValueError before any message: a schedule that is not legal, or of another number of ranks;
    stages that are not the rank's.
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
        owner = stage_to_rank(schedule)
        n_microbatches = 1 + max(action.microbatch for _, action in actions_of(schedule))
        self._last_stage = len(owner) - 1
        self._aux_scale = aux_weight / n_microbatches
        own = schedule[comm.rank]
        self._split = {(a.stage, a.microbatch) for a in own if a.kind == "I"}
        self._takes_key = {number: takes_key(stage) for number, stage in stages.items()}
        self._announcer = Announcer(comm, owner, self.stages, n_microbatches, count)
        self._limit = unsent_limit(schedule, N_AHEAD)
        sent = messages(schedule)
        self._outgoing = {m.sender: m for m in sent if m.link.source == comm.rank}
        self._incoming = {m.receiver: m for m in sent if m.link.destination == comm.rank}
        self._channels = comm.channels({m.link for m in sent})

    def run(self, batch: Batch | None, seed: int = 0, step: int = 0) -> StepResult:
        """One step: every action of this rank's list. Every rank calls it.

        batch: (inputs, targets), both [n_samples, ...]; read on the rank of stage 0, None elsewhere
        will do. Micro-batches take the samples in order; sizes differ by at most 1, larger first.
        seed, step: go into the `Key` of each micro-batch.
        ValueError, on every rank: fewer samples than micro-batches, no target that counts.
        """
        announced = self._announcer.announce(batch, stamp=self._costs is not None)
        return _Step(self, announced, batch, Key(seed, step, 0)).run()


class _Step:
    """One step of an engine on this rank."""

    def __init__(
        self, engine: PipelineEngine, announced: Announcement, batch: Batch | None, key: Key
    ) -> None:
        comm, costs = engine.comm, engine._costs
        self.engine, self.announced, self.key = engine, announced, key
        self.start_s = time.perf_counter() if costs is None else announced.start_ns / 1e9
        self.clock = (
            Stopwatch(comm.rank, comm.device)
            if costs is None
            else DeviceClock(costs, comm.rank, self.start_s)
        )
        self.inboxes = self._inboxes()
        engine._announcer.expect_loss()
        self.inputs, self.targets = engine._announcer.parts(batch)
        self.inputs_need_gradient = batch is not None and batch[0].requires_grad
        self.outbox = Outbox(engine._limit)
        self.local: dict[Action, Tensor] = {}  # by receiver: what stays on this rank
        self.held: dict[tuple[int, int], _Held] = {}
        self.owed: dict[tuple[int, int], WeightQueue] = {}
        self.peak = 0
        self.loss, self.aux = torch.zeros(2, dtype=torch.float64, device=comm.device)  # sums
        self.outputs: dict[int, Tensor] = {}
        self.input_gradients: dict[int, Tensor] = {}

    def _inboxes(self) -> dict[Link, Inbox]:
        engine = self.engine
        expected: dict[Link, list[tuple[Message, Spec]]] = defaultdict(list)
        for receiver, message in engine._incoming.items():
            expected[message.link].append((message, engine._announcer.spec_for(receiver)))
        stamped = engine._costs is not None
        return {
            link: Inbox(engine._channels[link], coming, engine.comm.device, stamped)
            for link, coming in expected.items()
        }

    def run(self) -> StepResult:
        """Every action of this rank's list."""
        comm = self.engine.comm
        for action in self.engine.schedule[comm.rank]:
            if action.kind == "F":
                self._forward(action)
            elif action.kind == "W":
                self._weights(action)
            else:
                self._backward(action)
        self.outbox.drain()
        spans = self.clock.spans()
        end_s = time.perf_counter()
        loss = self.engine._announcer.finish(self.loss)
        gradients = [self.input_gradients[m] for m in sorted(self.input_gradients)]
        return StepResult(
            loss / self.announced.divisor,
            float(self.aux),
            self.announced.divisor,
            self.peak,
            spans,
            self.start_s,
            end_s,
            [self.outputs[m] for m in sorted(self.outputs)],
            torch.cat(gradients) if gradients else None,
        )

    def _forward(self, action: Action) -> None:
        """Takes x, runs the stage, keeps what its backward needs, passes y on."""
        _, number, microbatch = action
        x = self._input(action)
        key = self.key._replace(microbatch=microbatch)
        arguments = (x, key) if self.engine._takes_key[number] else (x,)
        owed = WeightQueue() if (number, microbatch) in self.engine._split else None
        with deferring(owed):
            y, aux = unpacked(self.engine.stages[number](*arguments), number)
        scalars = []
        if aux is not None:
            self.aux += aux.detach().squeeze()
            scalars.append(aux * self.engine._aux_scale)
        edge = None
        if number == self.engine._last_stage:
            scalars.append(self._scaled_loss(y, microbatch))
        elif y.requires_grad:
            edge = get_gradient_edge(y)
        self.held[number, microbatch] = _Held(x, edge, scalars, owed)
        self.peak = max(self.peak, len(self.held))
        end_s = self.clock.stop(action)
        if number < self.engine._last_stage:
            receiver = Action("F", number + 1, microbatch)
            require_spec(y, self.engine._announcer.spec_for(receiver), number, microbatch)
            self._pass_on(action, receiver, y.detach(), end_s)

    def _input(self, action: Action) -> Tensor:
        """What a forward works on, a leaf that collects its own gradient."""
        _, number, microbatch = action
        if number == 0:
            self.clock.start(None)
            return self.inputs[microbatch].detach().requires_grad_(self.inputs_need_gradient)
        x = self._take(action)
        self._post(action)
        return x.requires_grad_(x.is_floating_point())

    def _scaled_loss(self, y: Tensor, microbatch: int) -> Tensor:
        """This micro-batch's part of the loss of the whole batch."""
        loss = self.engine._loss(y, self.targets[microbatch])
        if loss.numel() != 1:
            raise ValueError(f"loss returned a tensor {list(loss.shape)}; give the sum, one number")
        self.loss += loss.detach().squeeze()
        if self.engine._keep_outputs:
            self.outputs[microbatch] = y.detach()
        return loss / self.announced.divisor

    def _backward(self, action: Action) -> None:
        """Takes the gradient of y, runs backward, passes the gradient of x on."""
        _, number, microbatch = action
        gradient = None
        if number == self.engine._last_stage:
            self.clock.start(None)
        else:
            gradient = self._take(action)
        held = self.held.pop((number, microbatch))
        if held.owed is not None:
            self.owed[number, microbatch] = held.owed
        x_gradient = _differentiate(held, gradient)
        end_s = self.clock.stop(action)
        del gradient  # its memory can be the next one's
        self._post(action)
        if number > 0:
            kind = "I" if (number - 1, microbatch) in self.engine._split else "B"
            self._pass_on(action, Action(kind, number - 1, microbatch), x_gradient, end_s)
        elif self.inputs_need_gradient:
            self.input_gradients[microbatch] = x_gradient

    def _weights(self, action: Action) -> None:
        """The weight products that the I before has left."""
        self.clock.start(None)
        self.owed.pop((action.stage, action.microbatch)).drain()
        self.clock.stop(action)

    def _take(self, action: Action) -> Tensor:
        """What `action` needs of another stage, from this rank or another; starts the clock."""
        message, stamp_s = self.engine._incoming.get(action), None
        if message is None:
            x = self.local.pop(action)
        else:
            x, stamp_s = self.inboxes[message.link].take()
        self.clock.start(stamp_s)
        return x

    def _post(self, action: Action) -> None:
        """Has the message after that of `action` come, if there is one."""
        if message := self.engine._incoming.get(action):
            self.inboxes[message.link].post()

    def _pass_on(self, action: Action, receiver: Action, x: Tensor, end_s: float) -> None:
        message = self.engine._outgoing.get(action)
        if message is None:
            self.local[receiver] = x
        else:
            stamp_s = None if self.engine._costs is None else end_s
            self.outbox.send(self.engine._channels[message.link], x, message, stamp_s)


def _differentiate(held: _Held, gradient: Tensor | None) -> Tensor:
    """The gradient of x, from that of y and from the scalars; parameters collect theirs.

    Zeros where nothing depends on x.
    """
    x, edge, scalars, owed = held
    roots: list[Any] = [scalar for scalar in scalars if scalar.requires_grad]
    weights: list[Tensor | None] = [None] * len(roots)
    if edge is not None:
        roots.append(edge)
        weights.append(gradient)
    if roots:
        with opened(owed):
            torch.autograd.backward(roots, weights)
    return torch.zeros_like(x) if x.grad is None else x.grad


def _check(schedule: Schedule, comm: Comm, stages: Mapping[int, Stage]) -> None:
    faults = validate_schedule(schedule)
    if faults:
        raise ValueError(f"this schedule cannot run: {faults[0].text}")
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
