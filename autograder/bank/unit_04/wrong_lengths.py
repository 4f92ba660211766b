"""Wrong answers to unit 04's `best_segment_length` and `recompute_forwards`, a mistake an entry."""

from autograder.bank import Answer

_REFUSE = "if n_layers < 1:\n        raise ValueError(f'n_layers={n_layers}')"
_BEST = "min(range(1, n_layers + 1), key=lambda k: -(-n_layers // k) + k)"


def _length(
    id: str, value: str, score: int, diagnosis: str = "", refuse: str = _REFUSE, before: str = ""
) -> Answer:
    source = (
        "import math\n\n\ndef best_segment_length(n_layers):\n"
        f"    {refuse}\n{before}    return {value}\n"
    )
    return Answer(f"length_{id}", source, {"best_segment_length": (score, diagnosis or id)})


LENGTHS = (
    _length("number_of_segments", f"-(-n_layers // {_BEST})", 2),
    _length(
        "largest_of_equal", "min(range(n_layers, 0, -1), key=lambda k: -(-n_layers // k) + k)", 2,
        "number_of_segments",
    ),
    _length("root_down", "math.isqrt(n_layers)", 2),
    _length("root_up", "math.ceil(math.sqrt(n_layers))", 2),
    _length("root_rounded", "round(math.sqrt(n_layers))", 2),
    _length("floor_of_segments", "min(range(1, n_layers + 1), key=lambda k: n_layers // k + k)", 0),
    _length("units_held", f"(lambda k: -(-n_layers // k) + k)({_BEST})", 0),
    _length("constant", "8", 0),
    _length("root_as_float", "n_layers ** 0.5", 0, "not_whole"),
    _length("none", "None", 0, "not_whole"),
    _length("text", "str(1)", 0, "not_whole"),
    _length("half", "max(1, n_layers // 2)", 0, "differs"),
    _length("layers", "n_layers", 0, "differs"),
    _length("divisors_only",
            "min((k for k in range(1, n_layers + 1) if n_layers % k == 0), "
            "key=lambda k: n_layers // k + k)", 2, "differs"),
    _length("near_the_root", "min(range(max(1, root - 2), root + 3), "
            "key=lambda k: -(-n_layers // k) + k)", 2, "differs",
            before="    root = math.isqrt(n_layers)\n"),
    _length("up_to_ten", "min(range(1, min(n_layers, 10) + 1), "
            "key=lambda k: -(-n_layers // k) + k)", 0, "differs"),
    _length("twice_the_root", "2 * math.isqrt(n_layers)", 0, "units_held"),
    _length("logarithm", "n_layers.bit_length()", 0, "differs"),
    _length("none_refused", _BEST, 2, "wrong_error", refuse="pass"),
    _length("zero_for_none", _BEST, 2, "no_error", refuse="if n_layers < 1:\n        return 0"),
    _length(
        "value_not_named", _BEST, 2, "wrong_error",
        refuse="if n_layers < 1:\n        raise ValueError('no layers')",
    ),
    _length("one_refused", _BEST, 2, "raised", refuse=_REFUSE.replace("< 1", "<= 1")),
)  # fmt: skip


def _forwards(id: str, value: str, score: int = 0, diagnosis: str = "") -> Answer:
    source = f"def recompute_forwards(n_layers, n_segments, keep_last=False):\n    return {value}\n"
    return Answer(f"forwards_{id}", source, {"recompute_forwards": (score, diagnosis or id)})


_LAST = "n_layers // n_segments * keep_last"
FORWARDS = (
    _forwards("first_pass_too", f"2 * n_layers - {_LAST}"),
    _forwards("restarts", "n_layers * (n_layers - 1) // 2"),
    _forwards("one_segment_only", "-(-n_layers // n_segments)"),
    _forwards("inside_only", "n_layers - n_segments"),
    _forwards("last_left_out", "n_layers - n_layers // n_segments", 1),
    _forwards("keep_last_ignored", "n_layers", 1),
    _forwards("longest_kept", "n_layers - -(-n_layers // n_segments) * keep_last", 1),
    _forwards("one_layer_kept", "n_layers - keep_last", 1),
    _forwards("rest_on_last", "(n_segments - 1) * (n_layers // n_segments) if keep_last "
              "else n_layers", 1, "differs"),
    _forwards("whole_segments", "n_segments * (n_layers // n_segments) - "
              "n_layers // n_segments * keep_last", 0, "differs"),
    _forwards("division", f"n_layers - {_LAST.replace('//', '/')}", 0, "not_whole"),
    _forwards("last_kept_twice", f"n_layers - 2 * {_LAST}", 1, "differs"),
    _forwards("segments", "n_segments", 0, "differs"),
    _forwards("none", "print(n_layers)", 0, "not_whole"),
    _forwards("truth", "keep_last", 0, "not_whole"),
)  # fmt: skip
