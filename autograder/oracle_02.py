"""The truths of unit 02, as `autograder.oracle`: exact, and without anything that is withheld."""

from collections.abc import Sequence
from fractions import Fraction

from autograder import oracle
from mpedu.published import ModelConfig
from mpedu.schedule import Action, Schedule
from mpedu.simulate import Timeline

Bill = dict[str, int]  # bytes by part
PARTS = ("parameters", "gradients", "optimiser", "activations")
BYTES = {"parameters": 2, "gradients": 2, "optimiser": 12}  # Adam in mixed precision
MOST_ABOVE = Fraction(2, 100)
ACTIVATION_BYTES = 34  # of a layer, per token and column (Korthikanti et al. 2022, section 4.1)


def naive(n_stages: int, n_microbatches: int) -> Schedule:
    """Each micro-batch forward and at once backward, ascending."""
    return [
        [Action(kind, stage, m) for m in range(n_microbatches) for kind in "FB"]
        for stage in range(n_stages)
    ]


def utilisation(timeline: Timeline) -> Fraction:
    """Busy share of device time, exact for whole and dyadic times."""
    return 1 - oracle.idle_share(timeline)


def boundary_bytes(batch: int, seq: int, hidden: int, bytes_per_element: int, n_stages: int) -> int:
    """Bytes over all boundaries in one step, activations and their gradients."""
    return 2 * (n_stages - 1) * batch * seq * hidden * bytes_per_element


def layers_of(n_layers: int, n_stages: int) -> list[int]:
    """How many layers each rank holds: even, larger counts first."""
    return oracle.split_sizes(n_layers, n_stages)


def parameters_of(config: ModelConfig, n_stages: int) -> list[int]:
    """The parameters each rank holds."""
    held = [n * config.layer_parameters for n in layers_of(config.n_layers, n_stages)]
    held[0] += config.vocabulary_parameters + config.position_parameters
    held[-1] += config.norm_parameters
    if n_stages > 1 or not config.tied_embeddings:
        held[-1] += config.vocabulary_parameters
    return held


def memory_bill(config: ModelConfig, n_stages: int, n_held: int = 1) -> list[Bill]:
    """Bytes of each rank, by part."""
    activations = ACTIVATION_BYTES * config.n_positions * config.d_model * n_held
    return [
        {part: n_bytes * n for part, n_bytes in BYTES.items()}
        | {"activations": n_layers * activations}
        for n, n_layers in zip(
            parameters_of(config, n_stages), layers_of(config.n_layers, n_stages), strict=True
        )
    ]


def bill_cause(planned: Sequence[Bill], measured: Sequence[Bill]) -> str:
    """Which of the named causes a measured bill speaks for; ValueError for none."""
    due = {part: [bill[part] for bill in planned] for part in PARTS}
    kept = {part: [bill[part] for bill in measured] for part in PARTS}
    as_planned = {part: near(kept[part], due[part]) for part in PARTS}
    if all(as_planned.values()):
        return "none"
    if 0 in kept["gradients"]:
        return "gradients_stop"
    if as_planned["gradients"]:
        if not as_planned["activations"]:
            return "graph_kept"
        if near(kept["parameters"], [sum(due["parameters"])] * len(planned)):
            return "whole_model_everywhere"
    elif near([sum(kept["gradients"])], [sum(due["gradients"])]):
        return "remainder_on_last"
    elif as_planned["activations"]:
        return "float32_weights"
    raise ValueError("this bill speaks for no named cause")


def near(kept: Sequence[int], due: Sequence[int]) -> bool:
    """Whether all bytes are what is due, or up to 2 % more."""
    return all(n <= found <= n * (1 + MOST_ABOVE) for found, n in zip(kept, due, strict=True))
