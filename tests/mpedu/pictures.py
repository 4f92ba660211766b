"""Faulty schedules with what must be red in their pictures, and how to read a picture's boxes."""

import itertools

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from mpedu.plot import draw_schedule
from mpedu.plot.looks import LOOKS
from mpedu.schedule import Action


def lists(*ranks):
    return [[Action.parse(word) for word in rank.split()] for rank in ranks]


# name: schedule, fault kind, its first fault's box (row, label), arrows (from box to box)
FAULTY = {
    "a rank that is text": (["0F0", *lists("1F0 1B0")], "not_a_list", None, []),
    "an empty rank": ([[], *lists("1F0 1B0")], "empty", (0, "F0"), []),
    "no action": ([[3, *lists("0B0")[0]]], "not_an_action", (0, "?"), []),
    "an unknown kind": ([[Action("X", 0, 0), *lists("0B0")[0]]], "not_an_action", (0, "?"), []),
    "an index that is True": (
        [[Action("F", 0, True), *lists("0B0")[0]]],
        "not_an_action",
        (0, "?"),
        [],
    ),
    "one too far": (lists("0F0 0F3 0B0 0B3"), "out_of_range", (0, "F3"), []),
    "work done twice": (lists("0F0 0B0 0B0"), "repeated", (0, "B0"), []),
    "missing work": (lists("0F0 0F1 0B0 0B1", "1F0 1B0"), "missing", (1, "F1"), []),
    "a stage in two places": (lists("0F0 0B0", "0F1 0B1"), "split_stage", (1, "0F1"), []),
    "input later in the list": (
        lists("1F0 0F0 1B0 0B0"),
        "before_input",
        (0, "1F0"),
        [("0F0", "1F0")],
    ),
    "backward first": (
        lists("0F0 0B0", "1B0 1F0"),
        "before_forward",
        (1, "B0"),
        [("1F0", "1B0")],
    ),
    "crossed activations": (
        lists("0F0 0F1 0B0 0B1", "1F1 1F0 1B0 1B1"),
        "channel_order",
        (1, "F1"),
        [("0F0", "1F1")],
    ),
    "crossed gradients": (
        lists("0F0 0F1 0B0 0B1", "1F0 1F1 1B1 1B0"),
        "channel_order",
        (0, "B0"),
        [("1B1", "0B0")],
    ),
    "crossed gradients of a middle stage": (
        lists("0F0 0F1 0B0 0B1", "1F0 1F1 1B0 1B1", "2F0 2F1 2B1 2B0"),
        "channel_order",
        (1, "B0"),
        [("2B1", "1B0")],
    ),
    "a deadlock": (
        lists("0F0 0B0 0F1 0B1", "1F0 1F1 1B0 1B1"),
        "cycle",
        (0, "B0"),
        [("1B0", "0B0"), ("0F1", "1F1")],
    ),
}
ALSO_RED = {"a deadlock": [(1, "F1")]}  # who waits for the first one
COUNTS = {"one too far": (1, 2), "missing work": (2, 2), "an empty rank": (2, 1)}
BLANK = [[*lists("0F0 0F1")[0], ..., *lists("0B0 0B1")[0], ...], lists("1F0 1F1 1B0 1B1")[0]]


def drawn(name):
    n_stages, n_microbatches = COUNTS.get(name, (None, None))
    return draw_schedule(FAULTY[name][0], None, n_stages, n_microbatches)


def boxes_of(picture, *looks, panel=0):
    """The drawn boxes of these looks as (row, start, end)."""
    corners = [
        path.vertices
        for shapes in picture.figure.axes[panel].collections
        if shapes.get_label() in looks
        for path in shapes.get_paths()
    ]
    return [((c[:, 1].min() + c[:, 1].max()) / 2, c[:, 0].min(), c[:, 0].max()) for c in corners]


def assert_labels_are_apart(figure):
    """Every text lies inside the figure; no two share a quarter of the smaller one's area."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    beyond = {label for axes in figure.axes for label in labels_beyond(axes)}
    shown = [t for t in figure.findobj(Text) if t.get_visible() and t not in beyond]
    texts = [t for t in shown if t.get_text().strip()]
    places = [(t.get_text(), t.get_window_extent(renderer)) for t in texts]
    for word, place in places:
        assert figure.bbox.x0 <= place.x0 and place.x1 <= figure.bbox.x1, word
        assert figure.bbox.y0 <= place.y0 and place.y1 <= figure.bbox.y1, word
    for (word, place), (other, there) in itertools.combinations(places, 2):
        width = min(place.x1, there.x1) - max(place.x0, there.x0)
        height = min(place.y1, there.y1) - max(place.y0, there.y0)
        smaller = min(place.width * place.height, there.width * there.height)
        assert width <= 0 or height <= 0 or width * height < 0.25 * smaller, (word, other)


def labels_beyond(axes):
    """Tick labels outside the axes' limits: matplotlib keeps them but does not draw them."""
    for axis in (axes.xaxis, axes.yaxis):
        low, high = sorted(axis.get_view_interval())
        for at, label in zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True):
            if not low <= at <= high:
                yield label


def label_in(picture, box):
    row, start, end = box
    words = {text.get_position(): text.get_text() for text in picture.figure.axes[0].texts}
    return words[(start + end) / 2, row]


def box_named(picture, name):
    """The box of an action, "1F0", found by its row and label; the stages stand on own rows."""
    action = Action.parse(name)
    for box in boxes_of(picture, *LOOKS):
        label = label_in(picture, box)
        if label == name or (box[0] == action.stage and label == name.lstrip("0123456789")):
            return box
        kind = boxes_of(picture, action.kind)
        if box in kind and box[0] == action.stage and label == str(action.microbatch):
            return box
    raise LookupError(name)


def line(picture, label, panel=0):
    """The points of a curve by its name in the legend."""
    found = [c for c in picture.figure.axes[panel].lines if c.get_label() == label]
    return list(zip(*(map(float, axis) for axis in found[0].get_data()), strict=True))


def dots(picture):
    return [
        (float(x), float(y))
        for curve in picture.figure.axes[0].lines
        if curve.get_marker() == "o" and curve.get_markersize() > 6
        for x, y in zip(*curve.get_data(), strict=True)
    ]
