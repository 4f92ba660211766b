"""The typical mistakes of unit 05's extra on latency, and the sentences they draw."""

from autograder import oracle_05
from autograder.checks.values import (
    Formula,
    constant,
    differs_from,
    formula_mistake,
    wrong_number,
)
from autograder.diagnosis import Case, Mistake

wrong_extra = wrong_number(oracle_05.extra_time_of_latency_s)
differs_extra = differs_from(
    oracle_05.extra_time_of_latency_s,
    "Measure it: `simulate` your schedule with `Costs(1, 2, latency_s=..)`, and without.",
    "the seconds differ from those that the model clock counts.",
    text=wrong_extra,
)


def _extra(id: str, formula: Formula, why: str, general: str) -> Mistake:
    def text(case: Case, got: float) -> str:
        return f"{wrong_extra(case, got)} {why}"

    return formula_mistake(id, [formula], text, general)


EXTRA = (
    _extra(
        "of_gpipe",
        lambda k, m, c: 2 * c * (k - 1),
        "2c(K-1) is GPipe's; 1F1B pays on every K micro-batches.",
        "that is what GPipe pays, once up and once down; 1F1B pays on every K micro-batches.",
    ),
    _extra(
        "rounds_alone",
        lambda k, m, c: 2 * c * (k - 1) * m / k,
        "That is a round trip for every K micro-batches; filling and draining add to it.",
        "the round trips alone; filling and draining add to them.",
    ),
    _extra(
        "whole_time",
        lambda k, m, c: 3 * (m + k - 1) + float(oracle_05.extra_time_of_latency_s(k, m, c)),
        "That is the whole makespan; asked is what latency adds.",
        "that is the whole makespan; asked is what latency adds.",
    ),
    _extra(
        "every_microbatch",
        lambda k, m, c: 2 * c * (k - 1) * m,
        "That is a round trip for every micro-batch; K of them share one.",
        "that is a round trip for every micro-batch; K of them share one.",
    ),
    constant(lambda case, got: f"{wrong_extra(case, got)} Yours is the same for every case."),
)
