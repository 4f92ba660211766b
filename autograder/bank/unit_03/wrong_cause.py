"""Wrong answers to unit 03's `cause`: a right one with one thought missing, and a few others."""

from autograder.bank import Answer

_RIGHT = """
def near(values, others):
    return all(abs(a - b) <= 1e-7 for a, b in zip(values, others))


def cause(run):
    n, m, ratios = sum(run.sizes), len(run.sizes), run.gradient_ratios
    shares = [size / n for size in run.sizes]
    orders = [[a.microbatch for a in actions if a.kind == "B"] for actions in run.schedule]
    kept = [piece for piece in range(m) if abs(ratios[piece]) > 1e-7]
    if any(order != orders[0] for order in orders):
        return "order_differs"
    if near(ratios, [1] * m):
        return "loss_not_divided"
    if near(ratios, [share / m for share in shares]):
        return "divided_twice"
    if kept == [orders[0][-1]]:
        return "only_last_microbatch"
    if not near(ratios, shares) and near(ratios, [1 / m] * m):
        return "equal_weights"
    if near(ratios, shares) and not near(run.losses, run.serial_losses):
        return "gradients_not_cleared"
    return "none"
"""


def _wrong(id: str, source: str, score: int, diagnosis: str = "") -> Answer:
    return Answer(f"cause_{id}", source, {"cause": (score, diagnosis or id)})


def _without(id: str, score: int, *pairs: str, diagnosis: str = "") -> Answer:
    """The right answer with texts replaced, (old, new, old, new, ..)."""
    source = _RIGHT
    for old, new in zip(pairs[::2], pairs[1::2], strict=True):
        if old not in source:
            raise ValueError(f"{old!r} is not in the right answer")
        source = source.replace(old, new)
    return _wrong(id, source, score, diagnosis)


# Whatever leaves the serial losses must be the fault one read about last.
_LOSS_ALONE = """
def cause(run):
    pairs = list(zip(run.losses, run.serial_losses))
    if all(abs(loss - serial) < 1e-9 for loss, serial in pairs):
        return "none"
    if abs(pairs[1][0] - pairs[1][1]) < 1e-9:
        return "gradients_not_cleared"
    loss, serial = pairs[-1]
    return "only_last_microbatch" if loss > serial else "loss_not_divided"
"""
_FIRST_LOSS = """
def cause(run):
    return "none" if abs(run.losses[0] - run.serial_losses[0]) < 1e-6 else "loss_not_divided"
"""
_RISING_LOSS = """
def cause(run):
    if run.losses[-1] > run.losses[0]:
        return "order_differs"
    return "loss_not_divided" if run.losses[-1] < 0.9 * run.serial_losses[-1] else "none"
"""
# As if every ratio were one to the serial gradient with its right weight.
_HEALTHY_IS_ONE = """
def cause(run):
    m, ratios = len(run.sizes), run.gradient_ratios
    near = lambda weight: all(abs(ratio - weight) < 1e-6 for ratio in ratios)
    orders = [[a.microbatch for a in actions if a.kind == "B"] for actions in run.schedule]
    if any(order != orders[0] for order in orders):
        return "order_differs"
    if sorted(ratios)[-2] < 1e-6:
        return "only_last_microbatch"
    if near(1):
        return "none"
    if near(m):
        return "loss_not_divided"
    return "divided_twice" if near(1 / m) else "equal_weights"
"""
_NO_NAME = """
def cause(run):
    return [run.gradient_ratios[0] == 1, run.losses[-1] > 1]
"""
_PRINTS = """
def cause(run):
    print("loss_not_divided")
"""
# Ratios of equal sizes known by heart: 8 micro-batches.
_BY_HEART = """
def cause(run):
    first = run.gradient_ratios[0]
    table = {1.0: "loss_not_divided", 0.125: "none", 0.015625: "divided_twice", 0.0: "only_last"}
    return next((name for ratio, name in table.items() if abs(first - ratio) < 1e-3), "none")
"""

WRONG_CAUSES = (
    _without(
        "actions_compared",
        0,
        "any(order != orders[0] for order in orders)",
        "any(actions != run.schedule[0] for actions in run.schedule)",
    ),
    _wrong("one_name", _FIRST_LOSS, 0),
    _wrong("loss_alone", _LOSS_ALONE, 1),
    _wrong("healthy_is_one", _HEALTHY_IS_ONE, 1),
    _without("ratio_to_m", 2, "[1] * m", "[m] * m"),
    _without("order_ignored", 2, "any(order != orders[0] for order in orders)", "False"),
    _without("order_by_number", 0, "order != orders[0]", "order != sorted(order)"),
    _without("ragged_ignored", 1, "size / n", "1 / m"),
    _without("one_over_m_first", 2, "not near(ratios, shares) and ", "", diagnosis="equal_sizes"),
    _without("total_alone", 2, "near(ratios, shares)", "abs(sum(ratios) - 1) < 1e-7"),
    _without(
        "twice_of_equal_sizes",
        2,
        "[share / m for share in shares]",
        "[1 / m**2] * m",
    ),
    _without("last_by_number", 2, "[orders[0][-1]]", "[m - 1]"),
    _without("first_for_last", 2, "[orders[0][-1]]", "[0]"),
    _without("losses_ignored", 2, "not near(run.losses, run.serial_losses)", "run.losses[0] < 0"),
    _without("exact_floats", 1, "<= 1e-7 for", "== 0 for"),
    _without(
        "exact_losses",
        2,
        "not near(run.losses, run.serial_losses)",
        "run.losses != run.serial_losses",
        diagnosis="exact_floats",
    ),
    # What no known mistake explains.
    _without("another_name", 2, '"equal_weights"', '"unequal_sizes"', diagnosis="unknown_name"),
    _without("tolerance_too_wide", 0, "<= 1e-7 for", "<= 0.2 for", diagnosis="ratio_evidence"),
    _without(
        "first_is_lost",
        2,
        "kept == [orders[0][-1]]",
        "abs(ratios[0]) < 1e-7",
        diagnosis="kept_evidence",
    ),
    _without(
        "ends_compared",
        2,
        "any(order != orders[0] for order in orders)",
        "orders[0] != orders[-1]",
        diagnosis="order_evidence",
    ),
    _without(
        "first_pair_compared",
        2,
        "any(order != orders[0] for order in orders)",
        "orders[0] != orders[1]",
        diagnosis="order_evidence",
    ),
    _without(
        "stages_by_twos_compared",
        2,
        "any(order != orders[0] for order in orders)",
        "any(a != b for a, b in zip(orders[::2], orders[1::2]))",
        diagnosis="order_evidence",
    ),
    # Right for GPipe; a list may also take its forwards and backwards in another rhythm.
    _without(
        "forwards_compared_too",
        1,
        'for a in actions if a.kind == "B"]',
        "for a in actions]",
        diagnosis="order_evidence",
    ),
    _wrong("rising_loss", _RISING_LOSS, 0, "ratio_evidence"),
    _wrong("no_name", _NO_NAME, 0),
    _wrong("prints", _PRINTS, 0, "no_name"),
    _wrong("by_heart", _BY_HEART, 0, "ratio_evidence"),
)
