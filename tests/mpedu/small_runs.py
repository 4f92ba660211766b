"""Training runs small enough for tests, and what they leave."""

import json
from pathlib import Path

from mpedu.__main__ import main
from mpedu.model import GPTConfig
from mpedu.train import Plan, train
from mpedu.training import TrainConfig

TEXT = b"".join(b"def f%d(x):\n    return x + %d\n" % (i, i) for i in range(200))
SMALL = "--layers 2 --d-model 16 --tokens 16 --samples 4 --microbatches 4".split()


def text_in(folder):
    path = Path(folder) / "text.py"
    path.write_bytes(TEXT)
    return path


def small(folder, pp=2, n_layers=2, dropout=0.0, **given):
    model = GPTConfig(n_layers=n_layers, d_model=16, n_positions=16, dropout=dropout)
    sizes = {"n_samples": 4, "n_microbatches": 4, "corpus": str(text_in(folder)), **given}
    return TrainConfig(pp=pp, model=model, **sizes)


def losses_of(config, n_steps, **given):
    return train(config, Plan(n_steps, **given)).losses


def command(folder, *words):
    """The exit status of `./course train` with the small model, its text and `words`."""
    return main(["train", *SMALL, "--corpus", str(text_in(folder)), *map(str, words)])


def metrics(out):
    return [json.loads(line) for line in (Path(out) / "metrics.jsonl").read_text().splitlines()]


def told_losses(out):
    """The losses in a metrics file, whose steps must be 1, 2, ..."""
    words = metrics(out)
    assert [word["step"] for word in words] == list(range(1, len(words) + 1))
    return [word["loss"] for word in words]
