"""The hints and guesses of unit 07: idea, neighbouring case, skeleton with blanks."""

from autograder.checks.causes import LETTERS
from autograder.checks.unit_07.cases import one_f_one_b
from autograder.checks.unit_07.sealed_runs import right_gradients
from autograder.exercise import Guess
from mpedu.schedule import peak_in_flight

N_MICROBATCHES, N_SAMPLES = 8, 16


def _messages() -> float:
    """Of one step: activations over each boundary, and gradients back."""
    n_stages, n_microbatches = 3, 7
    lists = one_f_one_b(n_stages, n_microbatches)
    forwards = sum(a.kind == "F" and a.stage < n_stages - 1 for acts in lists for a in acts)
    backwards = sum(a.kind == "B" and a.stage > 0 for acts in lists for a in acts)
    return forwards + backwards


GUESSES = (
    Guess(
        "messages-a-step",
        "3 ranks, 7 micro-batches, one step: how many messages travel?",
        _messages,
        least=0,
        most=10_000,
        whole=True,
    ),
    Guess(
        "times-too-large",
        "16 samples in 8 micro-batches; the losses of all samples are added up, and no one "
        "divides. How many times too large is the gradient?",
        lambda: float(N_SAMPLES),
        least=0,
        most=10_000,
    ),
    Guess(
        "most-kept",
        "1F1B, 6 ranks, 8 micro-batches: for how many micro-batches does rank 2 keep something "
        "at a time?",
        lambda: float(peak_in_flight(one_f_one_b(6, N_MICROBATCHES))[2]),
        least=0,
        most=N_MICROBATCHES,
        whole=True,
    ),
    Guess(
        "sealed-right-gradients",
        "Four engines, a fault in each. In how many of them is every gradient right?",
        right_gradients,
        least=0,
        most=len(LETTERS),
        whole=True,
    ),
)

_FORWARD = (
    "Idea: three steps. Where does x come from: given, or a message of the rank before? What does "
    "the stage make of it? Who needs y, and is there such a rank?",
    "Neighbouring case: two ranks. Rank 0 has x, calls its stage and starts a send of y to rank 1. "
    "Rank 1 has None; it receives, calls its stage, and sends nothing. A rank alone does neither.",
    "Skeleton:\n"
    "    if comm.rank > 0:\n"
    "        x = comm.recv(...)\n"
    "    y, kept = stage.forward(...)\n"
    "    if comm.rank < ...:\n"
    "        sent.append(comm.isend(..., comm.rank + 1))\n"
    "    return ...",
)
_BACKWARD = (
    "Idea: the forward in the mirror. The gradient comes from the rank after, unless this is the "
    "last one, which was given it. What goes to the rank before is the gradient for x.",
    "Neighbouring case: two ranks. Rank 1 was given a gradient, calls its stage and starts a send "
    "of the gradient for x to rank 0. Rank 0 receives it: for rank 0 it is the gradient for y.",
    "Skeleton:\n"
    "    if comm.rank < ...:\n"
    "        gradient = comm.recv(...)\n"
    "    x_gradient = stage.backward(kept, ...)\n"
    "    if comm.rank > ...:\n"
    "        sent.append(comm.isend(..., ...))\n"
    "    return ...",
)
_RUN = (
    "Idea: one loop over the list, F or B. Between the two of a micro-batch something must be "
    "kept, and on the last rank the gradient of the loss as well: a dict by micro-batch holds "
    "both. Before the loop the old gradient is cleared; after it all sends are waited for.",
    "Neighbouring case: one rank, F of 0, F of 1, B of 1, B of 0. After both forwards two entries "
    "are kept; the first backward takes the entry of 1, the second that of 0. With a single "
    "variable both would use that of 1.",
    "Skeleton of the loop:\n"
    "    for kind, _, m in actions:\n"
    '        if kind == "F":\n'
    "            y, kept = stage_forward(comm, stage, inputs[m] if ... else None, sent)\n"
    "            gradient = None\n"
    "            if comm.rank == ...:\n"
    "                loss, gradient = stage.loss(y, targets[m])\n"
    "                total, gradient = total + loss, gradient / ...\n"
    "            held[m] = kept, gradient\n"
    "        else:\n"
    "            stage_backward(comm, stage, *held.pop(...), sent)",
)
_FAST = (
    "Idea: a message is all the waiting that a list needs. No barrier, no waiting for sends in the "
    "middle, no work twice.",
    "Neighbouring case: two ranks, GPipe, three pieces. Rank 0 runs its three forwards without a "
    "pause while rank 1 is busy with the first.",
    "Skeleton: `show(run_ranks, run_list, ..., machine=clock)` draws your run; "
    "`show(lists, Costs(latency_s=0.5))` the list, with messages as slow as on that clock. "
    "In which row does a box start later, and what does the code do just before it?",
)
_STEPS = (
    "Idea: two loops, the second one in reverse. In each: get what is needed, work, pass on what "
    "came out. The ends of the pipeline load instead of receiving, and pass nothing on.",
    "Neighbouring case: one stage, one micro-batch: zero_grad, load_input, forward, load_target, "
    "backward_all_reduce, step. What changes if there is a stage before it?",
    "Skeleton:\n"
    '    yield "zero_grad", None\n'
    "    for m in range(n_microbatches):\n"
    '        yield "load_input" if stage == 0 else "...", m\n'
    '        yield "forward", m\n'
    "        if stage < ...:\n"
    '            yield "send_activations", m\n'
    "    for m in reversed(...):\n"
    '        yield "load_target" if stage == ... else "...", m\n'
    '        yield "backward_all_reduce" if m == ... else "backward", m\n'
    "        ...\n"
    '    yield "step", None',
)
_CAUSE = (
    "Idea: four kinds of evidence, in this order. Is the record the list? Is anything across in "
    "the gradients? Are the ratios the shares? Does each rank keep what its list needs?",
    "Neighbouring case: two replicas, three micro-batches of one size, GPipe. A ratio should be a "
    "third. Ratios of 4/3, 2/3 and 1/3 in the order of the backwards: the first was summed three "
    "times instead of once, and so doubled twice.",
    "Skeleton:\n"
    '    if run.record != run.schedule: return "..."\n'
    "    as_listed = list(run.held) == peak_in_flight(run.schedule)\n"
    "    if max(run.across) > ...:\n"
    '        return "own_gradient" if as_listed else "..."\n'
    "    shares = np.array(run.sizes) / sum(run.sizes)\n"
    "    if np.allclose(run.ratios, ...):\n"
    '        return "none" if ... else "never_freed"\n'
    '    if np.allclose(run.ratios, ...): return "not_divided"\n'
    '    return "overwritten" if np.min(run.ratios) < ... else "..."',
)
HINTS = {
    "stage_forward": _FORWARD,
    "stage_backward": _BACKWARD,
    "run_actions": _RUN,
    "run_actions_fast": _FAST,
    "minibatch_steps": _STEPS,
    "engine_cause": _CAUSE,
}
