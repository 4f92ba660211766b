"""The tables of a benchmark, by rich on a terminal, else in plain text."""

import sys
from collections.abc import Callable, Mapping, Sequence

from mpedu.bench.figures import Round, figures
from mpedu.bench.goals import Verdict

COLUMNS = [
    "engine",
    "least ms",
    "median ms",
    "least/ideal",
    "median/ideal",
    "mpedu/torch",
    "CPU/one",
    "peak MB",
]
VERDICT_COLUMNS = ["goal", "size", "of each run", "median", "limit", "verdict"]
Show = Callable[[str, Sequence[str], Sequence[Sequence[str]]], None]  # a title, a header, rows


def rows(
    found: Round, peers: Mapping[str, str], peaks: Mapping[str, Sequence[int]]
) -> list[list[str]]:
    """What `COLUMNS` says of each engine; peaks: bytes of each rank, of which the most counts."""
    return [
        [
            each.engine,
            f"{each.least_s * 1e3:.1f}",
            f"{each.median_s * 1e3:.1f}",
            f"{each.least_of_ideal:.3f}",
            f"{each.median_of_ideal:.3f}",
            "" if each.of_peer is None else f"{each.of_peer:.3f}",
            f"{each.cpu_of_one:.3f}",
            f"{max(peaks[each.engine]) / 1e6:.1f}",
        ]
        for each in figures(found, peers)
    ]


def verdict_rows(found: Sequence[Verdict]) -> list[list[str]]:
    """What `VERDICT_COLUMNS` says of each."""
    return [
        [
            each.goal.text,
            str(each.size),
            " ".join(f"{value:.3f}" for value in each.values),
            f"{each.middle:.3f}",
            each.goal.bound,
            each.word,
        ]
        for each in found
    ]


def show_plain(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints a table in plain text: words to the left, numbers to the right."""
    table = [header, *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(header))]
    print(f"\n{title}")
    for row in table:
        first, *others = (
            text.ljust(width) if column == 0 else text.rjust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        print("  ".join([first, *others]).rstrip(), flush=True)


def shower() -> Show:
    """Tables by rich on a terminal, else in plain text."""
    if not sys.stdout.isatty():
        return show_plain
    from rich.console import Console
    from rich.table import Table

    def show(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        table = Table(title=title, title_justify="left")
        for column, name in enumerate(header):
            table.add_column(name, justify="right" if column else "left")
        for row in rows:
            table.add_row(*row)
        Console().print(table)

    return show
