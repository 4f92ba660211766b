"""Right answers to all of unit 02, each in a manner of its own."""

from autograder.bank import Answer

_FULL = {
    "naive": 3,
    "naive_busy": 2,
    "utilisation": 3,
    "boundary_bytes": 3,
    "memory_bill": 6,
    "bill_cause": 3,
}


def _right(id: str, source: str) -> Answer:
    return Answer(id, source, {exercise: (points, "") for exercise, points in _FULL.items()})


_COMPREHENSIONS = """
from mpedu.schedule import Action


def naive(n_stages, n_microbatches):
    if n_stages < 1 or n_microbatches < 1:
        raise ValueError(f"n_stages={n_stages}, n_microbatches={n_microbatches}: give 1 or more")
    return [
        [Action(kind, stage, m) for m in range(n_microbatches) for kind in "FB"]
        for stage in range(n_stages)
    ]


def utilisation(timeline):
    start = min(span.start_s for span in timeline.spans)
    makespan = max(span.end_s for span in timeline.spans) - start
    busy = sum(span.end_s - span.start_s for span in timeline.spans)
    return busy / (timeline.n_ranks * makespan)


def boundary_bytes(batch, seq, hidden, bytes_per_element, n_stages):
    if n_stages < 1:
        raise ValueError(f"n_stages={n_stages}")
    return 2 * (n_stages - 1) * batch * seq * hidden * bytes_per_element


def memory_bill(config, n_stages, n_held=1):
    if not 1 <= n_stages <= config.n_layers:
        raise ValueError(f"n_stages={n_stages} for {config.n_layers} layers")
    size, n_larger = divmod(config.n_layers, n_stages)
    bills = []
    for rank in range(n_stages):
        n_layers = size + (rank < n_larger)
        n = n_layers * config.layer_parameters
        if rank == 0:
            n += config.vocabulary_parameters + config.position_parameters
        if rank == n_stages - 1:
            n += config.norm_parameters
            if n_stages > 1 or not config.tied_embeddings:
                n += config.vocabulary_parameters
        held = 34 * config.n_positions * config.d_model * n_layers * n_held
        bills.append({"parameters": 2 * n, "gradients": 2 * n, "optimiser": 12 * n,
                      "activations": held})
    return bills


def near(found, due):
    return all(d <= f <= 1.02 * d for f, d in zip(found, due))


def bill_cause(planned, measured):
    kept = {part: [bill[part] for bill in measured] for part in measured[0]}
    due = {part: [bill[part] for bill in planned] for part in planned[0]}
    if 0 in kept["gradients"]:
        return "gradients_stop"
    if any(k < d for k, d in zip(kept["gradients"], due["gradients"])):
        return "remainder_on_last"
    if not near(kept["activations"], due["activations"]):
        return "graph_kept"
    if not near(kept["gradients"], due["gradients"]):
        return "float32_weights"
    if near(kept["parameters"], due["parameters"]):
        return "none"
    return "whole_model_everywhere"
"""

