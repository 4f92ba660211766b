"""`./course train`: a small GPT on pipelines of real ranks, on real text."""

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

from mpedu.checkpoint import Checkpoint, check_same, latest_checkpoint, remove_partial
from mpedu.comm import Comm
from mpedu.corpus import Corpus
from mpedu.cut import EVEN
from mpedu.faults import Failure
from mpedu.launch import run_ranks, warm_up
from mpedu.layer_costs import LayerCosts, measure_layers
from mpedu.ledger import EMULATED, METRICS, Ledger, Step, alone_in
from mpedu.plot.layout import counted
from mpedu.ranks.errors import RankError
from mpedu.train_config import CHECKPOINTS, Plan, TrainConfig, about_run, run_of
from mpedu.train_options import (
    MEASURED,
    OF_CONFIG,
    OF_MODEL,
    OF_PLAN,
    given,
    in_the_words_of_options,
)
from mpedu.train_options import add_arguments as add_arguments  # what a command is made of
from mpedu.training import train_rank

# A single wait of a rank may last longer than any step or checkpoint.
LIMITS: dict[str, Any] = {"timeout_s": None, "wait_s": 300.0}
N_LINES = 10  # of progress, where there is no terminal to draw a bar on
AfterStep = Callable[[Step], None]


def train(
    config: TrainConfig,
    plan: Plan,
    resume: Checkpoint | None = None,
    after_step: AfterStep = lambda step: None,
    use_gpus: bool = True,
    check_messages: bool = False,
) -> Ledger:
    """The record of a training run on `config.n_ranks` ranks; resume: goes on from there.

    RankError where a rank failed, Failure where the loss is no finite number any more.
    """
    earlier = [] if resume is None else resume.about["losses"]
    ledger = Ledger(config, plan.folder, earlier, after_step)
    arguments = (config, plan, resume)
    how = {**LIMITS, "use_gpus": use_gpus, "check_messages": check_messages}
    run_ranks(train_rank, config.n_ranks, *arguments, **how, on_report=ledger.take)
    return ledger


def measured_costs(config: TrainConfig, use_gpus: bool = True) -> LayerCosts:
    """What a micro-batch of this run costs, on one rank of this machine with nothing beside it."""
    (costs,) = run_ranks(_measure, 1, config, **LIMITS, use_gpus=use_gpus).results
    return LayerCosts(*costs)


def _measure(comm: Comm, config: TrainConfig) -> LayerCosts:
    largest = -(-config.n_samples // (config.dp * config.n_microbatches))
    dtype, checkpoint = config.torch_dtype, config.checkpoint
    return measure_layers(
        config.model, largest, device=comm.device, dtype=dtype, checkpoint=checkpoint
    )


# ---- the command ----


def run(args: argparse.Namespace) -> int:
    """Trains as asked; 0. ValueError for what cannot be asked, Failure when a rank failed."""
    resume = _resumed(args)
    config, plan = _asked(args, resume)
    with in_the_words_of_options():
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
        with _telling_the_way_on(plan.folder, args.cpu):
            costs = None
            if args.cut == MEASURED:
                costs = measured_costs(config, not args.cpu)
                layers = costs.cut(config.model.n_layers, len(config.n_blocks))
                config = replace(config, cut=tuple(map(len, layers)))
            _introduce(config, corpus, resume, costs)
            with _progress(plan.n_steps, resume.step if resume else 0) as after_step:
                ledger = train(config, plan, resume, after_step, not args.cpu, args.check_messages)
            _summarise(ledger, corpus, plan.folder)
    return 0


def _resumed(args: argparse.Namespace) -> Checkpoint | None:
    if not args.resume:
        return None
    if args.folder is None:
        raise ValueError("--resume needs --out DIR, the folder of the run to go on with")
    found = latest_checkpoint(args.folder / CHECKPOINTS)
    if found is None:
        raise ValueError(f"{args.folder} holds no checkpoint; leave --resume out to start anew")
    if args.cut == MEASURED:
        raise ValueError(
            f"--cut {MEASURED} with --resume: a run goes on with the cut it was saved with; "
            "leave --cut out"
        )
    return found


def _asked(args: argparse.Namespace, resume: Checkpoint | None) -> tuple[TrainConfig, Plan]:
    """What was asked for; what was not is as in the checkpoint, or as by default."""
    config, plan = (TrainConfig(), Plan()) if resume is None else run_of(resume)
    with in_the_words_of_options():
        model = replace(config.model, **given(args, OF_MODEL))
        words = given(args, OF_CONFIG)
        if words.get("cut") == MEASURED:
            words["cut"] = EVEN  # until it is
        config = replace(config, model=model, **words)
        return config, replace(plan, **given(args, OF_PLAN))


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


def _introduce(
    config: TrainConfig, corpus: Corpus, resume: Checkpoint | None, costs: LayerCosts | None
) -> None:
    model, n_stages = config.model, len(config.n_blocks)
    tied = ", tied" * model.tied
    shared = f"over {config.dp} data ranks, each " * (config.dp > 1)
    cut = f", {n_stages} stages" * (n_stages > config.pp)
    cut += f", blocks {','.join(map(str, config.n_blocks))}" * (n_stages > 1)
    cut += f", checkpoint {config.checkpoint}" * (config.checkpoint != "none")
    lines = [
        f"text: {corpus.name}, {len(corpus.data)} bytes, digest {corpus.digest}",
        f"model: {model.n_layers} blocks, d_model {model.d_model}, {config.n_tokens} tokens{tied}; "
        f"batch: {config.n_samples} samples {shared}in {config.n_microbatches} micro-batches",
        f"pipeline: {counted(config.pp, 'rank')}, {config.schedule}{cut}",
    ]
    if costs is not None:
        shown = zip(("embedding", "a block", "head and loss"), costs, strict=True)
        parts = ", ".join(f"{name} {1000 * seconds:.2f} ms" for name, seconds in shown)
        lines.append(f"cut as measured: {parts} for a forward and backward of a micro-batch")
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
    print(f"peak in flight: {ledger.peaks_in_words()}")
    if ledger.config.costs:
        print(EMULATED)
    if folder is not None:
        made = [folder / METRICS, *ledger.draw(folder, entropy), folder / CHECKPOINTS]
        print(f"written: {', '.join(map(str, made))}")
