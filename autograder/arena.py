"""The arena of unit 06: a schedule of the reader's own against 1F1B, under a memory cap.

Four ranks, eight micro-batches; F, I and W of a whole rank's layers take a second each, of one
stage out of v per rank the v-th part. No rank may hold activations of more than four micro-batches
on a whole rank, counted until the W is done, or the undivided backward.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from mpedu.families import one_f_one_b
from mpedu.plot import Picture, draw_schedule
from mpedu.schedule import Action, Schedule, peak_in_flight, stage_to_rank
from mpedu.search import search_schedule
from mpedu.simulate import Costs, simulate
from mpedu.validate import validate_schedule

N_RANKS, N_MICROBATCHES, CAP = 4, 8, 4
FREED_BY = "W"
PICTURE = "arena-06.png"  # beside the notebook


class Entry(NamedTuple):
    """A schedule that keeps the rules: seconds of a step, and by rank what it holds at most."""

    schedule: Schedule
    seconds: Fraction
    held: list[Fraction]


class NoEntry(ValueError):
    """A schedule that breaks a rule, and which, in one sentence."""


def costs_of(n_chunks: int) -> Costs:
    """The costs of one stage out of n_chunks per rank."""
    whole = Fraction(1, n_chunks)
    return Costs(whole, 2 * whole, whole, whole)


def entered(schedule: Any) -> Entry:
    """The entry of a schedule; NoEntry where it breaks a rule."""
    faults = validate_schedule(schedule, n_microbatches=N_MICROBATCHES)
    if faults:
        raise NoEntry(f"this cannot run: {faults[0].text}")
    stages = stage_to_rank(schedule)
    n_chunks, left = divmod(len(stages), N_RANKS)
    n_of = [sum(owner == rank for owner in stages.values()) for rank in range(len(schedule))]
    if left or n_of != [n_chunks] * N_RANKS:
        told = ", ".join(map(str, n_of))
        raise NoEntry(f"the ranks hold {told} stages; {N_RANKS} ranks must hold equally many each")
    held = [Fraction(peak, n_chunks) for peak in peak_in_flight(schedule, FREED_BY)]
    over = [rank for rank, most in enumerate(held) if most > CAP]
    if over:
        raise NoEntry(
            f"rank {over[0]} holds {float(held[over[0]]):g} micro-batches of a whole rank at once, "
            f"counted until W; {CAP} are allowed"
        )
    seconds = Fraction(simulate(schedule, costs_of(n_chunks)).makespan_s)
    return Entry(schedule, seconds, held)


def kept(entry: Entry) -> dict[str, Any]:
    """An entry as the notes beside a notebook keep it."""
    return {
        "seconds": str(entry.seconds),
        "schedule": [list(map(str, actions)) for actions in entry.schedule],
    }


def record_of(notes: Mapping[str, Any]) -> Entry | None:
    """The entry that the notes keep; None where they hold none that can be read."""
    try:
        return entered([list(map(Action.parse, actions)) for actions in notes["schedule"]])
    except (KeyError, TypeError, ValueError):
        return None


def verdict(entry: Entry, record: Entry | None) -> str:
    """How an entry compares with 1F1B, with a search on one stage per rank, and with the record."""
    plain = _plain_s()
    found = search_schedule(range(N_RANKS), N_MICROBATCHES, costs_of(1), CAP, FREED_BY)
    searched = entered(found).seconds
    beside = "slower than" if entry.seconds > plain else "as fast as"
    beside = "faster than" if entry.seconds < plain else beside
    lines = [
        f"{_s(entry.seconds)}, {beside} 1F1B with {_s(plain)}. With one stage per rank a search "
        f"found {_s(searched)}.",
        f"held at most, by rank: {', '.join(f'{float(most):g}' for most in entry.held)} "
        f"of {CAP} micro-batches",
    ]
    if record is None:
        lines.append("Your first entry, and so your record.")
    elif entry.seconds < record.seconds:
        lines.append(f"A new record; before it was {_s(record.seconds)}.")
    else:
        lines.append(f"Your record stays {_s(record.seconds)}.")
    return "\n".join(lines)


def picture_of(entry: Entry) -> Picture:
    """The timeline of an entry, with what it is worth in its heading."""
    n_chunks = len(stage_to_rank(entry.schedule)) // N_RANKS
    title = (
        f"{_s(entry.seconds)} for {N_MICROBATCHES} micro-batches on {N_RANKS} ranks, at most "
        f"{float(max(entry.held)):g} held; 1F1B takes {_s(_plain_s())}"
    )
    return draw_schedule(entry.schedule, costs_of(n_chunks), title=title)


def _plain_s() -> Fraction:
    return entered(one_f_one_b(N_RANKS, N_MICROBATCHES)).seconds


def _s(seconds: Fraction) -> str:
    return f"{float(seconds):g} s"
