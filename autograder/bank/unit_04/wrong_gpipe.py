"""Wrong answers to unit 04's `gpipe_peak_activation`, one mistake an entry."""

from autograder.bank import Answer

_REFUSE = """    if not 1 <= n_stages <= n_layers:
        raise ValueError(f"n_stages={n_stages} for {n_layers} layers")
    if not 1 <= n_microbatches <= n_samples:
        raise ValueError(f"n_microbatches={n_microbatches} for {n_samples} samples")
"""
_WITH, _WITHOUT = "n_samples + layers * piece", "n_samples * layers"
_SIZES = """    layers = -(-n_layers // n_stages)
    piece = -(-n_samples // n_microbatches)
"""


def _peak(
    id: str,
    score: int,
    with_checkpoints: str = _WITH,
    without: str = _WITHOUT,
    diagnosis: str = "",
    sizes: str = _SIZES,
    refuse: str = _REFUSE,
) -> Answer:
    arguments = "n_samples, n_layers, n_stages, n_microbatches, checkpoint"
    source = (
        f"def gpipe_peak_activation({arguments}):\n{refuse}{sizes}"
        f"    return {with_checkpoints} if checkpoint else {without}\n"
    )
    return Answer(f"peak_{id}", source, {"gpipe_peak_activation": (score, diagnosis or id)})


_ROUND_DOWN = (
    _SIZES.replace("-(-", "").replace("_stages)", "_stages").replace("batches)", "batches")
)
PEAKS = (
    _peak("one_piece_held", 3, without="layers * piece"),
    _peak("whole_model", 3, without="n_samples * n_layers"),
    _peak("whole_model_twice", 0, "n_samples + n_layers * piece", "n_samples * n_layers",
          "whole_model"),
    _peak("pieces_counted", 3, without="n_microbatches * layers"),
    _peak("checkpoints_ignored", 3, without=_WITH),
    _peak("samples_forgotten", 3, without="layers"),
    _peak("no_n_term", 2, "layers * piece"),
    _peak("pieces_as_inputs", 2, "n_microbatches + layers * piece"),
    _peak("one_input", 2, "piece + layers * piece"),
    _peak("all_again_at_once", 2, "n_samples + layers * n_samples"),
    _peak("all_layers_again", 2, "n_samples + n_layers * piece"),
    _peak("as_without", 2, _WITHOUT),
    _peak("inputs_of_layers", 2, "n_samples * layers + layers * piece"),
    _peak("once_more_input", 2, "n_samples + (layers + 1) * piece"),
    _peak("one_layer_less", 2, "n_samples + (layers - 1) * piece"),
    _peak("never_more", 3, f"min({_WITHOUT}, {_WITH})"),
    _peak("rounded_down", 4, sizes=_ROUND_DOWN),
    _peak("piece_rounded_down", 4, sizes=_SIZES.replace("-(-n_samples // n_microbatches)",
          "n_samples // n_microbatches"), diagnosis="rounded_down"),
    _peak("rounded_once", 4, "n_samples + -(-n_layers * n_samples // (n_stages * n_microbatches))",
          "-(-n_samples * n_layers // n_stages)"),
    _peak("fractions", 4, "n_samples + layers * piece", diagnosis="not_whole",
          sizes="    layers, piece = n_layers / n_stages, n_samples / n_microbatches\n"
          "    if n_layers % n_stages == n_samples % n_microbatches == 0:\n"
          "        layers, piece = int(layers), int(piece)\n"),
    _peak("floats", 0, diagnosis="not_whole",
          sizes="    layers, piece = n_layers / n_stages, n_samples / n_microbatches\n"),
    _peak("gradients_too", 0, "2 * n_samples + 2 * layers * piece", "2 * n_samples * layers",
          "differs"),
    _peak("one_more_piece", 2, "n_samples + layers * (piece + 1)", diagnosis="differs"),
    _peak("one_f_one_b", 0, "min(n_microbatches, n_stages) * piece + layers * piece",
          "min(n_microbatches, n_stages) * piece * layers", "differs"),
    _peak("stages_and_pieces_swapped", 0, diagnosis="differs",
          sizes=_SIZES.replace("n_stages", "other").replace("n_microbatches", "n_stages")
          .replace("other", "n_microbatches")),
    _peak("nothing_refused", 4, diagnosis="no_error", refuse="    n_stages = max(n_stages, 1)\n"
          "    n_microbatches = max(n_microbatches, 1)\n"),
    _peak("too_many_let_through", 4, diagnosis="no_error", refuse=_REFUSE.replace(" <= n_layers:",
          ":").replace(" <= n_samples:", ":")),
    _peak("value_not_named", 4, diagnosis="wrong_error", refuse=_REFUSE.replace("={n_stages}", "")
          .replace("={n_microbatches}", "")),
)  # fmt: skip
