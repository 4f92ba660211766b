"""The typical mistakes of unit 03 with sealed runs, and the sentences they draw.

A sentence says which evidence to look at, never which cause it speaks for.
"""

from collections.abc import Callable

from autograder import oracle
from autograder.checks.causes import Causes, Seen
from autograder.checks.unit_03.sealed_runs import RUNS
from mpedu.runs import CAUSES, RunReport

_RATIOS = (
    "ratio_evidence",
    "Compare the gradient ratios with 1/M, and with each micro-batch's share of the batch.",
)
_EQUAL = (
    "equal_sizes",
    "With equal sizes 1/M is the share, so nothing is wrong with this weight: ask for the share "
    "first.",
)
_KEPT = (
    "kept_evidence",
    "Look at which gradient ratios are zero, and at which backward the schedule runs last.",
)
_ORDER = ("order_evidence", "Compare the orders in which neighbouring stages run their backwards.")
_LOSSES = (
    "loss_evidence",
    "Compare the losses with the serial ones, step by step, to the last step.",
)
_EVIDENCE = {
    "loss_not_divided": _RATIOS,
    "divided_twice": _RATIOS,
    "equal_weights": _RATIOS,
    "only_last_microbatch": _KEPT,
    "order_differs": _ORDER,
    "gradients_not_cleared": _LOSSES,
}


def _evidence(run: RunReport, got: str, right: str) -> tuple[str, str]:
    """What a wrong answer overlooks."""
    look = _EVIDENCE[got if right == "none" or got == "order_differs" else right]
    shares_right = right in ("none", "gradients_not_cleared")
    # An order that is taken for a fault and is none: nothing else helps to see that.
    return _EQUAL if got == "equal_weights" and shares_right and not _is_ragged(run) else look


def _about(run: RunReport) -> str:
    sizes = ",".join(map(str, run.sizes))
    return f"{run.n_stages} stages and {run.n_microbatches} micro-batches of {sizes} samples"


ASKED = Causes(
    "cause",
    CAUSES,
    RUNS,
    oracle.cause,
    _evidence,
    {
        "how much each micro-batch counts": ("loss_not_divided", "divided_twice", "equal_weights"),
        "which gradients reach which micro-batch": ("only_last_microbatch", "order_differs"),
        "healthy runs, and what a step leaves behind": ("none", "gradients_not_cleared"),
    },
    _about,
    "print(sealed_run({}))",
)


def _wrong_where(
    expected: Callable[[RunReport, str], bool], given: str | None = None
) -> Callable[[Seen], bool]:
    """Are exactly the runs (run, right cause) that are `expected` wrong, all answered `given`?"""

    def explains(seen: Seen) -> bool:
        wrong = [got for _, right, got in seen if got != right]
        named = given is None or all(got == given for got in wrong)
        exactly = all((got != right) == expected(run, right) for run, right, got in seen)
        return len(wrong) > 1 and named and exactly

    return explains


def _is_ragged(run: RunReport) -> bool:
    return len(set(run.sizes)) > 1


def _last_run(run: RunReport) -> int:
    return oracle.backward_orders(run)[0][-1]


def _ascends(run: RunReport) -> bool:
    return all(order == sorted(order) for order in oracle.backward_orders(run))


def _all_differ(seen: Seen) -> bool:
    return {got for _, _, got in seen} == {"order_differs"}


def _one_name(seen: Seen) -> bool:
    return len({got for _, _, got in seen}) == 1


def _by_losses(seen: Seen) -> bool:
    """Does an answer follow from where the losses leave the serial ones, and to which side?"""
    answers: dict[tuple[int, bool], set[str]] = {}
    for run, _, got in seen:
        pairs = list(zip(run.losses, run.serial_losses, strict=True))
        together = [oracle.near([loss], [serial]) for loss, serial in pairs]
        first = together.index(False) if False in together else len(together)
        above = first < len(pairs) and pairs[-1][0] > pairs[-1][1]
        answers.setdefault((first, above), set()).add(got)
    return all(len(names) == 1 for names in answers.values())


def _healthy_is_one(seen: Seen) -> bool:
    """A ratio of 1 taken for healthy, so that healthy runs are not."""
    not_divided = {got for _, right, got in seen if right == "loss_not_divided"}
    return not_divided == {"none"} and all(
        got != right for _, right, got in seen if right == "none"
    )


def _even_only(seen: Seen) -> bool:
    """Every share taken for 1/M: right where sizes are equal, and not where that matters."""
    wrong = [(run, right) for run, right, got in seen if got != right]
    equal = [got for _, right, got in seen if right == got == "equal_weights"]
    others = {right for _, right in wrong} - {"equal_weights"}
    return bool(others) and not equal and all(_is_ragged(run) for run, _ in wrong)


