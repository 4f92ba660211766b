import pytest

from autograder.seeds import PUBLIC_SECRET, case_seed

SECRET = bytes(range(32))


def test_a_seed_depends_on_each_of_its_parts_and_on_nothing_else():
    seeds = {
        case_seed(SECRET, "03", "gpipe"),
        case_seed(SECRET, "03", "gpipe", 1),
        case_seed(SECRET, "03", "bubble"),
        case_seed(SECRET, "04", "gpipe"),
        case_seed(PUBLIC_SECRET, "03", "gpipe"),
    }
    assert len(seeds) == 5
    assert case_seed(SECRET, "03", "gpipe") == case_seed(bytes(range(32)), "03", "gpipe", 0)


def test_names_do_not_run_into_each_other():
    assert case_seed(SECRET, "03", "a") != case_seed(SECRET, "03a", "")


def test_a_short_secret_is_refused():
    with pytest.raises(ValueError, match="has 15 bytes"):
        case_seed(bytes(15), "03", "gpipe")
