"""The hints and guesses of unit 02: idea, neighbouring case, skeleton with blanks."""

from autograder import oracle_02
from autograder.checks.unit_02.sealed_runs import over_the_limit
from autograder.exercise import Guess
from mpedu.published import load_hardware, load_model
from mpedu.simulate import simulate_until_stuck


def _speedup() -> float:
    """How many times as fast four naive devices are as one that had room for all."""
    timeline = simulate_until_stuck(oracle_02.naive(4, 1))
    one = simulate_until_stuck(oracle_02.naive(1, 1))
    return float(4 * one.makespan_s / timeline.makespan_s)


def _training_gb() -> float:
    (bill,) = oracle_02.memory_bill(load_model("llama2-7b"), 1, 0)
    return sum(bill.values()) / 1e9


def _message_share() -> float:
    """Of a naive step on four devices in four nodes: the share of its time spent on messages."""
    config, device = load_model("llama2-7b"), load_hardware("a100-80gb")
    tokens = config.n_positions
    n_bytes = oracle_02.boundary_bytes(1, tokens, config.d_model, 2, 4)
    message_s = n_bytes / device.between_bytes_per_s + 6 * device.between_latency_s
    n_parameters = sum(oracle_02.parameters_of(config, 4)) - config.vocabulary_parameters
    work_s = 6 * n_parameters * tokens / device.flops_per_s
    return message_s / (message_s + work_s)


GUESSES = (
    Guess(
        "speedup-4",
        "Four devices share the layers of one model, and a batch goes through all of them. How "
        "many times as fast are they as one device that had room for the whole model?",
        _speedup,
        least=0,
        most=100,
    ),
    Guess(
        "message-share",
        "Llama 2 7B on four devices, each in another node, peak speed: which share of a step goes "
        "into messages?",
        _message_share,
        "{:.1%}",
        least=0,
        most=1,
    ),
    Guess(
        "training-gb",
        "The weights of Llama 2 7B take 13.5 GB. How many GB do weights, gradients and Adam's "
        "states take together?",
        lambda: round(_training_gb(), 1),
        least=0,
        most=10_000,
    ),
    Guess(
        "sealed-over",
        "Four runs with a fault each, planned to fit into 80 GB. In how many of them does some "
        "rank keep more than 80 GB?",
        lambda: over_the_limit(load_hardware("a100-80gb").memory_bytes),
        least=0,
        most=4,
        whole=True,
    ),
)

