"""`./course train`: a small GPT on a pipeline of real ranks, on real text."""

import argparse
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import psutil  # type: ignore[import-untyped]

from mpedu.checkpoint import Checkpoint, check_same, latest_checkpoint, remove_partial
from mpedu.corpus import Corpus
from mpedu.families import SCHEDULES
from mpedu.faults import Failure
from mpedu.launch import run_ranks, warm_up
from mpedu.ledger import EMULATED, METRICS, Ledger, Step, alone_in
from mpedu.ranks.errors import RankError
from mpedu.schedule import peak_in_flight
from mpedu.training import CHECKPOINTS, Plan, TrainConfig, about_run, run_of, train_rank

WAIT_S = 300.0  # longest single wait of a rank: longer than any step or checkpoint
N_LINES = 10  # of progress, where there is no terminal to draw a bar on
AfterStep = Callable[[Step], None]


def train(
    config: TrainConfig,
    plan: Plan,
    resume: Checkpoint | None = None,
    after_step: AfterStep = lambda step: None,
    use_gpus: bool = True,
) -> Ledger:
    """The record of a training run on `config.pp` ranks; resume: goes on from there.

    RankError where a rank failed, Failure where the loss is no finite number any more.
    """
    earlier = [] if resume is None else resume.about["losses"]
    ledger = Ledger(config, plan.folder, earlier, after_step)
    arguments = (config, plan, resume)
    limits: dict[str, Any] = {"timeout_s": None, "wait_s": WAIT_S}
    how = {**limits, "use_gpus": use_gpus, "check_messages": False}
    run_ranks(train_rank, config.pp, *arguments, **how, on_report=ledger.take)
    return ledger


# ---- the command ----


def _file(text: str) -> str:
    return str(Path(text).absolute())  # a run can go on from another folder


def _folder(text: str) -> Path:
    if not text:  # Path("") is the current folder
        raise argparse.ArgumentTypeError("the name is empty; give a folder, . for this one")
    return Path(text)


class Option(NamedTuple):
    """An option that sets the field of this name."""

    flag: str
    field: str
    kind: Callable[[str], Any]
    metavar: str
    text: str


OF_CONFIG = [
    Option("--pp", "pp", int, "K", "pipeline ranks; 1 is the serial run"),
    Option("--schedule", "schedule", str, "NAME", ", ".join(SCHEDULES)),
    Option("--chunks", "n_chunks", int, "V", "stages per rank, for interleaved and looped-bfs"),
    Option("--microbatches", "n_microbatches", int, "M", "micro-batches per batch"),
    Option("--samples", "n_samples", int, "N", "samples per batch"),
    Option("--learning-rate", "learning_rate", float, "LR", "of AdamW"),
    Option("--seed", "seed", int, "N", "of weights, data order and dropout"),
    Option("--corpus", "corpus", _file, "FILE", "text (default: Python's standard library)"),
    Option("--device-clock-ms", "device_clock_ms", float, "MS", "emulate devices: MS a forward"),
]
OF_MODEL = [
    Option("--layers", "n_layers", int, "N", "transformer blocks"),
    Option("--d-model", "d_model", int, "N", "width"),
    Option("--heads", "n_heads", int, "N", "attention heads"),
    Option("--tokens", "n_positions", int, "N", "bytes per sample"),
    Option("--dropout", "dropout", float, "P", "dropout probability"),
]
OF_PLAN = [
    Option("--steps", "n_steps", int, "N", "the last step"),
    Option("--save-every", "save_every", int, "N", "steps between checkpoints"),
    Option("--out", "folder", _folder, "DIR", "takes all files (default: nothing is kept)"),
]
EPILOG = """example: ./course train --pp 2 --schedule gpipe --steps 100 --out run
         ./course train --resume --steps 200 --out run

With --resume, whatever is not given is as it was."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `./course train`."""
    parser.description = "Trains a small GPT on real text, each pipeline stage in its own process."
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    default = TrainConfig()
    for title, options, of in (
        ("the training", OF_CONFIG, default),
        ("the model", OF_MODEL, default.model),
        ("how long, and what is kept", OF_PLAN, Plan()),
    ):
        group = parser.add_argument_group(title)
        for flag, field, kind, metavar, text in options:
            value = getattr(of, field)
            shown = text if value is None else f"{text} (default: {value})"
            group.add_argument(flag, dest=field, type=kind, metavar=metavar, help=shown)
    group.add_argument("--resume", action="store_true", help="go on from the last checkpoint")
    parser.add_argument("--cpu", action="store_true", help="leave GPUs alone")


def run(args: argparse.Namespace) -> int:
    """Trains as asked; 0. ValueError for what cannot be asked, Failure when a rank failed."""
    resume = _resumed(args)
    config, plan = _asked(args, resume)
    with _in_the_words_of_options():
        config.require_memory(psutil.virtual_memory().total)
        corpus = config.load_corpus()
        if resume is not None:
            asked = about_run(config, plan, corpus.digest, [])
            check_same(resume, {"config": asked["config"]})
    if resume is not None and resume.step >= plan.n_steps:
        raise ValueError(
            f"{plan.folder} holds step {resume.step} already; "
            f"give --steps above {resume.step}, not {plan.n_steps}"
        )
    with alone_in(plan.folder) if plan.folder else nullcontext():
        if plan.folder and not resume and latest_checkpoint(plan.folder / CHECKPOINTS):
            raise ValueError(
                f"{plan.folder} holds a run already; "
                "--resume goes on with it, another --out starts anew"
            )
        warm_up()
        _introduce(config, corpus, resume)
        with _telling_the_way_on(plan.folder, args.cpu):
            with _progress(plan.n_steps, resume.step if resume else 0) as after_step:
                ledger = train(config, plan, resume, after_step, not args.cpu)
            _summarise(ledger, corpus, plan.folder)
    return 0


