"""Wrong answers to unit 02's `memory_bill`: a right one with one thought missing, and others."""

from autograder.bank import Answer

_RIGHT = """
def memory_bill(config, n_stages, n_held=1):
    if not 1 <= n_stages <= config.n_layers:
        raise ValueError(f"n_stages={n_stages}")
    size, left = divmod(config.n_layers, n_stages)
    bills = []
    for rank in range(n_stages):
        layers = size + (rank < left)
        n = layers * config.layer_parameters
        if rank == 0:
            n += config.vocabulary_parameters + config.position_parameters
        if rank == n_stages - 1:
            n += config.norm_parameters
            if n_stages > 1 or not config.tied_embeddings:
                n += config.vocabulary_parameters
        bill = {"parameters": 2 * n, "gradients": 2 * n, "optimiser": 12 * n}
        bill["activations"] = layers * 34 * config.n_positions * config.d_model * n_held
        bills.append(bill)
    return bills
"""


def _bill(id: str, score: int, *pairs: str, diagnosis: str = "") -> Answer:
    """The right answer with texts replaced, (old, new, old, new, ..)."""
    source = _RIGHT
    for old, new in zip(pairs[::2], pairs[1::2], strict=True):
        if old not in source:
            raise ValueError(f"{old!r} is not in the right answer")
        source = source.replace(old, new)
    return Answer(f"bill_{id}", source, {"memory_bill": (score, diagnosis or id)})


