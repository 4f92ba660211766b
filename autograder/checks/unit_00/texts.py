"""The hints and guesses of unit 00: idea, neighbouring case, skeleton with blanks."""

from autograder.checks.unit_00.sealed_runs import n_to_blame
from autograder.exercise import Guess

_ENDS = "-1 if it finishes."

GUESSES = (
    Guess(
        "ring-8",
        "A token goes once round a ring of 8 ranks. How many message times until it is home?",
        lambda: 8,
        least=0,
        most=100,
        whole=True,
    ),
    Guess(
        "waits-a",
        f"Program A on 4 ranks: for which rank does rank 2 wait in the end? {_ENDS}",
        lambda: 3,
        least=-1,
        most=3,
        whole=True,
    ),
    Guess(
        "waits-b",
        f"Program B on 4 ranks: for which rank does rank 2 wait in the end? {_ENDS}",
        lambda: -1,
        least=-1,
        most=3,
        whole=True,
    ),
    Guess(
        "waits-c",
        f"Program C on 4 ranks: for which rank does rank 0 wait in the end? {_ENDS}",
        lambda: 3,
        least=-1,
        most=3,
        whole=True,
    ),
    Guess(
        "to-blame",
        "Sealed program B, on six ranks: how many of them are to blame?",
        lambda: n_to_blame("B"),
        least=0,
        most=6,
        whole=True,
    ),
)

_HELLO = (
    "Idea: every rank runs the same function, so the first question is always: who am I? Rank 0 "
    "receives once from each other rank, in order; any other rank sends once, to rank 0.",
    "Neighbouring case: two ranks. Rank 1 runs comm.send(np.array(comm.rank), 0) and returns []. "
    "Rank 0 runs comm.recv(1).item() and returns its own number, 0, with that one behind it. What "
    "does rank 0 do when there are more?",
    "Skeleton:\n"
    "    if comm.rank == 0:\n"
    "        others = [comm.recv(...).item() for source in range(..., comm.size)]\n"
    "        return [..., *others]\n"
    "    comm.send(np.array(...), ...)\n"
    "    return ...",
)
_RING = (
    "Idea: only one rank has the token at the start, so only that one can send first. All others "
    "can send nothing before they have received something.",
    "Neighbouring case: two ranks. Rank 0 sends its token to rank 1 and then receives from rank 1. "
    "Rank 1 receives from rank 0 and then sends what it got to rank 0. With three ranks, who sends "
    "to rank 0? The remainder (comm.rank + 1) % comm.size makes a ring of a row.",
    "Skeleton:\n"
    "    if comm.size == 1:\n"
    "        return ...\n"
    "    following, before = (comm.rank + 1) % ..., (comm.rank - 1) % ...\n"
    "    if comm.rank == 0:\n"
    "        comm.send(..., following)\n"
    "        return comm.recv(...)\n"
    "    received = ...\n"
    "    comm.send(..., following)\n"
    "    return ...",
)
_RING_FAST = (
    "Idea: the token makes one step per rank, and a rank that holds it passes it on at once. Any "
    "other message or barrier on the way adds time.",
    "Neighbouring case: two ranks, messages of 1 second. The token is with rank 1 after 1 second "
    "and home after 2. If rank 1 first sent a receipt, how long would it take?",
    "Skeleton: draw the run, with `show(run_ranks, ring_pass, 4, np.array([7]), machine=clock)`. "
    "Each arrow should begin where the one before it ends: ... arrows for 4 ranks.",
)
_DEADLOCK = (
    "Idea: a send ends when somebody receives. If everybody sends first, nobody is left to "
    "receive. Let some ranks receive first; or let all start their sends without waiting, with "
    "isend, receive, and wait for the sends afterwards.",
    "Neighbouring case: two ranks. Rank 0 sends and then receives, rank 1 receives and then sends. "
    "In a ring of four, ranks 0 and 2 may do as rank 0, ranks 1 and 3 as rank 1. What about three "
    "ranks, and what about one?",
    "Skeleton, one of two ways:\n"
    "    if comm.size == 1:\n"
    "        return ...\n"
    "    request = comm.isend(x, ...)\n"
    "    received = comm.recv(...)\n"
    "    request.wait()  # from here on x may change again\n"
    "    return ...",
)
_DEADLOCK_FAST = (
    "Idea: every rank has its array from the start, so no message needs to wait for another. Which "
    "ranks wait in your program though they could have started to send?",
    "Neighbouring case: three ranks, messages of 1 second. If rank 0 sends first and ranks 1 and 2 "
    "receive first, rank 2 gets its array after 2 seconds and rank 0 after 3. If ranks 0 and 2 "
    "send first, all have theirs after 2: rank 1 still waits before it sends. With isend it need "
    "not.",
    "Skeleton: the one with isend for fix_deadlock. Every message starts at time ..., and all "
    "ranks have their arrays after ... message times.",
)
_BLAME = (
    "Idea: begin at any rank that waits and follow who waits for whom. The way ends at a rank that "
    "has finished, or comes back to a rank that you passed before. Remember where you have been.",
    'Neighbouring case: blame([("recv", 1), ("send", 2), None]). Rank 0 waits for rank 1, rank 1 '
    'for rank 2, and rank 2 has finished. Rank 1 stands in send, so the answer is "never_taken" '
    "with ranks 1 and 2. Rank 0 is a victim.",
    "Skeleton:\n"
    "    waiting = [rank for rank, wait in enumerate(waits) if wait]\n"
    "    if not waiting: return ...\n"
    "    way = [waiting[0]]\n"
    "    while True:\n"
    "        call, peer = waits[way[-1]]\n"
    "        if waits[peer] is None: return ..., [way[-1], ...]\n"
    "        if peer in way: break\n"
    "        way.append(...)\n"
    "    circle = way[way.index(...):]\n"
    "    start = circle.index(min(...))\n"
    '    return "cycle", circle[start:] + ...',
)
HINTS = {
    "hello": _HELLO,
    "ring_pass": _RING,
    "ring_pass_fast": _RING_FAST,
    "fix_deadlock": _DEADLOCK,
    "fix_deadlock_fast": _DEADLOCK_FAST,
    "blame": _BLAME,
}
