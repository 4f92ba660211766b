"""The simulated machine: all ranks in this process, on a model clock, exact and repeatable."""

from mpedu.simulated.exchange import Wire
from mpedu.simulated.machine import LINK, MOST_RANKS, Simulated, SimulatedComm, run_simulated

__all__ = ["LINK", "MOST_RANKS", "Simulated", "SimulatedComm", "Wire", "run_simulated"]
