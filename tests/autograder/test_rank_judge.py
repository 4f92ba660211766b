"""Ranks that lie to the judge: whatever they send, they gain nothing and break nothing."""

import time

import pytest
from ranks_toy import IMPORTS, RAW, TOY, behind_walls, outcome, vectors

from autograder.checks.ranks import ranks
from autograder.sandbox import Limits, Sandbox, build_runtime

HONEST = "def f(comm, x): return comm.all_reduce(x)"
BROKEN = "rank 1: your code broke the connection to the judge"


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks") / "runtime"
    build_runtime(TOY, folder)
    with Sandbox(folder, Limits(call_s=3)) as made:
        yield made


def works(sandbox):
    with behind_walls(sandbox, HONEST) as subject:
        return len(ranks(subject, "f", 2, vectors(2)).results) == 2


# Frames that no `Comm` sends

FRAMES = {
    "no operation": "raw(77)",
    "a negative operation": "raw(-1)",
    "a bool": "raw(True, 0, 0, 0, '', '<f8', (1,), bytes(8))",
    "a name": "raw('isend', 0, 0)",
    "a list": "raw([0], 0, 0)",
    "nothing": "raw()",
    "a number": "write(struct.pack('>I', 1) + msgpack.packb(7))",
    "a map": "write(struct.pack('>I', 1) + b'\\x80')",
    "an extension": "raw(ISEND, msgpack.ExtType(5, b''))",
    "broken bytes": "write(struct.pack('>I', 4) + b'\\xc1\\xc1\\xc1\\xc1')",
    "depth": "write(struct.pack('>I', 60000) + b'\\x91' * 60000)",
    "a promised list": "write(struct.pack('>I', 5) + b'\\xdd\\xff\\xff\\xff\\xff')",
    "a promised frame": "write(b'\\xff' * 4)",
    "no text": "write(struct.pack('>I', 3) + b'\\x92\\x00\\xa1')",
    "too few parts": "raw(ISEND, 0, 0)",
    "too many parts": "raw(ISEND, 0, 0, 0, '', '<f8', (1,), bytes(8), 1)",
    "a message to itself": "isend(to=1)",
    "no such rank": "isend(to=4)",
    "a negative rank": "isend(to=-1)",
    "half a rank": "isend(to=0.5)",
    "a rank of the wrong type": "isend(to='0')",
    "no such group": "isend(at=1)",
    "a negative group": "isend(at=-1)",
    "a group of the wrong type": "isend(at='0')",
    "a negative tag": "isend(tag=-1)",
    "an engine's tag": "isend(tag=2**30)",
    "words of the wrong type": "isend(what=5)",
    "objects": "isend(dtype='|O')",
    "texts": "isend(dtype='<U2')",
    "a record": "isend(dtype='<f8,<f8')",
    "no dtype": "isend(dtype=None)",
    "a dtype of the wrong type": "isend(dtype=[1])",
    "fewer bytes than the shape": "isend(shape=(3,))",
    "more bytes than the shape": "isend(data=bytes(16))",
    "bytes that are no number": "isend(data=bytes(7))",
    "a negative shape": "isend(shape=(-1,))",
    "two negative shapes": "isend(shape=(-1, -1))",
    "a shape of floats": "isend(shape=(1.0,))",
    "a shape of bools": "isend(shape=(True,))",
    "an endless shape": "isend(shape=(1,) * 100)",
    "a huge shape": "isend(shape=(2**62, 0), data=b'')",
    "no shape": "isend(shape=None)",
    "text for bytes": "isend(data='12345678')",
    "a receive from itself": "raw(IRECV, 0, 1, 0, '', None, None)",
    "a receive of objects": "raw(IRECV, 0, 0, 0, '', '|O', (1,))",
    "a receive of no shape": "raw(IRECV, 0, 0, 0, '', '<f8', None)",
    "no such collective": "start('gossip')",
    "send as a collective": "start('send')",
    "a collective of the wrong type": "start(5)",
    "a sum of nothing": "start('all_reduce', dtype=None, op='sum')",
    "no such reduction": "start('all_reduce', op='mean')",
    "a reduction of the wrong type": "start('all_reduce', op=['sum'])",
    "no such root": "start('broadcast', root=4)",
    "sizes of others": "start('all_gather', sizes=(1, 1, 1, 1))",
    "too few sizes": "start('reduce_scatter', op='sum', sizes=(2,))",
    "negative sizes": "start('reduce_scatter', op='sum', sizes=(3, -1, 0, 0))",
    "sizes of the wrong type": "start('reduce_scatter', op='sum', sizes=5)",
    "no sizes to receive": "start('all_to_all', sizes=(2, 0, 0, 0))",
    "huge sizes to receive": "start('all_to_all', sizes=(2, 0, 0, 0), more=(2**40,) * 4)",
    "a split without a color": "start('split', dtype=None)",
    "a negative color": "start('split', dtype='<i8', shape=(1,), data=b'\\xff' * 8)",
    "a wait for nothing": "raw(WAIT, 0)",
    "a wait of the wrong type": "raw(WAIT, [0])",
    "a group without a split": "raw(GROUP, 0)",
    "work nobody serves": "raw(BUY, 0, 'forward', b'')",
    "an end without a result": "raw(ENDED)",
    "an end with a value": "raw(ENDED, 5)",
    "an end with junk": "raw(ENDED, b'junk')",
    "a trouble that is no rank's": "raw(TROUBLE, 'deadlock', '', '', None)",
    "a claimed timeout": "raw(TROUBLE, 'timeout', '', '', None)",
    "a trouble of the wrong type": "raw(TROUBLE, 'raised', 5, '', None)",
}


