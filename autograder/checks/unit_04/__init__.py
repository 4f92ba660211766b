"""Unit 04, activation memory and checkpointing: its exercises and what answers must do."""

from autograder import oracle_04
from autograder.checks.subjects import Answered, Bounded, outcomes, same_miss
from autograder.checks.unit_04 import cause_mistakes as causes
from autograder.checks.unit_04 import chain_mistakes as chain
from autograder.checks.unit_04 import gpipe_mistakes as peaks
from autograder.checks.unit_04 import segment_mistakes as lengths
from autograder.checks.unit_04.cases import layers, pipelines, ragged, segmented, squares
from autograder.checks.unit_04.chains import FUNCTION, PROGRAM, ChainCase, Chains, chains
from autograder.checks.unit_04.texts import GUESSES as GUESSES
from autograder.checks.unit_04.texts import HINTS
from autograder.checks.unit_04.texts import WORKED_HINTS as WORKED_HINTS
from autograder.checks.values import wrong_number
from autograder.diagnosis import Case, Subject, examine, expect_error
from autograder.exercise import Draw, exercise

SLUG = "checkpointing"
# Whatever computes an answer of this unit.
WITHHELD = (
    "mpedu.cost.gpipe_peak_activation",
    "mpedu.recompute.backward_from_input",
    "mpedu.recompute.backward_with_checkpoints",
    "mpedu.recompute.best_segment_length",
    "mpedu.recompute.peak_units",
    "mpedu.recompute.recompute_forwards",
    "mpedu.recompute.segments",
)
MOST_OF_NUMBER = 100  # parts an answer may have


@exercise(
    "backward_with_checkpoints",
    title="E1 Backward with checkpoints",
    points=4,
    names=[FUNCTION, PROGRAM],
    evidence="served",
    withholds=WITHHELD,
    hints=HINTS["backward_with_checkpoints"],
)
def backward_with_checkpoints(subject: Subject, draw: Draw) -> None:
    """The gradient for x, each layer's backward run once with what belongs to it."""
    subject = Chains(subject)
    with draw.group("segments of one length", points=2):
        even = chains(draw, even=True)
        examine(subject, even, chain.wrong_gradient, chain.GRADIENTS)
    with draw.group("segments of any length", points=1):
        same_miss(draw)
        examine(subject, chains(draw, even=False), chain.wrong_gradient, chain.GRADIENTS)
    with draw.group("too many or too few segments refused", points=1):
        if all(group.diagnosis for group in draw.groups):
            same_miss(draw)
        n_layers = draw.int(3, 9)
        for bad in (0, -draw.int(100, 10_000), n_layers + 1, n_layers + draw.int(100, 1000)):
            expect_error(subject, ChainCase(FUNCTION, (n_layers, bad)), bad)


@exercise(
    "backward_memory",
    title="E1 Backward with checkpoints: memory and forwards",
    points=3,
    names=[FUNCTION, PROGRAM],
    evidence="served",
    withholds=WITHHELD,
    hints=HINTS["backward_memory"],
)
def backward_memory(subject: Subject, draw: Draw) -> None:
    """Checkpoints and one segment held at most, and no layer's forward run again twice."""
    subject = Chains(subject)
    # Large enough that all activations are far more than checkpoints and a segment.
    most = 9 if draw.secret else 6
    sizes = [(16, 4), (19, 5)]
    if draw.secret:
        sizes = [(draw.int(5, most) ** 2, 5), (5 * draw.int(4, most) + 4, 5)]
    few, many = draw.int(22, 26), draw.int(9, 11)  # of segments, far from the best number
    # The last: lengths rounded up would come to fewer segments.
    sizes += [(draw.int(4, most) * draw.int(4, 6) + 1, 4), (few, 2), (3 * many + 1, many)]
    cases = [ChainCase(FUNCTION, pair) for pair in sizes]
    answers = outcomes(subject, cases)
    with draw.group("one forward more at most, and less held than everything", points=1):
        known = (*chain.GRADIENTS, chain.KEEPS_ALL, *chain.FORWARDS)
        examine(Answered(answers), cases, chain.too_many_forwards, known)
    for label, differs in (
        ("about as few activations as can be", chain.holds_too_many(chain.MOST_NAMES)),
        ("no activation too many, in as many segments as asked", chain.wrong_segments),
    ):
        with draw.group(label, points=1):
            examine(Answered(answers), cases, differs, (*chain.GRADIENTS, *chain.HELD))


