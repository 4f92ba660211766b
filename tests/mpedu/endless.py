"""Rank programs that end by being ended, and one that does not. No pytest: ranks import this."""

import re

import torch


def receive(comm):
    comm.recv((comm.rank + 1) % comm.size, torch.zeros(1))


def wait_for(comm, peer=1):
    if comm.rank != peer:
        comm.recv(peer, torch.zeros(1))


def compute(comm):
    while True:
        sum(range(100))


def talk(comm):
    while True:
        comm.all_reduce(torch.zeros(1))


def hold_the_lock(comm):
    """Python's own lock, in C code that no thread interrupts."""
    re.match("(a*)*b", "a" * 100)


def nothing(comm):
    return comm.rank
