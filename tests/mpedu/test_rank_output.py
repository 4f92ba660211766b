import ctypes
import os
import sys

import cloudpickle
import pytest

from mpedu.launch import run_ranks
from mpedu.ranks.errors import RankError

# The ranks need not import this file, and with it pytest.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def test_lines_come_behind_the_number_of_the_rank(capsys):
    def program(comm):
        print("grüße", "🙂")
        print("to stderr", file=sys.stderr)
        print("no end", end="")

    run_ranks(program, 2)
    lines = capsys.readouterr().out.splitlines()
    for rank in range(2):
        mine = [line for line in lines if line.startswith(f"[rank {rank}] ")]
        assert mine == [f"[rank {rank}] {text}" for text in ("grüße 🙂", "to stderr", "no end")]
    assert len(lines) == 6


def test_output_of_c_code_and_of_commands_comes_too(capsys):
    def program(comm):
        libc = ctypes.CDLL(None)
        if sys.platform == "linux":  # buffered as usual, whatever PYTHONUNBUFFERED says
            ctypes.kept = ctypes.create_string_buffer(4096)
            libc.setvbuf(ctypes.c_void_p.in_dll(libc, "stdout"), ctypes.kept, 0, 4096)
        libc.puts(b"from C")
        os.system("echo from a command")
        os.write(2, b"\xff raw\n")

    run_ranks(program, 1)
    lines = sorted(capsys.readouterr().out.splitlines())
    assert lines == ["[rank 0] from C", "[rank 0] from a command", "[rank 0] � raw"]


def test_a_flood_is_neither_lost_nor_does_it_hang(capsys):
    line, n_lines = "x" * 99, 100_000

    def program(comm):
        if comm.rank == 0:
            sys.stdout.write(f"{line}\n" * n_lines)
            os.write(1, b"y" * 3_000_000)
        comm.barrier()

    run_ranks(program, 2)
    out = capsys.readouterr().out
    assert out.count(f"[rank 0] {line}\n") == n_lines and out.count("y") == 3_000_000


def test_a_killed_rank_has_its_output_shown_up_to_its_death(capsys):
    def program(comm):
        print("whole line")
        os.write(1, b"last words")
        os.kill(os.getpid(), 9)

    with pytest.raises(RankError):
        run_ranks(program, 1)
    assert capsys.readouterr().out == "[rank 0] whole line\n[rank 0] last words\n"


def test_a_terminal_of_few_characters_shows_what_it_can(capfd, monkeypatch):
    with open(1, "w", encoding="ascii", closefd=False) as narrow:
        monkeypatch.setattr(sys, "stdout", narrow)
        run_ranks(lambda comm: print("grün"), 1)
    assert capfd.readouterr().out == "[rank 0] gr?n\n"