@exercise(
    "best_segment_length",
    title="E2 The best length of a segment",
    points=3,
    withholds=WITHHELD,
    hints=HINTS["best_segment_length"],
)
def best_segment_length(subject: Subject, draw: Draw) -> None:
    """Least checkpoints plus one segment, the smaller of equal ones."""
    subject = Bounded(subject, MOST_OF_NUMBER)
    differs = lengths.differs_whole(
        oracle_04.best_segment_length,
        "Add up both, for a few lengths.",
        "another length holds less, or is the smaller one of two that hold as much.",
        lengths.wrong_length,
    )
    with draw.group("square numbers of layers", points=1):
        examine(subject, squares(draw), differs, lengths.LENGTHS)
    with draw.group("any number of layers", points=1):
        examine(subject, layers(draw), differs, lengths.LENGTHS)
    with draw.group("fewer than one layer refused", points=1):
        if all(group.diagnosis for group in draw.groups):
            same_miss(draw)
        for bad in (0, -draw.int(100, 10_000)):
            expect_error(subject, Case("best_segment_length", (bad,)), bad)


@exercise(
    "recompute_forwards",
    title="E3 Forwards run again",
    points=2,
    withholds=WITHHELD,
    hints=HINTS["recompute_forwards"],
)
def recompute_forwards(subject: Subject, draw: Draw) -> None:
    """The forwards on top of the first pass, the last segment run again or kept."""
    subject = Bounded(subject, MOST_OF_NUMBER)
    differs = lengths.differs_whole(
        oracle_04.recompute_forwards,
        "Which segments are run again, and how long are they?",
        "the number is not that of the layers in the segments that are run again.",
        wrong_number(oracle_04.recompute_forwards),
    )
    with draw.group("all segments run again", points=1):
        examine(subject, segmented(draw, keep_last=False), differs, lengths.ALL_AGAIN)
    with draw.group("the last segment kept", points=1):
        examine(subject, segmented(draw, keep_last=True), differs, lengths.LAST_KEPT)


@exercise(
    "gpipe_peak_activation",
    title="E4 GPipe's peak",
    points=5,
    withholds=WITHHELD,
    hints=HINTS["gpipe_peak_activation"],
)
def gpipe_peak_activation(subject: Subject, draw: Draw) -> None:
    """What the fullest rank holds, with and without checkpoints."""
    subject = Bounded(subject, MOST_OF_NUMBER)
    name, differs = "gpipe_peak_activation", peaks.differs_peak
    with draw.group("without checkpoints", points=1):
        examine(subject, pipelines(draw, checkpoint=False), differs, peaks.PLAIN)
    with draw.group("with checkpoints", points=2):
        examine(subject, pipelines(draw, checkpoint=True), differs, peaks.CHECKPOINTED)
    with draw.group("layers or samples left over", points=1):
        if all(group.diagnosis for group in draw.groups):
            same_miss(draw)
        mistakes = (*peaks.ROUNDED, *peaks.PLAIN, *peaks.CHECKPOINTED)
        examine(subject, ragged(draw), differs, mistakes)
    with draw.group("more stages than layers, more pieces than samples refused", points=1):
        if all(group.diagnosis for group in draw.groups):
            same_miss(draw)
        n = draw.int(3, 9)
        for bad in (0, -draw.int(100, 10_000), n + 1, n + draw.int(100, 1000)):
            expect_error(subject, Case(name, (2 * n, n, bad, 2, True)), bad)
            expect_error(subject, Case(name, (n, 2 * n, 2, bad, False)), bad)


@exercise(
    "memory_cause",
    title="E5 Cause of a sealed run",
    points=3,
    withholds=WITHHELD,
    hints=HINTS["memory_cause"],
)
def memory_cause(subject: Subject, draw: Draw) -> None:
    """Which of six causes a checkpointed backward speaks for."""
    subject = Bounded(subject, MOST_OF_NUMBER)
    causes.ASKED.examine(subject, draw, causes.KNOWN)
