"""Wrong answers to unit 03's formulas, one mistake an entry."""

from textwrap import indent

from autograder.bank import Answer

_FORMULAS = {
    "bubble_fraction(k, m)": "return (k - 1) / (m + k - 1)",
    "bubble_over_ideal(k, m)": "return (k - 1) / m",
    "min_microbatches(k, share)": """
if not 0 < share < 1:
    raise ValueError(f"{share} is not inside (0, 1)")
return max(1, math.ceil((k - 1) / (share + 1e-12) - (k - 1)))""",
}
_PIECES = {
    "step_time_s(k, m, n, s, o)": "return 3 * (m + k - 1) * (o + n / m * s)",
    "best_microbatches(k, n, s, o)": """
times = {m: 3 * (m + k - 1) * (o + n / m * s) for m in range(1, n + 1)}
return min(m for m in times if times[m] <= min(times.values()) * (1 + 1e-9))""",
}
_INSIDE = "if not 0 < share < 1:\n    raise ValueError(share)\n"


def _defined(functions: dict[str, str]) -> str:
    bodies = (f"def {head}:\n{indent(body.strip(), '    ')}\n" for head, body in functions.items())
    return "import math\n\n\n" + "\n\n".join(bodies)


def _bubble(id: str, head: str, body: str, diagnosis: str = "") -> Answer:
    """One of the three formulas wrong, the others right."""
    source = _defined({**_FORMULAS, head: body})
    return Answer(id, source, {"bubble": (2, diagnosis or id)})


def _fraction(id: str, body: str, diagnosis: str = "") -> Answer:
    return _bubble(id, "bubble_fraction(k, m)", body, diagnosis)


def _fewest(id: str, body: str, diagnosis: str = "") -> Answer:
    return _bubble(id, "min_microbatches(k, share)", _INSIDE + body, diagnosis)


BUBBLES = (
    _fraction("divided_by_all", "return (k - 1) / (k * m)"),
    _fraction("ratio_given", "return (k - 1) / m"),
    _fraction("one_slot_more", "return (k - 1) / (m + k)"),
    _fraction("all_stages_idle", "return k / (m + k - 1)"),
    _fraction("utilisation", "return m / (m + k - 1)"),
    _fraction("whole_division", "return (k - 1) // (m + k - 1)"),
    _fraction("percentage", "return 100 * (k - 1) / (m + k - 1)", "percent"),
    _fraction("example_only", "return 0.1579", "constant"),
    _fraction("four_digits", "return round((k - 1) / (m + k - 1), 4)", "rounded"),
    _fraction("steps_for_slots", "return (k - 1) / (2 * m + k - 1)", "differs"),
    _bubble("share_given", "bubble_over_ideal(k, m)", "return (k - 1) / (m + k - 1)"),
    _bubble("whole_ratio", "bubble_over_ideal(k, m)", "return (k - 1) // m"),
    _bubble("stage_too_many", "bubble_over_ideal(k, m)", "return k / m", "differs"),
    _fewest("float_noise", "return max(1, math.ceil((k - 1) * (1 - share) / share))"),
    _fewest(
        "search_ends",
        "return next((m for m in range(1, 101) if (k - 1) / (m + k - 1) <= share + 1e-12), 100)",
    ),
    _fewest(
        "still_above",
        """
m = 1
while (k - 1) / (m + k) > share + 1e-12:
    m += 1
return m""",
    ),
    _fewest(
        "strictly_below",
        """
m = 1
while (k - 1) / (m + k - 1) >= share - 1e-12:
    m += 1
return m""",
    ),
    _fewest("to_the_nearest", "return max(1, round((k - 1) * (1 - share) / share))", "differs"),
    _fewest("bare_ceil", "return math.ceil((k - 1) * (1 - share) / share)", "differs"),
    _fewest(
        "none_for_one_stage", "return math.ceil((k - 1) * (1 - share) / share - 1e-9)", "differs"
    ),
    _fewest(
        "a_float",
        "return float(max(1, math.ceil((k - 1) * (1 - share) / share - 1e-9)))",
        "no_int",
    ),
    _bubble(
        "share_not_refused",
        "min_microbatches(k, share)",
        "return max(1, math.ceil((k - 1) / (share + 1e-12) - (k - 1)))",
        "no_error",
    ),
    _bubble(
        "one_stage_not_refused",
        "min_microbatches(k, share)",
        """
if k == 1:
    return 1
if not 0 < share < 1:
    raise ValueError(share)
return max(1, math.ceil((k - 1) / (share + 1e-12) - (k - 1)))""",
        "no_error",
    ),
    _fewest(
        "tolerance_of_the_number",
        "return max(1, math.ceil((k - 1) * (1 - share) / share - 1e-9))",
        "differs",
    ),
    _fewest(
        "narrow_tolerance",
        "return max(1, math.ceil((k - 1) / (share + 1e-13) - (k - 1)))",
        "float_noise",
    ),
    _fewest(
        "search_to_a_hundred_thousand",
        """
m = 1
while m < 100_000 and (k - 1) / (m + k - 1) > share + 1e-12:
    m += 1
return m""",
        "differs",
    ),
    _fewest(
        "wide_tolerance",
        """
m = 1
while (k - 1) / (m + k - 1) > share * (1 + 1e-9):
    m += 1
return m""",
        "differs",
    ),
)


def _time(id: str, body: str, diagnosis: str = "") -> Answer:
    source = _defined({**_PIECES, "step_time_s(k, m, n, s, o)": body})
    return Answer(id, source, {"step_time": (1, diagnosis or id), "best_microbatches": (2, "")})


