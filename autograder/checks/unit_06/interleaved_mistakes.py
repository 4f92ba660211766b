"""The typical mistakes of unit 06's `interleaved_1f1b`, and the sentences they draw."""

from collections.abc import Callable, Sequence
from typing import Any

from autograder import oracle_06
from autograder.checks.schedules import as_schedule, illegal_lists, looped, most_work, pause_of_last
from autograder.checks.values import shown
from autograder.diagnosis import Answers, Case, Diagnosis, Mistake
from mpedu.schedule import Schedule, peak_in_flight
from mpedu.simulate import Costs, simulate


def cannot_run(case: Case, got: Any) -> Diagnosis | None:
    """For `examine`, cases of (n_ranks, n_microbatches, n_chunks): the first fault."""
    return illegal_lists(case, got, looped(*case.args))


def _seen_in(matches_one: Callable[[Schedule, int, int, int], bool]) -> Callable[[Answers], bool]:
    """`matches` of a mistake that must be seen in every answer of several ranks and chunks."""

    def matches(answers: Answers) -> bool:
        telling = [(case, got) for case, got in answers if case.args[0] > 1 and case.args[2] > 1]
        return bool(telling) and all(_matches(case, got) for case, got in telling)

    def _matches(case: Case, got: Any) -> bool:
        n_ranks, n_microbatches, n_chunks = case.args
        schedule = as_schedule(got, most_work(n_ranks * n_chunks, n_microbatches))
        whole = schedule is not None and len(schedule) == n_ranks and all(schedule)
        return whole and schedule is not None and matches_one(schedule, *case.args)

    return matches


def _stages_of(schedule: Schedule, rank: int) -> list[int]:
    return sorted({action.stage for action in schedule[rank]})


def _holds(own: Callable[[int, int, int], list[int]]) -> Callable[[Answers], bool]:
    """Whether every rank holds just the stages own(rank, n_ranks, n_chunks)."""
    return _seen_in(
        lambda schedule, k, m, v: all(_stages_of(schedule, r) == own(r, k, v) for r in range(k))
    )


def _placed_text(why: str) -> Callable[[Case, Any], str]:
    def text(case: Case, got: Any) -> str:
        n_ranks, _, n_chunks = case.args
        rank = next(
            r
            for r in range(n_ranks)
            if _stages_of(got, r) != [*range(r, n_ranks * n_chunks, n_ranks)]
        )
        due = " and ".join(map(str, range(rank, n_ranks * n_chunks, n_ranks)))
        given = " and ".join(map(str, _stages_of(got, rank)))
        return f"{case}: rank {rank} holds stage{'s' * (' ' in given)} {given}; asked {due}. {why}"

    return text


def _placed(id: str, own: Callable[[int, int, int], list[int]], why: str) -> Mistake:
    return Mistake(id, _holds(own), _placed_text(why), why)


def _first_backward_is_chunk_0(schedule: Schedule, k: int, m: int, v: int) -> bool:
    firsts = [next((a for a in actions if a.kind == "B"), None) for actions in schedule]
    return all(first is not None and first.stage == rank for rank, first in enumerate(firsts))


def _chunk_0_text(case: Case, got: Any) -> str:
    n_ranks, _, n_chunks = case.args
    first = next(action for action in got[0] if action.kind == "B")
    last = n_ranks * (n_chunks - 1)
    return (
        f"{case}: the first backward of rank 0 is {first}. Its gradient is not there yet: it comes "
        f"through stage {last}, on the same rank, later in the list. Backwards take the last chunk "
        "first."
    )


WarmUp = Callable[[int, int], int]  # of a rank and the first group's size


def _is_made_with(
    warm_ups: Sequence[Callable[[int, int], WarmUp]],
    sizes: Callable[[int, int], list[int]] = oracle_06.group_sizes,
) -> Callable[[Answers], bool]:
    """Whether all answers are interleaved 1F1B with one of these warm-ups, and groups so large.

    warm_ups: of ranks and chunks.
    """

    def made(warm_up: Callable[[int, int], WarmUp]) -> Callable[[Answers], bool]:
        return _seen_in(
            lambda schedule, k, m, v: (
                schedule == oracle_06.interleaved(k, m, v, warm_up(k, v), sizes(k, m))
            )
        )

    ways = [made(one) for one in warm_ups]
    return lambda answers: any(is_so(answers) for is_so in ways)


def _of_1f1b(k: int, v: int) -> WarmUp:
    return lambda rank, group: k - 1 - rank


def _of_the_group(k: int, v: int) -> WarmUp:
    return lambda rank, group: 2 * (k - 1 - rank) + (v - 1) * group


def _of_k(slots: int) -> Callable[[int, int], WarmUp]:
    """The rule with k for the group; slots: 2, or 1 for the shorter warm-up."""
    return lambda k, v: lambda rank, group: slots * (k - 1 - rank) + (v - 1) * k


def _one_at_a_time(schedule: Schedule, k: int, m: int, v: int) -> bool:
    """Whether each rank's forwards take a micro-batch through all chunks before the next one."""
    order = [(rank + c * k, piece) for piece in range(m) for c in range(v) for rank in [0]]
    return all(
        [(a.stage - rank, a.microbatch) for a in actions if a.kind == "F"] == order
        for rank, actions in enumerate(schedule)
    )


