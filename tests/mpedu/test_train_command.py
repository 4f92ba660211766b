import io
import math
import re
import shlex
import shutil
import signal
import sys
from pathlib import Path

import pytest
from small_runs import SMALL, TEXT, command, metrics, told_losses

from mpedu import train as module
from mpedu.__main__ import main
from mpedu.checkpoint import latest_checkpoint

README = Path(__file__).parents[2] / "README.md"
FIGURES = ["loss.png", "timeline.png", "trace.json"]


@pytest.fixture(autouse=True, scope="module")
def handler():
    """The signal handler that a command sets, set back."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folder of a run of 6 steps that saves every 4."""
    folder = tmp_path_factory.mktemp("made")
    assert command(folder, "--steps", 6, "--save-every", 4, "--out", folder / "run") == 0
    return folder


@pytest.fixture
def no_process(monkeypatch):
    """Starting a process, or a run, is an error."""

    def started(*_arguments, **_given):
        raise AssertionError("a process was started")

    monkeypatch.setattr(module, "run_ranks", started)
    monkeypatch.setattr(module, "warm_up", started)


# ---- what a run prints and leaves ----


def test_a_run_prints_its_figures_and_says_where_the_files_are(tmp_path, capsys):
    out = tmp_path / "a" / "run"
    assert command(tmp_path, "--steps", 4, "--out", out) == 0
    said = capsys.readouterr()
    for pattern in (
        rf"text: text.py, {len(TEXT)} bytes, digest [0-9a-f]{{12}}\n",
        r"model: 2 blocks, d_model 16, 16 tokens; batch: 4 samples in 4 micro-batches\n",
        r"pipeline: 2 ranks, 1f1b, blocks 1,1\n",
        r"loss: \d\.\d{4} nats per byte at step 4; unigram entropy \d\.\d{4}\n",
        r"speed: [\d,]+ tokens/s \(median step\)\n",
        r"idle share: \d+\.\d% measured, 20\.0% predicted for equal stages, "
        r"\d+\.\d% predicted for this run's mean times(; the rest is .*)?\n",
        r"peak in flight: rank 0: 2, rank 1: 1 micro-batches \(the list says \[2, 1\]\)\n",
    ):
        assert re.search(pattern, said.out), pattern
    written = said.out.splitlines()[-1].removeprefix("written: ").split(", ")
    files = ["metrics.jsonl", *FIGURES, "checkpoints"]
    assert written == [str(out / name) for name in files]
    assert sorted(path.name for path in out.iterdir()) == sorted([*files, "lock"])
    assert len(told_losses(out)) == 4
    assert latest_checkpoint(out / "checkpoints").step == 4


def test_data_and_pipeline_ranks_together_print_their_figures(tmp_path, capsys):
    out = tmp_path / "run"
    cut = ["--dp", 2, "--pp", 2, "--schedule", "interleaved", "--layers", 4, "--tied", "yes"]
    assert command(tmp_path, "--steps", 3, "--samples", 9, *cut, "--out", out) == 0
    said = capsys.readouterr().out
    for pattern in (
        r"16 tokens, tied; batch: 9 samples over 2 data ranks, each in 4 micro-batches\n",
        r"pipeline: 2 ranks, interleaved, 4 stages, blocks 1,1,1,1\n",
        r"idle share: \d+\.\d% measured, \d+\.\d% predicted for equal stages, "
        r"\d+\.\d% predicted for this run's mean times(; the rest is .*)?\n",
        r"peak in flight: rank 0: (\d), rank 1: (\d) activations of a stage and micro-batch, "
        r"the most of any data rank \(the list says \[\1, \2\]\)\n",
    ):
        assert re.search(pattern, said), pattern
    assert [word["n_tokens"] for word in metrics(out)] == [9 * 16] * 3


