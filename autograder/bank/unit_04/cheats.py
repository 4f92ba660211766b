"""Cheats of unit 04: import the answer, tabulate the public cases, patch what counts, lie."""

from pathlib import Path

from autograder.bank import Answer
from autograder.bank.tabulated import tabulated
from autograder.bank.unit_04.right import PROGRAM, RIGHT


def _all_fail(*exercises: str, diagnosis: str) -> dict[str, tuple[int, str]]:
    return dict.fromkeys(exercises, (0, diagnosis))


_CHAIN = ("backward_with_checkpoints", "backward_memory")
_NUMBERS = ("best_segment_length", "recompute_forwards", "gpipe_peak_activation")
_IMPORTS = f"""{PROGRAM}
from mpedu.cost import gpipe_peak_activation
from mpedu.recompute import backward_with_checkpoints as given
from mpedu.recompute import best_segment_length, recompute_forwards


def backward_with_checkpoints(layers, x, n_segments):
    return given(layers, x, n_segments).x_gradient
"""
_ALIAS = f"""{PROGRAM}
import mpedu.recompute

cut, units = vars(mpedu.recompute)["segments"], mpedu.recompute.peak_units


def backward_with_checkpoints(layers, x, n_segments):
    cut(len(layers), n_segments)
    return mpedu.recompute.backward_from_input(layers, x, 1.0).x_gradient


def best_segment_length(n_layers):
    return min(range(1, n_layers + 1), key=lambda k: units(n_layers, -(-n_layers // k)))


def recompute_forwards(n_layers, n_segments, keep_last=False):
    parts = cut(n_layers, n_segments)
    return sum(map(len, parts[:-1] if keep_last else parts))
"""
_OTHER_PATH = f"""
def gpipe_peak_activation(*sizes):
    import sys

    sys.path.insert(0, {str(Path(__file__).parents[3])!r})
    for name in [name for name in sys.modules if name.split(".")[0] == "mpedu"]:
        del sys.modules[name]
    from mpedu.activations import held_bytes

    return held_bytes(*sizes)
"""
_ORACLE = """
def best_segment_length(n_layers):
    from autograder import oracle_04

    return oracle_04.best_segment_length(n_layers)


def recompute_forwards(*args):
    from autograder import oracle_04

    return oracle_04.recompute_forwards(*args)


def gpipe_peak_activation(*sizes):
    from autograder import oracle_04

    return oracle_04.gpipe_peak_activation(*sizes)


def memory_cause(*run):
    from autograder import oracle_04

    return oracle_04.memory_cause(*run)
"""
_PATCHED_LEDGER = f"""{PROGRAM}
from mpedu import held

held.Pass.peak = 0
held.Ledger.pass_of = lambda self, gradient: held.Pass(0, [])


def backward_with_checkpoints(layers, x, n_segments):
    return held.Gradient(7)
"""
_PATCHED_CHECK = """
import builtins

import autograder.notebook

check = autograder.notebook.check = lambda *args: None
builtins.abs = lambda value: 0


def best_segment_length(n_layers):
    return 8
"""
_FALSE_DROPS = """
def backward_with_checkpoints(layers, x, n_segments):
    raise NotImplementedError


def on_device(comm, device, n_layers, n_segments):
    names = [device.begin()]
    for layer in range(n_layers):
        names.append(device.forward(layer, names[-1], names[1:-1]))
    gradient = None
    for layer in reversed(range(n_layers)):
        gradient = device.backward(layer, names[layer], names[layer + 1], gradient, [])
    return gradient
"""
_NEW_BEGINNING = """
def backward_with_checkpoints(layers, x, n_segments):
    raise NotImplementedError


def on_device(comm, device, n_layers, n_segments):
    x = device.begin()
    names = [x]
    for layer in range(n_layers):
        names.append(device.forward(layer, names[-1], []))
    device.begin()  # forgets what has been counted
    gradient = None
    for layer in reversed(range(n_layers)):
        gradient = device.backward(layer, names[layer], names[layer + 1], gradient, [])
    return gradient
"""
_LIES = """
class Near(int):
    __eq__ = __le__ = __ge__ = lambda self, other: True
    __hash__ = int.__hash__


def on_device(comm, device, n_layers, n_segments):
    return Near(7)


def backward_with_checkpoints(layers, x, n_segments):
    return Near(7)


def best_segment_length(n_layers):
    return Near(1)


def recompute_forwards(n_layers, n_segments, keep_last=False):
    return Near(1)


def gpipe_peak_activation(n_samples, n_layers, n_stages, n_microbatches, checkpoint):
    return Near(1)


def memory_cause(forwards, held, gradient_errors):
    class Any(str):
        __eq__ = lambda self, other: True
        __hash__ = str.__hash__

    return Any("none")
"""

CHEATS = (
    Answer("imports_the_answer", _IMPORTS, _all_fail(*_CHAIN, *_NUMBERS, diagnosis="withheld")),
    Answer(
        "imports_another_name",
        _ALIAS,
        _all_fail(*_CHAIN, *_NUMBERS[:2], diagnosis="withheld"),
    ),
    Answer(
        "imports_from_another_path",
        _OTHER_PATH,
        _all_fail("gpipe_peak_activation", diagnosis="raised"),
        needs_walls=True,
    ),
    Answer(
        "imports_the_truth",
        _ORACLE,
        _all_fail(*_NUMBERS, "memory_cause", diagnosis="raised"),
        needs_walls=True,
    ),
    Answer(
        "tabulates_the_public_cases",
        tabulated("04", RIGHT[0].source),
        {
            **_all_fail(*_CHAIN, diagnosis="no_work"),
            **_all_fail(*_NUMBERS, diagnosis="not_whole"),
            **_all_fail("memory_cause", diagnosis="no_name"),
        },
    ),
    Answer(
        "patches_what_counts",
        _PATCHED_LEDGER,
        _all_fail(*_CHAIN, diagnosis="no_work"),
        needs_walls=True,
    ),
    Answer(
        "patches_the_check",
        _PATCHED_CHECK,
        {"best_segment_length": (0, "constant")},
        needs_walls=True,
    ),
    Answer("passes_by_false_drops", _FALSE_DROPS, _all_fail(*_CHAIN, diagnosis="raised")),
    Answer("passes_by_a_new_beginning", _NEW_BEGINNING, _all_fail(*_CHAIN, diagnosis="raised")),
    Answer(
        "numbers_that_lie",
        _LIES,
        _all_fail(*_CHAIN, *_NUMBERS, "memory_cause", diagnosis="not_plain"),
    ),
)