@contextmanager
def _in_the_words_of_options() -> Iterator[None]:
    """Says `--layers=0`, as it was typed, where an error says `n_layers=0`."""
    try:
        yield
    except ValueError as error:
        text = str(error)
        flags = {option.field: option.flag for option in OF_CONFIG + OF_MODEL + OF_PLAN}
        for field, flag in {**flags, "n_tokens": "--tokens"}.items():
            text = re.sub(rf"\b(config\.(model\.)?)?{field}(?==| [<>]=)", flag, text)
        raise ValueError(text) from None


def _resumed(args: argparse.Namespace) -> Checkpoint | None:
    if not args.resume:
        return None
    if args.folder is None:
        raise ValueError("--resume needs --out DIR, the folder of the run to go on with")
    found = latest_checkpoint(args.folder / CHECKPOINTS)
    if found is None:
        raise ValueError(f"{args.folder} holds no checkpoint; leave --resume out to start anew")
    return found


def _asked(args: argparse.Namespace, resume: Checkpoint | None) -> tuple[TrainConfig, Plan]:
    """What was asked for; what was not is as in the checkpoint, or as by default."""
    config, plan = (TrainConfig(), Plan()) if resume is None else run_of(resume)
    with _in_the_words_of_options():
        model = replace(config.model, **_given(args, OF_MODEL))
        config = replace(config, model=model, **_given(args, OF_CONFIG))
        return config, replace(plan, **_given(args, OF_PLAN))


def _given(args: argparse.Namespace, options: Sequence[Option]) -> dict[str, Any]:
    values = {option.field: getattr(args, option.field) for option in options}
    return {field: value for field, value in values.items() if value is not None}


@contextmanager
def _telling_the_way_on(folder: Path | None, cpu: bool) -> Iterator[None]:
    """Whatever stops a run, its user hears what is kept of it and how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        with suppress(OSError):  # the terminal may be gone
            print(f"\n{_way_on(folder, cpu)}", file=sys.stderr)
        raise
    except (RankError, OSError) as error:
        raise Failure(f"{error}\n{_way_on(folder, cpu)}") from None


def _way_on(folder: Path | None, cpu: bool) -> str:
    if folder is None:
        return "Nothing was kept: give --out DIR to be able to go on after a stop."
    with suppress(OSError):  # all ranks have ended
        remove_partial(folder / CHECKPOINTS)
    try:
        found = latest_checkpoint(folder / CHECKPOINTS)
    except ValueError as error:
        return f"{error}"
    if found is None:
        return "No checkpoint was written yet: the same command starts anew."
    words = ["./course", "train", "--resume", "--out", str(folder), *["--cpu"][: int(cpu)]]
    return f"Step {found.step} is kept whole: `{shlex.join(words)}` goes on after it."


# ---- what the user sees ----


def _introduce(config: TrainConfig, corpus: Corpus, resume: Checkpoint | None) -> None:
    model = config.model
    lines = [
        f"text: {corpus.name}, {len(corpus.data)} bytes, digest {corpus.digest}",
        f"model: {model.n_layers} blocks, d_model {model.d_model}, {config.n_tokens} tokens; "
        f"batch: {config.n_samples} samples in {config.n_microbatches} micro-batches",
        f"pipeline: {config.pp} ranks, {config.schedule}",
    ]
    if config.costs:
        lines.append(EMULATED)
    if resume is not None:
        lines.append(f"going on after step {resume.step} from {resume.path}")
    print("\n".join(lines), flush=True)  # before the progress, which is on stderr


@contextmanager
def _progress(n_steps: int, n_done: int) -> Iterator[AfterStep]:
    """A bar on a terminal, a line now and then elsewhere."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        every = max(1, (n_steps - n_done) // N_LINES)
        yield lambda step: _print_line(step, n_steps) if _is_due(step, n_steps, every) else None
        return
    from rich import progress as rich
    from rich.console import Console

    columns = (
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        rich.TextColumn("{task.description}"),
        rich.TimeRemainingColumn(),
    )
    with rich.Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("starting", total=n_steps, completed=n_done)
        yield lambda step: bar.update(task, completed=step.step, description=_told(step))


def _is_due(step: Step, n_steps: int, every: int) -> bool:
    return step.step % every == 0 or step.step == n_steps


def _print_line(step: Step, n_steps: int) -> None:
    print(f"step {step.step}/{n_steps}  {_told(step)}", file=sys.stderr, flush=True)


def _told(step: Step) -> str:
    return f"loss {step.loss:.3f}  {step.tokens_per_s:,.0f} tokens/s  idle {step.idle_share:.0%}"


def _summarise(ledger: Ledger, corpus: Corpus, folder: Path | None) -> None:
    last = ledger.steps[-1]
    entropy = corpus.unigram_entropy_nats
    print(f"loss: {last.loss:.4f} nats per byte at step {last.step}; unigram entropy {entropy:.4f}")
    print(f"speed: {ledger.tokens_per_s:,.0f} tokens/s (median step)")
    print(f"idle share: {ledger.idle_in_words()}")
    predicted = peak_in_flight(ledger.schedule)
    peaks = [f"stage {stage}: {peak}" for stage, peak in enumerate(ledger.peaks)]
    print(f"peak in flight: {', '.join(peaks)} micro-batches (the list says {predicted})")
    if ledger.config.costs:
        print(EMULATED)
    if folder is not None:
        made = [folder / METRICS, *ledger.draw(folder, entropy), folder / CHECKPOINTS]
        print(f"written: {', '.join(map(str, made))}")
