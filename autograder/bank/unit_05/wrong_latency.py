"""Wrong answers to unit 05's extra, one mistake an entry."""

from autograder.bank import Answer


def _extra(id: str, value: str, diagnosis: str = "") -> Answer:
    source = f"def extra_time_of_latency_s(k, m, c):\n    return {value}\n"
    return Answer(f"latency_{id}", source, {"extra_time_of_latency_s": (0, diagnosis or id)})


_RIGHT = "c * (2 * (k - 1) * m / k + 2 * (k - 2))"
LATENCIES = (
    _extra("of_gpipe", "2 * c * (k - 1)"),
    _extra("rounds_alone", "2 * c * (k - 1) * m / k"),
    _extra("whole_time", f"3 * (m + k - 1) + {_RIGHT}"),
    _extra("every_microbatch", "2 * c * (k - 1) * m"),
    _extra("constant", "8.0"),
    _extra("one_way", f"{_RIGHT} / 2", "differs"),
    _extra("drain_of_all", "c * (2 * (k - 1) * m / k + 2 * (k - 1))", "differs"),
    _extra("nothing", "None", "no_number"),
)
