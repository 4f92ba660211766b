import hashlib
import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from mpedu.corpus import LEFT_OUT, Corpus, load_corpus


def corpus_of(text):
    return Corpus("made up", torch.tensor(list(text), dtype=torch.uint8), "0" * 12)


@pytest.fixture(scope="module")
def library():
    return load_corpus()


def test_a_file_is_read_byte_for_byte(tmp_path):
    text = bytes(range(256)) + b"\r\n\xff\xfe" + "é".encode()
    path = tmp_path / "text.bin"
    path.write_bytes(text)
    corpus = load_corpus(path)
    assert bytes(corpus.data.tolist()) == text
    assert corpus.name == "text.bin"
    assert corpus.digest == hashlib.sha256(text).hexdigest()[:12]


def make_missing(folder):
    return folder / "none.txt"


def make_folder(folder):
    return folder


def make_empty(folder):
    (folder / "empty.txt").touch()
    return folder / "empty.txt"


def make_unreadable(folder):
    return folder / ("x" * 300)  # no file system takes so long a name; nor may root read it


def make_below_a_file(folder):
    return make_empty(folder) / "text.txt"


@pytest.mark.parametrize(
    ("make", "fault"),
    [
        (make_missing, "does not exist"),
        (make_folder, "is a folder"),
        (make_empty, "is empty, 0 bytes"),
        (make_unreadable, r"cannot be read \(.+\)"),
        (make_below_a_file, r"(does not exist|cannot be read \(.+\))"),
    ],
)
def test_a_file_that_gives_no_text_is_refused_in_one_sentence(tmp_path, make, fault):
    path = make(tmp_path)
    with pytest.raises(ValueError, match=f"{fault}; give a file of text, or none for") as caught:
        load_corpus(path)
    assert str(path) in str(caught.value)


def test_a_file_without_permission_is_refused_with_the_reason(tmp_path, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied")

    (tmp_path / "text.txt").write_bytes(b"text")
    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(ValueError, match=r"text.txt cannot be read \(Permission denied\); give"):
        load_corpus(tmp_path / "text.txt")


@pytest.mark.skipif(sys.platform == "win32", reason="no such device")
def test_a_device_that_never_ends_is_refused():
    with pytest.raises(ValueError, match="/dev/zero is not a regular file"):
        load_corpus(Path("/dev/zero"))


def test_the_standard_library_is_prose_of_the_library(library):
    text = bytes(library.data.numpy())
    # argparse's and json's own sentences are in it, those of the editor IDLE and of tests are not
    assert b"Command-line parsing library" in text
    assert b"JSON (JavaScript Object Notation)" in text
    assert b"class EditorWindow" not in text
    assert b"class GrammarTests" not in text
    assert 5e6 < len(text) < 2e7


def test_the_standard_library_is_named_by_version_and_files(library):
    version = ".".join(str(part) for part in sys.version_info[:3])
    start, n_files, unit = library.name.rsplit(maxsplit=2)
    assert start == f"Python {version} standard library,"
    assert unit == "files"
    assert int(n_files) > 300


def test_the_standard_library_is_the_same_in_every_process(library):
    code = "from mpedu.corpus import load_corpus as load; print(load().digest)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == [library.digest]


def test_files_are_joined_in_the_order_of_their_names(tmp_path, monkeypatch):
    left_out = [f"{name}/x.py" for name in LEFT_OUT] + ["a/test/x.py", "config-3/x.py"]
    names = {"b.py": "2", "a/z.py": "1", "c.py": "3", "notes.txt": "x", "_sysconfigdata_x.py": "x"}
    for name, text in (names | dict.fromkeys(left_out, "x")).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))
    assert bytes(load_corpus().data.tolist()) == b"123"
    assert load_corpus().name.endswith("library, 3 files")


def test_a_python_without_sources_is_told_so(tmp_path, monkeypatch):
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))
    with pytest.raises(ValueError, match=r"no standard library sources in .*; give a file"):
        load_corpus()


def test_targets_are_the_next_bytes(library):
    inputs, targets = library.batch(step=0, n_samples=5, n_tokens=16)
    assert inputs.shape == targets.shape == (5, 16)
    assert inputs.dtype == targets.dtype == torch.int64
    assert torch.equal(inputs[:, 1:], targets[:, :-1])
    text = bytes(library.data.numpy())
    for sample, ends in zip(inputs, targets, strict=True):
        assert bytes([*sample.tolist(), int(ends[-1])]) in text


def test_a_batch_depends_on_seed_and_step_alone(library):
    inputs, _ = library.batch(3, 4, 32, seed=1)
    torch.manual_seed(9)
    assert torch.equal(library.batch(3, 4, 32, seed=1)[0], inputs)
    assert not torch.equal(library.batch(4, 4, 32, seed=1)[0], inputs)
    assert not torch.equal(library.batch(3, 4, 32, seed=2)[0], inputs)
    state = torch.get_rng_state()
    library.batch(5, 4, 32)
    assert torch.equal(torch.get_rng_state(), state)


def test_every_place_of_the_text_is_drawn_equally_often():
    inputs, targets = corpus_of(range(11)).batch(step=0, n_samples=8000, n_tokens=3)
    counts = torch.bincount(inputs[:, 0], minlength=8)
    # 8 places, 1000 samples each, deviation sqrt(8000 * 1/8 * 7/8) = 30
    assert counts.shape == (8,)
    assert (counts - 1000).abs().max() < 150
    assert int(targets.max()) == 10


def test_a_text_of_exactly_one_sample_gives_it():
    inputs, targets = corpus_of(b"abcd").batch(step=7, n_samples=2, n_tokens=3)
    assert [bytes(row) for row in inputs.tolist()] == [b"abc"] * 2
    assert [bytes(row) for row in targets.tolist()] == [b"bcd"] * 2


def test_a_text_shorter_than_a_sample_is_refused_with_both_numbers():
    message = "corpus made up holds 4 bytes and n_tokens=4 needs 5 per sample; give a longer"
    with pytest.raises(ValueError, match=message):
        corpus_of(b"abcd").batch(step=0, n_samples=1, n_tokens=4)


@pytest.mark.parametrize(("n_samples", "n_tokens"), [(0, 1), (1, 0), (1, 1.5)])
def test_a_batch_of_nothing_is_refused(n_samples, n_tokens):
    with pytest.raises(ValueError, match=r"give (an int|n_\w+) >= 1"):
        corpus_of(b"abcd").batch(0, n_samples, n_tokens)


@pytest.mark.parametrize(
    ("text", "nats"), [(b"aaaa", 0.0), (b"abab", math.log(2)), (bytes(range(256)), math.log(256))]
)
def test_unigram_entropy_of_known_texts(text, nats):
    assert math.isclose(corpus_of(text).unigram_entropy_nats, nats, abs_tol=1e-12)


def test_unigram_entropy_of_uneven_bytes():
    expected = 0.75 * math.log(4 / 3) + 0.25 * math.log(4)
    assert math.isclose(corpus_of(b"aaab").unigram_entropy_nats, expected)
