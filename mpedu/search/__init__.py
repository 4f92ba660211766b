"""A search for schedules: the shortest that it finds under a memory cap."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from mpedu.families import named_schedules
from mpedu.schedule import Action, Schedule, actions_of
from mpedu.search.beam import Beam
from mpedu.search.moves import improved
from mpedu.search.problem import Problem, problem_of
from mpedu.search.waves import one_by_one, waves
from mpedu.simulate import Costs, Seconds
from mpedu.simulate.replay import replay

N_STARTS = 2  # schedules that are made shorter by moves, if there is time for another
MOST_ACTIONS = 4_000_000  # run through by all moves together: some seconds
ROUNDING = 1e-9  # relative


def search_schedule(
    placement: Sequence[int],
    n_microbatches: int,
    costs: Costs | None = None,
    memory_cap: int | Sequence[int] | None = None,
    freed_by: str = "I",
    split: bool = True,
    progress: Callable[[str], None] | None = None,
) -> Schedule:
    """The schedule of least makespan that was found, of which no rank holds more than its cap.

    placement: the rank of each stage, in order. memory_cap: activations of a stage that a rank may
    hold, one number or one per rank; None is no cap. freed_by: whether the I or the W of a split
    backward frees them, as in `peak_in_flight`. split: backwards as I and W, else whole as B.
    progress: is told what has been found so far, in a sentence after each part of the search.

    It takes the best of the named schedules that keep the cap, of `waves` and of a beam search,
    and moves single actions of these while that helps. So no named schedule of this placement and
    these kinds is better. The same answer every time; seconds with a stage or
    two per rank, a minute or more with four, none where one of the first is as short as any can be.
    ValueError: ranks without a stage, or a cap below the number of a rank's stages, with which no
    micro-batch can go through.
    """
    problem = problem_of(placement, n_microbatches, costs or Costs(), memory_cap, freed_by, split)
    beam = Beam(problem)
    least_s = beam.score(beam.start())[0]
    found = _timed(problem, [*_named(problem), *waves(problem), one_by_one(problem)])
    _tell(progress, "named schedules and waves", found, least_s)
    if _is_long(found, least_s):
        made = beam.run(found[0][0])
        found = sorted([*found, *_timed(problem, [made] if made else [])], key=_makespan_s)
        _tell(progress, "a beam search", found, least_s)
    n_actions = MOST_ACTIONS
    for _, schedule in found[:N_STARTS]:
        if _is_long(found, least_s) and n_actions > 0:
            shorter, n_actions = improved(problem, schedule, least_s, n_actions)
            found = sorted([*_timed(problem, [shorter]), *found], key=_makespan_s)
            _tell(progress, "moves of single actions", found, least_s)
    return found[0][1]


Timed = tuple[Seconds, Schedule]


def _timed(problem: Problem, schedules: Iterable[Schedule]) -> list[Timed]:
    """Those that are legal and keep the caps, the shortest first."""
    runs = ((schedule, replay(schedule, problem.costs)) for schedule in schedules)
    found = [
        (max(span.end_s for span in spans), schedule)
        for schedule, spans in runs
        if spans is not None and problem.keeps_caps(schedule)
    ]
    return sorted(found, key=_makespan_s)


def _makespan_s(timed: Timed) -> Seconds:
    return timed[0]


def _is_long(found: list[Timed], least_s: Seconds) -> bool:
    """Whether something shorter is thinkable."""
    return found[0][0] > least_s * (1 + ROUNDING)


def _tell(
    progress: Callable[[str], None] | None, part: str, found: list[Timed], least_s: Seconds
) -> None:
    if progress is not None:
        best_s, at_least_s = float(found[0][0]), float(least_s)
        progress(f"after {part}: {best_s:.6g} s; nothing is shorter than {at_least_s:.6g} s")


def _named(problem: Problem) -> Iterator[Schedule]:
    """The named schedules of this placement, in the kinds that are asked for."""
    for schedule in named_schedules(problem.placement, problem.n_microbatches):
        if "W" in problem.kinds:
            yield [[half for action in actions for half in _halves(action)] for actions in schedule]
        elif all(action.kind != "I" for _, action in actions_of(schedule)):
            yield schedule


def _halves(action: Action) -> list[Action]:
    """A whole backward as its two halves, anything else as it is."""
    if action.kind != "B":
        return [action]
    return [action._replace(kind="I"), action._replace(kind="W")]
