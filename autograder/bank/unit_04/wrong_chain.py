"""Wrong answers to unit 04's `backward_with_checkpoints`: a right one with one thought missing."""

from autograder.bank import Answer
from autograder.bank.unit_04.right import PROGRAM

_RIGHT = """
def backward_with_checkpoints(layers, x, n_segments):
    if not 1 <= n_segments <= len(layers):
        raise ValueError(f"n_segments={n_segments} for {len(layers)} layers")
    ends = [i * len(layers) // n_segments for i in range(n_segments + 1)]
    segments = [layers[ends[i] : ends[i + 1]] for i in range(n_segments)]
    inputs = []
    for segment in segments:
        inputs.append(x)
        for layer in segment:
            x = layer.forward(x)
    gradient = 1.0
    for segment in reversed(segments):
        kept = [inputs.pop()]
        for layer in segment:
            kept.append(layer.forward(kept[-1]))
        for layer in reversed(segment):
            y = kept.pop()
            gradient = layer.backward(kept[-1], y, gradient)
    return gradient
"""
_GRADIENT, _MEMORY = "backward_with_checkpoints", "backward_memory"


def _wrong(
    id: str, *pairs: str, gradient: tuple[int, str] = (4, ""), memory: tuple[int, str] = (3, "")
) -> Answer:
    """The right answer with texts replaced, (old, new, old, new, ..)."""
    source = _RIGHT
    for old, new in zip(pairs[::2], pairs[1::2], strict=True):
        if old not in source:
            raise ValueError(f"{old!r} is not in the right answer")
        source = source.replace(old, new)
    return Answer(f"chain_{id}", PROGRAM + source, {_GRADIENT: gradient, _MEMORY: memory})


def _no_gradient(id: str, diagnosis: str, *pairs: str) -> Answer:
    """Wrong in what it computes, so that memory is not looked at."""
    return _wrong(id, *pairs, gradient=(0, diagnosis), memory=(0, diagnosis))


_CHECK = """    if not 1 <= n_segments <= len(layers):
        raise ValueError(f"n_segments={n_segments} for {len(layers)} layers")
"""
_CUT = """    ends = [i * len(layers) // n_segments for i in range(n_segments + 1)]
    segments = [layers[ends[i] : ends[i + 1]] for i in range(n_segments)]
"""


def _of_length(length: str, end: str = "len(layers)") -> str:
    return (
        f"    length = {length}\n"
        f"    segments = [layers[at : at + length] for at in range(0, {end}, length)]\n"
    )


