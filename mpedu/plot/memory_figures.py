"""What the ranks keep in memory, and where a model is cut: stacked bars, one for each rank."""

import importlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mpedu.faults import require_at_least
from mpedu.plot.figures import CURVE_HEIGHT_IN
from mpedu.plot.layout import counted
from mpedu.plot.looks import BLUE, GREEN, IDLE, INK, ORANGE, RED, YELLOW
from mpedu.plot.pictures import Picture, finish, footnote_under, in_own_style, new_figure
from mpedu.plot.text import table
from mpedu.published import (
    Hardware,
    ModelConfig,
    hardware_names,
    load_hardware,
    load_model,
    model_names,
)

if TYPE_CHECKING:
    from mpedu.plot.pictures import Axes

Bill = Mapping[str, float]  # bytes by part
MemoryBill = Callable[[ModelConfig, int, int], Sequence[Bill]]
Partition = Callable[[Sequence[float], int], Sequence[int]]
GB = 1e9
# Each part of a bill with its colour and hatching, from the bottom of a bar to its top.
PARTS = {
    "parameters": (BLUE, ""),
    "gradients": (GREEN, "\\\\"),
    "optimiser": (ORANGE, "//"),
    "activations": (YELLOW, ".."),
}
BAR, SKY = 0.72, "#56B4E9"


@in_own_style
def memory_figure(
    memory_bill: MemoryBill,
    config: ModelConfig,
    n_stages: int,
    held: Mapping[str, int],
    device: Hardware,
) -> Picture:
    """Bytes of every rank by part, beside the memory of a device; one panel for each of `held`.

    held: names of cases with the number of sequences whose activations are held at once.
    memory_bill(config, n_stages, n_held) gives one dict of bytes per rank.
    """
    require_at_least(1, n_stages=n_stages)
    bills = {name: _checked(memory_bill(config, n_stages, n), n_stages) for name, n in held.items()}
    title = f"{config.name} on {counted(n_stages, 'device')}: what each keeps"
    return _bars(bills, device, title)


@in_own_style
def bills_figure(
    bills: Sequence[Sequence[Bill]],
    device: Hardware,
    names: Sequence[str] = ("planned", "measured"),
    title: str = "What each rank keeps",
) -> Picture:
    """Several bills of the same ranks side by side, beside the memory of a device."""
    n_ranks = len(bills[0]) if bills else 0
    require_at_least(1, n_ranks=n_ranks)
    given = zip(names, bills, strict=True)
    return _bars({name: _checked(bill, n_ranks) for name, bill in given}, device, title)


def memory_sliders(memory_bill: MemoryBill, n_stages: int = 4, n_held: int = 1) -> Any:
    """`memory_figure` under a choice of model, device, ranks and sequences held.

    Without ipywidgets one line that says so, and the figure.
    """

    def picture(model: str, device: str, n_ranks: int, n_sequences: int) -> Picture:
        config = load_model(model)
        ranks = min(n_ranks, config.n_layers)
        held = {counted(n_sequences, "sequence") + " held": n_sequences}
        return memory_figure(memory_bill, config, ranks, held, load_hardware(device))

    try:
        widgets = importlib.import_module("ipywidgets")
    except ImportError:
        print("ipywidgets is not installed: the figure stands still; pip install ipywidgets")
        return picture("llama2-7b", "a100-80gb", n_stages, n_held)
    wide: dict[str, Any] = {"layout": {"width": "32em"}, "style": {"description_width": "9em"}}
    chosen = [
        widgets.Dropdown(options=model_names(), value="llama2-7b", description="model", **wide),
        widgets.Dropdown(options=hardware_names(), value="a100-80gb", description="device", **wide),
        widgets.IntSlider(
            n_stages, 1, 64, description="devices K", continuous_update=False, **wide
        ),
        widgets.IntSlider(n_held, 0, 64, description="held", continuous_update=False, **wide),
    ]
    view = widgets.HTML()

    def redraw(_: object = None) -> None:
        view.value = picture(*(one.value for one in chosen))._repr_html_()

    for one in chosen:
        one.observe(redraw, names="value")
    redraw()
    return widgets.VBox([*chosen, view])


