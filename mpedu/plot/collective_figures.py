"""What a collective costs against its size: flat while latency rules, then along the bandwidth."""

import importlib
import math
from collections.abc import Callable
from itertools import pairwise
from numbers import Real
from typing import TYPE_CHECKING, Any

from mpedu.cost import collective_s
from mpedu.faults import require_at_least
from mpedu.plot.looks import BLUE, GREEN, INK, ORANGE, RED
from mpedu.plot.pictures import Picture, finish, footnote_under, in_own_style, new_figure
from mpedu.plot.text import table

if TYPE_CHECKING:
    from mpedu.plot.pictures import Axes

HEIGHT_IN = 3.4
LINES = (
    ("all_reduce", "all_reduce on a ring", "-", BLUE),
    ("naive_all_reduce", "all_reduce through rank 0", "--", ORANGE),
    ("broadcast", "broadcast along a tree", "-.", GREEN),
)
SMALLEST_BYTES, LARGEST_BYTES, PER_DECADE = 100, 10**9, 8
UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"))
SIZES = ((10**9, "GB"), (10**6, "MB"), (10**3, "KB"), (1, "bytes"))
CostOf = Callable[[str, float, int, float, float], float]


@in_own_style
def size_figure(
    n_ranks: int = 8,
    latency_s: float = 5e-6,
    bandwidth_bytes_per_s: float = 10e9,
    cost: CostOf = collective_s,
) -> Picture:
    """Seconds of three collectives against the bytes of the array, both axes by powers of ten.

    Thin red lines: what a ring's latency and its bytes cost alone; they cross at its knee. A dot
    marks from where on the ring is faster than the way through rank 0. `cost(op, n_bytes, n_ranks,
    latency_s, bandwidth_bytes_per_s)` gives the curves.
    """
    require_at_least(2, n_ranks=n_ranks)
    if not (0 < latency_s < math.inf and 0 < bandwidth_bytes_per_s < math.inf):
        raise ValueError(
            f"latency_s={latency_s!r}, bandwidth_bytes_per_s={bandwidth_bytes_per_s!r}; give both "
            "above 0"
        )
    machine = n_ranks, latency_s, bandwidth_bytes_per_s
    n_points = round(math.log10(LARGEST_BYTES / SMALLEST_BYTES)) * PER_DECADE
    sizes = [SMALLEST_BYTES * 10 ** (i / PER_DECADE) for i in range(n_points + 1)]
    times_s = {op: [_time_s(cost, op, n, *machine) for n in sizes] for op, *_ in LINES}
    title = (
        f"{n_ranks} ranks, latency {_time(latency_s)}, {_size(bandwidth_bytes_per_s)}/s: time "
        "against size"
    )
    figure, (axes,) = new_figure(title, HEIGHT_IN, footnote=True)
    _draw_curves(axes, sizes, times_s)
    knee = _draw_ends(axes, sizes, *machine)
    even = _first_faster(sizes, times_s)
    note = f"knee of the ring at {_size(knee)}; the ring is "
    if even is None:
        note += "nowhere faster than through rank 0"
    else:
        note += f"faster from {_size(even)} on"
        axes.plot([even], [_time_s(cost, "all_reduce", even, *machine)], "o", color="black")
    axes.legend(loc="upper left", fontsize=8.5, framealpha=1)
    footnote_under(figure, note)
    rows = [
        (_size(n), *(_time(_time_s(cost, op, n, *machine)) for op, *_ in LINES))
        for n in (10**exponent for exponent in range(2, 10))
    ]
    text = f"{title}\n{table(('size', *(name for _, name, *_ in LINES)), rows)}\n{note}"
    alt = f"{title}, by powers of ten. Each curve is flat at first and then rises with the size. "
    return finish(figure, f"{alt}{note[0].upper()}{note[1:]}.", text)