_DOWN = "len(layers) // n_segments"
_FIRST = """    for segment in segments:
        inputs.append(x)
        for layer in segment:
            x = layer.forward(x)
"""
_AGAIN = """        kept = [inputs.pop()]
        for layer in segment:
            kept.append(layer.forward(kept[-1]))
"""
_BACK = """        for layer in reversed(segment):
            y = kept.pop()
            gradient = layer.backward(kept[-1], y, gradient)
"""
CHAINS = (
    _no_gradient("nothing", "no_work", _FIRST, "", _AGAIN, "        continue\n", _BACK, ""),
    _no_gradient("in_order", "segments_in_order", "reversed(segments)", "segments"),
    _no_gradient("in_order_by_number", "segments_in_order", "reversed(segments)", "segments",
                 "inputs.pop()", "inputs[segments.index(segment)]"),
    _no_gradient("layers_in_order", "layers_in_order", "reversed(segment)", "segment",
                 "y = kept.pop()", "y = kept[1]", "kept[-1], y", "kept[0], y"),
    _no_gradient("checkpoint_after", "from_output", _FIRST, """    for segment in segments:
        for layer in segment:
            x = layer.forward(x)
        inputs.append(x)
"""),
    _no_gradient("return_in_loop", "last_segment_only", "    return", "        return"),
    _no_gradient("only_first_backward", "unfinished", _BACK, """        y = kept.pop()
        gradient = segment[-1].backward(kept[-1], y, gradient)
        break
"""),
    _no_gradient("y_for_x", "wrong_x", "kept[-1], y", "y, y"),
    _no_gradient("x_for_y", "wrong_y", "kept[-1], y", "kept[-1], kept[-1]"),
    _no_gradient("gradient_of_one", "wrong_gradient", "y, gradient)", "y, 1.0)"),
    _no_gradient("twice_back", "again",
                 _BACK, f"{_BACK}            layer.backward(kept[-1], y, given)\n",
                 "            y = kept.pop()\n", "            y, given = kept.pop(), gradient\n"),
    _no_gradient("no_return", "no_gradient", "    return gradient\n", ""),
    _no_gradient("the_output_back", "no_gradient", "return gradient", "return 1.0"),
    _no_gradient("numpy_inside", "raised", "gradient = 1.0", "gradient = np.ones_like(x)"),
    _no_gradient("gradient_none", "raised", "gradient = 1.0", "gradient = None"),
    _wrong(
        "remainder_dropped", _CUT, _of_length(_DOWN, "n_segments * length"),
        gradient=(3, "remainder_dropped"), memory=(0, "remainder_dropped"),
    ),
    _wrong("nothing_refused", _CHECK, "    n_segments = min(max(n_segments, 1), len(layers))\n",
           gradient=(3, "no_error")),
    _wrong("value_not_named", _CHECK, _CHECK.replace("={n_segments} for", " for"),
           gradient=(3, "wrong_error")),
    _wrong("index_error", "ValueError", "IndexError", gradient=(3, "wrong_error")),
    _wrong("keeps_all", _AGAIN, """        for layer in reversed(segment):
            y = inputs.pop()
            gradient = layer.backward(inputs[-1], y, gradient)
""", _BACK, "", _FIRST, """    inputs = [x]
    for layer in layers:
        inputs.append(layer.forward(inputs[-1]))
""", memory=(0, "keeps_all")),
    _wrong("outputs_pile_up", "    gradient = 1.0\n", "    gradient, seen = 1.0, []\n",
           _BACK, f"        seen += kept\n{_BACK}", memory=(0, "keeps_all")),
    _no_gradient("begins_with_an_array", "raised", "\ndef", "\nimport numpy as np\n\n\ndef",
                 "gradient = 1.0", "gradient = np.ones_like(x)"),
    _wrong("restarts", "        kept = [inputs.pop()]\n", """        kept = [start]
        for before in segments[: segments.index(segment)]:
            for layer in before:
                kept = [layer.forward(kept[-1])]
""", "    inputs = []\n", "    start = x\n", "        inputs.append(x)\n", "",
           memory=(2, "restarts_at_zero")),
    _wrong("restarts_for_each_layer", _AGAIN + _BACK, """        for layer in reversed(segment):
            x = start
            for before in layers[: layer.index]:
                x = before.forward(x)
            gradient = layer.backward(x, layer.forward(x), gradient)
""", _FIRST, "    start = x\n", "    inputs = []\n", "", memory=(2, "restarts_at_zero")),
    _wrong("three_times", _FIRST, _FIRST + """    x = inputs[0]
    for layer in layers:
        x = layer.forward(x)
""", memory=(2, "three_times")),
    _wrong("four_times", _AGAIN, """        first = inputs.pop()
        for _ in range(3):
            kept = [first]
            for layer in segment:
                kept.append(layer.forward(kept[-1]))
""", memory=(2, "three_times")),
    _wrong("again_for_the_last", "    gradient = 1.0\n", """    x = inputs[-1]
    for layer in segments[-1]:
        x = layer.forward(x)
    gradient = 1.0
""", memory=(2, "more_forwards")),
    _wrong("lengths_rounded_up", _CUT, _of_length("-(-len(layers) // n_segments)"),
           memory=(2, "lengths_rounded_up")),
    _wrong("lengths_rounded_up_last_kept", _CUT, _of_length("-(-len(layers) // n_segments)"),
           _FIRST, """    inputs.append(x)
    for segment in segments[:-1]:
        for layer in segment:
            x = layer.forward(x)
        inputs.append(x)
    del x
""", memory=(2, "lengths_rounded_up")),
    _wrong("rest_on_last", _CUT, _of_length(_DOWN, "length * n_segments") +
           "    segments[-1] = layers[length * (n_segments - 1) :]\n", memory=(1, "rest_on_last")),
    _wrong("length_for_number", _CUT, _of_length("n_segments"), memory=(2, "length_for_number")),
    _wrong("root_for_number", _CUT, _of_length("max(1, round(len(layers) ** 0.5))"),
           memory=(2, "other_segments")),
    _wrong("name_left", "    x = layer.forward(x)", "    before, x = x, layer.forward(x)",
           memory=(2, "name_left")),
    _wrong("every_third_kept", "    inputs = []\n", "    inputs, seen = [], []\n",
           "            x = layer.forward(x)\n",
           "            x = layer.forward(x)\n            if layer.index % 3 == 0:\n"
           "                seen.append(x)\n", memory=(1, "holds_more")),
)  # fmt: skip
