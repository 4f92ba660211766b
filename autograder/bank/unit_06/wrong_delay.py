"""Wrong answers to unit 06's `delay_weight_gradients`, one mistake an entry."""

from textwrap import indent

from autograder.bank import Answer


def _delay(id: str, legal: tuple[int, str], fast: tuple[int, str], body: str) -> Answer:
    source = f"def delay_weight_gradients(schedule):\n{indent(body.strip(), '    ')}\n"
    return Answer(
        f"delay_{id}",
        source,
        {"delay_weight_gradients": legal, "delay_weight_gradients_fast": fast},
    )


def _lagging(due: str, last: str = "waiting", kinds: str = "IW", keep: str = "") -> str:
    """A W leaves the queue once it is longer than `due`."""
    return f"""
made = []
for rank, actions in enumerate(schedule):
    halves, waiting = [], []
    for action in actions:
        if action.kind == "F":
            halves.append(action)
            continue
        halves.append(action._replace(kind="{kinds[0]}"))
        waiting.append(action._replace(kind="{kinds[1]}"))
        if len(waiting) > {due}:
            halves.append(waiting.pop(0))
    {keep or f"made.append(halves + {last})"}
return made"""


DELAYS = (
    _delay("at_once", (3, ""), (0, "at_once"), _lagging("0")),
    _delay("one_later", (3, ""), (0, "one_later"), _lagging("1")),
    _delay("weights_last", (3, ""), (0, "weights_last"), _lagging("10 ** 9")),
    _delay("by_distance_to_the_end", (3, ""), (0, "slow"), _lagging("len(schedule) - 1 - rank")),
    _delay("undivided", (0, "wrong_kind"), (0, "illegal"), "return schedule"),
    _delay(
        "weights_early",
        (0, "weights_early"),
        (0, "illegal"),
        _lagging("0", kinds="WI"),
    ),
    _delay("weights_lost", (0, "missing"), (0, "illegal"), _lagging("rank", last="[]")),
    _delay(
        "inputs_alone",
        (0, "missing"),
        (0, "illegal"),
        'return [[a._replace(kind="I") if a.kind == "B" else a for a in r] for r in schedule]',
    ),
    _delay(
        "whole_and_halves",
        (0, "wrong_kind"),
        (0, "illegal"),
        """
made = []
for actions in schedule:
    backwards = [a for a in actions if a.kind == "B"]
    made.append(actions + [a._replace(kind="W") for a in backwards])
return made""",
    ),
    _delay(
        "on_the_next_rank",
        (0, "wrong_stage"),
        (0, "illegal"),
        f"""
{
            _lagging("10 ** 9", last="[]")
            .replace("made = []", "made, moved = [], []")
            .replace("made.append(halves + [])", "made.append(halves); moved.append(waiting)")
            .replace("return made", "")
        }
if len(made) == 1:
    return [made[0] + moved[0]]
return [halves + moved[rank - 1] for rank, halves in enumerate(made)]""",
    ),
    _delay(
        "inputs_late_too",
        (0, "cycle"),
        (0, "order_changed"),
        """
made = []
for actions in schedule:
    forwards = [a for a in actions if a.kind == "F"]
    backwards = [a for a in actions if a.kind == "B"][::-1]
    made.append(forwards + [a._replace(kind=kind) for kind in "IW" for a in backwards])
return made""",
    ),
    _delay(
        "forwards_first",
        (2, "order_changed"),
        (0, "order_changed"),
        """
made = []
for actions in schedule:
    forwards = [a for a in actions if a.kind == "F"]
    backwards = [a for a in actions if a.kind == "B"]
    made.append(forwards + [a._replace(kind=kind) for kind in "IW" for a in backwards])
return made""",
    ),
    _delay(
        "sorted_by_piece",
        (2, "order_changed"),
        (0, "order_changed"),
        """
made = []
for actions in schedule:
    halves = [a._replace(kind="I") if a.kind == "B" else a for a in actions]
    halves += [a._replace(kind="W") for a in actions if a.kind == "B"]
    made.append(sorted(halves, key=lambda a: (a.microbatch, "FIW".index(a.kind))))
return made""",
    ),
    _delay(
        "twice",
        (0, "repeated"),
        (0, "illegal"),
        _lagging("rank", last="waiting + waiting"),
    ),
    _delay(
        "one_rank",
        (0, "n_lists"),
        (0, "illegal"),
        f"{_lagging('rank').replace('return made', '')}\nreturn made[0]",
    ),
    _delay("nothing_returned", (0, "not_a_schedule"), (0, "illegal"), "schedule.copy()"),
    _delay(
        "last_rank_alone",
        (3, ""),
        (0, "slow"),
        _lagging("(rank if rank == len(schedule) - 1 else 0)"),
    ),
)