_NAIVE = (
    "Idea: a stage's list holds one pair for every micro-batch, its forward and right after it its "
    "backward. Waiting for the other stages is not written down.",
    "Neighbouring case: one stage, three micro-batches. Its list is F0 B0 F1 B1 F2 B2. For stage 1 "
    "the second field of each Action changes, and nothing else.",
    "Skeleton:\n"
    '    if n_stages < ...: raise ValueError(f"n_stages={n_stages} ...")\n'
    "    ...  # the same for n_microbatches\n"
    "    schedule = []\n"
    "    for stage in range(...):\n"
    "        actions = []\n"
    "        for m in range(...):\n"
    '            actions.append(Action("F", ..., m))\n'
    "            ...\n"
    "        schedule.append(actions)\n"
    "    return schedule",
)
_NAIVE_BUSY = (
    "Idea: a piece must be back before the next one starts. If each stage runs the backward of a "
    "piece right after its forward, no stage can get ahead of the others.",
    "Neighbouring case: two stages, two micro-batches. F0 B0 F1 B1 on both takes 12 seconds at "
    "costs 1 and 2, and each device works 6 of them. With F0 F1 B0 B1 it takes 9, and a stage "
    "holds two pieces at once.",
    "Skeleton: look at the list of one stage in pairs. Entry 0 is F..., entry 1 is B..., entry 2 "
    "is F... . Both entries of a pair name the same ... .",
)
_UTILISATION = (
    "Idea: two areas. The whole: devices times makespan, which you pay for. The work: all boxes "
    "added up. Utilisation is the second over the first.",
    "Neighbouring case: two devices, boxes 5-6, 6-7, 7-9 and 9-11 s. The clock runs from 5 to "
    "11, so the whole is 2 * 6 = 12 and the work is 6: utilisation 0.5. It makes no difference "
    "which device holds which box, nor in which order the boxes are listed.",
    "Skeleton:\n"
    "    if not timeline.spans: raise ...\n"
    "    busy_s = sum(span.end_s - ... for span in timeline.spans)\n"
    "    makespan_s = max(...) - min(...)\n"
    "    return busy_s / (... * makespan_s)",
)
_BOUNDARY_BYTES = (
    "Idea: one tensor crosses each boundary on the way forward, one number for every token and "
    "column. On the way back its gradient crosses, with as many numbers.",
    "Neighbouring case: 2 sequences of 3 tokens, width 4, 2 bytes a number. One tensor is 2 * 3 * "
    "4 * 2 = 48 bytes. Two stages have one boundary: 48 bytes forward and 48 back, 96 together.",
    "Skeleton:\n"
    '    if n_stages < 1: raise ValueError(f"n_stages={...} ...")\n'
    "    tensor_bytes = batch * ... * ... * ...\n"
    "    n_boundaries = ...\n"
    "    return 2 * n_boundaries * ...",
)
_MEMORY_BILL = (
    "Idea: first the number of layers of every rank, then its number of parameters, and from that "
    "three of the four parts by a factor. Only activations need layers instead of parameters.",
    "Neighbouring case: 7 layers on 3 ranks lie 3, 2, 2. Say a layer has 10 parameters, the "
    "vocabulary matrix 100, a norm 1, and no positions are learned. Untied, the ranks hold "
    "30 + 100 = 130, 20 and 20 + 1 + 100 = 121 parameters, so rank 1 keeps 40 bytes of "
    "parameters, 40 of gradients and 240 of optimiser.",
    "Skeleton:\n"
    "    if not 1 <= n_stages <= ...: raise ValueError(...)\n"
    "    size, n_larger = divmod(..., n_stages)\n"
    "    bills = []\n"
    "    for rank in range(n_stages):\n"
    "        n_layers = size + (rank < ...)\n"
    "        n = n_layers * config.layer_parameters\n"
    "        if rank == 0:\n"
    "            n += ...  # two things\n"
    "        if rank == n_stages - 1:\n"
    "            n += ...\n"
    "            if n_stages > 1 or not config.tied_embeddings: n += ...\n"
    '        bills.append({"parameters": 2 * n, "gradients": ..., "optimiser": ...,\n'
    '                      "activations": n_layers * ...})\n'
    "    return bills",
)
_BILL_CAUSE = (
    "Idea: ask each part alone whether it is as planned on every rank. What is off, on which "
    "ranks, and is it more or less? Begin with what nothing else does: no gradient at all, then "
    "less than planned.",
    "Neighbouring case: two ranks, planned parameters 200 and 220, gradients alike. Measured 201 "
    "and 221: as planned. 201 and 441, and gradients too: twice, on the second. 421 and 422, "
    "gradients as planned: the sum of both, on each. 180 and 241: the same sum, elsewhere.",
    "Skeleton:\n"
    "    kept = {part: [bill[part] for bill in measured] for part in measured[0]}\n"
    "    due = {part: [bill[part] for bill in planned] for part in planned[0]}\n"
    "    def more(part):  # on any rank, beyond the noise\n"
    "        return any(k > ... * d for k, d in zip(kept[part], due[part]))\n"
    '    if 0 in kept["gradients"]: return ...\n'
    '    if any(k < d for k, d in zip(kept["gradients"], ...)): return ...\n'
    '    if more("activations"): return ...\n'
    '    if more("gradients"): return ...\n'
    "    ...  # which of the two that are left?",
)
# Of exercises without points: found by `hint` as well.
WORKED_HINTS = {
    "partition_layers": (
        "Idea: a cut is as good as its heaviest stage. Its stages are those before the last one, "
        "whose heaviest costs `before`, and the last one. The heavier of the two decides.",
        "Neighbouring case: costs 2, 1, 2 on two stages, start 1. Before it lies one layer: before "
        "is 2. The last stage holds layers 1 and 2, costs[1:3], together 3. So heaviest is 3.",
        "Skeleton:\n    heaviest = max(before, sum(costs[...:...]))",
    ),
}
HINTS = {
    "naive": _NAIVE,
    "naive_busy": _NAIVE_BUSY,
    "utilisation": _UTILISATION,
    "boundary_bytes": _BOUNDARY_BYTES,
    "memory_bill": _MEMORY_BILL,
    "bill_cause": _BILL_CAUSE,
}
