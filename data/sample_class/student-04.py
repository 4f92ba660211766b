# ruff: noqa

# %% solution-gpipe
def gpipe(n_stages, n_microbatches):
    if n_stages < 1 or n_microbatches < 1:
        raise ValueError(
            f"got n_stages={n_stages}, n_microbatches={n_microbatches}; both need >= 1"
        )
    return [[Action("F", stage, 0), Action("B", stage, 0)] for stage in range(n_stages)]
