import pytest
import torch
from torch import nn

from mpedu.keyed import Key
from mpedu.pipeline.stages import Spec, output_specs, takes_key, unpacked

FLOAT, DOUBLE = torch.float32, torch.float64


def spec(*shape, dtype=FLOAT):
    return Spec(shape, dtype)


def test_output_specs_come_in_the_order_of_the_inputs_from_one_run_each():
    runs = []

    def stage(x):
        runs.append(tuple(x.shape))
        return x.double().sum(1)

    inputs = [spec(3, 4), spec(3, 4), spec(2, 4), spec(3, 4)]
    want = [spec(n, dtype=DOUBLE) for n in (3, 3, 2, 3)]
    assert output_specs(stage, 0, inputs, "cpu") == want
    assert runs == [(3, 4), (2, 4)]


class Restless(nn.Module):
    """Draws from the global generator, counts in a buffer, one more by assignment."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 5)
        self.norm = nn.BatchNorm1d(5)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls = self.calls + 1
        return torch.dropout(self.norm(self.layer(x)), 0.5, True)


def test_the_run_on_zeros_leaves_nothing_behind():
    stage = Restless()
    before = {name: value.clone() for name, value in stage.state_dict().items()}
    random_state = torch.get_rng_state()
    assert output_specs(stage, 0, [spec(3, 4)], "cpu") == [spec(3, 5)]
    assert torch.equal(torch.get_rng_state(), random_state)
    assert all(torch.equal(value, before[name]) for name, value in stage.state_dict().items())
    assert all(p.grad is None and p.requires_grad for p in stage.parameters())
    assert stage.training


def keyed(x, key):
    return x


def keyed_optionally(x, key=None):
    return x


@pytest.mark.parametrize(
    ("stage", "takes"),
    [
        (lambda x: x, False),
        (nn.Linear(2, 2), False),
        (lambda *, x: x, False),
        (keyed, True),
        (keyed_optionally, True),
    ],
)
def test_a_stage_gets_the_key_where_it_has_a_place_for_it(stage, takes):
    assert takes_key(stage) is takes


def test_a_layer_with_further_arguments_of_its_own_gets_no_key():
    assert not takes_key(torch.nn.TransformerEncoderLayer(4, 1))
    assert not takes_key(lambda x, scale=2.0: x * scale)
    assert takes_key(lambda x, key=None: x)


def test_a_result_is_y_or_y_and_aux():
    y, aux = torch.zeros(2), torch.ones(1)
    assert unpacked(y, 0) == (y, None)
    assert unpacked((y, aux), 0) == (y, aux)


def test_a_key_reaches_the_run_on_zeros():
    keys = []

    def stage(x, key):
        keys.append(key)
        return x

    output_specs(stage, 0, [spec(1)], "cpu")
    assert keys == [Key(0, 0, 0)]


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (None, "stage 3 returned NoneType; a stage returns y or"),
        ((1, torch.zeros(1)), "stage 3 returned int"),
        ((torch.zeros(2),) * 3, "stage 3 returned tuple"),
        ((torch.zeros(2), 0.5), "stage 3 returned float as aux; give a tensor of one number"),
        ((torch.zeros(2), torch.zeros(2)), r"stage 3 returned a tensor \[2\] as aux"),
    ],
)
def test_another_result_is_refused(made, sentence):
    with pytest.raises(ValueError, match=sentence):
        unpacked(made, 3)
