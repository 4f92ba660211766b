"""The answers of unit 02's `memory_bill`: their form, and which rank's bytes differ."""

from collections.abc import Callable, Sequence
from typing import Any

from autograder import oracle_02
from autograder.checks.values import shown, whole_problem
from autograder.diagnosis import Answers, Case, Diagnosis, Miss
from autograder.oracle_02 import PARTS


def named(case: Case) -> str:
    """The call in words: a model by its name, a drawn one by what counts."""
    config, n_stages, n_held = case.args
    model = f'load_model("{config.name}")'
    if config.name == "drawn":
        tied = "a tied" if config.tied_embeddings else "a"
        model = (
            f"{tied} model of {config.n_layers} layers (layer {config.layer_parameters}, "
            f"vocabulary {config.vocabulary_parameters}, positions {config.position_parameters}, "
            f"norm {config.norm_parameters} parameters)"
        )
    return f"memory_bill({model}, {n_stages}, {n_held})"


def form_problem(case: Case, got: Any) -> Diagnosis | None:
    """What keeps an answer from being one dict of four whole numbers per rank."""
    problem = _form(got, case.args[1])
    if not problem:
        return None
    general = "the answer is not a list with one dict of four ints per rank."
    return Diagnosis("form", f"{named(case)}: {problem}", general)


def _form(got: Any, n_stages: int) -> str:
    if got is None:
        return "None came back: a return seems to be missing."
    if not isinstance(got, list):
        return f"{shown(got)} came back; a list with one dict per rank is asked."
    if len(got) != n_stages:
        return f"{len(got)} entries came back for n_stages={n_stages}."
    for rank, bill in enumerate(got):
        if not isinstance(bill, dict):
            return f"rank {rank} is {shown(bill)}; a dict is asked."
        if set(bill) != set(PARTS):
            missing = [part for part in PARTS if part not in bill]
            if missing:
                return f"rank {rank} has no {missing[0]!r}; the keys are {', '.join(PARTS)}."
            return f"rank {rank} has other keys than {', '.join(PARTS)}."
        for part in PARTS:
            why = whole_problem(bill[part])
            if why:
                return f"rank {rank}, {part}: {why}"
    return ""


def differs_in(*parts: str) -> Callable[[Case, Any], Diagnosis | None]:
    """For `examine`: the first rank whose bytes of these parts are not what they must be."""

    def differs(case: Case, got: Any) -> Diagnosis | None:
        problem = form_problem(case, got)
        if problem:
            return problem
        for rank, right in enumerate(oracle_02.memory_bill(*case.args)):
            for part in parts:
                if got[rank][part] != right[part]:
                    text = wrong_rank(case, got, parts)
                    general = f"{part} of a rank are not what the docstring says."
                    return Diagnosis(f"differs_{part}", f"{text} {_LOOK[part]}", general)
        return None

    return differs


_LOOK = {
    "parameters": "Which layers does it hold, and what else if it stands first or last?",
    "gradients": "A gradient is as large as its weight.",
    "optimiser": "Adam keeps three numbers of four bytes for every parameter.",
    "activations": "Compare your factors with the docstring's, one by one.",
}


def wrong_rank(case: Case, got: Any, parts: Sequence[str]) -> str:
    """What came back for the first wrong rank, and what was expected."""
    for rank, right in enumerate(oracle_02.memory_bill(*case.args)):
        for part in parts:
            if got[rank][part] != right[part]:
                given = f"{got[rank][part]} bytes of {part}, expected {right[part]}"
                return f"{named(case)}: rank {rank} gives {given}."
    return named(case)


def states_differ(case: Case, got: Any) -> Diagnosis | None:
    """For `examine`: gradients or optimiser that fit neither the truth nor the parameters given.

    Where parameters are wrong, states of as many parameters are right: that mistake is told once.
    """
    found = differs_in("gradients", "optimiser")(case, got)
    if found is None or found.id == "form":
        return found
    rights = oracle_02.memory_bill(*case.args)
    for bill, right in zip(got, rights, strict=True):
        for part, times in (("gradients", 1), ("optimiser", 6)):
            follows = abs(bill[part] - times * bill["parameters"]) < times  # of rounded shares
            if bill[part] != right[part] and (
                bill["parameters"] == right["parameters"] or not follows
            ):
                return found
    return None


def some_right(answers: Answers) -> bool:
    """Whether the states of any rank of any answer are right."""
    return any(
        bill["gradients"] == right["gradients"] and bill["optimiser"] == right["optimiser"]
        for case, got in answers
        if not isinstance(got, Miss) and not form_problem(case, got)
        for bill, right in zip(got, oracle_02.memory_bill(*case.args), strict=True)
    )


def some_form(answers: Answers) -> bool:
    """Whether any answer is a bill, right or wrong."""
    return any(not isinstance(got, Miss) and not form_problem(case, got) for case, got in answers)
