"""Calls of `run_ranks` that are to fail."""

import pytest

from mpedu.launch import RankError, run_ranks


def caught(program, n_ranks=2, **limits):
    """The error of a run that fails; and after every failure the next call works."""
    with pytest.raises(RankError) as error:
        run_ranks(program, n_ranks, **limits)
    assert run_ranks(lambda comm: comm.rank, 2).results == [0, 1]
    return error.value
