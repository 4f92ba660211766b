# ruff: noqa

# %% solution-step_time

# %% solution-best_microbatches

# %% solution-split_batch

# %% solution-cause
