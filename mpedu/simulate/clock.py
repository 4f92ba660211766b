"""The model clock: every rank runs its list, each action as soon as it can."""

from mpedu.schedule import Action, Schedule, all_needs, run_order, stage_to_rank
from mpedu.simulate.costs import Costs, Seconds
from mpedu.simulate.replay import replay
from mpedu.simulate.timeline import Span, Timeline
from mpedu.validate import validate_schedule


def simulate(schedule: Schedule, costs: Costs | None = None) -> Timeline:
    """The timeline of a legal schedule: every rank runs its list, each action as soon as it can.

    ValueError with the first fault's sentence when the schedule is not legal.
    """
    spans = replay(schedule, costs or Costs())
    if spans is not None:
        return Timeline(spans, len(schedule))
    faults = validate_schedule(schedule)
    if faults:
        raise ValueError(faults[0].text)
    return simulate_until_stuck(schedule, costs)  # indices that are no plain int


def simulate_until_stuck(schedule: Schedule, costs: Costs | None = None) -> Timeline:
    """The timeline of what runs before nothing can go on; all of it when the schedule is legal."""
    costs = Costs() if costs is None else costs
    n_stages = 1 + max((a.stage for actions in schedule for a in actions), default=0)
    waits = all_needs(schedule, n_stages)
    owner = stage_to_rank(schedule)
    from_others = {
        action: [need for need in needs if owner.get(need.stage) != owner[action.stage]]
        for action, needs in waits.items()
    }
    sent_on = {need for needs in from_others.values() for need in needs}
    order, _ = run_order(schedule, waits)
    arrives_s: dict[Action, Seconds] = {}
    free_s: list[Seconds] = [0] * len(schedule)
    link_s: list[Seconds] = [0] * len(schedule)
    spans = []
    for rank, action in order:
        start_s = max([free_s[rank], *(arrives_s[need] for need in from_others[action])])
        end_s = start_s + costs.of(action)
        spans.append(Span(rank, *action, start_s, end_s))
        free_s[rank] = end_s
        if action in sent_on:
            sent = costs.sent(end_s, link_s[rank], action.stage)
            free_s[rank], link_s[rank], arrives_s[action] = sent
    return Timeline(spans, len(schedule))
