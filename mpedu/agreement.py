"""What the members of a collective must agree on, and the sentence where they do not."""

from mpedu.arrays import Spec, kind_of
from mpedu.comm import Call


class Mismatch(ValueError):
    """The two ends of a message, or the members of a collective, do not fit together."""


Called = tuple[int, Call]  # rank in the group, and its call


def message_difference(source: int, destination: int, sent: Spec, out: Spec, words: str) -> str:
    """How a message does not fit the array to receive into; "" where it does.

    words: for the message, in brackets.
    """
    if sent == out:
        return ""
    hint = " (NumPy has no bfloat16: receive into a tensor)" if sent.dtype == "bfloat16" else ""
    return (
        f"recv on rank {destination}: rank {source} sends {sent}{words}, and the array to receive "
        f"into is {out}; both ends must give the same dtype and shape{hint}"
    )


def difference(members: tuple[int, ...], one: Called, other: Called) -> str:
    """How two calls of one collective do not fit; "" where they do.

    members: the group's ranks by their numbers among all ranks, which the sentence names.
    Of an array its Spec will do.
    """
    (a, call_a), (b, call_b) = one, other
    first, second = f"rank {members[a]}", f"rank {members[b]}"
    name = call_b.operation
    if call_a.operation != name:
        return (
            f"{second} calls {name} where {first} calls {call_a.operation}; "
            "all ranks must call the same collectives in the same order"
        )
    for what, given_a, given_b in _parts(call_a, call_b):
        if given_a != given_b:
            return (
                f"{name}: {first} gives {what}{given_a}, {second} {what}{given_b}; "
                "all must give the same"
            )
    if name == "all_to_all":
        return _pair_difference(members, one, other) or _pair_difference(members, other, one)
    return ""


def _parts(a: Call, b: Call) -> list[tuple[str, object, object]]:
    parts: list[tuple[str, object, object]] = [("root=", a.root, b.root), ("op=", a.op, b.op)]
    if a.operation == "all_gather":
        parts.append(("sizes=", a.sizes, b.sizes))
    if a.x is not None and b.x is not None:
        parts.append(("", _spec(a), _spec(b)))
    if a.operation == "reduce_scatter":
        parts.append(("sizes=", a.sizes, b.sizes))
    return parts


def _spec(call: Call) -> Spec | str:
    """What of the array must be the same: of rows that may differ in number, only their kind."""
    spec = call.x if isinstance(call.x, Spec) else kind_of(call.x).spec(call.x)
    if call.operation == "all_to_all" or (call.operation == "all_gather" and call.sizes):
        return f"rows of {Spec(spec.dtype, spec.shape[1:])}"
    return spec


def _pair_difference(members: tuple[int, ...], one: Called, other: Called) -> str:
    (a, call_a), (b, call_b) = one, other
    sent, awaited = (call_a.sizes or ())[b], (call_b.recv_sizes or ())[a]
    if sent == awaited:
        return ""
    return (
        f"all_to_all: rank {members[a]} sends {sent} rows to rank {members[b]}, "
        f"which expects {awaited}; send_sizes and recv_sizes must fit"
    )