_N = "n = layers * config.layer_parameters"
_WHOLE = (
    "n = (config.n_layers * config.layer_parameters + 2 * config.vocabulary_parameters "
    "+ config.position_parameters + config.norm_parameters)"
)
_FIRST = "n += config.vocabulary_parameters + config.position_parameters"
_NORM = "n += config.norm_parameters"
_MATRIX = "n += config.vocabulary_parameters\n        bill"
_BILL = '{"parameters": 2 * n, "gradients": 2 * n, "optimiser": 12 * n}'
_LAYERS = "layers = size + (rank < left)"
_ACTIVATIONS = "layers * 34 * config.n_positions * config.d_model * n_held"
_TIED = "if n_stages > 1 or not config.tied_embeddings:"
_CHECK = "if not 1 <= n_stages <= config.n_layers:"
_NOTHING_MORE = (_FIRST, "pass", _NORM, "pass", _MATRIX, "pass\n        bill")
BILLS = (
    _bill("whole_model", 3, _N, _WHOLE, *_NOTHING_MORE),
    _bill("equal_shares", 3, _N, f"{_WHOLE} / n_stages", *_NOTHING_MORE,
          _BILL, '{"parameters": int(2 * n), "gradients": int(2 * n), "optimiser": int(12 * n)}'),
    _bill("one_held_at_least", 5, "* n_held", "* max(n_held, 1)", diagnosis="differs_activations"),
    _bill("none_held_refused", 5, _CHECK, "if n_held < 1 or not 1 <= n_stages <= config.n_layers:",
          diagnosis="raised"),
    _bill("remainder_dropped", 5, _LAYERS, "layers = size"),
    _bill("remainder_last", 5, _LAYERS, "layers = size + (left if rank == n_stages - 1 else 0)"),
    _bill("smaller_first", 5, _LAYERS, "layers = size + (rank >= n_stages - left)"),
    _bill("remainder_first", 5, _LAYERS, "layers = size + (left if rank == 0 else 0)"),
    _bill("no_matrix", 4, _MATRIX, "pass\n        bill"),
    _bill("no_embedding", 4, _FIRST, "n += config.position_parameters"),
    _bill("positions_on_last", 5, _NORM,
          "n += config.norm_parameters + config.position_parameters"),
    _bill("norms_again", 5, _N, "n = layers * (config.layer_parameters + config.norm_parameters)"),
    _bill("norm_everywhere", 5, "if rank == 0:",
          "n += config.norm_parameters * (rank < n_stages - 1)\n        if rank == 0:"),
    _bill("thirty_two", 5, "34", "32", diagnosis="other_factor"),
    _bill("no_columns", 5, " * config.d_model", ""),
    _bill("layers_only", 4, *_NOTHING_MORE),
    _bill("no_head", 4, _NORM, "pass", _MATRIX, "pass\n        bill"),
    _bill("no_final_norm", 5, _NORM, "pass"),
    _bill("no_positions", 5, _FIRST, "n += config.vocabulary_parameters"),
    _bill("head_on_first", 4, "if rank == n_stages - 1:", "if rank == 0:"),
    _bill("parameters_counted", 5, '"parameters": 2 * n', '"parameters": n'),
    _bill("float32_parameters", 5, '"parameters": 2 * n', '"parameters": 4 * n'),
    _bill("weights_only", 5, _BILL, '{"parameters": 2 * n, "gradients": 0, "optimiser": 0}'),
    _bill("moments_only", 5, "12 * n", "8 * n"),
    _bill("half_moments", 5, "12 * n", "4 * n"),
    _bill("float32_gradients", 5, '"gradients": 2 * n', '"gradients": 4 * n'),
    _bill("states_of_all_16", 5, "12 * n", "16 * n"),
    _bill("float32_throughout", 4, _BILL,
          '{"parameters": 4 * n, "gradients": 4 * n, "optimiser": 8 * n}',
          diagnosis="float32_parameters"),
    _bill("one_sequence", 5, " * n_held", ""),
    _bill("all_layers", 5, _ACTIVATIONS, _ACTIVATIONS.replace("layers", "config.n_layers", 1)),
    _bill("one_layer", 5, _ACTIVATIONS, _ACTIVATIONS.replace("layers * ", "")),
    _bill("boundary_only", 5, _ACTIVATIONS, _ACTIVATIONS.replace("layers * 34", "2")),
    _bill("outputs_only", 5, "34", "2"),
    _bill("bytes_twice", 5, "34", "2 * 34"),
    _bill("no_copy", 5, _TIED, "if not config.tied_embeddings:"),
    _bill("two_on_one", 5, _TIED, "if True:"),
    _bill("embedding_everywhere", 5, "if rank == 0:", "if True:"),
    _bill("norms_twice", 3, _NORM, "n += 2 * config.norm_parameters",
          diagnosis="differs_parameters"),
    _bill("fp16_adam", 5, "12 * n", "6 * n", diagnosis="differs_optimiser"),
    _bill("no_gradients", 5, '"gradients": 2 * n', '"gradients": 0',
          diagnosis="differs_gradients"),
    _bill("no_tokens", 5, "config.n_positions * ", ""),
    _bill("square_of_tokens", 5, "config.n_positions * ", "config.n_positions ** 2 * ",
          diagnosis="differs_activations"),
    _bill("other_keys", 0, '"optimiser"', '"optimizer"', diagnosis="form"),
    _bill("a_number_each", 0, "bills.append(bill)", "bills.append(sum(bill.values()))",
          diagnosis="form"),
    _bill("gigabytes", 0, "layers * 34", "1e-9 * layers * 34", diagnosis="form"),
    _bill("nothing_returned", 0, "return bills", "print(bills)", diagnosis="form"),
    _bill("one_dict", 0, "return bills", "return bills[0]", diagnosis="form"),
    _bill("too_many_ranks", 5, _CHECK, "if n_stages < 1:", diagnosis="no_error"),
    _bill("ranks_not_named", 5, 'f"n_stages={n_stages}"', '"cannot be cut"',
          diagnosis="wrong_error"),
    Answer(
        "bill_refuses_everything",
        "def memory_bill(config, n_stages, n_held=1):\n    raise ValueError(n_stages)\n",
        {"memory_bill": (0, "raised")},
    ),
)  # fmt: skip
