"""A program for torchrun: `under_torchrun.py HOW`. No pytest: ranks run this."""

import os
import sys

import numpy as np
import torch

from mpedu.comm import Comm

WAIT_S = 0.8


def everything(comm):
    """Messages, long and short, collectives and groups."""
    after, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    sending = comm.isend(torch.full((5000,), float(comm.rank)), after)
    assert comm.recv(before).tolist() == [before] * 5000
    sending.wait()
    half = comm.split(comm.rank % 2)
    others = half.all_gather(np.array([comm.rank])).tolist()
    started = comm.all_reduce(np.array([comm.rank]), async_op=True)
    comm.barrier()
    return others, started.wait().tolist()


def deadlock(comm):
    comm.recv((comm.rank + 1) % comm.size, tag=3)


def early_end(comm):
    if comm.rank:
        comm.recv(0)


def raising(comm):
    if comm.rank == 1:
        raise ValueError("odd")
    comm.recv(1)


def dying(comm):
    if comm.rank == 1:
        os._exit(7)
    comm.recv(1)


def leaving(comm):
    if comm.rank == 0:
        comm.isend(np.zeros(5000), 1)


def differing(comm):
    comm.all_reduce(np.zeros(1 + comm.rank))


def endless(comm):
    # One write: unbuffered, print's text and newline could be parted by the other rank's.
    sys.stdout.write("rank at work\n")
    sys.stdout.flush()
    while True:
        pass


if __name__ == "__main__":
    with Comm.from_environment(wait_s=WAIT_S) as comm:
        comm.barrier()
        result = globals()[sys.argv[1]](comm)
    print(f"rank {comm.rank} gives {result}\n", end="", flush=True)
