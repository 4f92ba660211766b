"""Published facts: every number has its source, and the counts are what others count."""

import dataclasses
import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import torch

from mpedu.published import (
    Hardware,
    ModelConfig,
    count_parameters,
    hardware_names,
    load_hardware,
    load_model,
    model_names,
)

ROOT = Path(__file__).parents[2]
PRINTED = json.loads((ROOT / "tests/oracles/dense_parameters.json").read_text())["cases"]
SMALL = ModelConfig("small", 3, 12, 6, 2, 20, 50, 16)
GATED = dict(gated_ffn=True, biases=False, learned_positions=False, tied_embeddings=False)


def n_of(*modules):
    """Parameters of torch modules."""
    return sum(p.numel() for module in modules for p in module.parameters())


@pytest.mark.parametrize("file", ["models.toml", "hardware.toml"])
def test_every_number_names_a_source_and_every_source_is_used(file):
    tables = tomllib.loads((ROOT / "data" / file).read_text())
    sources = tables.pop("sources")
    used = set()
    assert tables
    for table in tables.values():
        source = table.pop("source")
        assert table.keys() == source.keys()
        used |= set(source.values())
    assert used == sources.keys()
    assert all(len(text) > 20 for text in sources.values())


@pytest.mark.parametrize("case", PRINTED, ids=lambda case: case["name"])
def test_totals_are_those_of_makers_and_of_others(case):
    total = count_parameters(load_model(case["name"])).total
    assert total / 1e9 == pytest.approx(case["printed"], abs=case["tolerance"])
    assert case["total"] in (None, total)


def test_every_model_has_a_published_total_to_compare_with():
    assert model_names() == sorted(case["name"] for case in PRINTED)


def test_a_layer_with_biases_counts_as_torchs_own_transformer_layer():
    config = dataclasses.replace(SMALL, n_kv_heads=6)
    layer = torch.nn.TransformerEncoderLayer(12, 6, 20, device="meta")
    table = torch.nn.Embedding(50, 12, device="meta")
    positions = torch.nn.Embedding(16, 12, device="meta")
    norm = torch.nn.LayerNorm(12, device="meta")
    assert config.layer_parameters == n_of(layer)
    assert count_parameters(config).total == 3 * n_of(layer) + n_of(table, positions, norm)


@pytest.mark.parametrize("biases", [False, True])
def test_grouped_queries_and_gates_count_as_their_matrices(biases):
    config = dataclasses.replace(SMALL, **GATED | {"biases": biases})
    shapes = [(12, 12), (12, 4), (12, 4), (12, 12), (12, 20), (12, 20), (20, 12)]
    linears = [torch.nn.Linear(*shape, bias=biases, device="meta") for shape in shapes]
    norm = torch.nn.LayerNorm(12, bias=biases, device="meta")
    assert config.attention_parameters == n_of(*linears[:4])
    assert config.layer_parameters == n_of(*linears, norm, norm)
    assert count_parameters(config).total == 3 * n_of(*linears, norm, norm) + n_of(norm) + 2 * 600


@pytest.mark.parametrize("tied", [True, False])
def test_the_embedding_is_subtracted_once_tied_or_not(tied):
    count = count_parameters(dataclasses.replace(SMALL, tied_embeddings=tied))
    assert count.total - count.active_without_embedding == 50 * 12
    assert count.components["output_head"] == (0 if tied else 50 * 12)
    assert count.active == count.total == sum(count.components.values())


@pytest.mark.parametrize("name", hardware_names())
def test_devices_are_in_si_units_and_links_get_slower_outwards(name):
    device = load_hardware(name)
    assert isinstance(device, Hardware)
    assert isinstance(device.memory_bytes, int)
    assert 1e13 < device.flops_per_s < 1e16
    assert 1e10 < device.memory_bytes < 1e12
    speeds = device.memory_bytes_per_s, device.link_bytes_per_s, device.between_bytes_per_s
    assert list(speeds) == sorted(speeds, reverse=True)
    assert 1e-7 < device.latency_s < device.between_latency_s < 1e-4


def test_three_generations_stand_in_order():
    devices = [load_hardware(name) for name in ("v100-32gb", "a100-80gb", "h100-80gb")]
    assert [device.flops_per_s / 1e12 for device in devices] == [125, 312, 989.4]
    assert [device.memory_bytes / 1e9 for device in devices] == [32, 80, 80]


@pytest.mark.parametrize(
    ("load", "kind", "names"),
    [(load_model, "model", model_names), (load_hardware, "device", hardware_names)],
)
@pytest.mark.parametrize("asked", ["gpt-5", "sources", ""])
def test_an_unknown_name_lists_the_known_ones(load, kind, names, asked):
    with pytest.raises(ValueError) as error:
        load(asked)
    assert str(error.value) == f"there is no {kind} {asked!r}; known: {', '.join(names())}"


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"n_layers": 0}, "n_layers=0 is too small; give n_layers >= 1"),
        ({"d_ff": 2.5}, "d_ff=2.5 is not a whole number; give an int >= 1"),
        ({"n_heads": 5}, "d_model=12 is not divisible by n_heads=5; give a divisor"),
        ({"n_kv_heads": 4}, "n_heads=6 is not divisible by n_kv_heads=4; give a divisor"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(wrong, sentence):
    with pytest.raises(ValueError) as error:
        dataclasses.replace(SMALL, **wrong)
    assert str(error.value) == sentence


def run_away_from_home(folder, code):
    """The last line that Python prints without any installed package but those in `folder`."""
    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-S",
            "-c",
            f"import sys; sys.path.insert(0, {str(folder)!r}); {code}",
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )
    return (done.stdout + done.stderr).splitlines()[-1]


def package_at(folder):
    """A folder with as much of the package as is needed here."""
    (folder / "mpedu").mkdir(parents=True)
    for name in ("__init__", "faults", "published"):
        shutil.copy(ROOT / f"mpedu/{name}.py", folder / "mpedu")
    return folder


ASK = "from mpedu.published import model_names; print(model_names())"


def test_an_installed_package_finds_its_files_where_pip_put_them(tmp_path):
    site = package_at(tmp_path / "lib/site-packages")
    (tmp_path / "share/mpedu").mkdir(parents=True)
    shutil.copy(ROOT / "data/models.toml", tmp_path / "share/mpedu")
    (site / "mpedu-9.dist-info").mkdir()
    (site / "mpedu-9.dist-info/METADATA").write_text("Name: mpedu\nVersion: 9\n")
    record = "mpedu/published.py,,\n../../share/mpedu/models.toml,,\n"
    (site / "mpedu-9.dist-info/RECORD").write_text(record)
    assert run_away_from_home(site, ASK) == str(model_names())


def test_the_build_installs_every_file_of_facts():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    patterns = settings["tool"]["setuptools"]["data-files"]["share/mpedu"]
    found = {path.name for pattern in patterns for path in ROOT.glob(pattern)}
    assert found == {"models.toml", "hardware.toml"}


def test_files_that_are_nowhere_are_told_with_the_way_out(tmp_path):
    said = run_away_from_home(package_at(tmp_path), ASK)
    assert said.startswith("FileNotFoundError: models.toml is neither in ")
    assert said.endswith("use a complete checkout, or install the package again")
