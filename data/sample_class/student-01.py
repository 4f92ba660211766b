# ruff: noqa

# %% solution-gpipe
def gpipe(n_stages, n_microbatches):
    if n_stages < 1 or n_microbatches < 1:
        raise ValueError(
            f"got n_stages={n_stages}, n_microbatches={n_microbatches}; both need >= 1"
        )
    schedule = []
    for stage in range(n_stages):
        forwards = [Action("F", stage, m) for m in range(n_microbatches)]
        backwards = [Action("B", stage, m) for m in range(n_microbatches)]
        schedule.append(forwards + backwards)
    return schedule


# %% solution-idle_share
def idle_share(timeline):
    if len(timeline.spans) == 0:
        raise ValueError("no spans")
    start = min(s.start_s for s in timeline.spans)
    end = max(s.end_s for s in timeline.spans)
    busy = sum(s.end_s - s.start_s for s in timeline.spans)
    return 1 - busy / (timeline.n_ranks * (end - start))


# %% solution-bubble
def bubble_fraction(n_stages, n_microbatches):
    return (n_stages - 1) / (n_microbatches + n_stages - 1)


def bubble_over_ideal(n_stages, n_microbatches):
    return (n_stages - 1) / n_microbatches


# %% solution-min_microbatches
def min_microbatches(n_stages, largest_share):
    if not 0 < largest_share < 1:
        raise ValueError(f"largest_share={largest_share} must lie between 0 and 1")
    exact = (n_stages - 1) * (1 - largest_share) / largest_share
    n = max(1, int(exact) - 1)
    while bubble_fraction(n_stages, n) > largest_share + 1e-12:
        n += 1
    return n


# %% solution-step_time
def step_time_s(n_stages, n_microbatches, n_samples, sample_s, overhead_s):
    forward = overhead_s + n_samples / n_microbatches * sample_s
    return (n_microbatches + n_stages - 1) * 3 * forward


# %% solution-best_microbatches
def best_microbatches(n_stages, n_samples, sample_s, overhead_s):
    best, least = 1, step_time_s(n_stages, 1, n_samples, sample_s, overhead_s)
    for m in range(2, n_samples + 1):
        time = step_time_s(n_stages, m, n_samples, sample_s, overhead_s)
        if time < least * (1 - 1e-9):
            best, least = m, time
    return best


# %% solution-split_batch
def split_batch(n_samples, n_microbatches):
    if not 1 <= n_microbatches <= n_samples:
        raise ValueError(f"{n_samples} samples do not fill {n_microbatches} micro-batches")
    base, extra = divmod(n_samples, n_microbatches)
    sizes = [base + 1] * extra + [base] * (n_microbatches - extra)
    return [(size, size / n_samples) for size in sizes]


# %% solution-cause
def backwards(actions):
    return [action.microbatch for action in actions if action.kind == "B"]


def cause(run):
    m, n = len(run.sizes), sum(run.sizes)
    shares = [size / n for size in run.sizes]
    last = backwards(run.schedule[0])[-1]
    if any(backwards(actions) != backwards(run.schedule[0]) for actions in run.schedule):
        return "order_differs"
    if np.allclose(run.gradient_ratios, shares):
        if np.allclose(run.losses, run.serial_losses):
            return "none"
        return "gradients_not_cleared"
    if np.allclose(run.gradient_ratios, [1] * m):
        return "loss_not_divided"
    if np.allclose(run.gradient_ratios, [share / m for share in shares]):
        return "divided_twice"
    if np.allclose(run.gradient_ratios, [shares[i] if i == last else 0 for i in range(m)]):
        return "only_last_microbatch"
    return "equal_weights"
