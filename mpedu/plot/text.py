"""Timelines, lists of work and small tables as plain text, for terminals and screen readers."""

import re
from collections.abc import Iterable, Sequence

from mpedu.plot.flaw import Flaw
from mpedu.plot.layout import Box, Layout, timeline_layout
from mpedu.simulate import Seconds, Timeline

RUN_WORTH_SHORTENING = 3


def seconds(value: Seconds) -> str:
    """A time with its unit, four digits: "33 s"."""
    return f"{float(value):.4g} s"


def percent(share: float) -> str:
    """A share in per cent, one decimal, two where that is exact: "15.8 %", "18.75 %"."""
    value = 100 * float(share)
    n_decimals = 2 if abs(value - round(value, 2)) < 1e-9 else 1
    return f"{value:.{n_decimals}f}".rstrip("0").rstrip(".") + " %"


def table(heads: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """A small table, columns aligned to the right."""
    cells = [[str(cell) for cell in row] for row in (heads, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    pairs = (zip(row, widths, strict=True) for row in cells)
    return "\n".join("  ".join(cell.rjust(width) for cell, width in pair) for pair in pairs)


def idle_sentence(layout: Layout) -> str:
    """Busy and idle device time of a layout in one sentence, with the idle share."""
    n_rows, (start_s, end_s) = len(layout.row_names), layout.extent
    whole_s = n_rows * (end_s - start_s)
    busy_s = sum(box.end_s - box.start_s for box in layout.boxes)
    return (
        f"busy {seconds(busy_s)} + idle {seconds(whole_s - busy_s)} = {n_rows} x "
        f"{seconds(end_s - start_s)} of device time: idle share {percent(1 - busy_s / whole_s)}"
    )


def busy_table(layout: Layout) -> str:
    """Busy and idle seconds of every row."""
    start_s, end_s = layout.extent
    rows = []
    for row, name in enumerate(layout.row_names):
        busy_s = sum(box.end_s - box.start_s for box in layout.boxes if box.row == row)
        rows.append((name, seconds(busy_s), seconds(end_s - start_s - busy_s)))
    return table(("", "busy", "idle"), rows)


def work_done(layout: Layout) -> str:
    """How many boxes of each kind ran: "32 times forward, 32 times backward"."""
    names = {
        "F": "forward",
        "B": "backward",
        "I": "backward for inputs",
        "W": "backward for weights",
    }
    kinds = [box.action.kind for box in layout.boxes if box.action and box.state == "ran"]
    words = [f"{n} times {name}" for kind, name in names.items() if (n := kinds.count(kind))]
    return ", ".join(words) or "no work"


def flaw_sentence(layout: Layout, flaw: Flaw) -> str:
    """How far a faulty schedule comes, and where the red stands."""
    n_ran = sum(box.state == "ran" for box in layout.boxes)
    words = f"{n_ran} of {len(layout.boxes)} boxes run"
    if layout.stuck_s is not None:
        words += f", until {seconds(layout.stuck_s)}"
    if flaw.box:
        words += f"; in red: {flaw.box.label} of {layout.row_names[flaw.box.row]}"
    return words + "".join(f", arrow from {a.action} to {b.action}" for a, b in flaw.arrows) + "."


def timeline_text(timeline: Timeline, n_columns: int = 72) -> str:
    """One line per rank, at most `n_columns` wide inside the bars: "stage 0 |F0|F1|...|B0    |".

    Dots are idle time. Boxes too narrow for their numbers are filled with their kind's letter.
    """
    return "\n".join(_bars(timeline_layout(timeline), n_columns)[0])


def layout_text(layout: Layout, flaw: Flaw | None = None, n_columns: int = 72) -> str:
    """What ran as lines of boxes, with a scale; what never runs as lists, the fault in > <."""
    lines, scale_note, numbered = _bars(layout, n_columns)
    lines = [*lines, scale_note]
    if not numbered:
        lines += ["no room for numbers; order of work:", *_lists(layout, ("ran",), None)]
    if layout.stuck_s is not None:
        lines += [f"after {seconds(layout.stuck_s)} nothing more runs; left over:"]
        lines += _lists(layout, ("waits", "blank", "no action", "missing"), flaw)
    if flaw and flaw.box and flaw.box.state == "ran":
        lines.append(f"in red: {flaw.box.label} of {layout.row_names[flaw.box.row]}")
    for need, action in flaw.arrows if flaw else []:
        lines.append(f"red arrow: from {need.action} to {action.action}")
    return "\n".join(lines)


def shortened(labels: Sequence[str]) -> str:
    """Labels in order, with runs that count up or down drawn together: "F0-F7 B7-B0"."""
    words: list[str] = []
    at = 0
    while at < len(labels):
        length = max(_run_length(labels[at:], step) for step in (1, -1))
        if length < RUN_WORTH_SHORTENING:
            words.append(labels[at])
            at += 1
        else:
            words.append(f"{labels[at]}-{labels[at + length - 1]}")
            at += length
    return " ".join(words)


def _run_length(labels: Sequence[str], step: int) -> int:
    first = re.fullmatch(r"(\d*[A-Z])(\d+)", labels[0])
    if not first:
        return 1
    expected = (f"{first[1]}{int(first[2]) + step * i}" for i in range(len(labels)))
    for length, (label, wanted) in enumerate(zip(labels, expected, strict=True)):
        if label != wanted:
            return length
    return len(labels)


def _lists(layout: Layout, states: Sequence[str], flaw: Flaw | None) -> list[str]:
    lines = []
    for row, name in enumerate(layout.row_names):
        mine = [box for box in layout.boxes if box.row == row and box.state in states]
        labels = [f">{b.label}<" if flaw and b is flaw.box else b.label for b in mine]
        n_listed = sum(box.state != "missing" for box in mine)
        words = [shortened(labels[:n_listed])] if n_listed else []
        words += [f"missing {shortened(labels[n_listed:])}"] if n_listed < len(mine) else []
        lines += [f"{name}: {'; '.join(words)}"] if words else []
    return lines


def _bars(layout: Layout, n_columns: int) -> tuple[list[str], str, bool]:
    """The lines of what ran, a note on their scale, and whether every box holds its number."""
    ran = [box for box in layout.boxes if box.state == "ran"]
    width = max(map(len, layout.row_names), default=0)
    if not ran:
        return [f"{name.ljust(width)} ||" for name in layout.row_names], "nothing runs", True
    start_s = min(box.start_s for box in ran)
    end_s = max(box.end_s for box in ran)
    per_s = _columns_per_second(ran, n_columns / (end_s - start_s))

    def column(time_s: float) -> int:
        return round((time_s - start_s) * per_s)

    room = [column(box.end_s) - column(box.start_s) - len(box.label) for box in ran]
    numbered = min(room) >= 0
    edge = "|" if min(room) > 0 else ""
    lines = []
    for row, name in enumerate(layout.row_names):
        mine = [(column(b.start_s), column(b.end_s), b.label) for b in ran if b.row == row]
        end = column(end_s)
        bar = _labelled(mine, end, edge) if numbered else _lettered(mine, end)
        lines.append(f"{name.ljust(width)} |{bar}|")
    note = f"from {seconds(start_s)} to {seconds(end_s)}; one column is {seconds(1 / per_s)}"
    return lines, note, numbered


def _labelled(boxes: list[tuple[int, int, str]], width: int, edge: str) -> str:
    """A bar of boxes that all hold their labels, "F0|F1|....|B0   "."""
    bar = ""
    for start, end, label in boxes:
        bar = _filled(bar, ".", edge, start)
        bar = _filled(bar + label, " ", edge, end)
    return _filled(bar, ".", edge, width).removesuffix("|")


def _lettered(boxes: list[tuple[int, int, str]], width: int) -> str:
    """A bar of letters, "FF#BBB..": "#" where one column holds boxes of several kinds."""
    bar = ["."] * width
    for start, end, label in boxes:
        letter = label.lstrip("0123456789")[0]
        for at in range(start, min(max(end, start + 1), width)):
            bar[at] = letter if bar[at] in (".", letter) else "#"
    return "".join(bar)


def _columns_per_second(ran: list[Box], most: float) -> float:
    """A scale at which the shortest box just holds its label and an edge, or `most` if less."""
    shortest_s = min(box.end_s - box.start_s for box in ran)
    per_box = min(max(len(box.label) for box in ran) + 1.0, most * shortest_s)
    # Whole columns keep boxes of one length equally wide.
    return (int(per_box) if per_box >= 1 else per_box) / shortest_s


def _filled(bar: str, fill: str, edge: str, width: int) -> str:
    return (
        bar.ljust(width, fill)[:-1] + edge if edge and len(bar) < width else bar.ljust(width, fill)
    )
