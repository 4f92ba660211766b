import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

from mpedu.arrays import NUMPY, Spec, Unfit, kind_of


class Marked(np.ndarray):
    pass


ARRAYS = {
    "numpy": np.arange(6.0).reshape(2, 3),
    "torch": torch.arange(6.0, dtype=torch.float64).reshape(2, 3),
    "parameter": nn.Parameter(torch.arange(6.0, dtype=torch.float64).reshape(2, 3)),
    "a subclass": np.arange(6.0).reshape(2, 3).view(Marked),
}


@pytest.mark.parametrize("x", ARRAYS.values(), ids=ARRAYS)
def test_both_kinds_tell_and_do_the_same(x):
    kind = kind_of(x)
    kind.check(x, "cpu", written=True)
    assert kind.spec(x) == ("float64", (2, 3)) and str(kind.spec(x)) == "float64 [2, 3]"
    assert kind.n_bytes(x) == 48
    copy = kind.copy(x)
    assert copy.tolist() == x.tolist() and not kind.needs_gradient(copy)
    kind.fill(copy, kind.copy(x) * 2)
    assert copy.tolist() == [[0, 2, 4], [6, 8, 10]] and x.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert kind.combine("sum", copy, x).tolist() == [[0, 3, 6], [9, 12, 15]]
    assert kind.combine("max", copy, -copy).tolist() == copy.tolist()
    assert kind.join([copy, copy[:1]]).tolist() == [*copy.tolist(), copy.tolist()[0]]
    assert kind.spec(kind.empty(x, (4,))) == Spec("float64", (4,))


def test_each_kind_can_be_filled_from_the_other():
    out, tensor = np.zeros(2), torch.zeros(2, dtype=torch.float64)
    NUMPY.fill(out, torch.tensor([1.0, 2.0]))
    kind_of(tensor).fill(tensor, out)
    unwritable = np.broadcast_to(np.array([3.0]), (2,))
    kind_of(tensor).fill(other := torch.zeros(2), unwritable)
    assert out.tolist() == tensor.tolist() == [1, 2] and other.tolist() == [3, 3]


def test_a_parameter_is_filled_in_place_and_needs_a_gradient_while_gradients_are_on():
    parameter = nn.Parameter(torch.zeros(2))
    kind = kind_of(parameter)
    kind.fill(parameter, np.ones(2, np.float32))
    assert parameter.tolist() == [1, 1] and kind.needs_gradient(parameter)
    with torch.no_grad():
        assert not kind.needs_gradient(parameter)


def test_a_copy_is_contiguous_and_nobody_elses():
    for x in (np.zeros((2, 3)).T, torch.zeros(2, 3).T):
        copy = kind_of(x).copy(torch.zeros(2, 3) if isinstance(x, torch.Tensor) else x.T)
        kind_of(copy).check(copy, "cpu", written=True)
        copy[0] = 1
        assert float(x.sum()) == 0


UNFIT = {
    "list": ([1.0], "list is no array; give a NumPy array or a tensor"),
    "None": (None, "NoneType is no array; give a NumPy array or a tensor"),
    "text": ("abc", "str is no array; give a NumPy array or a tensor"),
    "a number": (3, "int is no array; give np.array(3)"),
    "a number of NumPy": (np.float64(3), "float64 is no array; give np.array(np.float64(3.0))"),
    "True": (True, "bool is no array; give np.array(True)"),
}


@pytest.mark.parametrize("x, text", UNFIT.values(), ids=UNFIT)
def test_what_is_no_array_has_no_kind(x, text):
    with pytest.raises(Unfit) as caught:
        kind_of(x)
    assert str(caught.value) == text


CANNOT_TRAVEL = {
    "objects": (np.array([None]), "an array object [1] is no array of numbers; send numbers"),
    "text": (np.array(["ab"]), "an array str64 [1] is no array of numbers; send numbers"),
    "dates": (np.zeros(1, "M8[s]"), "is no array of numbers; send numbers"),
    "records": (np.zeros(2, "i4,f8"), "is no array of numbers; send numbers"),
    "a column": (np.zeros((2, 2))[:, 0], "an array float64 [2] is not contiguous; give x.copy()"),
    "another byte order": (np.zeros(1, ">i4"), "has the byte order of another machine; give x.ast"),
    "a transposed tensor": (torch.zeros(2, 3).T, "is not contiguous; give x.contiguous()"),
    "a sparse tensor": (torch.zeros(2, 2).to_sparse(), "sparse or quantized; give a dense one"),
    "a tensor elsewhere": (torch.zeros(1, device="meta"), "lies on meta, this rank's are on cpu"),
    "a conjugate": (torch.zeros(2, dtype=torch.complex64).conj(), "give x.resolve_conj().clone()"),
}


@pytest.mark.parametrize("x, text", CANNOT_TRAVEL.values(), ids=CANNOT_TRAVEL)
def test_what_cannot_travel_is_refused_with_the_way_out(x, text):
    with pytest.raises(Unfit) as caught:
        kind_of(x).check(x, "cpu", written=False)
    assert text in str(caught.value)


def test_what_must_not_be_written_to_may_be_sent_and_not_received_into():
    x = np.broadcast_to(np.zeros(1), (1,))
    kind_of(x).check(x, "cpu", written=False)
    with pytest.raises(Unfit, match="cannot be written to; give an array of your own"):
        kind_of(x).check(x, "cpu", written=True)


def test_the_way_out_that_is_named_leads_out():
    for bad, mended in (
        (np.zeros((2, 2))[:, 0], lambda x: x.copy()),
        (np.zeros(1, ">i4"), lambda x: x.astype(x.dtype.newbyteorder("="))),
        (torch.zeros(2, 3).T, lambda x: x.contiguous()),
        (torch.zeros(2, dtype=torch.complex64).conj(), lambda x: x.resolve_conj().clone()),
        (np.float64(3), np.array),
    ):
        good = mended(bad)
        kind_of(good).check(good, "cpu", written=True)


def test_numpy_programs_run_on_the_simulated_machine_without_torch():
    code = (
        "import sys, numpy as np\n"
        "from mpedu.launch import run_ranks\n"
        "program = lambda comm: comm.all_reduce(np.array([comm.rank])).item()\n"
        "print(run_ranks(program, 3, machine='simulated').results, 'torch' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[3,", "3,", "3]", "False"]
