"""What all ranks must know of a batch before it runs: shapes, dtypes, and the number of tokens.

The rank that holds the batch says it, once for each new set of shapes, and the loss divisor in
every step; each stage's rank then tells the next the shapes that it will send, found by a run on
zeros. So a receive is posted before its sender has run, and uneven batches need no padding, nor
micro-batches of unequal length.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mpedu.comm import USER_TAGS, Comm, Request
from mpedu.pipeline.batches import (
    Batch,
    batch_problem,
    flat_targets,
    microbatches,
    n_counted,
    unflatten,
)
from mpedu.pipeline.stages import Spec, Stage, output_specs
from mpedu.schedule import Action

HEADER_TAG, TABLE_TAG, TARGETS_TAG, LOSS_TAG = range(USER_TAGS - 4, USER_TAGS)
N_HEADER = 3  # ints: bytes of the table (0: as before, negative: an error), divisor, start in ns


class Announcement(NamedTuple):
    """What one step's ranks agree on: per micro-batch the inputs of stage 0 and the targets."""

    inputs: list[Spec]
    targets: list[Spec]
    divisor: int
    start_ns: int


def pack(value: object) -> Tensor:
    """Plain data as a tensor of bytes, uint8 [n_bytes]."""
    return torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)


def unpack(packed: Tensor) -> Any:
    """What `pack` packed."""
    return json.loads(bytes(packed.tolist()))


def pack_specs(specs: Sequence[Spec]) -> Any:
    """Specs as plain data."""
    return [[list(spec.shape), str(spec.dtype).removeprefix("torch.")] for spec in specs]


def unpack_specs(plain: Any) -> list[Spec]:
    """What `pack_specs` made plain."""
    return [Spec(tuple(shape), getattr(torch, name)) for shape, name in plain]


def send_plain(comm: Comm, value: object, destination: int, what: str) -> None:
    """Sends plain data of any size to another rank."""
    packed = pack(value)
    comm.send(torch.tensor([packed.numel()]), destination, HEADER_TAG, what)
    comm.send(packed, destination, TABLE_TAG, what)


def recv_plain(comm: Comm, source: int, what: str) -> Any:
    """What `send_plain` sent."""
    n_bytes = int(comm.recv(source, torch.zeros(1, dtype=torch.int64), HEADER_TAG, what))
    return unpack(comm.recv(source, torch.empty(n_bytes, dtype=torch.uint8), TABLE_TAG, what))


def agreed(data: Comm | None, n_counted: int, problem: str) -> tuple[int, str]:
    """The targets that count on all data ranks, and what keeps one of them from its step, or ""."""
    if data is None:
        return n_counted, problem
    packed = pack(problem)
    told = data.all_gather(torch.tensor([[n_counted, packed.numel(), bool(problem)]]))
    counts, sizes, has_problem = told.T.tolist()
    if not any(has_problem):
        return sum(counts), ""
    texts = data.all_gather(packed, sizes=sizes).split(sizes)
    rank = has_problem.index(1)
    return 0, f"data rank {rank}: {unpack(texts[rank])}"


