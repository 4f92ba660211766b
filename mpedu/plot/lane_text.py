"""Swim lanes as plain text: a bar for each lane, and the messages in order of time."""

from mpedu.plot.lane_layout import LaneBox, Lanes, size_text
from mpedu.plot.layout import counted
from mpedu.plot.text import table

MOST_LISTED = 60
# Small letters for what goes between ranks, capitals for work.
LETTERS = {
    "send": "s",
    "recv": "r",
    "all_reduce": "a",
    "all_gather": "g",
    "reduce_scatter": "d",
    "all_to_all": "t",
    "broadcast": "b",
    "barrier": "w",
    "split": "p",
}


def lanes_text(lanes: Lanes, n_columns: int = 72) -> str:
    """Bars `n_columns` wide, a line for each track of a lane, and a table of the messages.

    Dots are idle time, "#" is a column that holds several kinds.
    """
    lines = []
    if lanes.boxes:
        lines += [*_bars(lanes, n_columns), _key(lanes)]
    if lanes.messages:
        lines += [_messages(lanes)]
    return "\n".join([*lines, *lanes.notes])


def lanes_sentence(lanes: Lanes) -> str:
    """What the lanes hold, in one sentence."""
    kinds = [box.kind for box in lanes.boxes if box.track != "messages"]
    words = [f"{kinds.count(kind)} times {kind}" for kind in dict.fromkeys(kinds)]
    n_bytes = sum(m.n_bytes for m in lanes.messages)
    words.append(f"{counted(len(lanes.messages), 'message')}, {size_text(n_bytes)} in all")
    return f"from 0 to {lanes.time(lanes.makespan_s)}: {', '.join(words)}"


def letter_of(kind: str) -> str:
    """The letter that fills the bar of a kind."""
    return LETTERS.get(kind, kind[:1].upper() or "?")


def _bars(lanes: Lanes, n_columns: int) -> list[str]:
    lines = []
    for rank in range(lanes.n_lanes):
        for track in lanes.tracks:
            mine = [box for box in lanes.boxes if (box.rank, box.track) == (rank, track)]
            name = f"rank {rank}" + (f" {track}" if len(lanes.tracks) > 1 else "")
            lines.append((name, _bar(mine, lanes, n_columns)))
    width = max(len(name) for name, _ in lines)
    return [f"{name.ljust(width)} |{bar}|" for name, bar in lines]


def _bar(boxes: list[LaneBox], lanes: Lanes, n_columns: int) -> str:
    bar = ["."] * n_columns
    per_s = n_columns / (lanes.makespan_s or 1.0)
    for box in boxes:
        letter = letter_of(box.kind)
        start = min(round(box.start_s * per_s), n_columns - 1)
        for at in range(start, max(round(box.end_s * per_s), start + 1)):
            bar[at] = letter if bar[at] in (".", letter) else "#"
    return "".join(bar)


def _key(lanes: Lanes) -> str:
    kinds = dict.fromkeys(box.kind for box in lanes.boxes)
    return f"from 0 to {lanes.time(lanes.makespan_s)}; " + ", ".join(
        f"{letter_of(kind)}: {kind}" for kind in kinds
    )


def _messages(lanes: Lanes) -> str:
    factor, unit = lanes.unit
    rows = []
    for m in lanes.messages[:MOST_LISTED]:
        times = [
            f"{float(t_s) / factor:.4g}" for t_s in (m.start_s, m.end_s, m.arrival_s, m.taken_s)
        ]
        words = [f"{m.source} -> {m.destination}", m.kind, size_text(m.n_bytes)]
        rows.append([*words, m.tag if m.tag > 0 else "", *times])
    heads = ("ranks", "message of", "size", "tag", "starts", "sent", "arrives", "taken")
    more = len(lanes.messages) - len(rows)
    after = f"\nand {more} more" if more else ""
    return f"messages, times in {unit}\n{table(heads, rows)}{after}"
