# ruff: noqa

# %% solution-split_batch
def split_batch(n_samples, n_microbatches):
    sizes = [n_samples // n_microbatches] * n_microbatches
    while sum(sizes) < n_samples:
        sizes[-1] + 1  # nothing is stored
    return [(size, size / n_samples) for size in sizes]