@in_own_style
def partition_figure(partition_layers: Partition, costs: Sequence[float], n_stages: int) -> Picture:
    """The cost of each stage, cut by `partition_layers(costs, n_stages)` and by equal counts.

    `partition_layers` gives the number of layers of every stage, first to last.
    """
    require_at_least(1, n_stages=n_stages)
    counts = list(partition_layers(costs, n_stages))
    if len(counts) != n_stages or sum(counts) != len(costs) or min(counts) < 1:
        raise ValueError(
            f"{counts!r} does not cut {counted(len(costs), 'layer')} into "
            f"{counted(n_stages, 'stage')}; give every stage at least one layer"
        )
    size, n_larger = divmod(len(costs), n_stages)
    cuts = {
        "equal counts": [size + (stage < n_larger) for stage in range(n_stages)],
        "your cut": counts,
    }
    return _cuts(cuts, costs)


def _cuts(cuts: Mapping[str, Sequence[int]], costs: Sequence[float]) -> Picture:
    sums = {name: _stage_costs(counts, costs) for name, counts in cuts.items()}
    worst = {name: max(stages) for name, stages in sums.items()}
    title = f"{counted(len(costs), 'layer')} on {counted(len(sums['your cut']), 'stage')}"
    figure, panels = new_figure(title, CURVE_HEIGHT_IN, n_columns=len(cuts), footnote=True)
    rows = []
    for axes, (name, counts) in zip(panels, cuts.items(), strict=True):
        bottoms, at = [0.0] * len(counts), 0
        for stage, n in enumerate(counts):
            for cost in costs[at : at + n]:
                axes.bar(stage, cost, BAR, bottoms[stage], ec=INK, fc=SKY)
                bottoms[stage] += cost
            rows.append((name, stage, n, f"{sums[name][stage]:g}"))
            at += n
        axes.axhline(worst[name], color=RED, linestyle=(0, (5, 3)))
        axes.set(xlabel=f"stage, {name}", ylabel="cost of its layers", xticks=range(len(counts)))
        axes.set_ylim(0, 1.15 * max(worst.values()))
    least = _lightest(costs, len(cuts["your cut"]))
    verdict = "no cut is lighter" if worst["your cut"] <= least else f"{least:g} is possible"
    note = "; ".join(
        f"{name}: heaviest is stage {sums[name].index(most)} with {most:g}"
        for name, most in worst.items()
    )
    note += f", {verdict}"
    footnote_under(figure, note)
    text = f"{title}\n{table(('cut', 'stage', 'layers', 'cost'), rows)}\n{note}"
    alt = f"{title}. {note}. A box is a layer, a dashed line the heaviest stage."
    return finish(figure, alt, text)


def _lightest(costs: Sequence[float], n_stages: int) -> float:
    """The heaviest stage of the best cut: the least sum of neighbours that suffices as a limit."""
    sums = {sum(costs[a:b]) for a in range(len(costs)) for b in range(a + 1, len(costs) + 1)}
    return next(limit for limit in sorted(sums) if _stages_needed(costs, limit) <= n_stages)


def _stages_needed(costs: Sequence[float], limit: float) -> float:
    """How many stages it takes when each is filled up to the limit; inf if a layer is above it."""
    n_stages, filled = 1, 0.0
    for cost in costs:
        if cost > limit:
            return math.inf
        if filled + cost > limit:
            n_stages, filled = n_stages + 1, 0.0
        filled += cost
    return n_stages


def _stage_costs(counts: Sequence[int], costs: Sequence[float]) -> list[float]:
    ends = [sum(counts[: stage + 1]) for stage in range(len(counts))]
    return [sum(costs[end - n : end]) for end, n in zip(ends, counts, strict=True)]


