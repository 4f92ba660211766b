"""Wrong answers to unit 07's forward and backward, one mistake an entry."""

from autograder.bank import Answer
from autograder.bank.unit_07.right import BACKWARD, FORWARD, with_part

_Expected = tuple[int, str]


def _forward(id: str, old: str, new: str, expected: _Expected) -> Answer:
    source = with_part("stage_forward", _changed(FORWARD, old, new))
    return Answer(f"forward_{id}", source, {"stage_forward": expected})


def _backward(id: str, old: str, new: str, expected: _Expected) -> Answer:
    source = with_part("stage_backward", _changed(BACKWARD, old, new))
    return Answer(f"backward_{id}", source, {"stage_backward": expected})


def _changed(source: str, old: str, new: str) -> str:
    if old not in source:
        raise ValueError(f"{old!r} is not in it")
    return source.replace(old, new)


_SEND = "sent.append(comm.isend(y, comm.rank + 1))"
_SEND_BACK = "sent.append(comm.isend(x_gradient, comm.rank - 1))"

FORWARDS = (
    _forward("nothing_passed_on", _SEND, "pass", (0, "not_passed_on")),
    _forward("passes_x_on", "isend(y,", "isend(x,", (0, "input_passed_on")),
    _forward("swapped", "return y, kept", "return kept, y", (0, "swapped")),
    _forward("y_kept", "return y, kept", "return y, y", (2, "y_kept")),
    _forward("x_kept", "return y, kept", "return y, x", (2, "x_kept")),
    _forward("y_alone", "return y, kept", "return y", (0, "no_pair")),
    _forward("sends", _SEND, "comm.send(y, comm.rank + 1)", (2, "waits_here")),
    _forward("waits", _SEND, "comm.isend(y, comm.rank + 1).wait()", (2, "waits_here")),
    _forward("not_in_sent", _SEND, "comm.isend(y, comm.rank + 1)", (2, "not_in_sent")),
    _forward("last_sends_too", "if comm.rank < comm.size - 1:", "if True:", (0, "raised")),
    _forward(
        "round_the_ring",
        "    if comm.rank < comm.size - 1:\n        sent.append(comm.isend(y, comm.rank + 1))",
        "    if comm.size > 1:\n        sent.append(comm.isend(y, (comm.rank + 1) % comm.size))",
        (0, "unreceived"),
    ),
    _forward("nothing_taken", "if comm.rank > 0:", "if False:", (0, "raised")),
    _forward(
        "stage_unused", "y, kept = stage.forward(x)", "y, kept = np.tanh(x), x", (0, "other_work")
    ),
    _forward(
        "called_twice",
        "y, kept = stage.forward(x)",
        "y, kept = stage.forward(x)[0], stage.forward(x)[1]",
        (0, "other_work"),
    ),
    _forward("two_messages", _SEND, f"{_SEND}\n        {_SEND}", (0, "unreceived")),
)
BACKWARDS = (
    _backward(
        "ones",
        "x_gradient = stage",
        "gradient = gradient if comm.rank == comm.size - 1 else np.ones_like(gradient)\n"
        "    x_gradient = stage",
        (0, "ones"),
    ),
    _backward("gradient_passed_on", "isend(x_grad", "isend(grad", (0, "same_gradient_passed_on")),
    _backward("gradient_returned", "return x_grad", "return grad", (0, "received_returned")),
    _backward("nothing_passed_back", _SEND_BACK, "pass", (0, "gradient_not_passed_on")),
    _backward(
        "taken_from_before",
        "    if comm.rank < comm.size - 1:\n        gradient = comm.recv(comm.rank + 1)",
        "    if comm.size > 1:\n"
        "        gradient = comm.recv(comm.rank - 1 if comm.rank else comm.rank + 1)",
        (0, "both_wait"),
    ),
    _backward(
        "sends", _SEND_BACK, "comm.send(x_gradient, comm.rank - 1)", (2, "waits_in_backward")
    ),
    _backward("not_in_sent", _SEND_BACK, _SEND_BACK[12:-1], (2, "not_in_sent")),
    _backward("nothing_returned", "    return x_gradient", "", (0, "differs")),
    _backward("last_receives_too", "if comm.rank < comm.size - 1:", "if True:", (0, "raised")),
    _backward(
        "stage_unused", "stage.backward(kept, gradient)", "gradient @ gradient.T", (0, "other_work")
    ),
    _backward(
        "scaled",
        "stage.backward(kept, gradient)",
        "stage.backward(kept, gradient / 2)",
        (0, "differs"),
    ),
)
