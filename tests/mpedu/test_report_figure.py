import numpy as np
import pytest
from pictures import assert_labels_are_apart, boxes_of

from mpedu.families import gpipe
from mpedu.plot import report_figure
from mpedu.runs import CAUSES, RunReport
from mpedu.sealed import sealed_run
from mpedu.validate import validate_schedule

SIZES = (3, 3, 2, 2)


def run_of(cause):
    return sealed_run(cause, gpipe(3, 4), SIZES, np.random.default_rng(0), stage=1)


RUNS = {cause: run_of(cause) for cause in CAUSES}


@pytest.mark.parametrize("cause", CAUSES)
def test_both_curves_and_every_ratio_beside_its_share_are_drawn(cause):
    run = RUNS[cause]
    losses, ratios, _ = report_figure(run).figure.axes
    drawn = {curve.get_label(): list(curve.get_ydata()) for curve in losses.lines}
    assert drawn == {"this run": list(run.losses), "serial run": list(run.serial_losses)}
    assert [bar.get_height() for bar in ratios.patches] == list(run.gradient_ratios)
    shares = [mark.get_ydata()[0] for mark in ratios.lines[: len(SIZES)]]
    assert shares == [size / sum(SIZES) for size in SIZES]
    assert ratios.get_ylim()[1] > max(*run.gradient_ratios, *shares)


@pytest.mark.parametrize("cause", CAUSES)
def test_red_is_the_first_fault_of_the_order_and_nothing_else(cause):
    picture = report_figure(RUNS[cause])
    red = boxes_of(picture, "fault", panel=2)
    if cause == "order_differs":
        fault = validate_schedule(RUNS[cause].schedule)[0]
        assert [row for row, _, _ in red] == [fault.rank] == [0]
        assert "in red: B0 of stage 0, arrow from 1B1 to 0B0" in picture.alt
        assert "in red: B0 of stage 0" in picture.text
    else:
        assert red == [] and "red" not in picture.alt + picture.text
    rows = [row for kind in "FB" for row, _, _ in boxes_of(picture, kind, panel=2)]
    assert len(rows) + len(red) == 24


@pytest.mark.parametrize("cause", CAUSES)
def test_words_hold_all_evidence_and_no_cause(cause):
    run = RUNS[cause]
    picture = report_figure(run, title="Run A")
    assert picture.text.startswith(f"Run A\n{run}\n")
    assert picture.alt.startswith("Run A. loss ")
    for ratio in run.gradient_ratios:
        assert f"{ratio:.4g}" in picture.alt
    for words in (picture.alt, picture.text):
        assert "samples / all samples: 0.3, 0.3, 0.2, 0.2" in words
        assert not any(word in words for word in ("order", "sends", "takes", *CAUSES[1:]))


def test_a_ratio_below_zero_has_room():
    run = RUNS["none"]._replace(gradient_ratios=(0.3, -0.2, 0.1, 0.1))
    _, ratios, _ = report_figure(run).figure.axes
    assert ratios.get_ylim()[0] < -0.2


LARGE = RunReport(gpipe(6, 12), (2,) * 12, (1 / 12,) * 12, (1.0, 0.5), (1.0, 0.5))


@pytest.mark.parametrize("run", [RUNS["order_differs"], RUNS["loss_not_divided"], LARGE])
def test_labels_are_apart(run):
    assert_labels_are_apart(report_figure(run).figure)