def test_the_command_with_data_and_pipeline_ranks_is_the_serial_one(tmp_path):
    words = ["--steps", 20, "--samples", 9, "--dtype", "float64", "--tied", "yes"]
    told = []
    for number, degrees in enumerate((["--pp", 1], ["--dp", 2, "--pp", 2])):
        out = tmp_path / str(number)
        assert command(tmp_path, *words, *degrees, "--out", out) == 0
        told.append([(word["loss"], word["gradient_norm"]) for word in metrics(out)])
    assert len(told[0]) == 20
    for found, due in zip(told[1], told[0], strict=True):
        assert found == pytest.approx(due, rel=1e-9, abs=0)


def test_a_short_run_learns_more_than_how_often_each_byte_comes(tmp_path, capsys):
    words = ["--steps", 60, "--out", tmp_path / "run", "--learning-rate", 0.01]
    assert command(tmp_path, *words) == 0
    losses = told_losses(tmp_path / "run")
    assert losses[0] == pytest.approx(math.log(256), abs=0.5)
    entropy = float(re.search(r"unigram entropy (\S+)", capsys.readouterr().out)[1])
    assert losses[-1] < entropy - 0.5


def test_without_a_folder_nothing_is_written(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert command(tmp_path, "--steps", 1, "--pp", 1) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["text.py"]
    assert "written" not in capsys.readouterr().out


def test_emulated_devices_show_the_predicted_order_and_are_named_so(tmp_path, capsys):
    words = ["--steps", 4, "--device-clock-ms", 8, "--schedule", "naive", "--microbatches", 2]
    assert command(tmp_path, *words) == 0
    said = capsys.readouterr().out
    assert said.count("devices are emulated by a clock") == 2
    measured = float(re.search(r"idle share: (\S+)% measured, 50.0% predicted", said)[1])
    assert measured == pytest.approx(50, abs=3)


def test_every_train_command_of_the_readme_works(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = re.findall(r"^\./course (train .*?)(?:  +#.*)?$", README.read_text(), re.MULTILINE)
    assert lines
    for number, line in enumerate(lines):
        words = line.replace("DIR", f"run-{number}").split()
        words[words.index("--steps") + 1] = "2"
        assert main([*words, "--d-model", "16", "--tokens", "8"]) == 0
        assert len(told_losses(tmp_path / f"run-{number}")) == 2


def test_every_example_of_the_help_works(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    examples = re.findall(r"\./course (train --.*)", capsys.readouterr().out)
    for line, n_steps in zip(examples, ("2", "3"), strict=True):
        words = line.split()
        words[words.index("--steps") + 1] = n_steps
        given = [] if "--resume" in words else [*SMALL, "--samples", "8", "--microbatches", "8"]
        assert main([*words, *given]) == 0
    assert len(told_losses("run")) == 3


# ---- progress ----


class Screen(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_a_bar_on_a_terminal(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Screen())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("NO_COLOR", "1")
    assert command(tmp_path, "--steps", 3) == 0
    seen = sys.stderr.getvalue()
    assert "━" in seen and "3/3" in seen and re.search(r"loss \d\.\d{3}  [\d,]+ tokens/s", seen)
    assert "step 3/3" not in seen
    assert not re.search(r"\x1b\[[0-9;]*3[0-9](;|m)", seen)  # NO_COLOR


@pytest.mark.parametrize("dumb", [True, False])
def test_progress_is_some_lines_elsewhere(tmp_path, monkeypatch, dumb):
    monkeypatch.setattr(sys, "stderr", Screen() if dumb else io.StringIO())
    monkeypatch.setenv("TERM", "dumb" if dumb else "xterm")
    assert command(tmp_path, "--steps", 25, "--pp", 1) == 0
    seen = sys.stderr.getvalue().splitlines()
    assert [line.split("  ")[0] for line in seen] == [
        f"step {step}/25" for step in [*range(2, 25, 2), 25]
    ]
    assert all(re.search(r"  loss \d\.\d{3}  [\d,]+ tokens/s  idle \d+%$", line) for line in seen)


# ---- going on ----


def test_a_run_goes_on_for_as_many_steps_as_are_asked(made, tmp_path, monkeypatch, capsys):
    out = tmp_path / "run"
    monkeypatch.chdir(made)
    words = ["--save-every", "2", "--corpus", "text.py", "--out", out]
    assert command(made, "--steps", 3, *words) == 0
    monkeypatch.chdir(tmp_path)  # the text is found from anywhere
    capsys.readouterr()
    assert main(["train", "--resume", "--steps", "6", "--out", "run"]) == 0
    said = capsys.readouterr().out
    assert "going on after step 3 from run/checkpoints/step-000003" in said
    assert "batch: 4 samples in 4 micro-batches" in said
    assert told_losses(out) == told_losses(made / "run")
    saved = latest_checkpoint(out / "checkpoints")
    assert (saved.step, saved.about["n_steps"], saved.about["save_every"]) == (6, 6, 2)


def test_a_run_goes_on_with_its_text_wherever_that_lies(made, tmp_path):
    moved = tmp_path / "moved.txt"
    moved.write_bytes(TEXT)
    out = tmp_path / "run"
    assert command(tmp_path, "--steps", 1, "--out", out) == 0
    (tmp_path / "text.py").unlink()
    resume = ["train", "--resume", "--steps", "2", "--out", str(out)]
    assert main(resume) == 2
    assert main([*resume, "--corpus", str(moved)]) == 0
    assert told_losses(out) == told_losses(made / "run")[:2]


# ---- what cannot be done ----


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            "--pp 3",
            "--pp=3 with --layers=2: a stage would have no layer; give --pp <= 2 or",
        ),
        ("--pp 0", "--pp=0 is too small; give --pp >= 1"),
        ("--dp 0", "--dp=0 is too small; give --dp >= 1"),
        (
            "--dp 2",
            "4 samples over --dp=2 data ranks cannot be split into 4 micro-batches; "
            "give --microbatches <= 2, or --samples >= 8",
        ),
        (
            "--dp 999 --microbatches 1 --samples 999",
            "--pp=2 with --dp=999: 1998 ranks are too many",
        ),
        ("--chunks 2 --schedule gpipe", "gives every rank 1 stage; leave --chunks out, or choose"),
        ("--schedule dualpipe-v --microbatches 2", "--microbatches=2 on --pp=2: it needs --microb"),
        ("--cut 2,0", "--cut=2,0: a stage takes a whole number of blocks, 1 or more"),
        ("--cut 2,1", "--cut=2,1 is 3 blocks in 2 stages, and the run has 2 blocks in 2 stages; "),
        ("--cut 2", "--cut=2 is 2 blocks in 1 stage, and the run has 2 blocks in 2 stages; give 2"),
        ("--dtype half", "--dtype='half' is unknown; choose float32 or float64"),
        ("--out made/run --resume --steps 9 --dp 2 --microbatches 1", "--dp=1 there, --dp=2 here"),
        ("--microbatches 5", "4 samples cannot be split into 5 micro-batches"),
        ("--schedule zigzag", "'zigzag' is unknown; choose one of naive, gpipe, 1f1b"),
        ("--steps 0", "--steps=0 is too small"),
        ("--save-every -1", "--save-every=-1 is too small"),
        ("--learning-rate 1e308", "--learning-rate=1e+308 is out of range; "),
        ("--layers 100000000000", "--layers=100000000000 and --d-model=16 make "),
        ("--d-model 10000000", "--layers=2 and --d-model=10000000 make "),
        ("--heads 3", "--d-model=16 is not divisible by --heads=3"),
        ("--dropout 1.5", "--dropout=1.5 is not a share in [0, 1)"),
        ("--tokens 0", "--tokens=0 is too small"),
        ("--checkpoint all", "--checkpoint='all' is unknown; give 'none', "),
        ("--corpus absent.txt", "absent.txt does not exist; give a file of text"),
        ("--corpus empty.txt", "empty.txt is empty, 0 bytes"),
        ("--corpus short.txt", "holds 16 bytes and --tokens=16 needs 17 per sample"),
        ("--corpus .", "is a folder"),
        ("--resume", "--resume needs --out DIR"),
        ("--resume --out absent", "absent holds no checkpoint; leave --resume out"),
        ("--out empty.txt", "empty.txt cannot be written ("),
        ("--out empty.txt/run", "empty.txt/run cannot be written (Not a directory"),
        ("--out /proc/run", "/proc/run cannot be written ("),
        ("--out made/run", "made/run holds a run already; --resume goes on with it"),
        ("--out made/run --resume", "holds step 6 already; give --steps above 6, not 6"),
        ("--out made/run --resume --steps 9 --pp 1", "another run: --pp=2 there, --pp=1 here"),
        ("--out made/run --resume --steps 9 --seed 1", "--seed=0 there, --seed=1 here"),
        ("--out made/run --resume --steps 9 --d-model 32", "--d-model=16 there, --d-model=32 here"),
        ("--out made/run --resume --steps 9 --corpus other.txt", "is of another run: --corpus='"),
    ],
)
def test_bad_input_is_one_sentence_before_any_work(
    made, tmp_path, monkeypatch, capsys, no_process, words, said
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.txt").touch()
    (tmp_path / "short.txt").write_bytes(TEXT[:16])
    (tmp_path / "other.txt").write_bytes(TEXT[1:])
    (tmp_path / "made").symlink_to(made)
    before = sorted(tmp_path.rglob("*"))
    assert command(made, *shlex.split(words)) == 2
    seen = capsys.readouterr()
    assert seen.err.startswith("course train: ") and seen.err.count("\n") == 1
    assert said in seen.err and seen.out == ""
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "words",
    ["--steps 1e3", "--learning-rate fast", "--out", "--out ''", "--tied maybe", "--cut half"],
)
def test_a_word_that_is_none_shows_the_usage(tmp_path, capsys, no_process, words):
    with pytest.raises(SystemExit) as ended:
        command(tmp_path, *shlex.split(words))
    assert ended.value.code == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("course train: ")


@pytest.mark.parametrize("place", ["run", "run/checkpoints", "run/metrics.jsonl"])
def test_a_folder_that_may_not_be_written_is_told_before_any_work(
    tmp_path, monkeypatch, capsys, no_process, place
):
    refused = tmp_path / place

    def touch(path, *given, **more):
        if path.parent == refused or path == refused:
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *given, **more)

    name = "open" if place.endswith("jsonl") else "touch"  # root may write anywhere
    real = getattr(Path, name)
    monkeypatch.setattr(Path, name, touch)
    assert command(tmp_path, "--out", tmp_path / "run") == 2
    said = capsys.readouterr().err
    assert f"{tmp_path / 'run'} cannot be written (Permission denied: {refused}" in said
    assert said.count("\n") == 1


