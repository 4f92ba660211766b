"""What the tests that all units share must know of a unit, and cannot find out."""

import re
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Facts:
    """Of one unit.

    least_mistakes: how many mistakes its bank must hold for an exercise, each with its own cause.
    of_one_answer: causes that are told without a look at the other answers.
    never_first: causes that are told only after another one.
    of_one_case: causes that one wrong answer can explain alone.
    formulas: what in a general sentence holds a digit and shows nothing of a case.
    same_cases: exercises that draw nothing.
    """

    least_mistakes: dict[str, int]
    of_one_answer: set[str] = field(default_factory=set)
    never_first: set[str] = field(default_factory=set)
    of_one_case: set[str] = field(default_factory=set)
    formulas: re.Pattern[str] = re.compile(r"(?!)")
    same_cases: tuple[str, ...] = ()


FACTS = {
    "00": Facts(
        {
            "hello": 4,
            "ring_pass": 8,
            "fix_deadlock": 5,
            "fix_deadlock_fast": 5,
            "blame": 10,
        },
        same_cases=("hello",),  # no arguments, and eight numbers of ranks
    ),
    "01": Facts(
        {
            "ring_all_gather": 9,
            "ring_reduce_scatter": 10,
            "ring_all_reduce": 8,
            "ring_all_reduce_fast": 3,
            "cost_s": 14,
            "tree_broadcast": 3,
            "sum_cause": 7,
        },
        # Whoever takes the time of rank 0 sends its bytes, too.
        never_first={"through_rank_0_clock"},
        # Where a mistake shows in one case only, that one is all there is to explain.
        of_one_case={"alone_it_pays", "uneven_taken_for_slow"},
        formulas=re.compile(r"2?\(p-1\)(?:/p)? ?n?|p-1|n mod p"),
    ),
    "02": Facts(
        {
            "naive": 8,
            "naive_busy": 3,
            "utilisation": 12,
            "boundary_bytes": 8,
            "memory_bill": 25,
            "bill_cause": 7,
        },
        of_one_answer={"activation_order", "overlaps", "holds_more", "form", "unknown_name"},
        formulas=re.compile(r"K-1|float32|\b(2|4|12|16|34|1)\b"),
    ),
    "03": Facts(
        {
            "gpipe": 9,
            "idle_share": 6,
            "bubble": 9,
            "step_time": 6,
            "split_batch": 5,
            "cause": 8,
        },
        of_one_answer={"gradient_order", "activation_order", "empty_piece", "unknown_name"},
        # One bound missed among those met exactly is what a bare ceil does too.
        of_one_case={"float_noise"},
        formulas=re.compile(r"K-1|4K|K=1 must give 0|1e-12|1/M"),
    ),
    "04": Facts(
        {
            "backward_with_checkpoints": 5,
            "backward_memory": 10,
            "best_segment_length": 7,
            "recompute_forwards": 8,
            "gpipe_peak_activation": 15,
            "memory_cause": 8,
        },
        of_one_answer={
            *("no_work", "again", "unfinished", "wrong_x", "wrong_y", "wrong_gradient"),
            *("more_forwards", "holds_more", "name_left", "other_segments", "unknown_name"),
        },
    ),
    "07": Facts(
        {
            "stage_forward": 5,
            "stage_backward": 6,
            "run_actions": 14,
            "run_actions_fast": 8,
            "minibatch_steps": 16,
            "engine_cause": 8,
        },
        # An instruction list is wrong or right by itself.
        of_one_answer={
            *("form", "missing_step", "wrong_end", "extra_step", "step_twice", "too_late"),
            *("sent_too_early", "forward_order", "forwards_not_first", "not_reversed"),
            *("never_reduced", "reduced_each_time", "reduced_too_early", "zero_grad_times"),
            *("step_times", "zero_grad_place", "step_place", "unknown_name"),
            "of_no_microbatch",
        },
    ),
    "05": Facts(
        {
            "in_flight": 8,
            "one_f_one_b": 12,
            "one_f_one_b_lean": 4,
            "one_f_one_b_peak": 8,
            "ready": 11,
            "can_finish": 6,
            "extra_time_of_latency_s": 5,
        },
        of_one_answer={"gradient_order", "not_in_turns", "holds_more", "holds_fewer"},
        formulas=re.compile(r"1F1B"),
    ),
    "06": Facts(
        {
            "chunk_layers": 8,
            "interleaved_1f1b": 6,
            "interleaved_1f1b_fast": 3,
            "bubble_interleaved": 9,
            "delay_weight_gradients": 2,
            "delay_weight_gradients_fast": 3,
            "zero_bubble_h1": 2,
            "timeline_cause": 7,
        },
        of_one_answer={
            *("holds_more", "weights_early", "order_changed"),
            *("held_till_i", "held_till_w", "unknown_name"),
        },
        formulas=re.compile(r"interleaved_1f1b|zero_bubble_h1|1F1B|H1|K-1"),
    ),
}
