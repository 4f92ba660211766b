"""The hints and guesses of unit 04: idea, neighbouring case, skeleton with blanks."""

from autograder import oracle_04
from autograder.checks.unit_04.sealed_runs import n_wrong
from autograder.exercise import Guess

_LAYERS = 64  # of the question in section A


def _least_held() -> float:
    length = oracle_04.best_segment_length(_LAYERS)
    return oracle_04.most_held(_LAYERS, -(-_LAYERS // length))


GUESSES = (
    Guess(
        "least-held",
        "A chain of 64 layers in segments of one length, and every layer may run forward once "
        "more. How many activations must be held at once, x among them?",
        _least_held,
        least=1,
        most=65,
        whole=True,
    ),
    Guess(
        "best-pieces",
        "GPipe on 4 stages with checkpoints: 64 samples, 16 layers. In 1 piece a stage holds 320 "
        "activations. How many does it hold in 64 pieces?",
        lambda: oracle_04.gpipe_peak_activation(64, 16, 4, 64, True),
        least=0,
        most=1024,
        whole=True,
    ),
    Guess(
        "sealed-wrong",
        "Four runs with a fault each. In how many of them are some gradients wrong, or not there?",
        n_wrong,
        least=0,
        most=4,
        whole=True,
    ),
)

_BACKWARD = (
    "Idea: two passes. The first goes forward and keeps the input of every segment, nothing else. "
    "The second takes the segments from the last to the first: run one forward again from its "
    "input, keeping each output, then go back through it.",
    "Neighbouring case: four layers, two segments. Forward, keep x and the output of layer 1. "
    "Layers 2 and 3 again from that one, keeping both outputs; backward of layer 3, then of layer "
    "2. Now layers 0 and 1 again from x; backward of layer 1, then of layer 0. What comes out is "
    "the gradient for x.",
    "Skeleton:\n"
    "    if not 1 <= n_segments <= ...: raise ValueError(...)\n"
    "    ends = [i * len(layers) // ... for i in range(n_segments + 1)]\n"
    "    segments = [layers[ends[i] : ends[i + 1]] for i in range(n_segments)]\n"
    "    inputs = []\n"
    "    for segment in segments:\n"
    "        inputs.append(...)\n"
    "        for layer in segment:\n"
    "            x = layer.forward(x)\n"
    "    gradient = 1.0\n"
    "    for segment in reversed(segments):\n"
    "        kept = [inputs.pop()]\n"
    "        for layer in segment:\n"
    "            kept.append(...)\n"
    "        for layer in ...:\n"
    "            y = kept.pop()\n"
    "            gradient = layer.backward(..., y, gradient)\n"
    "    return ...",
)
_MEMORY = (
    "Idea: an activation is held as long as any name or list has it. In Python nothing else keeps "
    "it, and nothing else frees it: drop the name, and it is gone.",
    "Neighbouring case: four layers in two segments. First pass: x and one checkpoint. Second "
    "pass: beside these two the outputs of layers 2 and 3, then, with the checkpoint gone, those "
    "of layers 0 and 1. At most two checkpoints, x among them, and two outputs; x is the caller's, "
    "so one more of yours may still be around.",
    "Skeleton: after the first pass, which names still have an activation? `x` has ... . In the "
    "second pass, take the checkpoint out of its list with ... , so that it goes with its segment. "
    "Take each output out of `kept` with ... before its layer's backward.",
)
_LENGTH = (
    "Idea: with segments of some length you hold their number, rounded up, plus that length. One "
    "falls as the other grows. Try all lengths, or think where they are equal.",
    "Neighbouring case: 10 layers. Length 2 makes 5 segments, 7 together; 3 makes 4, 7 together; "
    "4 makes 3, also 7; 5 makes 2, again 7. The smallest of these is 2.",
    "Skeleton:\n"
    "    def held(length):\n"
    "        n_segments = ...  # rounded up\n"
    "        return ... + ...\n"
    "    return min(range(1, ...), key=held)  # min gives the first of equal ones",
)
_AGAIN = (
    "Idea: add up the lengths of the segments that are run forward a second time.",
    "Neighbouring case: 10 layers in 4 segments are 3, 3, 2, 2. All of them run again: 10. With "
    "the last one kept: 8.",
    "Skeleton:\n"
    "    extra = ...\n"
    "    if keep_last:\n"
    "        extra -= ...  # the last segment, one of the shorter ones\n"
    "    return extra",
)
_GPIPE = (
    "Idea: look at the moment when all forwards are over and the first backward begins. What has "
    "every micro-batch left behind on this rank? With checkpoints, what must one of them "
    "compute again?",
    "Neighbouring case: 6 samples in 3 pieces of 2, 4 layers on 2 stages. Without checkpoints all "
    "6 samples have 2 layers each: 12. With them, 6 stage inputs, and one piece of 2 samples goes "
    "through 2 layers again: 6 + 4 = 10.",
    "Skeleton:\n"
    "    ...  # two refusals\n"
    "    layers_of_stage = -(-n_layers // ...)\n"
    "    samples_of_piece = ...\n"
    "    if not checkpoint:\n"
    "        return ... * layers_of_stage\n"
    "    return ... + layers_of_stage * ...",
)
_CAUSE = (
    "Idea: begin with the gradients. If any is off by more than rounding, are all of these off in "
    "the same way? If none is, the forwards and what is held tell the rest.",
    "Neighbouring case: a chain of 9 layers in three segments. Forwards all 2, held at most 6, "
    "errors up to 4e-7: as it should be. Held 9: nothing was saved. Forwards 4, 4, 4, 3, 3, 3, 2, "
    "2, 2: look where each segment began. Errors 0.3, 0.7, 1.2 and so on, or all of them 1.0: two "
    "different faults.",
    "Skeleton:\n"
    "    wrong = [e for e in gradient_errors if e > ...]\n"
    "    if wrong:\n"
    "        return ... if all(abs(e - ...) < 1e-6 for e in wrong) else ...\n"
    "    if max(held) >= ...: return ...\n"
    "    if max(forwards) <= ...: return ...\n"
    "    ...  # which of the two that are left?",
)
# Of exercises without points: found by `hint` as well.
WORKED_HINTS = {
    "tanh": (
        "Idea: the chain rule. The gradient for x is that for y, times the derivative of tanh at "
        "the place.",
        "Neighbouring case: for y = exp(x) the derivative is y itself, so the line would read "
        "`return gradient * y`.",
        "Skeleton:\n    return gradient * (... - ...)",
    ),
    "checkpoint": (
        "Idea: the forward remembers where the random numbers stood. The backward puts them back "
        "there, and runs the function again.",
        "Neighbouring case: `state = torch.get_rng_state()` before a dropout; after "
        "`torch.set_rng_state(state)` the same dropout draws the same mask.",
        "Skeleton:\n    torch.set_rng_state(...)\n    y = ...",
    ),
}
HINTS = {
    "backward_with_checkpoints": _BACKWARD,
    "backward_memory": _MEMORY,
    "best_segment_length": _LENGTH,
    "recompute_forwards": _AGAIN,
    "gpipe_peak_activation": _GPIPE,
    "memory_cause": _CAUSE,
}
