"""A schedule on the model clock: when each action runs if every stage costs what `Costs` says."""

from mpedu.simulate.clock import simulate, simulate_until_stuck
from mpedu.simulate.costs import Costs, PerStage, Seconds
from mpedu.simulate.timeline import Sent, Span, Timeline

__all__ = [
    "Costs",
    "PerStage",
    "Seconds",
    "Sent",
    "Span",
    "Timeline",
    "simulate",
    "simulate_until_stuck",
]
