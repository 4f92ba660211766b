"""What stages hold over time: schedules above each other, and PipeDream's versions of weights."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mpedu.families import one_f_one_b
from mpedu.faults import require_at_least
from mpedu.plot.layout import Box, Layout, counted, timeline_layout
from mpedu.plot.looks import look_of
from mpedu.plot.pictures import (
    Picture,
    draw_boxes,
    finish,
    footnote_under,
    in_own_style,
    legend,
    new_figure,
)
from mpedu.plot.text import layout_text, seconds, table
from mpedu.plot.views import NO_NUMBERS, STYLES
from mpedu.schedule import Action, Schedule, in_flight
from mpedu.simulate import Costs, Timeline, simulate

if TYPE_CHECKING:
    from mpedu.plot.pictures import Axes

Held = Callable[[list[Action]], Sequence[int]]
Schedules = Mapping[str, Schedule | Callable[[int, int], Schedule]]


@in_own_style
def in_flight_figure(
    schedules: Schedules,
    n_stages: int = 4,
    n_microbatches: int = 8,
    held: Held = in_flight,
    latency_s: float = 0.0,
    stage: int = 0,
) -> Picture:
    """Timelines above each other on one axis; below them what `stage` holds in each over time.

    A function in place of a schedule is called with both counts. held(actions) gives what is held
    after each action of a stage's list. A forward takes 1 s, a backward 2, a message latency_s.
    ValueError without schedules, with the first fault of one, or for what `held` should not give.
    """
    if not schedules:
        raise ValueError('no schedules to draw; give some by name, {"1F1B": one_f_one_b}')
    lists = {
        name: made(n_stages, n_microbatches) if callable(made) else made
        for name, made in schedules.items()
    }
    costs = Costs(latency_s=latency_s)
    timelines = {name: simulate(schedule, costs) for name, schedule in lists.items()}
    curves = {name: [_curve(held, acts) for acts in rows] for name, rows in lists.items()}
    peaks = {name: [max(curve) for curve in rows] for name, rows in curves.items()}
    layouts = [timeline_layout(timeline) for timeline in timelines.values()]
    wide = Layout([box for layout in layouts for box in layout.boxes], layouts[0].row_names, None)
    late = f", messages {seconds(latency_s)} late" if latency_s else ""
    title = f"{wide.rows}, {wide.microbatches}{late}: when it runs, and what is held"
    room: dict[str, Any] = {"footnote": True, "over_axes": True}
    figure, panels = new_figure(title, wide.height_in, n_rows=len(lists) + 1, **room)
    heads = [
        f"{name}: {seconds(layout.extent[1])}; stages hold up to {', '.join(map(str, peaks[name]))}"
        for name, layout in zip(lists, layouts, strict=True)
    ]
    drawn = zip(panels[:-1], layouts, heads, strict=True)
    numbered = [_draw_panel(axes, layout, head, wide) for axes, layout, head in drawn]
    legend(panels[-2], [*map(look_of, wide.boxes), "idle"])
    _draw_curves(panels[-1], timelines, {name: rows[stage] for name, rows in curves.items()}, stage)
    panels[-1].set(xlim=wide.extent, ylim=(0, 1.15 * max(row[stage] for row in peaks.values())))
    most = ", ".join(f"{name} {row[stage]}" for name, row in peaks.items())
    note = f"stage {stage} holds at most: {most}"
    footnote_under(figure, note)
    parts = [f"{head}\n{layout_text(lay)}" for head, lay in zip(heads, layouts, strict=True)]
    rows = [
        (name, seconds(lay.extent[1]), *peaks[name])
        for name, lay in zip(lists, layouts, strict=True)
    ]
    parts += [table(("most held by stage", "ends", *range(len(wide.row_names))), rows), note]
    alt = f"{title}. Timelines with {wide.rows} as rows, one above the other: {'. '.join(heads)}."
    alt += f" Below a curve for each of what stage {stage} holds; {note}."
    text = "\n".join([title, *parts]) + ("" if all(numbered) else NO_NUMBERS)
    return finish(figure, alt, text)


def in_flight_sliders(schedules: Schedules, held: Held = in_flight) -> Any:
    """`in_flight_figure` under sliders; without ipywidgets a line that says so, and the figure."""
    try:
        widgets = importlib.import_module("ipywidgets")
    except ImportError:
        print("ipywidgets is not installed: the figure stands still; pip install ipywidgets")
        return in_flight_figure(schedules, held=held)
    wide: dict[str, Any] = {"continuous_update": False, "layout": {"width": "32em"}}
    wide["style"] = {"description_width": "9em"}
    sliders = [
        widgets.IntSlider(4, 1, 8, description="stages K", **wide),
        widgets.IntSlider(8, 1, 16, description="micro-batches M", **wide),
        widgets.FloatSlider(0.0, min=0, max=2, step=0.25, description="latency (s)", **wide),
    ]
    view = widgets.HTML()

    def redraw(_: object = None) -> None:
        n_stages, n_microbatches, latency_s = (slider.value for slider in sliders)
        picture = in_flight_figure(schedules, n_stages, n_microbatches, held, latency_s)
        view.value = picture._repr_html_()

    for slider in sliders:
        slider.observe(redraw, names="value")
    redraw()
    return widgets.VBox([*sliders, view])


@in_own_style
def weights_figure(n_stages: int = 4, n_microbatches: int = 8) -> Picture:
    """PipeDream without a flush: which weights each box uses, and how many copies a stage keeps.

    The order of 1F1B, but a stage updates its weights after every backward; a backward uses the
    weights of its own forward (PipeDream, Narayanan et al. 2019, section 3.3, weight stashing).
    Drawn until stage 0 takes up a micro-batch more than `n_microbatches`: the stream goes on.
    """
    require_at_least(1, n_stages=n_stages, n_microbatches=n_microbatches)
    schedule = one_f_one_b(n_stages, n_microbatches + n_stages)  # more than is drawn
    layout = _until(timeline_layout(simulate(schedule)), Action("F", 0, n_microbatches))
    used = {
        action: version
        for actions in schedule
        for action, version in zip(actions, versions_used(actions), strict=True)
    }
    relabelled = [_with_version(box, used) for box in layout.boxes]
    below = layout._replace(boxes=relabelled)
    title = f"{layout.rows}, a stream of micro-batches, an update after every backward"
    room: dict[str, Any] = {"footnote": True, "over_axes": True}
    figure, panels = new_figure(title, layout.height_in, n_rows=2, **room)
    heads = (
        "numbers: micro-batches",
        "numbers: updates that the stage had made to the weights that a box uses",
    )
    looks, numbered = [*map(look_of, layout.boxes)], []
    for axes, lay, head in zip(panels, (layout, below), heads, strict=True):
        numbered.append(draw_boxes(axes, layout, lay.boxes, looks))
        axes.set_title(head, loc="left", fontsize=10)
    legend(panels[1], [*looks, "idle"])
    copies, drawn = [most_copies(acts) for acts in schedule], {box.action for box in layout.boxes}
    note = f"copies of its weights that a stage keeps: {', '.join(map(str, copies))}"
    footnote_under(figure, note)
    rows = [
        (name, kept, " ".join(f"{a.kind}{a.microbatch}:{used[a]}" for a in actions if a in drawn))
        for name, kept, actions in zip(layout.row_names, copies, schedule, strict=True)
    ]
    text = f"{title}\n{layout_text(layout)}\n{table(('', 'copies', 'work:updates'), rows)}\n{note}"
    alt = f"{title}. Two timelines of the same boxes; above {heads[0]}, below {heads[1]}; {note}."
    return finish(figure, alt, text + ("" if all(numbered) else NO_NUMBERS))


def _until(layout: Layout, action: Action) -> Layout:
    """What begins before an action does, cut off there."""
    end_s = next(box.start_s for box in layout.boxes if box.action == action)
    begun = [box for box in layout.boxes if box.start_s < end_s]
    return layout._replace(boxes=[b._replace(end_s=min(b.end_s, end_s)) for b in begun])


def versions_used(actions: Sequence[Action]) -> list[int]:
    """How many updates the weights have had that each action uses, one after every backward."""
    n_updates, of_forward, versions = 0, dict[int, int](), list[int]()
    for kind, _, microbatch in actions:
        if kind == "F":
            of_forward[microbatch] = n_updates
        versions.append(of_forward[microbatch])
        n_updates += kind == "B"
    return versions


def most_copies(actions: Sequence[Action]) -> int:
    """The most versions of the weights that are needed at once for what is in flight."""
    held, most = dict[int, int](), 0
    for action, version in zip(actions, versions_used(actions), strict=True):
        if action.kind == "F":
            held[action.microbatch] = version
        most = max(most, len(set(held.values())))
        if action.kind == "B":
            del held[action.microbatch]
    return most


def _with_version(box: Box, used: Mapping[Action, int]) -> Box:
    action = box.action
    return box._replace(label=f"{action.kind}{used[action]}") if action else box


def _curve(held: Held, actions: list[Action]) -> list[int]:
    """What is held after each action; ValueError saying what came back where that is none."""
    numbers = held(actions)
    name = getattr(held, "__name__", "the function")
    if not isinstance(numbers, Sequence) and not hasattr(numbers, "tolist"):
        raise ValueError(f"{name} gave {numbers!r:.40}; a list with one number per action is asked")
    curve = [*numbers]
    if len(curve) != len(actions):
        given = counted(len(curve), "number")
        raise ValueError(f"{name} gave {given} for {counted(len(actions), 'action')}")
    return [int(number) for number in curve]


def _draw_panel(axes: "Axes", layout: Layout, head: str, wide: Layout) -> bool:
    """Draws a layout on the axis of a wider one; whether all numbers had room."""
    numbered = draw_boxes(axes, wide, layout.boxes, [look_of(box) for box in layout.boxes])
    end_s = layout.extent[1]
    axes.axvspan(end_s, wide.extent[1], color="white", linewidth=0)
    axes.axvline(end_s, color="black", linewidth=2.5)
    axes.set_title(head, loc="left", fontsize=10)
    return numbered


def _draw_curves(
    axes: "Axes", timelines: Mapping[str, Timeline], curves: Mapping[str, list[int]], rank: int
) -> None:
    for i, (name, curve) in enumerate(curves.items()):
        color, line, _ = STYLES[i % len(STYLES)]
        ends_s = [float(span.end_s) for span in timelines[name].spans if span.rank == rank]
        look: dict[str, Any] = {"color": color, "linestyle": line, "linewidth": 2}
        axes.step([0.0, *ends_s], [0, *curve], where="post", label=name, **look)
    axes.set(ylabel="held")
    axes.set_xlabel("time (s)", loc="left")
    axes.set_title(f"micro-batches that stage {rank} holds", loc="left", fontsize=10)
    axes.grid(color="#E0E0E0")
    axes.legend(loc="upper right", fontsize=9, framealpha=1)