def cut(path):
    path.write_bytes(path.read_bytes()[:-7])


@pytest.mark.parametrize(
    ("name", "damage", "said"),
    [
        ("rank-01-of-02.safetensors", cut, r"has \d+ bytes, \d+ expected"),
        ("rank-00-of-02.safetensors", Path.unlink, "is missing"),
        ("about.json", cut, "about.json cannot be read"),
        ("about.json", lambda p: p.write_text('{"files": 3}'), "about.json names no files"),
        (
            "about.json",
            lambda p: p.write_text(p.read_text().replace('"pp": 2', '"pp": 2.5')),
            r"is of no run that this version knows \(ValueError: pp=2.5 is not a whole number",
        ),
    ],
)
@pytest.mark.parametrize("resume", [True, False])
def test_a_damaged_checkpoint_is_told_before_any_work(
    made, tmp_path, capsys, no_process, name, damage, said, resume
):
    out = tmp_path / "run"
    shutil.copytree(made / "run", out)
    damage(out / "checkpoints" / "step-000006" / name)
    words = ["--out", out, "--steps", 9, *(["--resume"] if resume else [])]
    assert command(tmp_path, *words) == 2
    seen = capsys.readouterr().err
    assert seen.count("\n") == 1
    assert re.search(said if resume else f"{said}|holds a run already", seen)
    assert metrics(out) == metrics(made / "run")
