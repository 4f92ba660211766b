"""The options of `./course train`, and what they say of a run."""

import argparse
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from mpedu.cut import EVEN
from mpedu.families import SCHEDULES
from mpedu.train_config import DTYPES, Plan, TrainConfig

MEASURED = "measured"  # a cut that is found before the run


def _file(text: str) -> str:
    return str(Path(text).absolute())  # a run can go on from another folder


def _folder(text: str) -> Path:
    if not text:  # Path("") is the current folder
        raise argparse.ArgumentTypeError("the name is empty; give a folder, . for this one")
    return Path(text)


def _yes_or_no(text: str) -> bool:
    if text not in ("yes", "no"):
        raise argparse.ArgumentTypeError(f"{text!r:.80}; say yes or no")
    return text == "yes"


def _word_or_number(text: str) -> str | int:
    return int(text) if text.isdecimal() else text


def _cut(text: str) -> str | tuple[int, ...]:
    if text in (EVEN, MEASURED):
        return text
    try:
        return tuple(map(int, text.split(",")))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r:.80}; say {EVEN}, {MEASURED}, or blocks of each stage like 3,3,2"
        ) from None


class Option(NamedTuple):
    """An option that sets the field of this name."""

    flag: str
    field: str
    kind: Callable[[str], Any]
    metavar: str
    text: str


RUN_AGAIN = "what backward runs again, to hold less: none, block, sqrt, stage, or N blocks"
CUT = f"blocks of each stage like 3,3,2, {EVEN}, or {MEASURED}: by what they cost here"
OF_CONFIG = [
    Option("--pp", "pp", int, "K", "pipeline ranks; 1 is the serial run"),
    Option("--dp", "dp", int, "D", "data ranks, which share the batch; K pipeline ranks each"),
    Option("--schedule", "schedule", str, "NAME", ", ".join(SCHEDULES)),
    Option("--chunks", "n_chunks", int, "V", "stages per rank, if NAME takes any (default: 2)"),
    Option("--cut", "cut", _cut, "HOW", CUT),
    Option("--microbatches", "n_microbatches", int, "M", "micro-batches per data rank"),
    Option("--samples", "n_samples", int, "N", "samples per batch"),
    Option("--learning-rate", "learning_rate", float, "LR", "of AdamW"),
    Option("--seed", "seed", int, "N", "of weights, data order and dropout"),
    Option("--dtype", "dtype", str, "NAME", " or ".join(DTYPES)),
    Option("--checkpoint", "checkpoint", _word_or_number, "HOW", RUN_AGAIN),
    Option("--corpus", "corpus", _file, "FILE", "text (default: Python's standard library)"),
    Option("--device-clock-ms", "device_clock_ms", float, "MS", "emulate devices: MS a forward"),
]
OF_MODEL = [
    Option("--layers", "n_layers", int, "N", "transformer blocks"),
    Option("--d-model", "d_model", int, "N", "width"),
    Option("--heads", "n_heads", int, "N", "attention heads"),
    Option("--tokens", "n_positions", int, "N", "bytes per sample"),
    Option("--dropout", "dropout", float, "P", "dropout probability"),
    Option("--tied", "tied", _yes_or_no, "yes|no", "the head uses the token embedding"),
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
            shown = text if value is None or value is False else f"{text} (default: {value})"
            group.add_argument(flag, dest=field, type=kind, metavar=metavar, help=shown)
    group.add_argument("--resume", action="store_true", help="go on from the last checkpoint")
    parser.add_argument("--cpu", action="store_true", help="leave GPUs alone")
    parser.add_argument(
        "--check-messages", action="store_true", help="compare both ends of each message; slower"
    )


@contextmanager
def in_the_words_of_options() -> Iterator[None]:
    """Says `--layers=0`, as it was typed, where an error says `n_layers=0`."""
    try:
        yield
    except ValueError as error:
        text = str(error)
        flags = {option.field: option.flag for option in OF_CONFIG + OF_MODEL + OF_PLAN}
        for field, flag in {**flags, "n_tokens": "--tokens", "n_ranks": "--pp"}.items():
            text = re.sub(rf"\b(config\.(model\.)?)?{field}(?==| [<>]=| out\b)", flag, text)
        raise ValueError(text) from None


def given(args: argparse.Namespace, options: Sequence[Option]) -> dict[str, Any]:
    """What was said of these fields."""
    values = {option.field: getattr(args, option.field) for option in options}
    return {field: value for field, value in values.items() if value is not None}
