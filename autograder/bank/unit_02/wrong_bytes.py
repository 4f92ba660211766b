"""Wrong answers to unit 02's `boundary_bytes`, one mistake an entry."""

from autograder.bank import Answer

_REFUSE = "if n_stages < 1:\n        raise ValueError(f'n_stages={n_stages}')"


def _bytes(
    id: str, value: str, score: int = 0, diagnosis: str = "", refuse: str = _REFUSE
) -> Answer:
    source = (
        "def boundary_bytes(batch, seq, hidden, bytes_per_element, n_stages):\n"
        f"    {refuse}\n    return {value}\n"
    )
    return Answer(f"bytes_{id}", source, {"boundary_bytes": (score, diagnosis or id)})


_TENSOR = "batch * seq * hidden * bytes_per_element"
_RIGHT = f"2 * (n_stages - 1) * {_TENSOR}"
BYTES = (
    _bytes("stages_for_boundaries", f"2 * n_stages * {_TENSOR}"),
    _bytes("forward_only", f"(n_stages - 1) * {_TENSOR}"),
    _bytes("one_boundary", f"2 * {_TENSOR}"),
    _bytes("elements", "2 * (n_stages - 1) * batch * seq * hidden"),
    _bytes("two_bytes_each", "2 * 2 * (n_stages - 1) * batch * seq * hidden"),
    _bytes("bits", f"8 * {_RIGHT}"),
    _bytes("one_sample", "2 * (n_stages - 1) * seq * hidden * bytes_per_element"),
    _bytes("weights_sent", "2 * (n_stages - 1) * hidden * hidden * bytes_per_element"),
    _bytes("four_ways", f"2 * {_RIGHT}", diagnosis="differs"),
    _bytes("loss_sent_back_too", f"{_RIGHT} + bytes_per_element", diagnosis="differs"),
    _bytes("by_stage", f"{_RIGHT} // n_stages", diagnosis="differs"),
    _bytes("kibibytes", f"{_RIGHT} / 1024", diagnosis="not_whole"),
    _bytes("float", f"1.0 * {_RIGHT}", diagnosis="not_whole"),
    _bytes("tuple", f"({_TENSOR}, {_TENSOR})", diagnosis="not_whole"),
    _bytes("none_refused", _RIGHT, 2, "no_error", refuse="pass"),
    _bytes("one_stage_refused", _RIGHT, 0, "raised", refuse=_REFUSE.replace("< 1", "<= 1")),
    _bytes(
        "value_not_named",
        _RIGHT,
        2,
        "wrong_error",
        refuse="if n_stages < 1:\n        raise ValueError('no stages')",
    ),
)
