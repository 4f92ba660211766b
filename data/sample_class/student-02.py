# ruff: noqa

# %% helpers
def _at_least_one(**counts):
    for name, count in counts.items():
        if count < 1:
            raise ValueError(f"{name} = {count}, expected 1 or more")


# %% solution-gpipe
def gpipe(n_stages, n_microbatches):
    _at_least_one(n_stages=n_stages, n_microbatches=n_microbatches)
    order = list(range(n_microbatches))
    return [
        [Action("F", k, m) for m in order] + [Action("B", k, m) for m in reversed(order)]
        for k in range(n_stages)
    ]


# %% solution-idle_share
def idle_share(timeline):
    spans = np.array([(s.start_s, s.end_s) for s in timeline.spans], dtype=float)
    if spans.size == 0:
        raise ValueError("an empty timeline has no idle share")
    makespan = spans[:, 1].max() - spans[:, 0].min()
    return 1.0 - np.diff(spans).sum() / (timeline.n_ranks * makespan)


# %% solution-bubble
def bubble_fraction(n_stages, n_microbatches):
    ratio = bubble_over_ideal(n_stages, n_microbatches)
    return ratio / (1 + ratio)


def bubble_over_ideal(n_stages, n_microbatches):
    return (n_stages - 1) / n_microbatches


# %% solution-min_microbatches
def min_microbatches(n_stages, largest_share):
    if not (largest_share > 0 and largest_share < 1):
        raise ValueError(f"a share of {largest_share} cannot be asked for")
    low, high = 1, 1
    while bubble_fraction(n_stages, high) > largest_share + 1e-12:
        high *= 2
    while low < high:
        middle = (low + high) // 2
        if bubble_fraction(n_stages, middle) <= largest_share + 1e-12:
            high = middle
        else:
            low = middle + 1
    return low


# %% solution-step_time
def step_time_s(n_stages, n_microbatches, n_samples, sample_s, overhead_s):
    samples = n_samples / n_microbatches
    forward, backward = overhead_s + samples * sample_s, 2 * (overhead_s + samples * sample_s)
    n_slots = n_microbatches + n_stages - 1
    return n_slots * forward + n_slots * backward


# %% solution-best_microbatches
def best_microbatches(n_stages, n_samples, sample_s, overhead_s):
    counts = np.arange(1, n_samples + 1)
    times = step_time_s(n_stages, counts, n_samples, sample_s, overhead_s)
    return int(counts[times <= times.min() * (1 + 1e-9)][0])


# %% solution-split_batch
def split_batch(n_samples, n_microbatches):
    _at_least_one(n_microbatches=n_microbatches)
    if n_microbatches > n_samples:
        raise ValueError(f"cannot split {n_samples} into {n_microbatches}")
    sizes = [len(part) for part in np.array_split(np.arange(n_samples), n_microbatches)]
    return [(size, size / n_samples) for size in sizes]


# %% solution-cause
def backwards(actions):
    return [action.microbatch for action in actions if action.kind == "B"]


def cause(run):
    samples = 0
    for size in run.sizes:
        samples += size
    m = len(run.sizes)
    for before, after in zip(run.schedule, run.schedule[1:]):
        if backwards(before) != backwards(after):
            return "order_differs"
    n_zero = 0
    for ratio in run.gradient_ratios:
        if abs(ratio) < 1e-4:
            n_zero += 1
    if n_zero == m - 1:
        return "only_last_microbatch"
    found = set()
    for ratio, size in zip(run.gradient_ratios, run.sizes):
        candidates = {
            "loss_not_divided": 1,
            "healthy": size / samples,
            "divided_twice": size / samples / m,
            "equal_weights": 1 / m,
        }
        matching = {name for name, due in candidates.items() if abs(ratio - due) < 0.01 * due}
        found = matching if not found else found & matching
    if "healthy" not in found:
        return found.pop()
    for loss, serial in zip(run.losses, run.serial_losses):
        if abs(loss - serial) > 1e-8 * serial:
            return "gradients_not_cleared"
    return "none"
