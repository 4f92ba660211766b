"""`./course train`: a small GPT on a pipeline of real ranks, on real text."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mpedu.checkpoint import Checkpoint, check_same, latest_checkpoint
from mpedu.corpus import Corpus
from mpedu.families import SCHEDULES
from mpedu.faults import Failure, require_at_least
from mpedu.launch import run_ranks, warm_up
from mpedu.ledger import EMULATED, METRICS, Ledger, Step
from mpedu.model import GPTConfig
from mpedu.rank_errors import RankError
from mpedu.schedule import peak_in_flight
from mpedu.training import TrainConfig, train_rank

WAIT_S = 300.0  # longest single wait of a rank: longer than any step or checkpoint
CHECKPOINTS = "checkpoints"
Progress = Callable[[Step], None]


def train(
    config: TrainConfig,
    n_steps: int,
    folder: Path | None = None,
    save_every: int = 50,
    resume: Checkpoint | None = None,
    progress: Progress = lambda step: None,
    use_gpus: bool = True,
) -> Ledger:
    """The record of a training run up to step `n_steps`, on `config.pp` ranks.

    folder: takes metrics.jsonl and checkpoints; None keeps nothing. resume: goes on from there.
    RankError where a rank failed.
    """
    first = 1 if resume is None else resume.step + 1
    ledger = Ledger(config, folder, first, progress)
    saved = None if folder is None else folder / CHECKPOINTS
    run_ranks(
        train_rank,
        config.pp,
        config,
        n_steps,
        saved,
        save_every,
        resume,
        timeout_s=None,
        wait_s=WAIT_S,
        on_report=ledger.take,
        use_gpus=use_gpus,
    )
    return ledger


# ---- the command ----

# Options whose value belongs to the run, by their name in TrainConfig or GPTConfig.
_OF_RUN = {
    "pp": (int, "K", "pipeline ranks, one stage each; 1 is the serial run"),
    "schedule": (str, "NAME", f"{', '.join(SCHEDULES)}"),
    "microbatches": (int, "M", "micro-batches per batch"),
    "samples": (int, "N", "samples per batch"),
    "learning-rate": (float, "LR", "of AdamW"),
    "seed": (int, "N", "of weights, data order and dropout"),
    "corpus": (str, "FILE", "text to train on (default: Python's standard library sources)"),
    "device-clock-ms": (float, "MS", "emulate devices on which a forward takes MS ms"),
}
_OF_MODEL = {
    "layers": (int, "N", "transformer blocks"),
    "d-model": (int, "N", "width"),
    "heads": (int, "N", "attention heads"),
    "tokens": (int, "N", "bytes per sample"),
    "dropout": (float, "P", "dropout probability"),
}
_FIELD = {
    "microbatches": "n_microbatches",
    "samples": "n_samples",
    "device-clock-ms": "forward_ms",
    "layers": "n_layers",
    "heads": "n_heads",
    "tokens": "n_positions",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `./course train`."""
    parser.description = __doc__
    parser.epilog = "example: ./course train --pp 2 --schedule gpipe --steps 100 --out run"
    default = TrainConfig()
    for group, options, of in (
        ("the run", _OF_RUN, default),
        ("the model", _OF_MODEL, default.model),
    ):
        added = parser.add_argument_group(group)
        for name, (kind, metavar, text) in options.items():
            value = getattr(of, _field(name))
            shown = text if value is None else f"{text} (default: {value})"
            added.add_argument(f"--{name}", type=kind, metavar=metavar, help=shown)
    parser.add_argument("--steps", type=int, default=200, metavar="N", help="default: %(default)s")
    parser.add_argument("--out", type=Path, metavar="DIR", help="takes all files; default: none")
    parser.add_argument(
        "--resume", action="store_true", help="go on from the last checkpoint in --out"
    )
    parser.add_argument(
        "--save-every", type=int, default=50, metavar="N", help="checkpoint; default: %(default)s"
    )
    parser.add_argument("--cpu", action="store_true", help="leave GPUs alone")


def run(args: argparse.Namespace) -> int:
    """Trains as asked; 0. ValueError for what cannot be asked, Failure when a rank failed."""
    require_at_least(1, steps=args.steps, save_every=args.save_every)
    resume = _resumed(args)
    config = _config(args, resume)
    corpus = config.load_corpus()
    if resume is not None:
        check_same(resume, {"config": config.as_words(), "corpus": corpus.digest})
        if resume.step >= args.steps:
            raise ValueError(
                f"{args.out} holds step {resume.step} already; give --steps above {resume.step}"
            )
    _prepare(args.out, resume)
    warm_up()
    _introduce(config, corpus, resume)
    with _progress(args.steps, 0 if resume is None else resume.step) as progress:
        ledger = _trained(args, config, resume, progress)
    _summarise(ledger, corpus, args.out)
    return 0


def _field(option: str) -> str:
    return _FIELD.get(option, option.replace("-", "_"))


def _given(args: argparse.Namespace, options: dict[str, Any]) -> dict[str, Any]:
    values = {_field(name): getattr(args, name.replace("-", "_")) for name in options}
    return {name: value for name, value in values.items() if value is not None}


