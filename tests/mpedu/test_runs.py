from mpedu.families import gpipe
from mpedu.runs import RunReport

RUN = RunReport(gpipe(3, 2), (2, 1), (2 / 3, 1 / 3), (1.5, 0.25), (1.5, 0.125))


def test_a_report_counts_its_stages_and_microbatches():
    assert (RUN.n_stages, RUN.n_microbatches) == (3, 2)


def test_a_report_prints_every_piece_of_evidence():
    lines = [line.split() for line in str(RUN).splitlines() if line]
    assert lines == [
        ["step", "1", "2"],
        ["loss", "1.5000", "0.2500"],
        ["serial", "loss", "1.5000", "0.1250"],
        ["micro-batch", "0", "1"],
        ["samples", "2", "1"],
        ["gradient", "ratio", "0.6667", "0.3333"],
        *[["stage", f"{stage}:", "F0", "F1", "B0", "B1"] for stage in range(3)],
    ]
    assert max(map(len, str(RUN).splitlines())) <= 100