@pytest.mark.parametrize("frame", FRAMES)
def test_a_frame_that_makes_no_sense_is_a_crash_of_its_rank(sandbox, frame):
    source = (
        f"{IMPORTS}{RAW}\ndef f(comm, x):\n  if comm.rank == 1: {FRAMES[frame]}\n  comm.barrier()"
    )
    with behind_walls(sandbox, source) as subject:
        for _ in range(2):
            kind, message, *_ = outcome(subject, 4, vectors(4))
            assert (kind, message[: len(BROKEN)]) == ("crashed", BROKEN)
        assert subject.lost


def test_all_frames_together_cost_nobody_else_anything(sandbox):
    assert works(sandbox)


ENDS = {
    "exits": ("os._exit(0)", "rank 1: the process that runs your code ended before it answered"),
    "aborts": ("os.abort()", "rank 1: the process that runs your code ended before it answered"),
    "closes the connection": ("os.close(3); time.sleep(60)", BROKEN),
    "is silent": ("time.sleep(60)", "rank 1: your code takes longer than 3 s and was stopped."),
    "drips bytes": (
        "write(struct.pack('>I', 1000)); [(write(b'x'), time.sleep(0.05)) for _ in range(900)]",
        "rank 1: your code takes longer than 3 s and was stopped.",
    ),
    "never reads": (
        "raw(ISEND, 0, 0, 0, '', '<f8', (1,), bytes(8));\n  while comm.rank == 1: raw(NOW)",
        "rank 1: your code takes longer than 3 s and was stopped.",
    ),
    "floods with messages": (
        "data = bytes(2**20)\n  while comm.rank == 1: isend(shape=(2**17,), data=data)",
        "your ranks send more than the 64 MiB that pass in one run.",
    ),
    "floods with small messages": (
        "pass\n  while comm.rank == 1: comm.isend(x, 0)",
        "rank 1: your code starts more than 20000 operations without waiting for one.",
    ),
}


@pytest.mark.parametrize("how", ENDS)
def test_a_rank_that_is_gone_late_or_loud_is_named(sandbox, how):
    body, told = ENDS[how]
    source = f"{IMPORTS}{RAW}\ndef f(comm, x):\n  if comm.rank == 1: {body}\n  comm.barrier()"
    start = time.monotonic()
    with behind_walls(sandbox, source) as subject:
        kind, message, *_ = outcome(subject, 3, vectors(3))
    assert kind in ("crashed", "timeout", "out_of_memory") and message.startswith(told), message
    assert time.monotonic() - start < 20
    assert works(sandbox)


def test_random_frames_raise_nothing_of_ours(sandbox):
    source = f"""{IMPORTS}{RAW}
import random
def f(comm, seed):
    rng = random.Random(seed)
    parts = [0, 1, 2, -1, 3.5, None, "", "sum", "barrier", "all_gather", "<f8", b"", bytes(8), (1,),
             (2, 0), True, 2**63, "x" * 1000]
    if comm.rank == 1:
        for _ in range(rng.randint(1, 5)):
            raw(rng.randrange(8), *[rng.choice(parts) for _ in range(rng.randint(0, 9))])
    comm.barrier()
"""
    refused = 0
    for seed in range(40):
        with behind_walls(sandbox, source) as subject:
            kind = outcome(subject, 2, [(seed,), (seed,)])[0]
            refused += kind == "crashed"
            assert kind in ("", "crashed", "deadlock", "unreceived", "mismatch", "timeout"), seed
    assert refused > 10
