"""Wrong answers to unit 02's `bill_cause`: a right one with one thought missing, and others."""

from autograder.bank import Answer

_RIGHT = """
def near(found, due):
    return all(d <= f <= 1.02 * d for f, d in zip(found, due))


def bill_cause(planned, measured):
    kept = {part: [bill[part] for bill in measured] for part in measured[0]}
    due = {part: [bill[part] for bill in planned] for part in planned[0]}
    if all(near(kept[part], due[part]) for part in due):
        return "none"
    if not all(kept["gradients"]):
        return "gradients_stop"
    if any(f < d for f, d in zip(kept["gradients"], due["gradients"])):
        return "remainder_on_last"
    if any(f > 1.9 * d for f, d in zip(kept["activations"], due["activations"])):
        return "graph_kept"
    if any(f > 1.9 * d for f, d in zip(kept["gradients"], due["gradients"])):
        return "float32_weights"
    if near(kept["parameters"], [sum(due["parameters"])] * len(planned)):
        return "whole_model_everywhere"
    return "remainder_on_last"
"""


def _wrong(id: str, source: str, score: int, diagnosis: str = "") -> Answer:
    return Answer(f"cause_{id}", source, {"bill_cause": (score, diagnosis or id)})


def _without(id: str, score: int, *pairs: str, diagnosis: str = "") -> Answer:
    """The right answer with texts replaced, (old, new, old, new, ..)."""
    source = _RIGHT
    for old, new in zip(pairs[::2], pairs[1::2], strict=True):
        if old not in source:
            raise ValueError(f"{old!r} is not in the right answer")
        source = source.replace(old, new)
    return _wrong(id, source, score, diagnosis)


_ALL = "all(near(kept[part], due[part]) for part in due)"
_SUMS = """
def bill_cause(planned, measured):
    def total(bills, part):
        return sum(bill[part] for bill in bills)

    ratio = {part: total(measured, part) / total(planned, part) for part in planned[0]}
    if ratio["gradients"] < 0.95:
        return "gradients_stop"
    if ratio["activations"] > 1.02:
        return "graph_kept"
    if ratio["gradients"] > 1.02:
        return "float32_weights"
    if ratio["parameters"] > 1.02:
        return "whole_model_everywhere"
    return "none"
"""
_MORE_WEIGHTS = """
def bill_cause(planned, measured):
    pairs = list(zip(planned, measured))
    if any(b["gradients"] == 0 for a, b in pairs):
        return "gradients_stop"
    if any(b["gradients"] < a["gradients"] for a, b in pairs):
        return "remainder_on_last"
    if any(b["parameters"] > 1.02 * a["parameters"] for a, b in pairs):
        return "whole_model_everywhere"
    if any(b["activations"] > 1.02 * a["activations"] for a, b in pairs):
        return "graph_kept"
    return "none"
"""
_ONE_RANK = """
def bill_cause(planned, measured):
    whole = sum(bill["parameters"] for bill in planned)
    a, b = planned[RANK], measured[RANK]
    if b["gradients"] == 0:
        return "gradients_stop"
    if b["parameters"] > 0.99 * whole and b["gradients"] < 1.02 * a["gradients"]:
        return "whole_model_everywhere"
    if b["gradients"] < a["gradients"]:
        return "remainder_on_last"
    if b["gradients"] > 1.02 * a["gradients"]:
        more = b["activations"] > 1.02 * a["activations"]
        return "remainder_on_last" if more else "float32_weights"
    return "graph_kept" if b["activations"] > 1.02 * a["activations"] else "none"
"""
_OF_TOTALS = """
def bill_cause(planned, measured):
    pairs = zip(planned, measured)
    fits = all(sum(b.values()) < 1.02 * sum(a.values()) for a, b in pairs)
    return "none" if fits else "graph_kept"
"""
WRONG_CAUSES = (
    _wrong("one_name", 'def bill_cause(planned, measured):\n    return "none"\n', 0),
    _without("activations_ignored", 2, 'for part in due)', 'for part in list(due)[:3])'),
    _without("gradients_ignored", 2, 'return "gradients_stop"', 'return "none"'),
    _wrong("sums_alone", _SUMS, 2),
    _wrong("first_rank_alone", _ONE_RANK.replace("RANK", "0"), 1),
    _wrong("last_rank_alone", _ONE_RANK.replace("RANK", "-1"), 1),
    _without("on_every_rank", 1, "if any(f > 1.9", "if all(f > 1.9",
             diagnosis="precision_evidence"),
    _wrong("more_weights", _MORE_WEIGHTS, 2),
    _without(
        "times_n_stages",
        2,
        '[sum(due["parameters"])] * len(planned)',
        '[len(planned) * n for n in due["parameters"]]',
    ),
    _without("exact_numbers", 2, _ALL, "measured == planned"),
    _wrong("of_totals", _OF_TOTALS, 1, "layer_evidence"),
    _without("three_times", 2, 'f > 1.9 * d for f, d in zip(kept["activations"]',
             'f > 2.5 * d for f, d in zip(kept["activations"]', diagnosis="activation_evidence"),
    _without("four_times", 2, 'f > 1.9 * d for f, d in zip(kept["gradients"]',
             'f > 3.5 * d for f, d in zip(kept["gradients"]', diagnosis="precision_evidence"),
    _without("all_zero", 2, 'not all(kept["gradients"])', 'not any(kept["gradients"])',
             diagnosis="zero_evidence"),
    _without("own_name", 2, '"float32_weights"', '"float32"', diagnosis="unknown_name"),
    _wrong("nothing", "def bill_cause(planned, measured):\n    print(measured)\n", 0, "no_name"),
)  # fmt: skip
