"""Pictures of training runs: measured below predicted, losses, and all evidence of one report."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mpedu.plot.flaw import Flaw, find_flaw
from mpedu.plot.layout import Layout, counted, schedule_layout, timeline_layout
from mpedu.plot.looks import BLUE, INK, look_of
from mpedu.plot.pictures import (
    Picture,
    draw_boxes,
    finish,
    footnote_under,
    in_own_style,
    legend,
    new_figure,
)
from mpedu.plot.text import (
    busy_table,
    flaw_sentence,
    layout_text,
    percent,
    seconds,
    table,
    work_done,
)
from mpedu.plot.views import CURVE_HEIGHT_IN, NO_NUMBERS, STYLES, draw_order
from mpedu.runs import RunReport
from mpedu.simulate import Costs, Timeline
from mpedu.trace import from_zero
from mpedu.validate import validate_schedule

if TYPE_CHECKING:
    from mpedu.plot.pictures import Axes

N_SHOWN = 8  # markers on a curve, rows of its table
N_WHOLE = 12  # steps that a table leaves none of out
ENTROPY = "unigram entropy of the corpus"
SHARE = "samples / all samples"
REPORT_HEIGHT_IN = 1.8


@in_own_style
def overlay(predicted: Timeline, measured: Timeline, title: str = "") -> Picture:
    """A measured timeline below the one predicted for it, both from 0 s on one axis.

    A model clock has a unit of its own: the predicted timeline is scaled to the measured busy
    time, so that whichever is longer idles more. The idle share of each stands below.
    ValueError unless both are of the same work on the same ranks.
    """
    _require_same_work(predicted, measured)
    scale = float(measured.busy_s) / float(predicted.busy_s)
    shown = from_zero(predicted, float(measured.busy_s)), from_zero(measured)
    layouts = [timeline_layout(timeline) for timeline in shown]
    wide = Layout([box for layout in layouts for box in layout.boxes], layouts[0].row_names, None)
    title = title or f"{wide.rows}, {wide.microbatches}: as predicted, and as it ran"
    figure, panels = new_figure(title, wide.height_in, n_rows=2, footnote=True, over_axes=True)
    ends = [seconds(layout.extent[1]) for layout in layouts]
    heads = [
        f"predicted: {ends[0]}, stretched to the measured work: 1 s of the model clock is "
        f"{seconds(scale)} here",
        f"measured: {ends[1]}",
    ]
    numbered = [_draw_panel(*panel, wide) for panel in zip(panels, layouts, heads, strict=True)]
    legend(panels[1], [*map(look_of, wide.boxes), "idle"])
    shares = [percent(float(timeline.idle_share)) for timeline in shown]
    note = f"idle share: {shares[0]} predicted, {shares[1]} measured"
    footnote_under(figure, note)
    parts = [
        f"{head}\n{layout_text(layout)}\n{busy_table(layout)}"
        for head, layout in zip(heads, layouts, strict=True)
    ]
    text = "\n".join([title, *parts, note + ("" if all(numbered) else NO_NUMBERS)])
    alt = f"{title}. Two timelines with {wide.rows} as rows, above {heads[0]}; below {heads[1]}; "
    return finish(figure, f"{alt}each {work_done(layouts[1])}; {note}.", text)


@in_own_style
def loss_curve(
    losses: Mapping[str, Sequence[float]], floor: float | None = None, title: str = ""
) -> Picture:
    """The loss of every training step, one curve per name, from step 1 on.

    losses: nats per byte, which is one token. floor: the corpus' unigram entropy in nats, dashed;
    who knows how often each byte comes, and nothing of the bytes before it, gets there and no
    lower.
    ValueError without losses.
    """
    if not losses or not all(map(len, losses.values())):
        raise ValueError('a curve without losses; give some by name, {"pp 2": [5.5, 5.1, 4.8]}')
    n_steps = max(map(len, losses.values()))
    title = title or f"Loss over {counted(n_steps, 'training step')}"
    figure, (axes,) = new_figure(title, CURVE_HEIGHT_IN)
    said = [
        f"{name}: {_nats(values[0])} at first, {_nats(values[-1])} at last"
        for name, values in losses.items()
    ]
    _draw_curves(axes, dict(zip(said, losses.values(), strict=True)))
    if floor is not None:
        said.append(f"{ENTROPY}: {_nats(floor)}")
        axes.axhline(floor, color=INK, linestyle=(0, (9, 4)), linewidth=1.5, label=said[-1])
    axes.set(xlabel="training step", ylabel="loss (nats per byte)", xlim=(0, n_steps + 1))
    axes.locator_params(axis="x", integer=True)
    axes.grid(color="#E0E0E0")
    axes.legend(loc="upper right", fontsize=9, framealpha=1)
    text = "\n".join([title, "nats per byte", _loss_table(losses, n_steps), *said])
    return finish(figure, f"{title}. {'; '.join(said)}.", text)


@in_own_style
def report_figure(run: RunReport, title: str = "") -> Picture:
    """All evidence of a report: its losses, gradient ratios and order of work.

    Beside them the serial run's losses, and each micro-batch's share of the samples, which is the
    ratio of a healthy run. A schedule out of order is drawn with the first box in question in red.
    """
    sizes = ", ".join(map(str, run.sizes))
    title = title or f"{sum(run.sizes)} samples in {run.n_microbatches} micro-batches: {sizes}"
    layout = schedule_layout(run.schedule, Costs(), run.n_stages, run.n_microbatches)
    fault = next(iter(validate_schedule(run.schedule)), None)
    flaw = Flaw("", None, None, [], in_labels=False)
    if fault:
        flaw = find_flaw(run.schedule, layout, fault, run.n_stages)
    height_in = max(REPORT_HEIGHT_IN, layout.height_in)
    figure, (losses, ratios, order, spare) = new_figure(title, height_in, 2, 2, over_axes=True)
    _draw_losses(losses, run)
    _draw_ratios(ratios, run)
    left, right = order.get_position(), spare.get_position()
    spare.remove()
    order.set_position((left.x0, left.y0, right.x1 - left.x0, left.height))
    order.set_title("order of work, on the model clock", loc="left", fontsize=10)
    numbered = draw_order(order, layout, flaw)
    shares = ", ".join(f"{size / sum(run.sizes):.4g}" for size in run.sizes)
    found = ", ".join(f"{ratio:.4g}" for ratio in run.gradient_ratios)
    text = f"{title}\n{run}\n\n{SHARE}: {shares}\n{layout_text(layout, flaw)}"
    alt = f"{title}. {_ends_of('loss', run.losses)}; {_ends_of('serial loss', run.serial_losses)}; "
    alt += f"gradient ratios {found}; {SHARE}: {shares}; {flaw_sentence(layout, flaw)}"
    return finish(figure, alt, text + ("" if numbered else NO_NUMBERS))


def _draw_losses(axes: "Axes", run: RunReport) -> None:
    _draw_curves(axes, {"this run": run.losses, "serial run": run.serial_losses})
    axes.set(xlabel="training step", xlim=(0.5, len(run.losses) + 0.5), ylim=(0, None))
    axes.set_title("loss", loc="left", fontsize=10)
    axes.locator_params(axis="x", integer=True)
    axes.grid(color="#E0E0E0")
    axes.legend(loc="best", fontsize=9, framealpha=1)


def _draw_ratios(axes: "Axes", run: RunReport) -> None:
    numbers = range(run.n_microbatches)
    axes.bar(numbers, run.gradient_ratios, color=BLUE, edgecolor=INK, label="this run")
    for m, size in enumerate(run.sizes):
        share = size / sum(run.sizes)
        label = SHARE if m == 0 else None
        axes.plot([m - 0.48, m + 0.48], [share, share], color="black", linewidth=2.5, label=label)
    axes.axhline(0, color=INK, linewidth=0.8)
    axes.set(xlabel="micro-batch", xticks=numbers)
    top = max(*run.gradient_ratios, *(size / sum(run.sizes) for size in run.sizes))
    axes.set_ylim(min(0.0, 1.2 * min(run.gradient_ratios)), 1.45 * top)  # room for the legend
    axes.set_title("gradient ratio", loc="left", fontsize=10)
    axes.legend(loc="upper center", ncols=2, fontsize=9, framealpha=1)


def _draw_curves(axes: "Axes", losses: Mapping[str, Sequence[float]]) -> None:
    """One curve per label, over the steps from 1 on."""
    for i, (label, values) in enumerate(losses.items()):
        color, line, _ = STYLES[i % len(STYLES)]
        marker = STYLES[(i + i // len(STYLES)) % len(STYLES)][2]  # a fifth curve differs too
        every = max(1, len(values) // N_SHOWN)
        (curve,) = axes.plot(range(1, len(values) + 1), values, color=color, label=label)
        # Curves may lie on each other: the first are the widest, and markers stand in turn.
        curve.set(linestyle=line, linewidth=min(3.0, 1.5 + 1.25 * (len(losses) - 1 - i)))
        curve.set(marker=marker, markersize=7, markeredgecolor=INK)
        curve.set_markevery((every * (i % len(STYLES)) // len(STYLES), every))


def _ends_of(name: str, values: Sequence[float]) -> str:
    return f"{name} {values[0]:.4g} in step 1 and {values[-1]:.4g} in step {len(values)}"


def _require_same_work(predicted: Timeline, measured: Timeline) -> None:
    layouts = [timeline_layout(timeline) for timeline in (predicted, measured)]
    work = [sorted(span[:4] for span in timeline.spans) for timeline in (predicted, measured)]
    if work[0] != work[1] or predicted.n_ranks != measured.n_ranks:
        words = [f"{line.rows}, {line.microbatches}, {work_done(line)}" for line in layouts]
        raise ValueError(
            f"predicted: {words[0]}, but measured: {words[1]}; give two timelines of one schedule"
        )


def _draw_panel(axes: "Axes", layout: Layout, head: str, wide: Layout) -> bool:
    """Draws a layout on the axis of a wider one, white after its end; whether numbers had room."""
    numbered = draw_boxes(axes, wide, layout.boxes, [look_of(box) for box in layout.boxes])
    if 2 * len(axes.texts) < len(layout.boxes):
        for number in list(axes.texts):  # numbers here and there would only disturb
            number.remove()
    end_s = layout.extent[1]
    axes.axvspan(end_s, wide.extent[1], color="white", linewidth=0)
    axes.axvline(end_s, color="black", linewidth=2.5)
    axes.set_title(head, loc="left", fontsize=10)
    return numbered


def _loss_table(losses: Mapping[str, Sequence[float]], n_steps: int) -> str:
    n_rows = n_steps if n_steps <= N_WHOLE else N_SHOWN
    steps = sorted({1, *(-(-i * n_steps // n_rows) for i in range(1, n_rows + 1))})
    rows = [
        [step, *(f"{v[step - 1]:.4g}" if step <= len(v) else "" for v in losses.values())]
        for step in steps
    ]
    return table(("step", *losses), rows)


def _nats(value: float) -> str:
    return f"{value:.4g} nats"