def _config(args: argparse.Namespace, resume: Checkpoint | None) -> TrainConfig:
    """What was asked; what was not is as in the checkpoint, or as by default."""
    words = TrainConfig().as_words()
    if resume is not None:
        try:
            words = TrainConfig.from_words(resume.about["config"]).as_words()
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"checkpoint {resume.path} is of no run that this version knows ({error}); "
                "start anew in another folder"
            ) from None
    words = {**words, **_given(args, _OF_RUN)}
    model = GPTConfig(**{**words["model"], **_given(args, _OF_MODEL)})
    return TrainConfig(**{**words, "model": model})


def _resumed(args: argparse.Namespace) -> Checkpoint | None:
    if not args.resume:
        return None
    if args.out is None:
        raise ValueError("--resume needs --out DIR, the folder of the run to go on with")
    found = latest_checkpoint(args.out / CHECKPOINTS)
    if found is None:
        raise ValueError(f"{args.out} holds no checkpoint; leave --resume out to start anew")
    return found


def _prepare(folder: Path | None, resume: Checkpoint | None) -> None:
    """Nothing; ValueError where `folder` holds another run or cannot be written."""
    if folder is None:
        return
    if resume is None and any((folder / CHECKPOINTS).glob("step-*")):
        raise ValueError(
            f"{folder} holds a run already; --resume goes on with it, another --out starts anew"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise ValueError(
            f"{folder} cannot be written ({error.strerror}); give --out a folder of yours"
        ) from None


def _trained(
    args: argparse.Namespace, config: TrainConfig, resume: Checkpoint | None, progress: Progress
) -> Ledger:
    try:
        return train(config, args.steps, args.out, args.save_every, resume, progress, not args.cpu)
    except RankError as error:
        raise Failure(f"{error}\n{_way_on(args.out)}") from None
    except KeyboardInterrupt:
        print(f"\n{_way_on(args.out)}", file=sys.stderr)
        raise


def _way_on(folder: Path | None) -> str:
    if folder is None:
        return "Nothing was kept: give --out DIR to be able to go on after a stop."
    try:
        found = latest_checkpoint(folder / CHECKPOINTS)
    except ValueError as error:
        return f"{error}"
    if found is None:
        return "No checkpoint was written yet: the same command starts anew."
    return f"`./course train --resume --out {folder}` goes on after step {found.step}."


# ---- what the user sees ----


def _introduce(config: TrainConfig, corpus: Corpus, resume: Checkpoint | None) -> None:
    model = config.model
    print(f"text: {corpus.name}, {len(corpus.data)} bytes, digest {corpus.digest}")
    print(
        f"model: {model.n_layers} blocks, d_model {model.d_model}, {config.n_tokens} tokens; "
        f"batch: {config.n_samples} samples in {config.n_microbatches} micro-batches"
    )
    print(f"pipeline: {config.pp} ranks, {config.schedule}")
    if config.costs:
        print(EMULATED)
    if resume is not None:
        print(f"going on after step {resume.step} from {resume.path}")


@contextmanager
def _progress(n_steps: int, n_done: int) -> Iterator[Progress]:
    """A bar on a terminal, a line now and then elsewhere."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        every = max(1, n_steps // 10)
        yield (
            lambda step: (
                print(f"step {step.step}/{n_steps}  {_told(step)}", file=sys.stderr)
                if step.step % every == 0 or step.step == n_steps
                else None
            )
        )
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.description}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("starting", total=n_steps, completed=n_done)
        yield lambda step: bar.update(task, completed=step.step, description=_told(step))


def _told(step: Step) -> str:
    return f"loss {step.loss:.3f}  {step.tokens_per_s:,.0f} tokens/s  idle {step.idle_share:.0%}"


def _summarise(ledger: Ledger, corpus: Corpus, folder: Path | None) -> None:
    last = ledger.steps[-1]
    entropy = corpus.unigram_entropy_nats
    print(f"loss: {last.loss:.4f} nats per byte at step {last.step}; unigram entropy {entropy:.4f}")
    print(f"speed: {ledger.tokens_per_s:,.0f} tokens/s (median step)")
    shares = [f"{ledger.measured_idle:.1%} measured", _share(ledger.predicted(), "equal stages")]
    timed = ledger.predicted_as_timed()
    if timed is not None:
        shares.append(_share(timed, "this run's mean times"))
    print(f"idle share: {', '.join(shares)}")
    predicted = peak_in_flight(ledger.schedule)
    peaks = [f"stage {rank}: {ledger.peaks[rank]}" for rank in sorted(ledger.peaks)]
    print(f"peak in flight: {', '.join(peaks)} micro-batches (the list says {predicted})")
    if ledger.config.costs:
        print(EMULATED)
    if folder is not None:
        (folder / "run.json").write_text(json.dumps(ledger.config.as_words(), indent=1) + "\n")
        made = [folder / METRICS, *ledger.draw(folder, entropy), folder / CHECKPOINTS]
        print(f"written: {', '.join(map(str, made))}")


def _share(timeline: Any, given: str) -> str:
    return f"{float(timeline.idle_share):.1%} predicted for {given}"
