"""The hints and guesses of unit 05: idea, neighbouring case, skeleton with blanks."""

from autograder import oracle, oracle_05
from autograder.checks.unit_05.sealed_runs import n_that_train
from autograder.exercise import Guess

GUESSES = (
    Guess(
        "held-1f1b",
        "Four stages, 8 micro-batches. The last stage takes turns from the start, each one before "
        "it first runs one forward more ahead: how many micro-batches does stage 0 hold at most?",
        lambda: oracle_05.peak(4, 8, 0),
        least=0,
        most=100,
        whole=True,
    ),
    Guess(
        "makespan-1f1b",
        "A forward takes 1 second, a backward 2, and GPipe takes 33 seconds for 8 micro-batches on "
        "four stages. How many seconds does 1F1B take?",
        lambda: float(oracle.least_makespan_s(4, 8)),
        least=0,
        most=1000,
    ),
    Guess(
        "sealed-train",
        "Four lists, a fault in each. In how many of them is all work done, so that the gradients "
        "are right all the same?",
        n_that_train,
        least=0,
        most=4,
        whole=True,
    ),
    Guess(
        "latency-1f1b",
        "Now every message arrives half a second late. GPipe then takes 36 seconds. And 1F1B?",
        lambda: float(33 + oracle_05.extra_time_of_latency_s(4, 8, 0.5)),
        least=0,
        most=1000,
    ),
)

_IN_FLIGHT = (
    "Idea: go through the list once with a counter. A forward leaves activations behind, a "
    "backward takes them away. Write the counter down after each action.",
    "Neighbouring case: F0 F1 F2 B0 B1 B2 gives 1, 2, 3, 2, 1, 0. Which micro-batch it is makes no "
    "difference, only whether the action is a forward or a backward.",
    "Skeleton:\n"
    "    held, numbers = 0, []\n"
    "    for action in actions:\n"
    '        held += ... if action.kind == "F" else ...\n'
    "        numbers.append(...)\n"
    "    return numbers",
)
_ONE_F_ONE_B = (
    "Idea: three phases. A warm-up of forwards, as many as keep the last stage busy, and no more "
    "even if another could run. Then turns: a forward, and the backward of the oldest micro-batch "
    "still held. At the end the backwards that are left. The nearer a stage is to the end, the "
    "shorter its warm-up.",
    "Neighbouring case: three stages, four micro-batches. Stage 2 has no warm-up: F0 B0 F1 B1 F2 "
    "B2 F3 B3. Stage 1 has a warm-up of one: F0, then F1 B0 F2 B1 F3 B2, then B3. And stage 0? "
    "With two micro-batches in place of four: where must its warm-up end?",
    "Skeleton:\n"
    '    if n_stages < 1: raise ValueError(f"n_stages={n_stages} ...")\n'
    "    ...  # the same for n_microbatches\n"
    "    schedule = []\n"
    "    for stage in range(n_stages):\n"
    "        warm_up = min(..., ...)\n"
    '        actions = [Action("F", stage, m) for m in range(warm_up)]\n'
    "        for m in range(warm_up, n_microbatches):\n"
    "            actions += [..., ...]  # a forward, and which backward?\n"
    "        actions += [... for m in range(..., n_microbatches)]\n"
    "        schedule.append(actions)\n"
    "    return schedule",
)
_ONE_F_ONE_B_LEAN = (
    "Idea: count what each stage holds, by your in_flight. The last stage needs to hold one "
    "micro-batch, the one before it two. Who holds more begins its turns too late, who holds "
    "fewer too early.",
    "Neighbouring case: two stages, four micro-batches, costs 1 and 2. F0 F1 B0 F2 B1 F3 B2 B3 on "
    "stage 0 and F0 B0 F1 B1 F2 B2 F3 B3 on stage 1: at most 2 and 1 are held, in 15 seconds, "
    "as long as GPipe takes. With F0 B0 F1 B1 .. on both it takes 24.",
    "Skeleton: for stage in range(4), print(max(in_flight(one_f_one_b(4, 8)[stage]))) must give "
    "..., ..., ..., ... . One more everywhere: shorten the ... by one. Ones everywhere: there is "
    "no ... at all.",
)
_ONE_F_ONE_B_PEAK = (
    "Idea: in the turns the last stage takes up a micro-batch each time it is done with one. How "
    "many such times does a micro-batch need from its forward on a stage to the end of its "
    "backward there? Count the stages that it passes, this one included.",
    "Neighbouring case: stage 1 of 3. A micro-batch passes stages 1 and 2, and back, and in that "
    "time the last stage takes up another: it holds 2. Stage 2 holds 1. With a single micro-batch "
    "all stages hold 1.",
    "Skeleton:\n"
    '    if not 0 <= stage < ...: raise ValueError(f"stage={stage} ...")\n'
    "    return min(..., ... - stage)",
)
_READY = (
    "Idea: ask what an action takes in. A forward takes the activations of the stage before. A "
    "backward takes a gradient and what its own forward left behind. Who has neither a stage "
    "before nor one after?",
    "Neighbouring case: three stages, micro-batch 5. F on stage 1 needs F of 5 on stage 0. B on "
    "stage 1 needs B of 5 on stage 2. B on stage 2, the last one, needs F of 5 on stage 2.",
    "Skeleton:\n"
    "    kind, stage, m = action\n"
    '    if kind == "F":\n'
    '        return stage == ... or Action("F", ..., m) in done\n'
    '    if Action("F", ..., m) not in done:\n'
    "        return False\n"
    "    return stage == ... or Action(...) in done",
)
_CAN_FINISH = (
    "Idea: when nothing moves any more, two questions are left. Did every list come to its end? "
    "And was the work that they held all the work there is, each piece once?",
    "Neighbouring case: one stage, two micro-batches, the list F0 B0. It comes to its end, and F1 "
    "and B1 are missing. The list F0 F1 B0 B1 B1 comes to its end too, and does B1 twice, which a "
    "set does not show: it holds four actions, the list five.",
    "Skeleton:\n"
    '    required = {Action(kind, stage, m) for kind in "FB" for stage in ... for m in ...}\n'
    "    all_ended = all(at[stage] == len(...) for stage, ... in enumerate(schedule))\n"
    "    return all_ended and done == ... and sum(map(len, schedule)) == ...",
)
_EXTRA = (
    "Idea: measure first. Simulate your schedule with and without latency for K = 2 and M = 2, 4, "
    "6, 8, then for K = 4. How does the difference grow with M, and what is left at M = K?",
    "Neighbouring case: K = 2 adds c for each micro-batch: 2 seconds at M = 2 and c = 1, 4 at "
    "M = 4. K = 3 adds 6 seconds at M = 3 and 10 at M = 6.",
    "Skeleton:\n"
    "    round_trips = 2 * (n_stages - ...) * n_microbatches / ...\n"
    "    return latency_s * (round_trips + ...)  # the rest depends on n_stages alone",
)
HINTS = {
    "in_flight": _IN_FLIGHT,
    "one_f_one_b": _ONE_F_ONE_B,
    "one_f_one_b_lean": _ONE_F_ONE_B_LEAN,
    "one_f_one_b_peak": _ONE_F_ONE_B_PEAK,
    "ready": _READY,
    "can_finish": _CAN_FINISH,
    "extra_time_of_latency_s": _EXTRA,
}
