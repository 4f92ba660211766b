"""Wrong answers to unit 06's `bubble_interleaved`, one mistake an entry."""

from autograder.bank import Answer


def _bubble(id: str, value: str, diagnosis: str = "") -> Answer:
    source = (
        "def bubble_interleaved(n_ranks, n_microbatches, n_chunks):\n"
        f"    K, M, v = n_ranks, n_microbatches, n_chunks\n    return {value}\n"
    )
    return Answer(f"bubble_{id}", source, {"bubble_interleaved": (0, diagnosis or id)})


BUBBLES = (
    _bubble("all_divided", "(K - 1) / (v * (M + K - 1))"),
    _bubble("chunks_left_out", "(K - 1) / (M + K - 1)"),
    _bubble("ratio_given", "(K - 1) / (v * M)"),
    _bubble("more_stages", "(v * K - 1) / (M + v * K - 1)"),
    _bubble("utilisation", "v * M / (v * M + K - 1)"),
    _bubble("one_slot_more", "(K - 1) / (v * M + K)"),
    _bubble("whole_division", "(K - 1) // (v * M + K - 1)"),
    _bubble("constant", "0.1579"),
    _bubble("rounded", "round((K - 1) / (v * M + K - 1), 4)"),
    _bubble("percent", "100 * (K - 1) / (v * M + K - 1)"),
    _bubble("ranks_divided", "(K / v - 1) / (M + K / v - 1)", "differs"),
    _bubble("waits_grow_too", "v * (K - 1) / (v * M + K - 1)", "differs"),
    _bubble("one_more_rank", "K / (v * M + K)", "differs"),
    _bubble("printed", "print((K - 1) / (v * M + K - 1))", "no_number"),
    _bubble("formatted", "f'{(K - 1) / (v * M + K - 1):.1%}'", "no_number"),
)
