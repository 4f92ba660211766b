"""Right answers to unit 03's `cause`, each in a manner of its own; by id of the whole answer."""

_COMPREHENSIONS = """

def cause(run):
    n, m = sum(run.sizes), len(run.sizes)
    shares = [size / n for size in run.sizes]
    orders = [[a.microbatch for a in actions if a.kind == "B"] for actions in run.schedule]

    def same(values, others):
        return all(math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9) for a, b in zip(values, others))

    if any(order != orders[0] for order in orders):
        return "order_differs"
    if same(run.gradient_ratios, shares):
        return "none" if same(run.losses, run.serial_losses) else "gradients_not_cleared"
    weights = {
        "loss_not_divided": [1] * m,
        "divided_twice": [share / m for share in shares],
        "equal_weights": [1 / m] * m,
        "only_last_microbatch": [shares[i] if i == orders[0][-1] else 0 for i in range(m)],
    }
    return next(name for name in weights if same(run.gradient_ratios, weights[name]))
"""

# Each question by a loop of its own, with a generous tolerance of one percent.
_LOOPS = """

def backwards(actions):
    return [action.microbatch for action in actions if action.kind == "B"]


def cause(run):
    samples = 0
    for size in run.sizes:
        samples += size
    m = len(run.sizes)
    for before, after in zip(run.schedule, run.schedule[1:]):
        if backwards(before) != backwards(after):
            return "order_differs"
    n_zero = 0
    for ratio in run.gradient_ratios:
        if abs(ratio) < 1e-4:
            n_zero += 1
    if n_zero == m - 1:
        return "only_last_microbatch"
    found = set()
    for ratio, size in zip(run.gradient_ratios, run.sizes):
        candidates = {
            "loss_not_divided": 1,
            "healthy": size / samples,
            "divided_twice": size / samples / m,
            "equal_weights": 1 / m,
        }
        matching = {name for name, due in candidates.items() if abs(ratio - due) < 0.01 * due}
        found = matching if not found else found & matching
    if "healthy" not in found:
        return found.pop()
    for loss, serial in zip(run.losses, run.serial_losses):
        if abs(loss - serial) > 1e-8 * serial:
            return "gradients_not_cleared"
    return "none"
"""

_NUMPY = """

def cause(run):
    sizes, ratios = np.array(run.sizes), np.array(run.gradient_ratios)
    backwards = np.array([[a.microbatch for a in row if a.kind == "B"] for row in run.schedule])
    if (backwards != backwards[0]).any():
        return "order_differs"
    relative = ratios / (sizes / sizes.sum())
    if np.allclose(relative, 1):
        healthy = np.allclose(run.losses, run.serial_losses, rtol=1e-6)
        return "none" if healthy else "gradients_not_cleared"
    if np.isclose(ratios, 0).sum() == len(sizes) - 1:
        return "only_last_microbatch"
    if np.allclose(ratios, 1):
        return "loss_not_divided"
    if np.allclose(relative, 1 / len(sizes)):
        return "divided_twice"
    return "equal_weights"
"""

# A table of rules, the first that holds; the order by the package's own proof.
_FRACTIONS = """

from mpedu.runs import CAUSES
from mpedu.validate import validate_schedule


def cause(run):
    shares = [Fraction(size, sum(run.sizes)) for size in run.sizes]
    m = len(shares)
    ratios = [Fraction(ratio).limit_denominator(10_000) for ratio in run.gradient_ratios]
    apart = max(abs(a / b - 1) for a, b in zip(run.losses, run.serial_losses))
    rules = [
        ("order_differs", any(f.kind == "channel_order" for f in validate_schedule(run.schedule))),
        ("none", ratios == shares and apart < 1e-9),
        ("gradients_not_cleared", ratios == shares),
        ("equal_weights", ratios == [Fraction(1, m)] * m),
        ("loss_not_divided", ratios == [1] * m),
        ("divided_twice", [m * ratio for ratio in ratios] == shares),
        ("only_last_microbatch", ratios.count(0) == m - 1),
    ]
    assert {name for name, _ in rules} == set(CAUSES)
    return next(name for name, holds in rules if holds)
"""

# By what the weights add up to, first and last element, and where the losses part.
_RECURSION = """

def cause(run):
    m, n = len(run.sizes), sum(run.sizes)
    order = lambda actions: [a.microbatch for a in actions if a.kind == "B"]
    if len({tuple(order(actions)) for actions in run.schedule}) > 1:
        return "order_differs"
    total = sum(run.gradient_ratios)
    parted = [abs(a - b) > 1e-7 for a, b in zip(run.losses, run.serial_losses)]
    if abs(total - m) < 1e-6:
        return "loss_not_divided"
    if abs(total - 1 / m) < 1e-6 and min(run.gradient_ratios) > 1e-6:
        return "divided_twice"
    if abs(total - 1) > 1e-6:
        return "only_last_microbatch"
    if not any(parted):
        return "none"
    off = max(abs(ratio - size / n) for ratio, size in zip(run.gradient_ratios, run.sizes))
    return "gradients_not_cleared" if off < 1e-6 else "equal_weights"
"""

CAUSES = {
    "comprehensions": _COMPREHENSIONS,
    "loops": _LOOPS,
    "numpy": _NUMPY,
    "fractions": _FRACTIONS,
    "recursion": _RECURSION,
}
