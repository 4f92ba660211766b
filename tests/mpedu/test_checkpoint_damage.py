import json
import os

import pytest
import torch
from checkpoints import ABOUT, Alone, save

from mpedu.checkpoint import check_same, latest_checkpoint, remove_partial, save_checkpoint


@pytest.mark.parametrize("n_bytes", [0, 1, 7, 8, 9, 100, -9, -1])
def test_a_truncated_file_is_told_with_its_bytes_before_anything_loads(tmp_path, n_bytes):
    save(tmp_path, 1)
    file = save(tmp_path, 2) / "rank-00-of-01.safetensors"
    found, whole = latest_checkpoint(tmp_path), file.stat().st_size
    os.truncate(file, n_bytes % whole)
    words = f"rank-00-of-01.safetensors has {n_bytes % whole} bytes, {whole} expected"
    with pytest.raises(ValueError, match=words) as error:
        latest_checkpoint(tmp_path)
    way_out = "remove the folder step-000002 to go on from step-000001, which is whole"
    assert str(error.value) == f"checkpoint {file.parent} is damaged: {words}; {way_out}"
    with pytest.raises(ValueError, match=words):
        found.load(0)


FLIPPED = "holds other bytes than were saved"


@pytest.mark.parametrize("position", [0, 8, 9, 30, 300, -1])
def test_a_flipped_bit_is_told_wherever_it_is(tmp_path, position):
    save(tmp_path, 1)
    file = save(tmp_path, 2) / "rank-00-of-01.safetensors"
    found = latest_checkpoint(tmp_path)
    data = bytearray(file.read_bytes())
    data[position] ^= 1
    file.write_bytes(data)
    with pytest.raises(ValueError, match=FLIPPED) as error:
        latest_checkpoint(tmp_path)
    assert str(error.value) == (
        f"checkpoint {file.parent} is damaged: {file.name} {FLIPPED} (its SHA-256 differs); "
        "remove the folder step-000002 to go on from step-000001, which is whole"
    )
    with pytest.raises(ValueError, match=FLIPPED):
        found.load(0)


def test_a_file_of_another_step_is_told(tmp_path):
    paths = [save(tmp_path, step) / "rank-00-of-01.safetensors" for step in (1, 2)]
    assert paths[0].stat().st_size == paths[1].stat().st_size
    paths[1].write_bytes(paths[0].read_bytes())
    with pytest.raises(ValueError, match=FLIPPED):
        latest_checkpoint(tmp_path)


def test_what_saves_left_that_did_not_end_is_removed_and_nothing_else(tmp_path):
    save(tmp_path)
    (tmp_path / "step-000002.partial").mkdir()
    (tmp_path / "step-000002.partial" / "half").touch()
    remove_partial(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["step-000001"]
    remove_partial(tmp_path / "absent")


def about_with(**changed):
    def change(path):
        about = json.loads((path / "about.json").read_text())
        (path / "about.json").write_text(json.dumps(about | changed))

    return change


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda path: (path / "about.json").unlink(), "about.json is missing"),
        (lambda path: (path / "rank-00-of-01.safetensors").unlink(), "safetensors is missing"),
        (lambda path: os.truncate(path / "about.json", 20), "about.json cannot be read"),
        (lambda path: (path / "about.json").write_bytes(b"\xff"), "about.json cannot be read"),
        (lambda path: (path / "about.json").write_text("[]"), "about.json names no files"),
        (about_with(files={}), "about.json names no files"),
        (about_with(files={"../x": 1}), "names files that are not those of ranks 0 to 0"),
        (about_with(step=1), "about.json is of step 1"),
        (about_with(files={"rank-00-of-01.safetensors": 800}), "about.json has no size and SHA-"),
    ],
)
def test_a_damaged_checkpoint_is_told_in_one_sentence_and_no_other_used(tmp_path, damage, words):
    path = save(tmp_path, 2)
    damage(path)
    with pytest.raises(ValueError, match=words) as error:
        latest_checkpoint(tmp_path)
    assert str(error.value).endswith("; remove the folder step-000002 to start anew")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("here", "words"),
    [
        ({"pp": 4}, "pp=2 there, pp=4 here"),
        (
            {"model": {"n_layers": 8, "d_model": 16}},
            "model.n_layers=4 there, model.n_layers=8 here",
        ),
        ({"pp": 4, "digest": "c3"}, "pp=2 there, pp=4 here; digest='a1b2' there, digest='c3' here"),
        ({"optimiser": "adam"}, "no optimiser there, optimiser='adam' here"),
        ({"model": {"n_layers": 4}}, "model.d_model=16 there, no model.d_model here"),
        ({"pp": None, "shape": []}, "pp=2 there, pp=None here; shape=[2, 3] there, shape=[] here"),
    ],
)
def test_another_run_is_told_with_every_difference(tmp_path, here, words):
    path = save(tmp_path)
    with pytest.raises(ValueError, match="is of another run: ") as error:
        check_same(latest_checkpoint(tmp_path), ABOUT | here)
    way_out = "; ask for what it was saved with, or start anew in another folder"
    assert str(error.value) == f"checkpoint {path} is of another run: {words}{way_out}"


def test_the_same_run_passes_whatever_else_the_checkpoint_knows(tmp_path):
    save(tmp_path, about=ABOUT | {"saved_at": "noon"})
    assert check_same(latest_checkpoint(tmp_path), ABOUT) is None


def test_a_rank_or_tensor_that_was_not_saved_is_told(tmp_path):
    save(tmp_path)
    found = latest_checkpoint(tmp_path)
    with pytest.raises(ValueError, match=r"has no rank 1; its ranks are 0 to 0$"):
        found.load(1)
    with pytest.raises(ValueError, match=r"has no tensor 'head\.weight'; it has 8, from"):
        found.load(0, ["head.weight"])


def test_what_cannot_be_written_is_told_and_writes_nothing(tmp_path):
    with pytest.raises(TypeError, match="not JSON serializable"):
        save(tmp_path, about={"dtype": torch.float32})
    with pytest.raises(ValueError, match="keep=0 is too small; give keep >= 1"):
        save(tmp_path, keep=0)
    with pytest.raises(ValueError, match="step=-1 is too small"):
        save_checkpoint(tmp_path, Alone(), -1, {}, {})
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "a file").write_text("in the way")
    with pytest.raises(ValueError, match=r"step-000001 is not written \(.*; make room, or choose"):
        save(tmp_path / "a file")
