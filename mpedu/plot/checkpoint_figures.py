"""Activation checkpointing: memory against compute, and what is held from layer to layer."""

import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from mpedu.faults import require_at_least
from mpedu.held import Backward, units_held
from mpedu.plot.layout import counted
from mpedu.plot.looks import BLUE, GREEN, INK, ORANGE, RED
from mpedu.plot.pictures import Picture, finish, footnote_under, in_own_style, new_figure
from mpedu.plot.text import table

if TYPE_CHECKING:
    from mpedu.plot.pictures import Axes

HEIGHT_IN = 3.4
MOST_LAYERS, MOST_SAMPLES = 1024, 1024
LEAST_ERROR = 1e-9  # of a gradient, at the foot of its axis
LINES = ((BLUE, "-"), (ORANGE, "--"), (GREEN, "-."))
GREY = "#909090"
UNITS = "activations held"
Peak = Callable[[int, int, int, int, bool], int]


@in_own_style
def recompute_figure(best: Callable[[int], int], n_layers: int = 64) -> Picture:
    """Activations held at most by a chain of layers: against the segment length, and forwards.

    Left: ceil(n / s) checkpoints and s layers run again, for every length s; a dot at
    `best(n_layers)`. Right: the same dot, all layers held, and only the input held, from which
    every layer's backward runs again. The chain's input counts as held. ValueError where `best`
    gives no length.
    """
    _require_drawable("n_layers", n_layers, MOST_LAYERS)
    n, lengths = n_layers, range(1, n_layers + 1)
    held = {s: math.ceil(n / s) + s for s in lengths}
    chosen = best(n)
    if isinstance(chosen, bool) or not isinstance(chosen, Integral) or chosen not in lengths:
        raise ValueError(f"{chosen!r} is no segment length; give a whole number, 1 to {n}")
    s, least = int(chosen), min(held.values())
    title = f"{counted(n, 'layer')}, segments of {s}: {held[s]} {UNITS}"
    figure, (left, right) = new_figure(title, HEIGHT_IN, n_columns=2, footnote=True)
    left.plot(lengths, list(held.values()), color=BLUE, label="ceil(n / s) + s")
    left.plot([s], [held[s]], "o", color="black", markersize=8, label=f"s = {s}", zorder=4)
    left.set(xlabel="layers in a segment, s", ylabel=UNITS, xlim=(0, n + 1))
    left.set_ylim(0, 1.1 * max(held.values()))
    ways = {
        "all held": (n, n + 1, "s", GREY),
        f"s = {s}": (2 * n, held[s], "o", "black"),
        "input held": (n + n * (n + 1) // 2, 2, "D", RED),
    }
    for name, (n_forwards, units, marker, color) in ways.items():
        right.plot([n_forwards], [units], marker, color=color, markersize=8, label=name)
    right.set(xscale="log", yscale="log", xlabel="forwards of layers", ylabel=UNITS)
    most = ways["input held"][0]
    right.set(xlim=(0.6 * n, max(2 * most, 10 * n)), ylim=(1, max(2 * n, 2 * held[s], 20)))
    right.minorticks_off()  # their labels would stand beyond the axes where n is small
    for axes in (left, right):
        _dress(axes)
    note = "no length needs fewer" if held[s] == least else f"{least} are possible"
    footnote_under(figure, f"s = {s}: {held[s]} held; {note}")
    rows = [(name, n_forwards, units) for name, (n_forwards, units, *_) in ways.items()]
    shown = sorted({1, 2, s, math.isqrt(n), n} & set(lengths))
    text = f"{title}; {note}\n{table(('way', 'forwards', 'held'), rows)}\n"
    text += table(("length s", "held"), [(length, held[length]) for length in shown])
    alt = f"{title}; {note}. From all {n + 1} held at {n} forwards to 2 held at "
    alt += f"{most} forwards; segments take {2 * n} forwards."
    return finish(figure, alt, text)


@in_own_style
def sawtooth_figure(
    backward: Backward, n_layers: int = 16, n_segments: Sequence[int] = (1, 4)
) -> Picture:
    """Activations that `backward(layers, x, n_segments)` holds after each layer it runs.

    One line for each number of segments, with a thin dashed one in its colour at
    n_segments + ceil(n / n_segments); in grey a backward that holds every output. Counted by
    `mpedu.held.units_held`.
    """
    _require_drawable("n_layers", n_layers, MOST_LAYERS)
    if not 1 <= len(n_segments) <= len(LINES):
        raise ValueError(f"n_segments={n_segments!r}: give 1 to {len(LINES)} numbers of segments")
    require_at_least(1, **{f"n_segments[{i}]": n for i, n in enumerate(n_segments)})
    plain = [*range(1, n_layers + 1), *reversed(range(n_layers))]
    title = f"{counted(n_layers, 'layer')}: {UNITS} from one layer to the next"
    figure, (axes,) = new_figure(title, HEIGHT_IN, footnote=True)
    axes.step(range(1, len(plain) + 1), plain, color=GREY, where="post", label="all held")
    rows, words = [("all held", len(plain), n_layers, n_layers)], []
    for n, (color, line) in zip(n_segments, LINES, strict=False):
        held = units_held(backward, n_layers, n)
        name, most = counted(n, "segment"), n + math.ceil(n_layers / n)
        peak = max(held, default=0)
        axes.step(range(1, len(held) + 1), held, line, color=color, where="post", label=name)
        axes.axhline(most, color=color, linewidth=0.8, linestyle=(0, (4, 3)))
        rows.append((name, len(held), peak, most))
        words.append(f"{name}: {peak} at most" + f", over {most}" * (peak > most))
    axes.set(xlabel="forwards and backwards of layers, in order", ylabel=UNITS)
    axes.set(xlim=(0, None), ylim=(0, None))
    _dress(axes)
    note = "; ".join(words)
    footnote_under(figure, note)
    heads = ("way", "layers run", "peak", "n_segments + ceil(n / n_segments)")
    alt = f"{title}. All held rises to {n_layers} and falls again; {note}."
    return finish(figure, alt, f"{title}\n{table(heads, rows)}\n{note}")


@in_own_style
def gpipe_memory_figure(
    peak: Peak, n_samples: int = 64, n_layers: int = 16, n_stages: int = 4
) -> Picture:
    """Activations of the fullest device under GPipe against the micro-batches M, by `peak`.

    peak(n_samples, n_layers, n_stages, n_microbatches, checkpoint) is drawn with and without
    checkpoints; a dot marks from where on checkpoints hold less.
    """
    _require_drawable("n_samples", n_samples, MOST_SAMPLES)
    require_at_least(1, n_layers=n_layers, n_stages=n_stages)
    counts = range(1, n_samples + 1)
    sizes = n_samples, n_layers, n_stages
    held = {
        name: [_units(peak, *sizes, m, checkpoint) for m in counts]
        for name, checkpoint in (("without checkpoints", False), ("inputs of stages held", True))
    }
    title = f"{counted(n_samples, 'sample')}, {counted(n_layers, 'layer')} on "
    title += f"{counted(n_stages, 'device')}: {UNITS}"
    figure, (axes,) = new_figure(title, HEIGHT_IN, footnote=True)
    for (name, values), (color, line) in zip(held.items(), LINES, strict=False):
        axes.plot(counts, values, line, color=color, linewidth=2, label=name)
    plain, less = held.values()
    first = next((m for m in counts if less[m - 1] < plain[m - 1]), None)
    if first is None:
        note = "checkpoints never hold less"
    else:
        note = f"checkpoints hold less from M = {first} on; M = {n_samples}: {less[-1]:g} "
        note += f"against {plain[-1]:g}"
        dot: dict[str, Any] = {
            "color": "black",
            "markersize": 8,
            "zorder": 4,
            "label": f"less from M = {first} on",
        }
        axes.plot([first], [less[first - 1]], "o", **dot)
    axes.set(xlabel="number of micro-batches M", ylabel=UNITS, xlim=(0, n_samples + 1))
    axes.set_ylim(0, 1.1 * max(*plain, *less) + 1)
    _dress(axes)
    footnote_under(figure, note)
    shown = [*(2**i for i in range(n_samples.bit_length()) if 2**i < n_samples), n_samples]
    rows = [(m, *(f"{values[m - 1]:g}" for values in held.values())) for m in shown]
    alt = f"{title}, against M: {plain[0]:g} without checkpoints at M = 1, {less[0]:g} with the "
    alt += f"inputs of stages held; {note}."
    return finish(figure, alt, f"{title}\n{table(('M', *held), rows)}\n{note}")


@in_own_style
def checkpoint_run_figure(
    forwards: Sequence[int],
    held: Sequence[int],
    gradient_errors: Sequence[float],
    title: str = "",
    rounding: float = 9e-7,
) -> Picture:
    """What a run of a chain did: forwards of each layer, activations held, gradients' errors.

    held: after each forward and backward of a layer, in order. gradient_errors: of each layer's
    weights, relative; 0 draws no bar, and one up to `rounding`, the dashed line, a grey one.
    """
    given = {"forwards": forwards, "held": held, "gradient_errors": gradient_errors}
    for name, values in given.items():
        if not values or not all(_is_number(value) and value >= 0 for value in values):
            raise ValueError(f"{name}={values!r:.60} cannot be drawn; give numbers of 0 or more")
    title = title or f"A run of {counted(len(forwards), 'layer')}"
    room: dict[str, Any] = {"footnote": True, "over_axes": True}
    figure, (left, middle, right) = new_figure(title, HEIGHT_IN, n_columns=3, **room)
    left.bar(range(len(forwards)), forwards, color=BLUE)
    left.set(xlabel="layer", ylim=(0, 1.15 * max(forwards) + 0.5))
    middle.step(range(1, len(held) + 1), held, color=ORANGE, where="post")
    middle.set(xlabel="layers run", ylim=(0, 1.15 * max(held) + 1))
    for layer, error in enumerate(gradient_errors):
        color, hatch = (RED, "//") if error > rounding else (GREY, "")
        if error:
            right.bar([layer], [error], ec=INK, color=color, hatch=hatch)
    right.axhline(rounding, color=INK, linestyle="--", linewidth=1)
    right.set(yscale="log", ylim=(LEAST_ERROR, 10 * max(1.0, *gradient_errors)))
    right.set(xlabel="layer", xlim=(-1, len(gradient_errors)))
    heads = ("forwards", UNITS, "gradients' errors")
    for axes, head in zip((left, middle, right), heads, strict=True):
        axes.set_title(head, loc="left", fontsize=10)
    for axes in (left, middle, right):
        axes.grid(color="#E0E0E0")
        axes.set_axisbelow(True)
    for axes in (left, middle):
        axes.locator_params(axis="y", integer=True)
    worst = max(gradient_errors)
    note = f"{sum(forwards)} forwards; {max(held)} held at most; worst gradient {worst:.2g} off"
    footnote_under(figure, note)
    lists = {
        "forwards of each layer": forwards,
        "activations held": held,
        "error of each layer's gradient": [f"{error:.2g}" for error in gradient_errors],
    }
    return finish(figure, f"{title}: {note}.", f"{title}\n{_listed(lists)}\n{note}")


def _listed(lists: Mapping[str, Sequence[object]]) -> str:
    return "\n".join(f"{name}: {' '.join(map(str, values))}" for name, values in lists.items())


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def _units(peak: Peak, *arguments: int) -> float:
    n_samples, n_layers, n_stages, n_microbatches, checkpoint = arguments
    value = peak(n_samples, n_layers, n_stages, n_microbatches, bool(checkpoint))
    if _is_number(value) and value >= 0:
        return float(value)
    name = getattr(peak, "__name__", "the function")
    raise ValueError(f"{name}{arguments} gave {value!r}; give a number of activations, 0 or more")


def _require_drawable(name: str, value: int, most: int) -> None:
    require_at_least(1, **{name: value})
    if value > most:
        raise ValueError(f"{name}={value} is too many to draw; give at most {most}")


def _dress(axes: "Axes") -> None:
    axes.grid(color="#E0E0E0")
    axes.set_axisbelow(True)
    axes.legend(loc="best", fontsize=9, framealpha=1)
