"""Wrong answers to unit 07's instructions and causes, one mistake an entry."""

from autograder.bank import Answer
from autograder.bank.unit_07.right import CAUSE, STEPS, with_part


def _changed(source: str, changes: tuple[tuple[str, str], ...]) -> str:
    for old, new in changes:
        if old not in source:
            raise ValueError(f"{old!r} is not in it")
        source = source.replace(old, new)
    return source


def _steps(id: str, score: int, diagnosis: str, *changes: tuple[str, str]) -> Answer:
    source = with_part("minibatch_steps", _changed(STEPS, changes))
    return Answer(f"steps_{id}", source, {"minibatch_steps": (score, diagnosis)})


def _cause(id: str, score: int, diagnosis: str, *changes: tuple[str, str]) -> Answer:
    source = with_part("engine_cause", _changed(CAUSE, changes))
    return Answer(f"cause_{id}", source, {"engine_cause": (score, diagnosis)})


_REDUCES = '"backward_all_reduce" if m == 0 else "backward", m'
_SENDS = '        if stage < n_stages - 1:\n            yield "send_activations", m\n'
_FORWARD = '        yield "forward", m\n'
_LOAD = '        yield "load_input" if stage == 0 else "recv_activations", m\n'
_LISTED = "return list(minibatch_steps(stage, n_stages, n_microbatches))"
_BACK = "    for m in reversed(range(n_microbatches)):\n"


STEPS_WRONG = (
    _steps(
        "in_order", 2, "not_reversed", ("reversed(range(n_microbatches))", "range(n_microbatches)")
    ),
    _steps(
        "in_order_and_reduced_last",
        3,
        "not_reversed",
        ("reversed(range(n_microbatches))", "range(n_microbatches)"),
        ("m == 0", "m == n_microbatches - 1"),
    ),
    _steps("reduced_each_time", 3, "reduced_each_time", (_REDUCES, '"backward_all_reduce", m')),
    _steps("never_reduced", 3, "never_reduced", (_REDUCES, '"backward", m')),
    _steps("reduced_too_early", 3, "reduced_too_early", ("m == 0", "m == n_microbatches - 1")),
    _steps("step_of_the_first", 3, "of_no_microbatch", ('"step", None', '"step", 0')),
    _steps("no_step", 3, "step_times", ('    yield "step", None\n', "")),
    _steps("no_zero", 3, "zero_grad_times", ('    yield "zero_grad", None\n', "")),
    _steps(
        "zero_each_time",
        3,
        "zero_grad_times",
        (_FORWARD, f'        yield "zero_grad", None\n{_FORWARD}'),
    ),
    _steps(
        "zero_late",
        3,
        "zero_grad_place",
        ('    yield "zero_grad", None\n', ""),
        ("    for m in reversed", '    yield "zero_grad", None\n    for m in reversed'),
    ),
    _steps(
        "step_early",
        3,
        "step_place",
        ('    yield "step", None\n', ""),
        ("    for m in reversed", '    yield "step", None\n    for m in reversed'),
    ),
    _steps("all_load", 3, "missing_step", (' if stage == 0 else "recv_activations"', "")),
    _steps("all_send", 3, "wrong_end", ("if stage < n_stages - 1:", "if True:")),
    _steps("all_send_back", 3, "wrong_end", ("if stage > 0:", "if True:")),
    _steps("sent_too_early", 3, "sent_too_early", (_FORWARD + _SENDS, _SENDS + _FORWARD)),
    _steps("received_too_late", 3, "too_late", (_LOAD + _FORWARD, _FORWARD + _LOAD)),
    _steps("one_too_many", 1, "extra_step", ("range(n_microbatches)", "range(n_microbatches + 1)")),
    _steps("sent_twice", 3, "step_twice", (_SENDS, _SENDS + _SENDS)),
    _steps(
        "forwards_reversed",
        3,
        "forward_order",
        ("for m in range(n_microbatches)", "for m in range(n_microbatches)[::-1]"),
    ),
    _steps(
        "not_first", 3, "forwards_not_first", (_BACK, ""), ("m == 0", "m == n_microbatches - 1")
    ),
    _steps(
        "names_only", 0, "form", (_LISTED, "return [name for name, _ in minibatch_steps(0, 1, 1)]")
    ),
    _steps("own_names", 0, "form", ('"zero_grad"', '"zero"')),
    _steps("nothing", 0, "form", (_LISTED, "minibatch_steps(stage, n_stages, n_microbatches)")),
)
CAUSES = (
    _cause(
        "one_name", 0, "one_name", ("    if run.record", '    return "none"\n    if run.record')
    ),
    _cause("record_ignored", 2, "record_ignored", ("run.record != run.schedule", "False")),
    _cause(
        "memory_ignored", 2, "memory_ignored", ('"none" if as_listed else "never_freed"', '"none"')
    ),
    _cause(
        "gradients_alone",
        2,
        "gradients_alone",
        ("run.record != run.schedule", "False"),
        ('"none" if as_listed else "never_freed"', '"none"'),
    ),
    _cause(
        "across_is_one_buffer",
        2,
        "across_one_cause",
        ('"own_gradient" if as_listed else "one_buffer"', '"one_buffer"'),
    ),
    _cause(
        "across_is_own_gradient",
        2,
        "across_one_cause",
        ('"own_gradient" if as_listed else "one_buffer"', '"own_gradient"'),
    ),
    _cause(
        "zeros_ignored",
        2,
        "zeros_ignored",
        ('"overwritten" if np.min(run.ratios) < 1e-6 else ', ""),
    ),
    _cause(
        "growth_ignored",
        2,
        "growth_ignored",
        ("if np.allclose(run.ratios, 1):", "if np.min(run.ratios) > 1e-6:"),
    ),
    _cause(
        "equal_shares",
        2,
        "equal_shares",
        ("np.array(run.sizes) / sum(run.sizes)", "np.ones(len(run.sizes)) / len(run.sizes)"),
    ),
    _cause(
        "last_record_only",
        2,
        "record_evidence",
        ("run.record != run.schedule", "run.record[-1] != run.schedule[-1]"),
    ),
    _cause(
        "first_record_only",
        2,
        "record_evidence",
        ("run.record != run.schedule", "run.record[0] != run.schedule[0]"),
    ),
    _cause("own_names", 0, "unknown_name", ('return "', 'return "my ')),
    _cause("no_name", 0, "no_name", ("    if run.record", "    return 3\n    if run.record")),
    _cause(
        "swapped",
        1,
        "ratio_evidence",
        ('"not_divided"', '"?"'),
        ('"overwritten"', '"not_divided"'),
        ('"?"', '"overwritten"'),
        ('"own_gradient"', '"?"'),
        ('"one_buffer"', '"own_gradient"'),
        ('"?"', '"one_buffer"'),
    ),
)
