"""`./course bench`: our engines and others, timed in turns on the same work."""

from mpedu.bench.command import add_arguments, bench, run

__all__ = ["add_arguments", "bench", "run"]
