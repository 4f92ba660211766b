"""Wrong answers to unit 05's `in_flight` and `one_f_one_b_peak`, one mistake an entry."""

from textwrap import indent

from autograder.bank import Answer


def _held(id: str, body: str, score: int = 0, diagnosis: str = "") -> Answer:
    source = f"def in_flight(actions):\n{indent(body.strip(), '    ')}\n"
    return Answer(f"held_{id}", source, {"in_flight": (score, diagnosis or id)})


_COUNTED = """
held, numbers = 0, []
for action in actions:
    held += 1 if action.kind == "F" else -1
    numbers.append(held)
"""
HELD = (
    _held(
        "before_action",
        """
held, numbers = 0, []
for action in actions:
    numbers.append(held)
    held += 1 if action.kind == "F" else -1
return numbers""",
    ),
    _held("starts_with_zero", f"{_COUNTED}return [0] + numbers"),
    _held(
        "never_freed",
        """
held, numbers = 0, []
for action in actions:
    if action.kind == "F":
        held += 1
    numbers.append(held)
return numbers""",
    ),
    _held("actions_counted", "return [i + 1 for i, _ in enumerate(actions)]"),
    _held("changes_only", "return [1 if a.kind == 'F' else -1 for a in actions]"),
    _held("peak_only", f"{_COUNTED}return max(numbers, default=0)"),
    _held("signs_swapped", f"{_COUNTED}return [-n for n in numbers]"),
    _held(
        "given_back",
        "return [sum(a.kind == 'B' for a in actions[: i + 1]) for i in range(len(actions))]",
    ),
    _held("nothing_returned", _COUNTED, 0, "no_list"),
    _held("a_set", f"{_COUNTED}return set(numbers)", 0, "not_plain"),
    _held("forwards_only", f"{_COUNTED}return numbers[: len(numbers) // 2]", 0, "length"),
    _held("fractions_of_all", f"{_COUNTED}return [n / 2 for n in numbers]", 0, "no_int"),
    _held(
        "one_micro_batch",
        "return [int(a.kind == 'F') for a in actions]",
        0,
        "differs",
    ),
    _held(
        "empty_is_none",
        f"if not actions:\n    return None\n{_COUNTED}return numbers",
        2,
        "no_list",
    ),
    _held("empty_raises", f"{_COUNTED}numbers[0]\nreturn numbers", 2, "raised"),
    _held(
        "numbers_of_the_latest",
        "return [a.microbatch + 1 for a in actions]",
        0,
        "differs",
    ),
    _held(
        "ends_at_zero",
        f"{_COUNTED}numbers[-1:] = [0] * bool(numbers)\nreturn numbers",
        2,
        "differs",
    ),
    _held(
        "all_before_the_first_backward",
        """
first = [a.kind for a in actions].index("B") if "B" in [a.kind for a in actions] else len(actions)
return [min(i + 1, first) for i in range(len(actions))]""",
        0,
        "differs",
    ),
)


def _peak(id: str, value: str, score: int, diagnosis: str = "") -> Answer:
    source = f"""def one_f_one_b_peak(n_stages, n_microbatches, stage):
    if not 0 <= stage < n_stages:
        raise ValueError(f"stage={{stage}}")
    return {value}
"""
    return Answer(f"peak_{id}", source, {"one_f_one_b_peak": (score, diagnosis or id)})


PEAKS = (
    _peak("of_gpipe", "n_microbatches", 1),
    _peak("warm_up_alone", "min(n_microbatches, n_stages - 1 - stage)", 1),
    _peak("one_more_stage", "min(n_microbatches, n_stages - stage + 1)", 1),
    _peak("of_stage_zero", "min(n_microbatches, n_stages)", 1),
    _peak("from_the_front", "min(n_microbatches, stage + 1)", 1),
    _peak("more_than_there_are", "n_stages - stage", 2),
    _peak("all_of_few", "n_microbatches if n_microbatches < n_stages else n_stages - stage", 2),
    _peak("least_first", "max(0, min(n_microbatches, n_stages) - stage)", 2),
    _peak("stage_taken_off", "min(n_microbatches, n_stages) - stage", 2, "least_first"),
    _peak("at_least_one", "max(1, min(n_microbatches, n_stages) - stage)", 2, "least_first"),
    _peak("constant", "4", 1),
    _peak("a_float", "min(n_microbatches, n_stages - stage) / 1", 1, "no_int"),
    _peak("nothing", "None", 1, "no_int"),
    _peak("half_of_all", "n_microbatches // 2", 1, "differs"),
    _peak("at_least_two", "max(2, min(n_microbatches, n_stages - stage))", 1, "differs"),
    Answer(
        "peak_any_stage",
        """def one_f_one_b_peak(n_stages, n_microbatches, stage):
    return min(n_microbatches, n_stages - stage)
""",
        {"one_f_one_b_peak": (2, "no_error")},
    ),
    Answer(
        "peak_stage_k_allowed",
        """def one_f_one_b_peak(n_stages, n_microbatches, stage):
    if not 0 <= stage <= n_stages:
        raise ValueError(f"stage={stage}")
    return min(n_microbatches, n_stages - stage)
""",
        {"one_f_one_b_peak": (2, "no_error")},
    ),
    Answer(
        "peak_negative_allowed",
        """def one_f_one_b_peak(n_stages, n_microbatches, stage):
    if stage >= n_stages:
        raise ValueError(f"stage={stage}")
    return min(n_microbatches, n_stages - range(n_stages)[stage])
""",
        {"one_f_one_b_peak": (2, "no_error")},
    ),
    Answer(
        "peak_stage_not_named",
        """def one_f_one_b_peak(n_stages, n_microbatches, stage):
    if not 0 <= stage < n_stages:
        raise ValueError("no such stage")
    return min(n_microbatches, n_stages - stage)
""",
        {"one_f_one_b_peak": (2, "wrong_error")},
    ),
    Answer(
        "peak_refuses_everything",
        """def one_f_one_b_peak(n_stages, n_microbatches, stage):
    raise ValueError(f"stage={stage}")
""",
        {"one_f_one_b_peak": (0, "raised")},
    ),
)
