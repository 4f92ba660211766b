"""A benchmark as a chart: how long each engine takes beside the ideal, and what it holds."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from mpedu.plot.looks import BLUE, INK, ORANGE, RED
from mpedu.plot.pictures import Picture, finish, footnote_under, in_own_style, new_figure
from mpedu.plot.text import table

if TYPE_CHECKING:
    from mpedu.plot.pictures import Axes

BAR_IN, BAR = 0.24, 0.7
NOT_ENGINES = ("one process", "backward B", "backward I + W")


@in_own_style
def bench_figure(found: Mapping[str, Any]) -> Picture:
    """What `./course bench --json` writes: median time over the ideal, a panel for each size.

    A bar is the median of the runs' medians, a tick the least run. Ours and torch's differ in
    colour and hatch. Behind each bar stands what it is, and the most that a rank holds.
    """
    sizes = [each["size"] for each in found["runs"][0]["sizes"]]
    names = [name for name in found["runs"][0]["sizes"][0]["seconds"] if name not in NOT_ENGINES]
    title = f"Time of a step over the ideal of 1F1B, {found['n_ranks']} ranks"
    figure, panels = new_figure(title, 0.4 + BAR_IN * len(names), len(sizes), footnote=True)
    rows = []
    for number, (axes, size) in enumerate(zip(panels, sizes, strict=True)):
        label = f"B = {size['n_samples']}, M = {size['n_microbatches']}"
        of_runs = {
            name: [_over_ideal(run["sizes"][number], name) for run in found["runs"]]
            for name in names
        }
        ranks = found["peak_bytes"][number]["ranks"]
        held_mb = {name: max(ranks[name]) / 1e6 for name in names}
        _draw(axes, of_runs, held_mb, label)
        rows += [
            (label, name, f"{median(of_runs[name]):.3f}", f"{held_mb[name]:.1f}") for name in names
        ]
    note = _note(found["verdicts"])
    footnote_under(figure, note)
    best = min(rows, key=lambda row: float(row[2]))
    alt = f"{title}: bars of {len(names)} engines at {len(sizes)} sizes. The shortest is {best[1]} "
    alt += f"at {best[0]} with {best[2]}. {note}."
    heads = ("size", "engine", "median / ideal", "peak MB")
    return finish(figure, alt, f"{title}\n{table(heads, rows)}\n{note}")


def _over_ideal(of_size: Mapping[str, Any], name: str) -> float:
    return float(median(of_size["seconds"][name]) / of_size["ideal_seconds"])


def _draw(
    axes: "Axes",
    of_runs: Mapping[str, Sequence[float]],
    held_mb: Mapping[str, float],
    label: str,
) -> None:
    for row, (name, ratios) in enumerate(of_runs.items()):
        is_ours = name.startswith("mpedu")
        style: dict[str, Any] = {"fc": BLUE if is_ours else ORANGE, "ec": INK}
        axes.barh(row, median(ratios), BAR, hatch="" if is_ours else "//", **style)
        axes.plot([min(ratios)] * 2, [row - BAR / 2, row + BAR / 2], color="black", linewidth=2)
        word = f"  {median(ratios):.3f}, {held_mb[name]:.0f} MB"
        axes.text(max(ratios), row, word, va="center", fontsize=8)
        inside = {"fc": "white", "ec": "none", "pad": 1}
        axes.text(0.02, row, name, va="center", fontsize=8, bbox=inside)
    axes.axvline(1.0, color=RED, linestyle=(0, (5, 3)), linewidth=1.5)
    axes.set_yticks([])
    axes.set_ylim(len(of_runs) - 0.5, -0.5)
    axes.set_xlim(0, 1.25 * max(map(max, of_runs.values())))
    axes.set_xlabel(f"median time / ideal, and the most that a rank holds; {label}")


def _note(verdicts: Sequence[Mapping[str, Any]]) -> str:
    n_missed = sum(verdict["verdict"] == "missed" for verdict in verdicts)
    return f"{len(verdicts) - n_missed} goals held, {n_missed} missed; dashed: the ideal"
