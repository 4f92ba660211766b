"""A right answer to all of unit 06 that recurses, sorts by keys, and replays on a clock."""

REPLAYED = """
from mpedu.families import one_f_one_b
from mpedu.schedule import Action


def chunk_layers(n_layers, n_ranks, n_chunks):
    class TooFew(ValueError):
        pass

    for name, count in {"n_ranks": n_ranks, "n_chunks": n_chunks}.items():
        if count < 1:
            raise TooFew(f"{name}={count}")
    if n_layers < n_ranks * n_chunks:
        raise TooFew(f"n_layers={n_layers}")

    def cut(first, n):
        if not n:
            return []
        last = first + -(-(n_layers - first + 1) // n) - 1
        return [(first, last), *cut(last + 1, n - 1)]

    stages = cut(1, n_ranks * n_chunks)
    return [stages[rank::n_ranks] for rank in range(n_ranks)]


def interleaved_1f1b(n_ranks, n_microbatches, n_chunks):
    # All that is left over goes to the first group. A shorter warm-up; one chunk is plain 1F1B.
    if not (n_ranks > 0 < n_microbatches and n_chunks > 0):
        raise ValueError(f"{n_ranks} ranks, {n_microbatches} pieces, {n_chunks} chunks")
    if n_chunks == 1:
        return one_f_one_b(n_ranks, n_microbatches)
    rest = n_microbatches % n_ranks
    first = n_microbatches if n_microbatches < 2 * n_ranks else n_ranks + rest

    def group(m):
        return 0 if m < first else 1 + (m - first) // n_ranks

    everything = [(c, m) for c in range(n_chunks) for m in range(n_microbatches)]
    ahead = sorted(everything, key=lambda one: (group(one[1]), *one))
    back = sorted(everything, key=lambda one: (group(one[1]), -one[0], one[1]))
    made = []
    for rank in range(n_ranks):
        late = n_ranks - 1 - rank + (n_chunks - 1) * first
        times = [((i, 0), "F", *one) for i, one in enumerate(ahead)]
        times += [((i + late, 1), "B", *one) for i, one in enumerate(back)]
        made.append([Action(kind, c * n_ranks + rank, m) for _, kind, c, m in sorted(times)])
    return made


def bubble_interleaved(n_ranks, n_microbatches, n_chunks):
    waits = (n_ranks - 1) / n_chunks
    return 1 - n_microbatches / (n_microbatches + waits)


def delay_weight_gradients(schedule):
    # When would F and I run if W took no time? Then W goes into the gaps.
    last = max(action.stage for actions in schedule for action in actions)
    start, at, free = {}, [0] * len(schedule), [0] * len(schedule)
    while any(at[rank] < len(actions) for rank, actions in enumerate(schedule)):
        for rank, actions in enumerate(schedule):
            while at[rank] < len(actions):
                kind, stage, m = action = actions[at[rank]]
                alone = stage == (0 if kind == "F" else last)
                need = (kind, stage + (-1 if kind == "F" else 1), m)
                if not alone and need not in start:
                    break
                start[action] = max(free[rank], 0 if alone else start[need] + 1)
                free[rank] = start[action] + 1
                at[rank] += 1
    made = []
    for actions in schedule:
        halves, left, now = [], [], 0
        for kind, stage, m in actions:
            while left and now < start[kind, stage, m]:
                halves.append(left.pop())
                now += 1
            now = start[kind, stage, m] + 1
            halves.append(Action("I" if kind == "B" else "F", stage, m))
            left += [Action("W", stage, m)] * (kind == "B")
        made.append(halves + left)
    return made


def zero_bubble_h1(n_stages, n_microbatches):
    made = []
    for stage, actions in enumerate(one_f_one_b(n_stages, n_microbatches)):
        halves = []
        for kind, _, m in actions:
            halves.append(Action("F" if kind == "F" else "I", stage, m))
            if kind == "B" and m >= stage:
                halves.append(Action("W", stage, m - stage))
        rest = range(max(0, n_microbatches - stage), n_microbatches)
        made.append(halves + [Action("W", stage, m) for m in rest])
    return made


def timeline_cause(timeline):
    boxes = sorted(timeline.spans, key=lambda s: s.start_s)
    if [s for s in boxes if s.rank != s.stage % timeline.n_ranks]:
        return "contiguous_chunks"
    if "".join(s.kind for s in boxes).count("I") > len([s for s in boxes if s.kind == "W"]):
        return "weights_lost"
    took = {}
    for s in boxes:
        took.setdefault(s.kind, s.end_s - s.start_s)
        if took[s.kind] != s.end_s - s.start_s:
            return "slow_rank"
    # The same lists once more, without any message: does every box start when it did?
    end, free = {}, {}
    for s in boxes:
        step = {"F": -1, "I": 1, "W": 0}[s.kind]
        came = end.get((s.kind, s.stage + step, s.microbatch), boxes[0].start_s)
        end[s[1:4]] = free[s.rank] = max(free.get(s.rank, came), came) + took[s.kind]
        if end[s[1:4]] < s.end_s:
            return "slow_link"
    for rank in range(timeline.n_ranks):
        order = "".join(s.kind for s in boxes if s.rank == rank)
        if "I" in order[order.index("W") :]:
            return "none"
    return "weights_last"
"""