def _exact(seen: Seen) -> bool:
    """Right only where `==` is, of several causes; or healthy only where losses are equal bits."""
    wrong = [(run, right, got) for run, right, got in seen if got != right]
    if {right for _, right, _ in wrong} == {"none"}:
        equal = [run.losses == run.serial_losses for run, right, _ in seen if right == "none"]
        kept = all(got == "gradients_not_cleared" for _, _, got in wrong)
        return len(wrong) > 1 and kept and len(wrong) == equal.count(False)
    if not all(_is_noisy(run, right) for run, right, _ in wrong):
        return False
    answers = [got for _, _, got in wrong]
    fallback = max(answers, key=answers.count)  # what is left when no `==` holds
    told = [right for _, right, got in seen if got == right != fallback and right in _OF_RATIOS]
    missed = [right for _, right, _ in wrong if right in _OF_RATIOS]
    return len(set(missed)) > 2 and 2 * len(told) <= len(missed)


_OF_RATIOS = ("none", "loss_not_divided", "divided_twice", "equal_weights", "gradients_not_cleared")


def _is_noisy(run: RunReport, right: str) -> bool:
    """Would `==` miss what speaks for this cause?"""
    if right == "order_differs":
        return False
    due = oracle.expected_ratios(right, run)
    losses = right == "none" and run.losses != run.serial_losses
    return losses or any(a != b for a, b in zip(run.gradient_ratios, due, strict=True))


KNOWN = (
    ASKED.mistake(
        "actions_compared",
        _all_differ,
        "An Action names its stage, so two stages' lists are never equal: compare micro-batch "
        "numbers.",
    ),
    ASKED.mistake(
        "one_name",
        _one_name,
        "Yours is the same for every run: look at the ratios, the schedule and the losses.",
    ),
    ASKED.mistake(
        "loss_alone",
        _by_losses,
        "Your answers follow from the losses alone; these say that something is off, not what. "
        "Look at the gradient ratios and at the schedule.",
    ),
    ASKED.mistake(
        "healthy_is_one",
        _healthy_is_one,
        "You take gradient ratios of one for healthy. A ratio is the weight with which a "
        "micro-batch counted: compare it with 1/M.",
    ),
    ASKED.mistake(
        "ratio_to_m",
        _wrong_where(lambda run, right: right == "loss_not_divided"),
        "Compare the gradient ratios with 1/M, not with M: what would each be if nothing were "
        "divided?",
    ),
    ASKED.mistake(
        "order_ignored",
        _wrong_where(lambda run, right: right == "order_differs"),
        "You take no notice of the schedule: compare the backwards of neighbouring stages.",
    ),
    ASKED.mistake(
        "order_by_number",
        _wrong_where(
            lambda run, right: right != "order_differs" and not _ascends(run), "order_differs"
        ),
        "Backwards may run in any order that is the same on every stage: compare stages with each "
        "other, not with the numbers in ascending order.",
    ),
    ASKED.mistake(
        "ragged_ignored",
        _even_only,
        "Right for equal sizes only: where sizes differ, 1/M is not a micro-batch's share. Compare "
        "the gradient ratios with what split_batch gives.",
    ),
    ASKED.mistake(
        "total_alone",
        _wrong_where(lambda run, right: right == "equal_weights"),
        "The gradient ratios may add up to one and still each be off: compare one by one with the "
        "shares of the sizes.",
    ),
    ASKED.mistake(
        "twice_of_equal_sizes",
        _wrong_where(lambda run, right: right == "divided_twice" and _is_ragged(run)),
        "Right for equal sizes only: compare each gradient ratio with its own share of the batch.",
    ),
    ASKED.mistake(
        "last_by_number",
        _wrong_where(
            lambda run, right: (
                right == "only_last_microbatch" and _last_run(run) != run.n_microbatches - 1
            )
        ),
        "The micro-batch of the last number need not run its backward last: look at the schedule.",
    ),
    ASKED.mistake(
        "first_for_last",
        _wrong_where(lambda run, right: right == "only_last_microbatch" and _last_run(run) != 0),
        "You look at the first micro-batch. Which backward does the schedule run last?",
    ),
    ASKED.mistake(
        "losses_ignored",
        _wrong_where(lambda run, right: right == "gradients_not_cleared", "none"),
        "Gradient ratios tell of the first step only. Compare the losses with the serial ones to "
        "the last step.",
    ),
    ASKED.mistake(
        "exact_floats",
        _exact,
        "Runs differ from what is due in their last digits too: compare step by step and piece by "
        "piece, and allow a little, like np.allclose.",
    ),
)