class Announcer:
    """Agrees on each step's shapes and divisor with the other ranks; remembers the last shapes.

    owner: the rank of each stage. stages: this rank's own. data: the data ranks, or None.
    """

    def __init__(
        self,
        comm: Comm,
        owner: Mapping[int, int],
        stages: Mapping[int, Stage],
        n_microbatches: int,
        count: Callable[[Tensor], int],
        data: Comm | None = None,
    ) -> None:
        self._comm, self._owner, self._stages, self._data = comm, owner, stages, data
        self._n_microbatches, self._count = n_microbatches, count
        self._first, self._last = owner[0], owner[len(owner) - 1]
        self._specs: tuple[list[Spec], list[Spec]] = ([], [])
        self._inputs_of: dict[int, list[Spec]] = {}  # by stage: what this rank receives
        self._outputs_of: dict[int, dict[Spec, Spec]] = {number: {} for number in stages}
        self._sent: list[tuple[Tensor, Request]] = []  # a tensor must live until it has gone
        self._loss_to_come: tuple[Tensor, Request] | None = None

    def announce(self, batch: Batch | None, stamp: bool) -> Announcement:
        """What this step's ranks agree on; `stamp` also says when the step starts.

        ValueError, on every rank, where the batch cannot be run.
        """
        header, table = self._made(batch, stamp) if self._comm.rank == self._first else (None, None)
        if header is None:
            header = torch.zeros(N_HEADER, dtype=torch.int64)
            self._comm.recv(self._first, header, HEADER_TAG, "announcement of the batch")
            if header[0]:
                what = "shapes of the batch"
                packed = torch.empty(abs(int(header[0])), dtype=torch.uint8)
                table = unpack(self._comm.recv(self._first, packed, TABLE_TAG, what))
        n_bytes, divisor, start_ns = header.tolist()
        if n_bytes < 0:
            raise ValueError(table)
        if table is not None:
            self._specs = (unpack_specs(table[0]), unpack_specs(table[1]))
            self._pass_shapes()
        return Announcement(*self._specs, divisor, start_ns)

    def spec_for(self, receiver: Action) -> Spec:
        """What an action of this rank takes: its stage's input, or its output's gradient."""
        kind, stage, microbatch = receiver
        return self._inputs_of[stage if kind == "F" else stage + 1][microbatch]

    def parts(self, batch: Batch | None) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
        """(inputs, targets) per micro-batch on this rank's device, where this rank needs them."""
        is_last, device = self._comm.rank == self._last, self._comm.device
        if self._comm.rank != self._first or batch is None:
            return (), self._targets() if is_last else ()
        inputs, targets = microbatches(batch, self._n_microbatches)
        return [x.to(device) for x in inputs], [x.to(device) for x in targets] if is_last else ()

    def _targets(self) -> list[Tensor]:
        specs = self._specs[1]
        flat = Spec((sum(spec.n_numbers for spec in specs),), specs[0].dtype).empty("cpu")
        received: Tensor = self._comm.recv(self._first, flat, TARGETS_TAG, "targets")
        return unflatten(received.to(self._comm.device), specs)

    def expect_loss(self) -> None:
        """Prepares for the loss, which every rank learns from the rank of the last stage."""
        if self._comm.rank != self._last:
            loss = torch.zeros((), dtype=torch.float64)
            request = self._comm.irecv(self._last, loss, LOSS_TAG, "loss of the step")
            self._loss_to_come = (loss, request)

    def finish(self, loss: Tensor) -> float:
        """The summed loss, which is `loss` on the last stage's rank, when all has been sent.

        Sent rather than summed over the ranks: it is there before the others have ended their work.
        """
        if self._loss_to_come is None:
            loss = loss.cpu()
            self._send_to_others(loss, LOSS_TAG, "loss of the step")
        self._wait_for_sent()
        if self._loss_to_come is not None:
            loss, request = self._loss_to_come
            request.wait()
        return float(loss)

    def _wait_for_sent(self) -> None:
        for _, request in self._sent:
            request.wait()
        self._sent.clear()

    def _send_to_others(self, x: Tensor, tag: int, what: str) -> None:
        for rank in range(self._comm.size):
            if rank != self._comm.rank:
                self._sent.append((x, self._comm.isend(x, rank, tag, what)))

    def _made(self, batch: Batch | None, stamp: bool) -> tuple[Tensor, Any]:
        """The header and table of this batch, sent to all others."""
        problem = batch_problem(batch, self._n_microbatches)
        if batch is None:
            problem = (
                f"rank {self._first} holds stage 0 and got no batch; give it (inputs, targets)"
            )
        divisor, specs = 0, self._specs
        if batch is not None and not problem:
            inputs, targets = microbatches(batch, self._n_microbatches)
            divisor = n_counted(batch, self._count)
            specs = ([Spec.of(x) for x in inputs], [Spec.of(x) for x in targets])
        divisor, problem = agreed(self._data, divisor, problem)
        if divisor < 1 and not problem:
            problem = "no target of this batch counts; its loss would be divided by 0"
        table: Any = None
        if problem:
            table = problem
        elif specs != self._specs:
            table = [pack_specs(specs[0]), pack_specs(specs[1])]
        packed = pack(table)
        n_bytes = packed.numel() * (-1 if problem else 1) if table else 0
        header = torch.tensor([n_bytes, divisor, time.perf_counter_ns() if stamp else 0])
        self._send_to_others(header, HEADER_TAG, "announcement of the batch")
        if table:
            self._send_to_others(packed, TABLE_TAG, "shapes of the batch")
        if problem:
            self._wait_for_sent()
        elif batch is not None and self._last != self._first:
            flat = flat_targets(batch)
            request = self._comm.isend(flat, self._last, TARGETS_TAG, "targets")
            self._sent.append((flat, request))
        return header, table

    def _pass_shapes(self) -> None:
        """Along the stages: each learns what it takes, and tells the next what it gives."""
        self._inputs_of = {0: self._specs[0]}
        for stage in range(len(self._owner) - 1):
            here, there = self._owner[stage], self._owner[stage + 1]
            what = f"shapes for stage {stage + 1}"
            if self._comm.rank == here:
                specs = output_specs(
                    self._stages[stage],
                    stage,
                    self._inputs_of[stage],
                    self._comm.device,
                    self._outputs_of[stage],
                )
                self._inputs_of[stage + 1] = specs
                if there != here:
                    send_plain(self._comm, pack_specs(specs), there, what)
            elif self._comm.rank == there:
                self._inputs_of[stage + 1] = unpack_specs(recv_plain(self._comm, here, what))