def _best(id: str, body: str, correct: str = "", fast: str = "") -> Answer:
    source = _defined({**_PIECES, "best_microbatches(k, n, s, o)": body})
    expected = {"step_time": (1, correct or id), "best_microbatches": (0, fast or correct or id)}
    return Answer(id, source, expected)


def _nearly_best(id: str, body: str, diagnosis: str = "larger_of_equal") -> Answer:
    """A number of micro-batches that is fast enough, and not the one that is asked for."""
    source = _defined({**_PIECES, "best_microbatches(k, n, s, o)": body})
    return Answer(id, source, {"step_time": (1, diagnosis), "best_microbatches": (2, "")})


TIMES = (
    _time("overhead_once", "return 3 * (m + k - 1) * n / m * s + o"),
    _time("no_overhead", "return 3 * (m + k - 1) * n / m * s"),
    _time("overhead_of_backward", "return (m + k - 1) * (o + n / m * s + 2 * n / m * s)"),
    _time("overhead_per_sample", "return 3 * (m + k - 1) * n / m * (o + s)"),
    _time("no_backward", "return (m + k - 1) * (o + n / m * s)"),
    _time("backward_as_forward", "return 2 * (m + k - 1) * (o + n / m * s)"),
    _time("slots_m_plus_k", "return 3 * (m + k) * (o + n / m * s)"),
    _time("slots_m", "return 3 * m * (o + n / m * s)"),
    _time("all_stages_added", "return k * 3 * m * (o + n / m * s)"),
    _time("size_is_count", "return 3 * (m + k - 1) * (o + m * s)"),
    _time("whole_piece", "return 3 * (m + k - 1) * (o + n // m * s)"),
    _time("two_digits", "return round(3 * (m + k - 1) * (o + n / m * s), 2)", "rounded"),
    _time("short_ramp", "return 3 * (m + min(m, k) - 1) * (o + n / m * s)", "differs"),
    _time("ramp_twice", "return 3 * (m + 2 * (k - 1)) * (o + n / m * s)", "differs"),
    _time(
        "backwards_start_at_once",
        "return (m + k - 1 + 2 * m) * (o + n / m * s)",
        "differs",
    ),
    _time("text", "return f'{3 * (m + k - 1) * (o + n / m * s)} s'", "no_number"),
    _time("too_large_for_a_float", "return 10**18", "differs"),
    _best("always_most", "return n"),
    _best("always_4k", "return min(n, 4 * k)"),
    _best(
        "root_down",
        """
if o == 0:
    return n
return min(n, max(1, int(math.sqrt((k - 1) * n * s / o))))""",
    ),
    _nearly_best(
        "bare_min", "return min(range(1, n + 1), key=lambda m: step_time_s(k, m, n, s, o))"
    ),
    _nearly_best(
        "last_of_equal",
        """
times = [step_time_s(k, m, n, s, o) for m in range(1, n + 1)]
return max(m for m in range(1, n + 1) if times[m - 1] <= min(times) * (1 + 1e-9))""",
    ),
    _nearly_best(
        "tolerance_in_seconds",
        """
times = [step_time_s(k, m, n, s, o) for m in range(1, n + 1)]
return next(m for m in range(1, n + 1) if times[m - 1] <= min(times) + 1e-9)""",
        "slower",
    ),
    _nearly_best(
        "nearly_equal_times",
        """
times = [step_time_s(k, m, n, s, o) for m in range(1, n + 1)]
return next(m for m in range(1, n + 1) if times[m - 1] <= min(times) * (1 + 1e-5))""",
        "slower",
    ),
    _nearly_best(
        "root_rounded",
        """
if o == 0 or k == 1:
    return n if k > 1 else 1
return min(max(round(math.sqrt((k - 1) * n * s / o)), 1), n)""",
        "slower",
    ),
    _nearly_best(
        "exact_min",
        """
from fractions import Fraction
s, o = Fraction(s), Fraction(o)
return min(range(1, n + 1), key=lambda m: (m + k - 1) * (o + n * s / m))""",
    ),
    _best(
        "root_up",
        """
if o == 0:
    return n if k > 1 else 1
return min(n, max(1, math.ceil(math.sqrt((k - 1) * n * s / o))))""",
        "slower",
    ),
    _best(
        "at_most_a_hundred",
        "return min(range(1, min(n, 100) + 1), key=lambda m: (m + k - 1) * (o + n / m * s))",
        "slower",
    ),
    _best(
        "remembers_by_sizes",
        """
known = globals().setdefault("known", {})
if (k, n) not in known:
    known[k, n] = min(range(1, n + 1), key=lambda m: (m + k - 1) * (o + n / m * s))
return known[k, n]""",
        "slower",
    ),
    _best(
        "time_for_number",
        "return min(3 * (m + k - 1) * (o + n / m * s) for m in range(1, n + 1))",
        "no_int",
    ),
    _best(
        "place_for_number",
        """
times = [3 * (m + k - 1) * (o + n / m * s) for m in range(1, n + 1)]
return times.index(min(times))""",
        "slower",
        "no_count",
    ),
    _best(
        "last_not_tried",
        "return min(range(1, n), key=lambda m: (m + k - 1) * (o + n / m * s))",
        "slower",
    ),
    _best(
        "slowest",
        "return max(range(1, n + 1), key=lambda m: (m + k - 1) * (o + n / m * s))",
        "slower",
    ),
)
