"""Tensors as `Comm` sees them, and the bytes of arrays."""

import numpy as np
import pytest
import torch

from mpedu.arrays import Spec, Unfit, kind_of
from mpedu.tensors import bytes_of, made

TENSORS = kind_of(torch.zeros(1))


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (torch.zeros(2, 3).T, "a tensor float32 [3, 2] is not contiguous; give x.contiguous()"),
        (
            torch.zeros(2).to_sparse(),
            "a tensor float32 [2] is sparse or quantized; give a dense one",
        ),
        (
            torch.zeros(2, device="meta"),
            "the tensor lies on meta, this rank's are on cpu; move it there",
        ),
        (
            torch.zeros(2, dtype=torch.complex64).conj(),
            "a tensor complex64 [2] is a view yet to be conjugated; give x.resolve_conj().clone()",
        ),
    ],
    ids=["transposed", "sparse", "meta", "conjugated"],
)
def test_a_tensor_that_cannot_travel_is_refused_with_the_way_out(x, text):
    with pytest.raises(Unfit) as caught:
        TENSORS.check(x, "cpu", written=False)
    assert str(caught.value) == text


@pytest.mark.parametrize(
    "x",
    [
        torch.tensor(2.5),
        torch.zeros(0, 3),
        torch.arange(6, dtype=torch.int16).reshape(2, 3),
        torch.tensor([True, False]),
        torch.ones(1, 5)[:, 2:3],  # one element, whose strides tell nothing
        torch.arange(4.0)[2:],
        torch.from_numpy(np.array(1.0)),
        np.array(1 + 2j),
        np.arange(6, dtype=np.uint16).reshape(3, 2),
    ],
    ids=lambda x: f"{type(x).__name__}-{kind_of(x).spec(x)}",
)
def test_the_bytes_of_an_array_are_its_own_memory(x):
    kind = kind_of(x)
    kind.check(x, "cpu", written=True)
    wire = bytes_of(x)
    assert wire.dtype == torch.uint8 and wire.shape == (kind.n_bytes(x),)
    new = made(kind.spec(x), isinstance(x, torch.Tensor))
    assert type(new) is type(x)
    bytes_of(new).copy_(wire)
    assert new.tolist() == x.tolist() and new.dtype == x.dtype
    wire.zero_()
    assert not np.asarray(x).any()


def test_the_bytes_of_what_must_not_be_written_to_are_a_copy():
    x = np.arange(3.0)
    x.flags.writeable = False
    bytes_of(x).zero_()
    assert x.tolist() == [0, 1, 2]


def test_a_parameter_is_a_tensor_and_needs_a_gradient_while_gradients_are_on():
    x = torch.nn.Parameter(torch.ones(2))
    kind = kind_of(x)
    assert kind is TENSORS and kind.needs_gradient(x) and kind.spec(x) == Spec("float32", (2,))
    assert not kind.copy(x).requires_grad
    with torch.no_grad():
        assert not kind.needs_gradient(x)


def test_an_array_of_either_kind_fills_one_of_the_other():
    out, x = torch.zeros(2, requires_grad=True), np.array([1.0, 2.0], dtype=np.float32)
    kind_of(out).fill(out, x)
    assert out.tolist() == [1, 2] and out.requires_grad
    back = np.zeros(2, dtype=np.float32)
    kind_of(back).fill(back, torch.tensor([3.0, 4.0]))
    assert back.tolist() == [3, 4]


@pytest.mark.parametrize(
    "dtype", [torch.uint16, torch.uint32, torch.uint64, torch.bool, torch.half]
)
def test_sums_and_maxima_keep_the_dtype_also_where_torch_adds_none(dtype):
    a, b = (torch.tensor(numbers).to(dtype) for numbers in ([0, 1, 1], [1, 0, 1]))
    for op, wanted in (("sum", [1, 1, 1 if dtype == torch.bool else 2]), ("max", [1, 1, 1])):
        got = TENSORS.combine(op, a, b)
        assert got.dtype == dtype and got.tolist() == wanted
