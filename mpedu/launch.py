"""Starting ranks: `run_ranks` runs a rank program on one of the machines and brings its results.

The simulated machine needs NumPy alone. Processes are forked from a server that has torch loaded
already, so that a call takes about a tenth of a second, also from a notebook and with functions
defined there. Whatever happens, no rank is left: not after an error, an interrupt, or the death of
the caller. What a rank has started itself ends with it, unless that is in a session or process
group of its own (`setsid`, `start_new_session`): such a process survives, and is for the program to
end.
"""

import importlib
import math
from collections.abc import Callable
from numbers import Real
from typing import Any

from mpedu.faults import require_at_least
from mpedu.ranks.outcome import RankError as RankError  # importable from here too
from mpedu.ranks.outcome import Run as Run
from mpedu.ranks.starting import warm_up as warm_up
from mpedu.simulated import Simulated, run_simulated

MACHINES = ("processes", "simulated")
MOST_S = 1e6  # torch knows no limits without end


def run_ranks(
    program: Callable[..., Any],
    n_ranks: int,
    *arguments: Any,
    machine: str | Simulated = "processes",
    timeout_s: float | None = 60.0,
    wait_s: float | None = None,
    on_report: Callable[[int, Any], None] | None = None,
    use_gpus: bool = True,
    check_messages: bool = True,
) -> Run:
    """Runs `program(comm, *arguments)` on `n_ranks` ranks of `machine`.

        def program(comm, factor):
            return factor * comm.all_reduce(torch.tensor(comm.rank)).item()
        run_ranks(program, 4, 10).results  # [60, 60, 60, 60]

    machine: "processes", fresh ones of this computer; "simulated", all ranks in this process on the
    model clock; or a `Simulated(...)` that says what is simulated. Simulated ranks take no notice
    of wait_s, use_gpus and check_messages: nothing there is slow, and everything is checked.
    Program and arguments travel by value: cell functions, closures and modules will do. With a GPU
    for every rank each gets its own (`comm.device`), fewer are shared; without, ranks compute on
    the CPU, with one thread each. What a rank prints appears here behind "[rank i] ". Environment
    and folder are the caller's at the time of the call; there is nothing to read from stdin.
    Results travel by value too, each whole in memory on both sides: return numbers, not models of
    gigabytes. They are trusted: reading one runs what it brings along, and no limit holds for that.

    timeout_s: limit for all of it, once the ranks have started. wait_s: limit for each single wait
    of a rank (default: the same, 60 where there is none). on_report(rank, value): is called with
    what ranks hand to `comm.report`. check_messages: compare what ranks send and do together before
    it happens, and tell what is left over at the end; without, it is faster, and ends that do not
    fit give garbage or end a process.
    RankError (of this module): a rank failed, died or waited too long; it names the first cause
    first. A deadlock is told as soon as it is certain: all wait, and none is stopped or at work.
    ValueError for an unknown machine, a program that cannot travel, a limit that is none, too many
    ranks. RuntimeError on a rank: it cannot start ranks itself.
    """
    require_at_least(1, n_ranks=n_ranks)
    limits = _limits(timeout_s, wait_s)
    if isinstance(machine, Simulated) or machine == "simulated":
        simulated = machine if isinstance(machine, Simulated) else Simulated()
        return run_simulated(program, int(n_ranks), arguments, simulated, timeout_s, on_report)
    if machine != "processes":
        known = ", ".join(repr(name) for name in MACHINES)
        raise ValueError(f"machine={machine!r:.80} is unknown; give {known} or a Simulated(...)")
    launching = importlib.import_module("mpedu.ranks.launching")  # loads torch
    run: Run = launching.run_processes(
        program,
        int(n_ranks),
        arguments,
        launching.Limits(*limits),
        on_report,
        use_gpus,
        check_messages,
    )
    return run


def require_limit(name: str, limit: object, way_out: str = "give seconds above 0") -> None:
    """Nothing; ValueError where `limit` is no number of seconds above 0."""
    is_number = isinstance(limit, Real) and not isinstance(limit, bool)
    if not is_number or not 0 < limit < math.inf:  # type: ignore[operator]
        raise ValueError(f"{name}={limit!r} is no limit; {way_out}")


def _limits(timeout_s: float | None, wait_s: float | None) -> tuple[float, float]:
    for name, limit in (("timeout_s", timeout_s), ("wait_s", wait_s)):
        if limit is not None:
            require_limit(name, limit, "give seconds above 0, or None")
    wait_s = min([limit for limit in (wait_s, timeout_s) if limit is not None], default=60.0)
    return math.inf if timeout_s is None else float(timeout_s), min(float(wait_s), MOST_S)
