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
    if not any(kept["gradients"][:-1]):
        return "gradients_stop"
    if near(kept["activations"], [2 * n for n in due["activations"]]):
        return "graph_kept"
    if near(kept["gradients"], [2 * n for n in due["gradients"]]):
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
    if ratio["activations"] > 1.9:
        return "graph_kept"
    if ratio["gradients"] > 1.9:
        return "float32_weights"
    if ratio["parameters"] > 1.5:
        return "whole_model_everywhere"
    return "none"
"""
_MORE_WEIGHTS = """
def bill_cause(planned, measured):
    pairs = list(zip(planned, measured))
    if all(b["parameters"] > 1.2 * a["parameters"] for a, b in pairs):
        return "whole_model_everywhere"
    if all(b["activations"] > 1.5 * a["activations"] for a, b in pairs):
        return "graph_kept"
    if measured[0]["gradients"] < 0.5 * planned[0]["gradients"]:
        return "gradients_stop"
    if measured[-1]["parameters"] > 1.02 * planned[-1]["parameters"]:
        return "remainder_on_last"
    return "none"
"""
_OF_TOTALS = """
def bill_cause(planned, measured):
    before = max(sum(bill.values()) for bill in planned)
    after = max(sum(bill.values()) for bill in measured)
    return "none" if after < 1.02 * before else "graph_kept"
"""
WRONG_CAUSES = (
    _wrong("one_name", 'def bill_cause(planned, measured):\n    return "none"\n', 0),
    _without("activations_ignored", 2, 'for part in due)', 'for part in list(due)[:3])'),
    _without("gradients_ignored", 2, 'return "gradients_stop"', 'return "none"'),
    _wrong("sums_alone", _SUMS, 2),
    _wrong("more_weights", _MORE_WEIGHTS, 2),
    _without(
        "times_n_stages",
        2,
        '[sum(due["parameters"])] * len(planned)',
        '[len(planned) * n for n in due["parameters"]]',
    ),
    _without("exact_numbers", 2, _ALL, "measured == planned"),
    _wrong("of_totals", _OF_TOTALS, 1, "layer_evidence"),
    _without("half_as_much", 2, "2 * n for n in due[\"activations\"]",
             "1.5 * n for n in due[\"activations\"]", diagnosis="activation_evidence"),
    _without("four_times", 2, "2 * n for n in due[\"gradients\"]",
             "4 * n for n in due[\"gradients\"]", diagnosis="precision_evidence"),
    _without("last_rank_too", 2, 'kept["gradients"][:-1]', 'kept["gradients"]',
             diagnosis="zero_evidence"),
    _without("own_name", 2, '"float32_weights"', '"float32"', diagnosis="unknown_name"),
    _wrong("nothing", "def bill_cause(planned, measured):\n    print(measured)\n", 0, "no_name"),
)  # fmt: skip
