"""The hints and guesses of unit 03: idea, neighbouring case, skeleton with blanks."""

from autograder import oracle
from autograder.checks.unit_03.sealed_runs import same_first_losses
from autograder.exercise import Guess
from mpedu.simulate import simulate_until_stuck

GUESSES = (
    Guess(
        "idle-m8",
        "The same batch in 8 pieces on 4 devices, all forwards first: "
        "which share of device time is idle?",
        lambda: float(oracle.idle_share(simulate_until_stuck(oracle.gpipe(4, 8)))),
        "{:.1%}",
        least=0,
        most=1,
    ),
    Guess(
        "m-for-5-percent",
        "Four stages: how few micro-batches bring the idle share of total time down to 5 %?",
        lambda: oracle.min_microbatches(4, 0.05),
        least=1,
        most=10_000,
        whole=True,
    ),
    Guess(
        "best-m",
        "64 samples on 4 stages, each start as dear as one sample: "
        "which number of micro-batches gives the shortest step?",
        lambda: oracle.best_microbatches(4, 64, 1, 1),
        least=1,
        most=64,
        whole=True,
    ),
    Guess(
        "sealed-first-loss",
        "Four training runs, a fault in each. In how many of them is the loss of the first step "
        "the one of a healthy run?",
        same_first_losses,
        least=0,
        most=4,
        whole=True,
    ),
)