def _groups_of_k(k: int, m: int) -> list[int]:
    return [k] * (m // k) + [m % k] * (m % k > 0)


def _short_text(case: Case, got: Any) -> str:
    return f"{cannot_run_text(case, got)} {_SHORT}"


def cannot_run_text(case: Case, got: Any) -> str:
    """The first fault in words; of a legal schedule its name alone."""
    fault = cannot_run(case, got)
    return fault.text if fault else f"{case}"


def _stuck(case: Case, got: Any) -> str:
    fault = cannot_run(case, got)
    return f" Here: {fault.text.removeprefix(f'{case}: ')}" if fault else ""


_SHORT = (
    "Your warm-up is that of plain 1F1B: with chunks the first backward needs a group through all "
    "chunks but the last, too."
)
_SMALL = (
    "Your last group has fewer micro-batches than there are ranks: its first one is not back on "
    "the first rank when the next chunk should take it. Share the rest out: no group smaller than "
    "the ranks, unless it is the only one."
)
_LARGER = (
    "Your groups are right, and your warm-up counts n_ranks for each: before the first backward a "
    "whole group goes through all chunks but the last, and your first group is of another size."
)
_ONE_AT_A_TIME = Mistake(
    "one_at_a_time",
    _seen_in(_one_at_a_time),
    lambda case, got: (
        f"{case}: every rank takes a micro-batch through all its chunks before the next one, and "
        "waits while it is on the other ranks. A group of n_ranks micro-batches goes through a "
        f"chunk first, then the same group through the next.{_stuck(case, got)}"
    ),
    "each micro-batch goes through all chunks before the next one: let a group of as many as there "
    "are ranks go through a chunk first.",
)
LEGAL = (
    _placed(
        "contiguous_stages",
        lambda r, k, v: [*range(r * v, (r + 1) * v)],
        "Neighbouring stages on one rank make one long stage again: chunk c of rank r is stage "
        "c * n_ranks + r.",
    ),
    _placed(
        "first_chunk_only",
        lambda r, k, v: [r],
        "Only the first chunk of each rank is there: is the loop over chunks missing?",
    ),
    _placed(
        "chunk_for_stage",
        lambda r, k, v: [*range(v)],
        "The second field of an Action is the stage in the whole model, not the chunk of the rank: "
        "chunk c of rank r is stage c * n_ranks + r.",
    ),
    Mistake(
        "chunk_0_first",
        _seen_in(_first_backward_is_chunk_0),
        _chunk_0_text,
        "a rank's first backward is of its first chunk, whose gradient is not there yet: backwards "
        "take the last chunk first.",
    ),
    Mistake(
        "warm_up_of_1f1b",
        _is_made_with([_of_1f1b]),
        _short_text,
        _SHORT,
    ),
    _ONE_AT_A_TIME,
)
ANY = (
    Mistake(
        "small_last_group",
        _is_made_with([_of_the_group, _of_k(2), _of_k(1)], _groups_of_k),
        lambda case, got: f"{cannot_run_text(case, got)} {_SMALL}",
        _SMALL,
    ),
    Mistake(
        "warm_up_of_k",
        _is_made_with([_of_k(2), _of_k(1)]),
        lambda case, got: f"{cannot_run_text(case, got)} {_LARGER}",
        _LARGER,
    ),
)


def not_legal(case: Case, got: Any) -> Diagnosis | None:
    """For a check that needs a legal schedule: what keeps it from being one."""
    fault = cannot_run(case, got)
    if fault is None:
        return None
    why = fault.text.removeprefix(f"{case}: ")
    text = f"{case}: not a legal schedule, so it has no makespan: {why}"
    return Diagnosis("illegal", text, f"not a legal schedule: {fault.general}")


def slow(case: Case, got: Any, costs: list[tuple[int, int]]) -> Diagnosis | None:
    """For `examine`: a makespan longer than it must be at some of the costs, None for the least."""
    fault = not_legal(case, got)
    if fault:
        return fault
    for forward_s, backward_s in costs:
        timeline = simulate(got, Costs(forward_s, backward_s))
        least_s = oracle_06.least_interleaved_s(case.args, (forward_s, backward_s))
        if timeline.makespan_s > least_s:
            text = (
                f"{case}: makespan {shown(timeline.makespan_s)} when a chunk costs {forward_s} and "
                f"{backward_s}; {shown(least_s)} is possible." + pause_of_last(timeline, "rank")
            )
            return Diagnosis("slow", text, "the makespan is longer than it must be.")
    return None


def holds_more(case: Case, got: Any) -> Diagnosis | None:
    """For `examine`: a rank that holds activations of more chunks than interleaving needs."""
    fault = not_legal(case, got)
    if fault:
        return fault
    for rank, (held, most) in enumerate(
        zip(peak_in_flight(got), oracle_06.most_held(*case.args), strict=True)
    ):
        if held > most:
            text = (
                f"{case}: rank {rank} holds activations of {held} chunks at once; {most} are "
                "enough. Let the first backward come earlier: a shorter warm-up."
            )
            general = "a rank holds activations of more chunks at once than it needs."
            return Diagnosis("holds_more", text, general)
    return None


def _all_forwards_first(schedule: Schedule, k: int, m: int, v: int) -> bool:
    """Of legal schedules that are as fast as can be."""
    n, case = m * v, Case("interleaved_1f1b", (k, m, v))
    kinds = [[a.kind for a in actions] for actions in schedule]
    return kinds == [["F"] * n + ["B"] * n] * k and slow(case, schedule, [(1, 2)]) is None


FAST = (_ONE_AT_A_TIME,)
HELD = (
    Mistake(
        "all_forwards_first",
        _seen_in(_all_forwards_first),
        lambda case, got: (
            f"{case}: every rank runs all its forwards before its first backward. That is as fast, "
            f"and rank 0 holds {case.args[1] * case.args[2]} chunks instead of "
            f"{oracle_06.most_held(*case.args)[0]}: after the warm-up, one forward and one "
            "backward in turns."
        ),
        "all forwards come first: as fast, but everything is held. After the warm-up, one forward "
        "and one backward in turns.",
    ),
)
