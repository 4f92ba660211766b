from judged import Asked, run_check

from autograder.exercise import find_exercise


def test_programs_are_asked_on_one_to_eight_ranks():
    for exercise_id in ("hello", "ring_pass", "fix_deadlock"):
        sizes = set()
        for number in range(20):
            subject = Asked("00")
            run_check(find_exercise(exercise_id), subject, secret=True, seed=bytes([number]) * 16)
            sizes |= {n_ranks for _, (_, n_ranks, *_) in subject.calls}
        assert sizes == set(range(1, 9))