_GPIPE = (
    "Idea: two loops for every stage. The first writes one forward per micro-batch, the second "
    "one backward per micro-batch. A list says order only: waiting is not written down, and each "
    "stage needs a list of its own.",
    "Neighbouring case: one stage, three micro-batches. Its list is F0 F1 F2 B0 B1 B2, as code\n"
    '    [Action("F", 0, m) for m in range(3)] + [Action("B", 0, m) for m in range(3)]\n'
    "What changes for stage 1? Which counts must be refused, and what must the message name?",
    "Skeleton:\n"
    '    if n_stages < ...: raise ValueError(f"n_stages={n_stages} ...")\n'
    "    ...  # the same for n_microbatches\n"
    "    schedule = []\n"
    "    for stage in range(...):\n"
    '        forwards = [Action("F", ..., m) for m in range(...)]\n'
    "        backwards = [...]\n"
    "        schedule.append(... + ...)\n"
    "    return schedule",
)
_GPIPE_FAST = (
    "Idea: the last stage of a good schedule never pauses. Which order of its list lets the "
    "pieces flow through without gaps?",
    "Neighbouring case: two stages, two micro-batches. F0 B0 F1 B1 on both takes 12 seconds at "
    "costs 1 and 2, F0 F1 B0 B1 takes 9. Draw both with `show`: where does the first one wait?",
    "Skeleton: count slots. The last stage starts after ... forwards, works for ... slots, and "
    "then ... backwards are left. Together (... + ... - 1) slots: compare with the makespan of "
    "`show(gpipe, 4, 8)`.",
)
_IDLE_SHARE = (
    "Idea: two areas. The whole: devices times makespan. The work: all boxes added up. The idle "
    "share is what is missing from the second to fill the first, as a share of the first.",
    "Neighbouring case: two devices, boxes 5-6, 6-7, 7-9 and 9-11 s. The clock runs from 5 to "
    "11, so the whole is 2 * 6 = 12 and the work is 6: share 0.5. It makes no difference which "
    "device holds which box, nor in which order the boxes are listed.",
    "Skeleton:\n"
    "    if not timeline.spans: raise ...\n"
    "    busy_s = sum(span.end_s - ... for span in timeline.spans)\n"
    "    makespan_s = max(...) - min(...)\n"
    "    return 1 - busy_s / (timeline.n_ranks * ...)",
)
_BUBBLE = (
    "Idea: count in slots of one forward plus one backward. Each device works M slots and waits "
    "K-1. The makespan is their sum. For the third function turn (K-1)/(M+K-1) <= share round, "
    "or try M = 1, 2, 3, ...",
    "Neighbouring case: K = 2, M = 3. Each device waits 1 slot and works 3. Share of total time "
    "1/4, ratio to ideal time 1/3. Two stages reach a share of 1/4 with M = 3, not before.",
    "Skeleton:\n"
    "    bubble_fraction:   return (...) / (n_microbatches + ...)\n"
    "    bubble_over_ideal: return (...) / ...\n"
    "    min_microbatches:\n"
    "        if not 0 < ... < 1: raise ValueError(...)\n"
    "        n = 1\n"
    "        while bubble_fraction(n_stages, n) > largest_share + ...:\n"
    "            n += 1\n"
    "        return n",
)
_STEP_TIME = (
    "Idea: the makespan of section C, (M + K - 1) slots, where one slot is now a forward with its "
    "overhead plus a backward that takes twice as long as that whole forward.",
    "Neighbouring case: K = 2, M = 2, 8 samples, 1 second per sample, 3 seconds overhead. Pieces "
    "of 4 samples: forward 3 + 4 = 7, backward 14, slot 21, 3 slots: 63 seconds.",
    "Skeleton:\n"
    "    step_time_s:\n"
    "        forward_s = overhead_s + (... / ...) * sample_s\n"
    "        return (... + ... - 1) * (forward_s + ...)\n"
    "    best_microbatches:\n"
    "        times_s = {m: step_time_s(...) for m in range(1, ...)}\n"
    "        least_s = ...\n"
    "        return min(m for m, time_s in times_s.items() if time_s <= least_s * (1 + ...))",
)
_BEST_MICROBATCHES = (
    "Idea: few pieces make a large bubble, many pay the overhead often. No rule of thumb is right "
    "on every machine, but one step costs a formula, and a computer can try every M.",
    "Neighbouring case: 4 samples on 2 stages, 1 second per sample, 1 second overhead. M = 1: 30 "
    "seconds, M = 2: 27, M = 3: 28, M = 4: 30. Best is 2; 4K = 8 is not even possible.",
    "Skeleton:\n"
    "    times_s = {m: step_time_s(n_stages, m, ...) for m in range(1, ... + 1)}\n"
    "    return min(..., key=...)   # then think about equal times",
)
_SPLIT_BATCH = (
    "Idea: every piece gets n_samples // n_microbatches samples, and as many pieces as there are "
    "samples left over get one more. A piece's mean counts as much as its share of the batch.",
    "Neighbouring case: 7 samples in 3 pieces. 7 // 3 = 2 and 7 % 3 = 1, so sizes 3, 2, 2 and "
    "weights 3/7, 2/7, 2/7. The weights add up to 1.",
    "Skeleton:\n"
    '    if not 1 <= n_microbatches <= ...: raise ValueError(f"... {n_samples} ... ")\n'
    "    size, n_larger = divmod(..., ...)\n"
    "    sizes = [size + 1] * ... + [size] * (...)\n"
    "    return [(size, ... / ...) for size in sizes]",
)
_CAUSE = (
    "Idea: ask the evidence one question at a time. Do all stages run their backwards in one "
    "order? With which weight did each micro-batch count, and with which should it have? If all "
    "that is right, do the losses follow the serial ones to the end? The first no is the lead.",
    "Neighbouring case: 5 samples in pieces of 3 and 2. Healthy ratios are 3/5 and 2/5. Nothing "
    "divided: 1 and 1. The mean of the two means: 1/2 and 1/2. Shares, and then divided by 2 as "
    "well: 3/10 and 1/5. And if each backward overwrote the one before: 0 and 2/5, unless the "
    "schedule runs the backward of the second piece first.",
    "Skeleton:\n"
    "    n_samples, m = sum(run.sizes), len(run.sizes)\n"
    "    shares = [size / ... for size in run.sizes]\n"
    "    orders = [[a.microbatch for a in actions if a.kind == ...] for actions in run.schedule]\n"
    "    if any(order != ... for order in orders): return ...\n"
    "    weights = {... : [1.0] * m, ... : [1 / m] * m, ... : [share / ... for share in shares]}\n"
    "    weights[...] = [share if piece == orders[0][...] else 0.0 for ...]\n"
    "    if np.allclose(run.gradient_ratios, ...):\n"
    "        ...  # and the losses?\n"
    "    return next(name for name in weights if np.allclose(..., weights[name]))",
)
HINTS = {
    "gpipe": _GPIPE,
    "gpipe_fast": _GPIPE_FAST,
    "idle_share": _IDLE_SHARE,
    "bubble": _BUBBLE,
    "step_time": _STEP_TIME,
    "best_microbatches": _BEST_MICROBATCHES,
    "split_batch": _SPLIT_BATCH,
    "cause": _CAUSE,
}
