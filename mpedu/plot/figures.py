"""The curves of the notebooks; each takes the functions it draws, so a student's fit as well."""

import importlib
import math
from bisect import bisect_left
from collections.abc import Callable, Iterable
from numbers import Real
from typing import TYPE_CHECKING, Any

from mpedu.cost import bubble_fraction, bubble_over_ideal
from mpedu.faults import require_at_least
from mpedu.plot.layout import counted
from mpedu.plot.looks import BLUE, GREEN, IDLE, INK, ORANGE, RED
from mpedu.plot.pictures import Picture, finish, footnote_under, in_own_style, new_figure
from mpedu.plot.text import percent, seconds, table

if TYPE_CHECKING:
    from mpedu.plot.pictures import Axes

CURVE_HEIGHT_IN = 3.4
DOUBLINGS = 18
MOST_SAMPLES = 1000
EFFICIENCY = "efficiency of a micro-batch, b s / (o + b s)"
COUNT = "number of micro-batches M"
TOTAL, IDEAL = "share of total time", "ratio to ideal time"
NEAR = 0.01  # of the least time: what counts as hardly longer
StepTime = Callable[[int, int, int, float, float], float]


@in_own_style
def bubble_curve(
    n_stages: int = 4,
    share: Callable[[int, int], float] = bubble_fraction,
    over_ideal: Callable[[int, int], float] = bubble_over_ideal,
    largest_n_microbatches: int = 32,
    limit: float = 0.05,
    marked: int = 16,
) -> Picture:
    """Idle time as share of total time and as ratio to ideal time, against the micro-batches.

    Marks both at `marked` micro-batches; says where the share of total first is `limit` or less.
    """
    require_at_least(1, n_stages=n_stages, largest_n_microbatches=largest_n_microbatches)
    counts = range(1, largest_n_microbatches + 1)
    total = {m: _number(share, n_stages, m) for m in counts}
    ideal = {m: _number(over_ideal, n_stages, m) for m in counts}
    title = f"Idle time of {counted(n_stages, 'stage')}, by both definitions"
    figure, (axes,) = new_figure(title, CURVE_HEIGHT_IN)
    for values, style, color, name in (
        (total, "o-", BLUE, TOTAL),
        (ideal, "s--", ORANGE, IDEAL),
    ):
        axes.plot(counts, _percents(values.values()), style, **_line(color, name + _above(values)))
    note = f"{percent(limit)} of total time: {_where_within(share, n_stages, limit, counts[-1])}"
    axes.axhline(100 * limit, color=RED, linestyle=(0, (5, 3)), label=note)
    alt = f"{title}. The {TOTAL} falls from {percent(total[1])} at M = 1 to "
    alt += f"{percent(total[counts[-1]])} at M = {counts[-1]}; {note}."
    alt += f" The {IDEAL} falls from {percent(ideal[1])} to {percent(ideal[counts[-1]])}."
    _dress(axes, counts[-1], "idle time (%)", 100.0)
    if marked in total:
        marks = f"{TOTAL} {percent(total[marked])}", f"{IDEAL} {percent(ideal[marked])}"
        heights = _percents((total[marked], ideal[marked]))
        _mark(axes, marked, heights, f"M = {marked}: " + ",\n".join(marks))
        alt += f" At M = {marked}: {', '.join(marks)}."
    rows = [(m, percent(total[m]), percent(ideal[m])) for m in _table_counts(counts[-1])]
    text = f"{title}\n{table(('M', TOTAL, IDEAL), rows)}\n{note}"
    return finish(figure, alt, text)