def _checked(bill: object, n_ranks: int) -> list[Bill]:
    """The bill if it can be drawn; ValueError saying what it is otherwise."""
    shape = f"give a list of {counted(n_ranks, 'dict')} with {', '.join(PARTS)}"
    if not isinstance(bill, Sequence) or len(bill) != n_ranks:
        raise ValueError(f"{bill!r:.60} is no bill; {shape}")
    for rank, parts in enumerate(bill):
        if not isinstance(parts, Mapping) or set(parts) != set(PARTS):
            raise ValueError(f"rank {rank} is {parts!r:.60}; {shape}")
        for part, value in parts.items():
            if (
                isinstance(value, bool)
                or not isinstance(value, int | float)
                or not 0 <= value < 1e18
            ):
                raise ValueError(f"rank {rank}: {part} is {value!r:.40}; give bytes, 0 or more")
    return list(bill)


def _bars(bills: Mapping[str, Sequence[Bill]], device: Hardware, title: str) -> Picture:
    totals = {name: [sum(bill.values()) for bill in ranks] for name, ranks in bills.items()}
    limit = device.memory_bytes
    over = {name: [r for r, n in enumerate(sums) if n > limit] for name, sums in totals.items()}
    room: dict[str, Any] = {"footnote": True, "over_axes": True}
    figure, panels = new_figure(title, CURVE_HEIGHT_IN, n_columns=len(bills), **room)
    top = 1.18 * max(limit, *(n for sums in totals.values() for n in sums)) / GB
    for axes, (name, ranks) in zip(panels, bills.items(), strict=True):
        _stack(axes, ranks, limit)
        line = f"{device.name}, {limit / GB:g} GB"
        axes.axhline(limit / GB, color=RED, linestyle=(0, (5, 3)), linewidth=2, label=line)
        axes.set(xlabel=f"rank, {name}", ylabel="memory (GB)", xticks=range(len(ranks)))
        axes.set_ylim(0, top)
    above: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0.2}
    panels[0].legend(**above, fontsize=9, frameon=False, ncols=1 + len(PARTS))
    note = "; ".join(f"{name}: {_fits(ranks, len(totals[name]))}" for name, ranks in over.items())
    footnote_under(figure, note)
    rows = [
        (name, rank, *(f"{bill[part] / GB:.3g}" for part in PARTS), f"{total / GB:.3g}")
        for name, ranks in bills.items()
        for rank, (bill, total) in enumerate(zip(ranks, totals[name], strict=True))
    ]
    heads = ("case", "rank", *PARTS, "GB")
    alt = f"{title}, stacked by part, beside a line at {limit / GB:g} GB ({device.name}). {note}."
    return finish(figure, alt, f"{title}\n{table(heads, rows)}\n{note}")


def _stack(axes: "Axes", ranks: Sequence[Bill], limit: float) -> None:
    """The bars of one panel; the total above each, in red where it is over the limit."""
    places, bottoms = range(len(ranks)), [0.0] * len(ranks)
    axes.set_facecolor(IDLE)
    for part, (face, hatch) in PARTS.items():
        heights = [bill[part] / GB for bill in ranks]
        style: dict[str, Any] = {"fc": face, "hatch": hatch, "ec": "#505050", "linewidth": 0.6}
        axes.bar(places, heights, BAR, bottoms, label=part, **style)
        bottoms = [low + height for low, height in zip(bottoms, heights, strict=True)]
    for rank, top in enumerate(bottoms if len(ranks) <= 16 else []):
        color = RED if top * GB > limit else INK
        place: dict[str, Any] = {"ha": "center", "va": "bottom", "fontsize": 9, "color": color}
        axes.text(rank, top, f"{top:.3g}", fontweight="bold", **place)


def _fits(over: Sequence[int], n_ranks: int) -> str:
    if not over:
        return "fits"
    if len(over) == n_ranks:
        return "no rank fits" if n_ranks > 1 else "does not fit"
    return f"{counted(len(over), 'rank')} of {n_ranks} {'do' if len(over) > 1 else 'does'} not fit"
