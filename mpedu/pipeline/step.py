"""One step of a rank: its list run action by action, from messages to messages."""

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, get_gradient_edge

from mpedu.alone import Done
from mpedu.comm import Channel, Comm, Link
from mpedu.deferred import WeightQueue, deferring, opened
from mpedu.keyed import Key
from mpedu.pipeline.announce import Announcement, Announcer
from mpedu.pipeline.batches import Batch, is_pair
from mpedu.pipeline.boxes import Inbox, Outbox
from mpedu.pipeline.clocks import DeviceClock, Stopwatch
from mpedu.pipeline.stages import Spec, Stage, require_spec, same_buffers, unpacked
from mpedu.pipeline.sums import GradientSums
from mpedu.pipeline.traffic import Message
from mpedu.schedule import Action, Schedule
from mpedu.simulate import Costs, Span


class StepResult(NamedTuple):
    """What a rank knows after a step.

    loss: summed loss / number of targets that count, the same on every rank; n_tokens: that
    number. aux: the sum over micro-batches and this rank's own stages.
    peak_in_flight: the most activations this rank held, in (stage, micro-batch) units.
    spans: what this rank ran when; start_s, end_s: of its list, before it waits for gradients'
    sums over ranks.
    outputs: per micro-batch, where asked for, on the rank of the last stage. input_gradient: on the
    rank of stage 0, where the inputs need one; by micro-batch where the batch was given so.
    """

    loss: float
    aux: float
    n_tokens: int
    peak_in_flight: int
    spans: list[Span]
    start_s: float
    end_s: float
    outputs: list[Tensor]
    input_gradient: Tensor | list[Tensor] | None


class Setup(NamedTuple):
    """What all steps of an engine have in common, on one rank."""

    schedule: Schedule
    comm: Comm
    stages: Mapping[int, Stage]
    loss: Callable[[Tensor, Tensor], Tensor]
    costs: Costs | None
    keep_outputs: bool
    last_stage: int
    aux_scale: float
    takes_key: Mapping[int, bool]
    buffered: Mapping[int, Sequence[nn.Module]]  # the modules of each stage that have buffers
    split: frozenset[tuple[int, int]]  # (stage, micro-batch) whose backward is I and W
    announcer: Announcer
    sums: GradientSums
    limit: int  # results that may be unsent
    outgoing: Mapping[Action, Message]  # by sender
    incoming: Mapping[Action, Message]  # by receiver
    channels: Mapping[Link, Channel]


class _Held(NamedTuple):
    """What a forward leaves for its backward."""

    x: Tensor
    y: GradientEdge | None  # its node only: the data of y is freed once it is sent
    scalars: list[Tensor]  # the loss on the last stage, aux where a stage has one
    owed: WeightQueue | None  # where the backward is split