@in_own_style
def efficiency_curve(
    n_stages: int = 4,
    n_samples: int = 64,
    sample_s: float = 1.0,
    overhead_s: float = 1.0,
    share: Callable[[int, int], float] = bubble_fraction,
) -> Picture:
    """Efficiency of one micro-batch, b*s / (o + b*s), next to the idle share of total time."""
    _require_machine(n_stages, n_samples, sample_s, overhead_s)
    counts = range(1, n_samples + 1)
    work_s = {m: n_samples / m * sample_s for m in counts}
    efficiency = {m: work_s[m] / (overhead_s + work_s[m]) for m in counts}
    idle = {m: _number(share, n_stages, m) for m in counts}
    title = f"{_machine(n_samples, n_stages)}: less idle time, but smaller pieces"
    figure, (axes,) = new_figure(title, CURVE_HEIGHT_IN)
    axes.plot(counts, _percents(efficiency.values()), "D-", **_line(GREEN, EFFICIENCY))
    axes.plot(counts, _percents(idle.values()), "o-", **_line(BLUE, f"bubble, {TOTAL}"))
    _dress(axes, n_samples, "share (%)", 100.0)
    rows = [
        (m, f"{n_samples / m:.4g}", percent(efficiency[m]), percent(idle[m]))
        for m in _table_counts(n_samples)
    ]
    costs = f"a sample costs s = {seconds(sample_s)}, a start o = {seconds(overhead_s)}"
    alt = f"{title}; {costs}. From M = 1 to M = {n_samples} the {TOTAL} falls from "
    alt += f"{percent(idle[1])} to {percent(idle[n_samples])}, the efficiency from "
    alt += f"{percent(efficiency[1])} to {percent(efficiency[n_samples])}."
    heads = ("M", "samples b", "efficiency", f"bubble, {TOTAL}")
    return finish(figure, alt, f"{title}\n{costs}\n{table(heads, rows)}")


@in_own_style
def optimum_figure(
    n_stages: int = 4,
    n_samples: int = 64,
    overhead_s: float = 1.0,
    step_time: StepTime | None = None,
    best: Callable[[int, int, float, float], int] | None = None,
    sample_s: float = 1.0,
) -> Picture:
    """Seconds of a GPipe step against the number of micro-batches, with the best number marked.

    Areas: work, overhead and bubble by GPipe's formula. Line: `step_time(n_stages, n_microbatches,
    n_samples, sample_s, overhead_s)`, by default the same formula. Dot: `best(n_stages, n_samples,
    sample_s, overhead_s)`, by default where the line is least, of equal times (1e-9) the first.
    """
    _require_machine(n_stages, n_samples, sample_s, overhead_s)
    counts = range(1, n_samples + 1)
    name = getattr(step_time, "__name__", "the same formula")
    step_time = step_time or _step_time_s
    machine = (n_samples, sample_s, overhead_s)
    times_s = {m: _number(step_time, n_stages, m, *machine) for m in counts}
    right_s = {m: _step_time_s(n_stages, m, *machine) for m in counts}
    chosen = best(n_stages, *machine) if best else _first_least(times_s)
    if chosen not in counts:
        raise ValueError(f"{chosen!r} micro-batches are not on the axis, 1 to {n_samples}")
    title = f"{_machine(n_samples, n_stages)}: best M = {chosen}, {seconds(times_s[chosen])}"
    figure, (axes,) = new_figure(title, CURVE_HEIGHT_IN, footnote=True)
    _draw_parts(axes, right_s, n_samples * sample_s, overhead_s)
    axes.plot(counts, list(times_s.values()), color="black", linewidth=2, label="step")
    near = _near_least(times_s)
    both_s = [*times_s.values(), *right_s.values()]
    top_s = min(1.15 * max(both_s), 3 * max(min(times_s.values()), min(right_s.values())))
    _dress(axes, n_samples, "one step (s)", top_s)
    _mark(axes, chosen, [times_s[chosen]], f"M = {chosen}: {seconds(times_s[chosen])}\n{near}")
    note = f"Areas: what must come out. Black line: {name}; it should follow their upper edge."
    footnote_under(figure, note)
    shown = sorted({*_table_counts(n_samples), chosen})
    rows = [(m, seconds(times_s[m]), seconds(right_s[m])) for m in shown]
    costs = f"a sample costs {seconds(sample_s)}, a start {seconds(overhead_s)}"
    alt = f"{title}; {costs}. A step takes {seconds(times_s[1])} at M = 1, "
    alt += f"{seconds(times_s[chosen])} at M = {chosen} and {seconds(times_s[n_samples])} at "
    alt += f"M = {n_samples}; {near}."
    text = f"{title}\n{costs}\n{table(('M', 'step', 'areas'), rows)}\n{near}\n{note}"
    return finish(figure, alt, text)


