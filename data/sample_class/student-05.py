# ruff: noqa

# %% solution-bubble
def bubble_fraction(n_stages, n_microbatches):
    return (n_stages - 1) / n_microbatches


def bubble_over_ideal(n_stages, n_microbatches):
    return (n_stages - 1) / n_microbatches