class Step:
    """One step of an engine on this rank; key: that of its first micro-batch."""

    def __init__(
        self, setup: Setup, announced: Announcement, batch: Batch | None, key: Key
    ) -> None:
        comm, costs = setup.comm, setup.costs
        self.setup, self.announced, self.key = setup, announced, key
        self.start_s = time.perf_counter() if costs is None else announced.start_ns / 1e9
        self.clock = (
            Stopwatch(comm.rank, comm.device)
            if costs is None
            else DeviceClock(costs, comm.rank, self.start_s)
        )
        self.inboxes = self._inboxes()
        setup.announcer.expect_loss()
        self.inputs, self.targets = setup.announcer.parts(batch)
        self.is_whole = is_pair(batch)
        self.outbox = Outbox(setup.limit)
        self.local: dict[Action, Tensor] = {}  # by receiver: what stays on this rank
        self.held: dict[tuple[int, int], _Held] = {}
        self.owed: dict[tuple[int, int], WeightQueue] = {}
        self.peak = 0
        self.loss, self.aux = torch.zeros(2, dtype=torch.float64, device=comm.device)  # sums
        self.outputs: dict[int, Tensor] = {}
        self.input_gradients: dict[int, Tensor] = {}

    def _inboxes(self) -> dict[Link, Inbox]:
        setup = self.setup
        expected: dict[Link, list[tuple[Message, Spec]]] = defaultdict(list)
        for receiver, message in setup.incoming.items():
            expected[message.link].append((message, setup.announcer.spec_for(receiver)))
        stamped = setup.costs is not None
        return {
            link: Inbox(setup.channels[link], coming, setup.comm.device, stamped)
            for link, coming in expected.items()
        }

    def run(self) -> StepResult:
        """Every action of this rank's list."""
        self.setup.sums.begin()
        for action in self.setup.schedule[self.setup.comm.rank]:
            if action.kind == "F":
                self._forward(action)
            elif action.kind == "W":
                self._weights(action)
            else:
                self._backward(action)
            self.setup.sums.after(action)
        is_last = self.setup.last_stage in self.setup.stages
        total = self.setup.sums.total(self.loss) if is_last else Done(self.loss)
        self.outbox.drain()
        spans = self.clock.spans()
        end_s = time.perf_counter()
        self.setup.sums.finish()
        loss = self.setup.announcer.finish(total.wait())
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
            torch.cat(gradients) if gradients and self.is_whole else gradients or None,
        )

    def _forward(self, action: Action) -> None:
        """Takes x, runs the stage, keeps what its backward needs, passes y on."""
        _, number, microbatch = action
        x = self._input(action)
        key = self.key._replace(microbatch=self.key.microbatch + microbatch)
        arguments = (x, key) if self.setup.takes_key[number] else (x,)
        owed = WeightQueue() if (number, microbatch) in self.setup.split else None
        with deferring(owed):
            y, aux = unpacked(self.setup.stages[number](*arguments), number)
        scalars = []
        if aux is not None:
            self.aux += aux.detach().squeeze()
            scalars.append(aux * self.setup.aux_scale)
        edge = None
        if number == self.setup.last_stage:
            scalars.append(self._scaled_loss(y, microbatch))
        elif y.requires_grad:
            edge = get_gradient_edge(y)
        self.held[number, microbatch] = _Held(x, edge, scalars, owed)
        self.peak = max(self.peak, len(self.held))
        end_s = self.clock.stop(action)
        if number < self.setup.last_stage:
            receiver = Action("F", number + 1, microbatch)
            require_spec(y, self.setup.announcer.spec_for(receiver), number, microbatch)
            self._pass_on(action, receiver, y.detach(), end_s)

    def _input(self, action: Action) -> Tensor:
        """What a forward works on, a leaf that collects its own gradient."""
        _, number, microbatch = action
        if number == 0:
            self.clock.start(None)
            given = self.inputs[microbatch]
            return given.detach().requires_grad_(given.requires_grad)
        x = self._take(action)
        self._post(action)
        return x.requires_grad_(x.is_floating_point())

    def _scaled_loss(self, y: Tensor, microbatch: int) -> Tensor:
        """This micro-batch's part of the loss of the whole batch."""
        loss = self.setup.loss(y, self.targets[microbatch])
        if loss.numel() != 1:
            raise ValueError(f"loss returned a tensor {list(loss.shape)}; give the sum, one number")
        self.loss += loss.detach().squeeze()
        if self.setup.keep_outputs:
            self.outputs[microbatch] = y.detach()
        return loss / self.announced.divisor

    def _backward(self, action: Action) -> None:
        """Takes the gradient of y, runs backward, passes the gradient of x on."""
        _, number, microbatch = action
        gradient = None
        if number == self.setup.last_stage:
            self.clock.start(None)
        else:
            gradient = self._take(action)
        held = self.held.pop((number, microbatch))
        if held.owed is not None:
            self.owed[number, microbatch] = held.owed
        with same_buffers(self.setup.buffered[number]):
            x_gradient = _differentiate(held, gradient)
        end_s = self.clock.stop(action)
        del gradient  # its memory can be the next one's
        self._post(action)
        if number > 0:
            kind = "I" if (number - 1, microbatch) in self.setup.split else "B"
            self._pass_on(action, Action(kind, number - 1, microbatch), x_gradient, end_s)
        elif held.x.requires_grad:
            self.input_gradients[microbatch] = x_gradient

    def _weights(self, action: Action) -> None:
        """The weight products that the I before has left."""
        self.clock.start(None)
        self.owed.pop((action.stage, action.microbatch)).drain()
        self.clock.stop(action)

    def _take(self, action: Action) -> Tensor:
        """What `action` needs of another stage, from this rank or another; starts the clock."""
        message, stamp_s = self.setup.incoming.get(action), None
        if message is None:
            x = self.local.pop(action)
        else:
            x, stamp_s = self.inboxes[message.link].take()
        self.clock.start(stamp_s)
        return x

    def _post(self, action: Action) -> None:
        """Has the message after that of `action` come, if there is one."""
        if message := self.setup.incoming.get(action):
            self.inboxes[message.link].post()

    def _pass_on(self, action: Action, receiver: Action, x: Tensor, end_s: float) -> None:
        message = self.setup.outgoing.get(action)
        if message is None:
            self.local[receiver] = x
        else:
            stamp_s = None if self.setup.costs is None else end_s
            self.outbox.send(self.setup.channels[message.link], x, message, stamp_s)


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