def optimum_sliders(
    step_time: StepTime | None = None,
    best: Callable[[int, int, float, float], int] | None = None,
    n_stages: int = 4,
    n_samples: int = 64,
    overhead_s: float = 1.0,
    sample_s: float = 1.0,
) -> Any:
    """`optimum_figure` under sliders; without ipywidgets one line that says so, and the figure."""
    try:
        widgets = importlib.import_module("ipywidgets")
    except ImportError:
        print("ipywidgets is not installed: the figure stands still; pip install ipywidgets")
        return optimum_figure(n_stages, n_samples, overhead_s, step_time, best, sample_s)
    wide: dict[str, Any] = {"continuous_update": False, "layout": {"width": "32em"}}
    wide["style"] = {"description_width": "9em"}
    stages = widgets.IntSlider(n_stages, 1, max(16, n_stages), description="stages K", **wide)
    samples = widgets.IntSlider(n_samples, 1, max(256, n_samples), description="samples", **wide)
    overhead = widgets.FloatSlider(
        overhead_s, min=0, max=max(8.0, overhead_s), step=0.25, description="overhead (s)", **wide
    )
    view = widgets.HTML()

    def redraw(_: object = None) -> None:
        picture = optimum_figure(
            stages.value, samples.value, overhead.value, step_time, best, sample_s
        )
        view.value = picture._repr_html_()

    for slider in (stages, samples, overhead):
        slider.observe(redraw, names="value")
    redraw()
    return widgets.VBox([stages, samples, overhead, view])


def _step_time_s(
    n_stages: int, n_microbatches: int, n_samples: int, sample_s: float, overhead_s: float
) -> float:
    forward_s = overhead_s + n_samples / n_microbatches * sample_s
    return 3 * (n_microbatches + n_stages - 1) * forward_s


def _machine(n_samples: int, n_stages: int) -> str:
    return f"{counted(n_samples, 'sample')} on {counted(n_stages, 'stage')}"


def _first_least(times_s: dict[int, float]) -> int:
    least_s = min(times_s.values())
    return next(m for m, time_s in times_s.items() if time_s <= least_s + 1e-9 * abs(least_s))


def _near_least(times_s: dict[int, float]) -> str:
    """The numbers of micro-batches around the least time that take hardly longer, in words."""
    least_s = min(times_s.values())
    near = [m for m, time_s in times_s.items() if time_s <= least_s + NEAR * abs(least_s)]
    run = f"M = {near[0]} to {near[-1]}" if len(near) > 1 else f"M = {near[0]} only"
    if len(near) != near[-1] - near[0] + 1:
        run = f"{len(near)} numbers"
    return f"within {percent(NEAR)} of the least: {run}"


def _draw_parts(
    axes: "Axes", whole_s: dict[int, float], forward_work_s: float, overhead_s: float
) -> None:
    """What a step's time is made of, as areas on each other."""
    work_s = dict.fromkeys(whole_s, 3 * forward_work_s)
    busy_s = {m: work_s[m] + 3 * m * overhead_s for m in whole_s}
    for low, high, face, hatch, name in (
        (dict.fromkeys(whole_s, 0.0), work_s, BLUE, "", "work on samples"),
        (work_s, busy_s, GREEN, "\\\\", "overhead of starts"),
        (busy_s, whole_s, IDLE, "..", "bubble"),
    ):
        style: dict[str, Any] = {"fc": face, "hatch": hatch, "label": name}
        edges = list(low.values()), list(high.values())
        axes.fill_between(list(whole_s), *edges, ec="#707070", linewidth=0.5, **style)


