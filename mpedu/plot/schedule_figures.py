"""What schedules cost: idle time against memory, and messages against the stages of a rank."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from mpedu.families import SCHEDULES, interleaved_1f1b, make_schedule
from mpedu.faults import require_at_least
from mpedu.plot.layout import counted
from mpedu.plot.looks import BLUE, GREEN, INK, ORANGE, RED
from mpedu.plot.pictures import Picture, finish, footnote_under, in_own_style, new_figure
from mpedu.plot.text import percent, seconds, table
from mpedu.schedule import Action, Schedule, actions_of, peak_in_flight, stage_to_rank
from mpedu.simulate import Costs, Seconds, simulate

if TYPE_CHECKING:
    from mpedu.plot.pictures import Axes

HEIGHT_IN = 3.6
LINES: tuple[dict[str, Any], ...] = (
    {"color": ORANGE, "marker": "o"},
    {"color": GREEN, "marker": "s", "linestyle": "--"},
)
MARKS = {1: ("o", BLUE), 2: ("s", ORANGE)}  # by stages per rank; green diamonds for more
HEADS = ("schedule", "stages/rank", "makespan", "idle share", "emptiest", "fullest")


class Point(NamedTuple):
    """A schedule in the figure. least, peak: the most that its emptiest and fullest rank hold.

    Activations count in micro-batches of a whole rank: those of a stage among V count 1/V.
    """

    name: str
    n_chunks: int
    makespan_s: Seconds
    idle_share: Seconds
    least: Fraction
    peak: Fraction


@in_own_style
def bubble_memory_figure(
    n_ranks: int = 4,
    n_microbatches: int = 8,
    n_chunks: int = 2,
    own: Mapping[str, Schedule] | None = None,
    costs: Costs | None = None,
    freed_by: str = "I",
) -> Picture:
    """Idle share of total time against peak memory: a mark per named schedule, a star per own one.

    A line goes from the peak of a schedule's emptiest rank to that of its fullest, the mark.

    costs: of a rank's whole share of the model, each a number; a stage among V takes 1/V of it.
    freed_by: whether I or W frees the activations of a split backward, as in `peak_in_flight`.
    ValueError where an own schedule is not legal, or its ranks hold different numbers of stages.
    """
    require_at_least(1, n_ranks=n_ranks, n_microbatches=n_microbatches, n_chunks=n_chunks)
    costs = costs or Costs(1.0, 2.0)
    named, refused = {}, []
    for name, family in SCHEDULES.items():
        chunks = n_chunks if family.n_chunks is None else family.n_chunks
        try:
            named[name] = make_schedule(name, n_ranks, n_microbatches, chunks)
        except ValueError as error:
            refused.append(str(error))
    points = [_point(*each, costs, freed_by) for each in named.items()]
    stars = [_point(*each, costs, freed_by) for each in (own or {}).items()]
    size = f"{counted(n_ranks, 'rank')}, M = {n_microbatches}"
    title = f"Idle time against memory: {size}"
    figure, (axes,) = new_figure(title, HEIGHT_IN, footnote=True)
    _draw(axes, points, stars)
    note = f"activations are freed by {freed_by}; low and left is better"
    footnote_under(figure, note)
    shown = [*points, *stars]
    text = f"{title}\n{table(HEADS, map(_row, shown))}\n{note}"
    text += "".join(f"\nleft out: {problem}" for problem in refused)
    least, lean = min(shown, key=lambda p: p.idle_share), min(shown, key=lambda p: p.peak)
    alt = (
        f"{title}. Least idle is {least.name} with {percent(float(least.idle_share))} at a peak of "
    )
    alt += f"{float(least.peak):g}; the least memory takes {lean.name} with {float(lean.peak):g} "
    alt += f"and {percent(float(lean.idle_share))} idle."
    return finish(figure, alt, text)


def _point(name: str, schedule: Schedule, costs: Costs, freed_by: str) -> Point:
    n_chunks, left = divmod(len(stage_to_rank(schedule)), len(schedule))
    if left:
        raise ValueError(
            f"schedule {name!r} has {left} stages more than its {len(schedule)} ranks share "
            "evenly; give every rank as many"
        )
    timeline = simulate(schedule, _of_stage(costs, n_chunks))
    peaks = [Fraction(peak, n_chunks) for peak in peak_in_flight(schedule, freed_by)]
    ends = min(peaks), max(peaks)
    return Point(name, n_chunks, timeline.makespan_s, timeline.idle_share, *ends)


def _of_stage(costs: Costs, n_chunks: int) -> Costs:
    """The costs of one of `n_chunks` stages of a rank; messages cost what they did."""
    whole = {kind: costs.of(Action(kind, 0, 0)) for kind in "FBIW"}
    f, b, i, w = (second / n_chunks for second in whole.values())
    return Costs(f, b, i, w, costs.latency_s, costs.message_s, costs.blocking)


def _row(point: Point) -> Sequence[object]:
    return (
        point.name,
        point.n_chunks,
        seconds(point.makespan_s),
        percent(float(point.idle_share)),
        f"{float(point.least):g}",
        f"{float(point.peak):g}",
    )


def _draw(axes: "Axes", points: Sequence[Point], stars: Sequence[Point]) -> None:
    """Numbered marks, whose names the legend gives; marks in one place share their numbers."""
    places: dict[tuple[float, float], list[str]] = {}
    lines = [_at(point) for point in [*points, *stars] if point.least < point.peak]
    for number, point in enumerate([*points, *stars], start=1):
        marker, color = MARKS.get(point.n_chunks, ("D", GREEN))
        size = 8 if number <= len(points) else 14
        if number > len(points):
            marker, color = "*", RED
        label = f"{number} {point.name}"
        axes.plot(*_at(point), marker, color=color, markersize=size, label=label)
        if point.least < point.peak:
            height = _at(point)[1]
            axes.hlines(height, float(point.least), float(point.peak), color=color, linewidth=2)
        places.setdefault(_at(point), []).append(str(number))
    most, highest = (max(of) for of in zip(*places, strict=True))
    for place, (at, numbers) in enumerate(sorted(places.items())):
        is_left = place % 2 == 1  # in turns, so that neighbours do not write over each other
        beside: dict[str, Any] = {
            "textcoords": "offset points",
            "ha": "right" if is_left else "left",
        }
        above_pt = 7 if is_left and at in lines else 0
        words = axes.annotate(", ".join(numbers), at, (-8 if is_left else 8, above_pt), **beside)
        words.set(va="center", fontsize=9, color=INK)
    axes.set(xlim=(0, 1.15 * most + 0.5), ylim=(-0.04 * highest - 1, 1.1 * highest + 2))
    axes.set(xlabel="held at most, emptiest to fullest rank (micro-batches of a whole rank)")
    axes.set(ylabel="idle share (%)")
    axes.grid(color="#E0E0E0")
    axes.set_axisbelow(True)
    axes.legend(loc="upper right", fontsize=8.5, framealpha=1, ncols=1 + (len(points) > 5))


def _at(point: Point) -> tuple[float, float]:
    return float(point.peak), round(100 * float(point.idle_share), 6)


@in_own_style
def messages_figure(
    n_ranks: int = 4,
    n_microbatches: int = 8,
    chunks: Sequence[int] = (1, 2, 4, 8),
    latency_s: Seconds = 0.0,
) -> Picture:
    """Interleaved 1F1B against the stages per rank v: messages of a step, and the idle share.

    A stage among v takes 1/v of F = 1 s and B = 2 s. The idle share is drawn with free messages
    and, where `latency_s` is not 0, with messages that arrive so long after they were sent.
    """
    late_s = (0.0, latency_s) if latency_s else (0.0,)
    names = ["free", f"{seconds(latency_s)} late"][: len(late_s)]
    rows = []
    for n_chunks in chunks:
        schedule = interleaved_1f1b(n_ranks, n_microbatches, n_chunks)
        part = Costs(1.0 / n_chunks, 2.0 / n_chunks)
        shares = [simulate(schedule, replace(part, latency_s=s)).idle_share for s in late_s]
        rows.append((n_chunks, n_messages(schedule), *map(float, shares)))
    size = f"{counted(n_ranks, 'rank')}, M = {n_microbatches}"
    title = f"Interleaved 1F1B, {size}: messages against idle time"
    figure, (left, right) = new_figure(title, HEIGHT_IN, n_columns=2, footnote=True)
    places = range(len(rows))
    bars = left.bar(places, [n for _, n, *_ in rows], 0.6, fc=BLUE, ec=INK)
    left.bar_label(bars, padding=2, fontsize=9)
    for number, (name, look) in enumerate(zip(names, LINES, strict=False)):
        heights = [100 * row[2 + number] for row in rows]
        right.plot(places, heights, label=f"messages {name}", **look)
    right.legend(loc="upper left", fontsize=9, framealpha=1)
    for axes, name in ((left, "messages of one step"), (right, "idle share (%)")):
        axes.set_xticks(places, [str(n_chunks) for n_chunks, *_ in rows])
        axes.set(xlabel="stages per rank v", ylabel=name)
        axes.set_ylim(0, 1.2 * axes.get_ylim()[1])
    note = f"a late message arrives {seconds(latency_s)} after it was sent" if latency_s else ""
    footnote_under(figure, note)
    shown = [(v, n, *map(percent, shares)) for v, n, *shares in rows]
    heads = ("v", "messages", *(f"idle, messages {name}" for name in names))
    text = f"{title}\n{table(heads, shown)}" + f"\n{note}" * bool(note)
    first, last = shown[0], shown[-1]
    alt = f"{title}. From v = {first[0]} to v = {last[0]} the messages grow from {first[1]} to "
    alt += f"{last[1]}, and the idle share goes"
    for name, before, after in zip(names, first[2:], last[2:], strict=True):
        alt += f" with messages {name} from {before} to {after},"
    alt = alt.rstrip(",") + "."
    return finish(figure, alt, text)


def n_messages(schedule: Schedule) -> int:
    """Results that travel from one rank to another in one step."""
    owner = stage_to_rank(schedule)
    ways = {"F": 1, "B": -1, "I": -1}
    targets = (
        (rank, action.stage + ways.get(action.kind, 0)) for rank, action in actions_of(schedule)
    )
    return sum(owner.get(stage, rank) != rank for rank, stage in targets)