_LOOPS = """
from mpedu.schedule import Action


def naive(n_stages, n_microbatches):
    for name, count in (("n_stages", n_stages), ("n_microbatches", n_microbatches)):
        if count <= 0:
            raise ValueError(f"{name}={count} is not a count")
    schedule = [[] for _ in range(n_stages)]
    for m in reversed(range(n_microbatches)):
        for stage in range(n_stages):
            schedule[stage].append(Action("F", stage, m))
            schedule[stage].append(Action("B", stage, m))
    return schedule


def utilisation(timeline):
    if len(timeline.spans) == 0:
        raise ValueError("no spans")
    first, last = float("inf"), float("-inf")
    for span in timeline.spans:
        first, last = min(first, span.start_s), max(last, span.end_s)
    shares = []
    for rank in range(timeline.n_ranks):
        own = [span for span in timeline.spans if span.rank == rank]
        shares.append(sum(s.end_s - s.start_s for s in own) / (last - first))
    return sum(shares) / len(shares)


def boundary_bytes(batch, seq, hidden, bytes_per_element, n_stages):
    if n_stages <= 0:
        raise ValueError(f"{n_stages} stages")
    total = 0
    for boundary in range(n_stages - 1):
        for way in ("activations", "gradients"):
            total += batch * seq * hidden * bytes_per_element
    return total


def memory_bill(config, n_stages, n_held=1):
    if n_stages < 1 or n_stages > config.n_layers:
        raise ValueError(f"cannot cut {config.n_layers} layers into {n_stages} stages")
    ranks = [0] * n_stages
    for layer in range(config.n_layers):
        ranks[layer % n_stages] += 1
    parameters = [n * config.layer_parameters for n in ranks]
    parameters[0] += config.vocabulary_parameters
    parameters[0] += config.position_parameters
    parameters[-1] += config.norm_parameters
    parameters[-1] += config.vocabulary_parameters
    if n_stages == 1 and config.tied_embeddings:
        parameters[0] -= config.vocabulary_parameters
    tokens = config.n_positions * n_held
    return [
        dict(parameters=p * 2, gradients=p * 2, optimiser=p * 12,
             activations=n * tokens * config.d_model * 34)
        for p, n in zip(parameters, ranks)
    ]


def bill_cause(planned, measured):
    def off(part, rank):
        return measured[rank][part] / planned[rank][part]

    ranks = range(len(planned))
    if any(off("gradients", r) < 0.01 for r in ranks):
        return "gradients_stop"
    if min(off("gradients", r) for r in ranks) < 0.98:
        return "remainder_on_last"
    if any(off("activations", r) > 1.5 for r in ranks):
        return "graph_kept"
    if any(off("gradients", r) > 1.5 for r in ranks):
        return "float32_weights"
    whole = sum(bill["parameters"] for bill in planned)
    if measured[0]["parameters"] > 0.98 * whole:
        return "whole_model_everywhere"
    return "none"
"""

_ARRAYS = """
import numpy as np

from mpedu.schedule import Action


def naive(n_stages, n_microbatches):
    if min(n_stages, n_microbatches) < 1:
        raise ValueError(f"{n_stages} stages, {n_microbatches} micro-batches")
    pairs = [(kind, m) for m in range(n_microbatches) for kind in ("F", "B")]
    return [[Action(kind, stage, m) for kind, m in pairs] for stage in range(n_stages)]


def utilisation(timeline):
    times = np.array([(span.start_s, span.end_s) for span in timeline.spans], dtype=float)
    makespan = times[:, 1].max() - times[:, 0].min() if len(times) else 0
    if not makespan:
        raise ValueError("this timeline is empty")
    return (times[:, 1] - times[:, 0]).sum() / makespan / timeline.n_ranks


def boundary_bytes(batch, seq, hidden, bytes_per_element, n_stages):
    if n_stages < 1:
        raise ValueError(f"a pipeline of {n_stages} stages is none")
    return int(np.prod([batch, seq, hidden, bytes_per_element, n_stages - 1, 2], dtype=np.int64))


def memory_bill(config, n_stages, n_held=1):
    if n_stages not in range(1, config.n_layers + 1):
        raise ValueError(f"{n_stages} is not between 1 and {config.n_layers}")
    layers = np.array([len(part) for part in np.array_split(range(config.n_layers), n_stages)])
    n = layers * config.layer_parameters
    n[0] += config.vocabulary_parameters + config.position_parameters
    n[-1] += config.norm_parameters
    n[-1] += config.vocabulary_parameters * (n_stages > 1 or not config.tied_embeddings)
    parts = {"parameters": 2 * n, "gradients": 2 * n, "optimiser": 12 * n}
    parts["activations"] = layers * config.n_positions * config.d_model * 34 * n_held
    return [{name: int(part[rank]) for name, part in parts.items()} for rank in range(n_stages)]


def bill_cause(planned, measured):
    parts = ["parameters", "gradients", "optimiser", "activations"]
    due, kept = (np.array([[bill[p] for p in parts] for bill in b], float)
                 for b in (planned, measured))
    ratio = kept / due
    if np.allclose(ratio, 1, atol=0.02):
        return "none"
    if (ratio[:, 1] == 0).any():
        return "gradients_stop"
    totals = kept.sum(axis=0) / due.sum(axis=0)
    if np.allclose(totals, 1, atol=0.02):
        return "remainder_on_last"
    if np.allclose(ratio[:, 1:], 1, atol=0.02):
        return "whole_model_everywhere"
    return "float32_weights" if totals[0] > 1.02 else "graph_kept"
"""
RIGHT = (
    _right("comprehensions", _COMPREHENSIONS),
    _right("loops", _LOOPS),
    _right("arrays", _ARRAYS),
)
