"""`show`: a picture of whatever a notebook cell hands it, or a line that says why there is none."""

import os
import sys
from collections.abc import Callable, Mapping
from numbers import Integral
from typing import Any

from autograder.local import place_in, stopped
from mpedu.plot import draw_deadlock, draw_schedule, draw_timeline, report_figure
from mpedu.ranks.outcome import RankError
from mpedu.runs import RunReport
from mpedu.schedule import Action
from mpedu.simulate import Costs, Timeline

_RANKS = ("mpedu.train_step", "mpedu.launch", "mpedu.own_engine")
MOST_RESULTS = 16


def show(what: Any, *args: Any, **kwargs: Any) -> Any:
    """A picture of a schedule, a timeline, a run, or of what a function gives.

    `show(gpipe, 4, 8)` calls the function and draws its schedule; `show(schedule, costs)` draws a
    list, faulty or not; a drawing function is called as it is. What has a picture of its own, as
    a training run has, is printed too. `show(run_ranks, hello, 4)` and `show(run)` print the ranks'
    results and draw their messages; where no rank could go on, who waits for whom. A function that
    is not written yet gives a line that says so, and one that raises a line that says where: never
    an exception.
    In a notebook the picture is displayed at once and None comes back, so that a cell may show
    several; elsewhere the picture comes back.
    """
    return displayed(_picture_of(sys._getframe(1).f_globals, what, args, kwargs))


def displayed(picture: Any) -> Any:
    """None once a notebook displays the picture; the picture itself elsewhere."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None or picture is None:
        return picture
    from IPython.display import display

    display(picture)  # type: ignore[no-untyped-call]
    return None


def _picture_of(
    namespace: Mapping[str, Any], what: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """What `show` draws for the notebook of that namespace; None where a line was printed."""
    if not callable(what):
        return _draw_value(what, args, kwargs)
    name, module = getattr(what, "__name__", "it"), getattr(what, "__module__", "")
    if module in _RANKS and "NBGRADER_EXECUTION" in os.environ:
        print(f"{name}: not run while nbgrader grades or validates; nothing here counts")
        return None
    try:
        if module.startswith("mpedu.plot"):
            return what(*args, **kwargs)
        return _draw_answer(what, args, kwargs)
    except NotImplementedError as error:
        print(f"{(place_in(namespace, error) or (name,))[0]}: not written yet")
    except KeyboardInterrupt as error:
        raise stopped(namespace, error, "" if module in _RANKS else name) from None
    except Exception as error:  # whatever a student's code raises
        place = place_in(namespace, error)
        where = f" (your cell, line {place[1]})" if place else ""
        name = place[0] if place else name
        print(f"{name} raises {type(error).__name__}: {error}{where}"[:400])
    return None


def _draw_value(value: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A finished schedule, timeline or run drawn; a line that says what `show` takes for others."""
    if _is_drawn_alone(value) and not args:
        return _draw_alone(value, kwargs)
    if not isinstance(value, list):
        kind = type(value).__name__
        print(f"show needs a function, a schedule, a timeline or a run; this is of type {kind}.")
    elif any(not isinstance(arg, Costs) for arg in args):
        print("After a finished schedule only Costs may follow; show(gpipe, 4, 8) calls gpipe.")
    else:
        return draw_schedule(value, *args, **kwargs)
    return None


def _is_drawn_alone(value: Any) -> bool:
    """Whether a value is a timeline, a run, a report, or knows its own picture."""
    if isinstance(value, Timeline | RunReport | RankError) or _is_run(value):
        return True
    return callable(getattr(value, "picture", None))


def _is_run(value: Any) -> bool:
    """Whether a value is what a rank program's run brought back, at home or in a check."""
    return all(hasattr(value, name) for name in ("results", "timeline", "meter"))


def _draw_alone(value: Any, options: dict[str, Any]) -> Any:
    if isinstance(value, Timeline):
        return draw_timeline(value, **options)
    if isinstance(value, RunReport):
        return report_figure(value, **options)  # its text form holds the report
    if isinstance(value, RankError) or _is_run(value):
        return _draw_ranks(value, options)
    picture = value.picture()
    if picture.text != str(value):
        print(value)
    return picture


def _draw_ranks(ended: Any, options: dict[str, Any]) -> Any:
    """What a run of ranks recorded; of one that failed the deadlock, or the error above that."""
    if isinstance(ended, RankError):
        if ended.waiting:
            return draw_deadlock(ended, **options)
        if ended.failures and ended.failures[0].type_name == "NotImplementedError":
            print(f"{ended.failures[0].frames[-1][2]}: not written yet")
            return None
        print(ended)
    else:
        lines = [f"rank {rank}: {result!r}"[:200] for rank, result in enumerate(ended.results)]
        n_more = len(lines) - MOST_RESULTS
        print("\n".join(lines[:MOST_RESULTS]) + (f"\nand {n_more} more" if n_more > 0 else ""))
    if ended.timeline is not None:
        return draw_timeline(ended.timeline, **options)
    return None  # real ranks record no times of messages


def _draw_answer(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """What a function gives: its schedule, timeline or run drawn, or its value."""
    options: dict[str, Any] = {}
    options |= {name: kwargs.pop(name) for name in ("costs", "shade", "title") if name in kwargs}
    try:
        answer = function(*args, **kwargs)
    except (ValueError, RankError) as error:  # of what cannot run, but can be drawn
        if not _is_drawn_alone(error):
            raise
        answer = error
    if _is_drawn_alone(answer):
        return _draw_alone(answer, options)
    if _is_schedule(answer):
        names = ("n_stages", "n_microbatches", "n_chunks")
        asked: dict[str, Any] = {
            n: int(arg) for n, arg in zip(names, args, strict=False) if isinstance(arg, Integral)
        }
        n_chunks = asked.pop("n_chunks", 1)  # stages of each rank
        if "n_stages" in asked:
            asked["n_stages"] *= n_chunks
        if getattr(function, "__module__", "").startswith("mpedu.families"):
            asked = {}  # nothing of the package's own schedules is missing
        return draw_schedule(answer, **options, **asked)
    print(f"{function.__name__}: {answer!r}"[:2000])
    return None


def _is_schedule(answer: Any) -> bool:
    """Whether an answer is meant as a schedule: nothing but what looks like actions is in it."""
    if not isinstance(answer, list):
        return False
    entries = [e for rank in answer for e in (rank if isinstance(rank, list) else [rank])]
    return all(isinstance(entry, tuple) and len(entry) == len(Action._fields) for entry in entries)