def _draw_curves(axes: "Axes", sizes: list[float], times_s: dict[str, list[float]]) -> None:
    for op, name, style, color in LINES:
        axes.plot(sizes, times_s[op], style, color=color, linewidth=2, label=name)
    low_s, high_s = min(map(min, times_s.values())), max(map(max, times_s.values()))
    axes.set(xscale="log", yscale="log", xlabel="bytes of the array", ylabel="time (s)")
    axes.set(xlim=(sizes[0], sizes[-1]), ylim=(0.3 * low_s, 3 * high_s))
    axes.grid(color="#E0E0E0")
    axes.set_axisbelow(True)


def _draw_ends(
    axes: "Axes", sizes: list[float], n_ranks: int, latency_s: float, bandwidth: float
) -> float:
    """What a ring's latency and its bytes cost alone; the size at which these are equal."""
    steps, knee = 2 * (n_ranks - 1), n_ranks * latency_s * bandwidth
    bytes_s = [steps / n_ranks * n / bandwidth for n in sizes]
    axes.axhline(steps * latency_s, color=RED, linewidth=0.8, label="ring: its latency alone")
    axes.plot(sizes, bytes_s, ":", color=RED, linewidth=1.2, label="ring: its bytes alone")
    axes.axvline(knee, color=INK, linewidth=0.8, linestyle=(0, (2, 2)))
    return knee


def size_sliders(
    cost: CostOf = collective_s,
    n_ranks: int = 8,
    latency_s: float = 5e-6,
    bandwidth_bytes_per_s: float = 10e9,
) -> Any:
    """`size_figure` under sliders; without ipywidgets one line that says so, and the figure."""
    try:
        widgets = importlib.import_module("ipywidgets")
    except ImportError:
        print("ipywidgets is not installed: the figure stands still; pip install ipywidgets")
        return size_figure(n_ranks, latency_s, bandwidth_bytes_per_s, cost)
    wide: dict[str, Any] = {"continuous_update": False, "layout": {"width": "32em"}}
    wide["style"] = {"description_width": "9em"}
    exponent = widgets.IntSlider(
        round(math.log2(n_ranks)), 1, 10, description="ranks: 2 to the", **wide
    )
    latency = widgets.FloatLogSlider(latency_s, min=-7, max=-2, description="latency (s)", **wide)
    bandwidth = widgets.FloatLogSlider(
        bandwidth_bytes_per_s, min=6, max=12, description="bytes/s", **wide
    )
    view = widgets.HTML()

    def redraw(_: object = None) -> None:
        picture = size_figure(2**exponent.value, latency.value, bandwidth.value, cost)
        view.value = picture._repr_html_()

    for slider in (exponent, latency, bandwidth):
        slider.observe(redraw, names="value")
    redraw()
    return widgets.VBox([exponent, latency, bandwidth, view])


def _time_s(cost: CostOf, op: str, n_bytes: float, *machine: Any) -> float:
    value = cost(op, n_bytes, *machine)
    if isinstance(value, Real) and not isinstance(value, bool) and 0 < value < math.inf:
        return float(value)
    name = getattr(cost, "__name__", "the function")
    raise ValueError(f"{name}({op!r}, {n_bytes:g}, ..) gave {value!r}; a time above 0 is needed")


def _first_faster(sizes: list[float], times_s: dict[str, list[float]]) -> float | None:
    """The size at which the ring's curve falls below that through rank 0, None where it does not.

    Between two points both are taken for straight lines, which they are.
    """
    gaps = [a - b for a, b in zip(times_s["all_reduce"], times_s["naive_all_reduce"], strict=True)]
    for i, (before, after) in enumerate(pairwise(gaps)):
        if before > 0 >= after:
            return sizes[i] + (sizes[i + 1] - sizes[i]) * before / (before - after)
    return None


def _time(seconds: float) -> str:
    scale, unit = next((u for u in UNITS if seconds >= u[0]), UNITS[-1])
    return f"{seconds / scale:.4g} {unit}"


def _size(n_bytes: float) -> str:
    scale, unit = next((s for s in SIZES if n_bytes >= s[0]), SIZES[-1])
    return f"{n_bytes / scale:.4g} {unit}"