def _require_machine(n_stages: int, n_samples: int, sample_s: float, overhead_s: float) -> None:
    require_at_least(1, n_stages=n_stages, n_samples=n_samples)
    if n_samples > MOST_SAMPLES:
        raise ValueError(f"n_samples={n_samples} is too many to draw; give at most {MOST_SAMPLES}")
    if not (0 < sample_s < math.inf and 0 <= overhead_s < math.inf):
        raise ValueError(
            f"sample_s={sample_s!r}, overhead_s={overhead_s!r} are not times; give seconds, "
            "above 0 for a sample, 0 or more for the overhead"
        )


def _number(function: Callable[..., float], *args: float) -> float:
    value = function(*args)
    if isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    call = f"{getattr(function, '__name__', 'the function')}{args}"
    raise ValueError(f"{call} gave {value!r}; a curve needs a finite number")


def _where_within(
    share: Callable[[int, int], float], n_stages: int, limit: float, axis_end: int
) -> str:
    """Where a falling share first is at most `limit`, in words."""

    def within(n_microbatches: int) -> bool:
        return _number(share, n_stages, n_microbatches) <= limit + 1e-12

    enough = next((2**i for i in range(DOUBLINGS) if within(2**i)), None)
    if enough is None:
        return f"not reached up to M = {2 ** (DOUBLINGS - 1)}"
    first = enough // 2 + 1 + bisect_left(range(enough // 2 + 1, enough), True, key=within)
    return f"reached at M = {first}" + (", off this axis" if first > axis_end else "")


def _above(values: dict[int, float]) -> str:
    """Which values an axis up to 100 % leaves out, in words."""
    high = [m for m in values if values[m] > 1]
    ends = dict.fromkeys([*high[:1], *high[-1:]])
    words = " to ".join(f"{percent(values[m])} at M = {m}" for m in ends)
    return f" (off this axis: {words})" if words else ""


def _percents(shares: Iterable[float]) -> list[float]:
    return [100 * share for share in shares]


def _table_counts(largest: int) -> list[int]:
    """1, 2, 4, .. and the largest."""
    return [*(2**i for i in range(largest.bit_length()) if 2**i < largest), largest]


def _line(color: str, name: str) -> dict[str, Any]:
    return {"color": color, "markersize": 4, "label": name}


def _mark(axes: "Axes", at: int, heights: list[float], note: str) -> None:
    """A thin line and dots at one number of micro-batches, with what they say."""
    axes.axvline(at, color=INK, linewidth=0.8, linestyle=":")
    axes.plot([at] * len(heights), heights, "o", color="black", markersize=8, zorder=4)
    # The note stands right of the line and above the dots, unless there is no room.
    left, below = at > 0.6 * axes.get_xlim()[1], max(heights) > 0.75 * axes.get_ylim()[1]
    place: dict[str, Any] = {"xytext": (-8 if left else 8, -20 if below else 20)}
    place |= {"ha": "right" if left else "left", "va": "top" if below else "bottom"}
    place |= {"bbox": {"fc": "white", "ec": "none", "alpha": 0.8, "pad": 1}}
    at_dot = at, min(max(heights), axes.get_ylim()[1])
    axes.annotate(note, at_dot, textcoords="offset points", fontweight="bold", **place)


def _dress(axes: "Axes", largest: int, what: str, top: float) -> None:
    axes.set(xlabel=COUNT, ylabel=what, xlim=(0, largest + 1), ylim=(0, top))
    axes.grid(color="#E0E0E0")
    axes.set_axisbelow(True)
    axes.legend(loc="upper right", fontsize=9, framealpha=1)
