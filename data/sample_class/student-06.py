# ruff: noqa

# %% solution-step_time
def step_time_s(n_stages, n_microbatches, n_samples, sample_s, overhead_s):
    forward = n_samples / n_microbatches * sample_s
    return (n_microbatches + n_stages - 1) * 3 * forward + 3 * overhead_s
