"""Text to train on, as bytes: the interpreter's own standard library, or any file."""

import hashlib
import os
import platform
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from mpedu.faults import require_at_least
from mpedu.keyed import keyed_generator

# Not the library's own prose: tests, other packages, applications, tables of character codes
LEFT_OUT = frozenset(
    "test tests idle_test site-packages dist-packages __pycache__ encodings "
    "idlelib lib2to3 turtledemo".split()
)
BUILD_FACTS = ("config-", "_sysconfigdata")  # how and where this interpreter was compiled


@dataclass(frozen=True, eq=False)
class Corpus:
    """A text as bytes, a byte being a token.

    data:   uint8 [n_bytes]
    digest: the first 12 hex digits of the SHA-256 of the bytes
    """

    name: str
    data: Tensor
    digest: str

    @property
    def unigram_entropy_nats(self) -> float:
        """Least mean loss, in nats per byte, of a model that knows only how often a byte occurs."""
        counts = torch.bincount(self.data, minlength=256)
        share = counts.double() / len(self.data)
        return float(torch.special.entr(share).sum())

    def batch(
        self, step: int, n_samples: int, n_tokens: int, seed: int = 0
    ) -> tuple[Tensor, Tensor]:
        """Inputs and targets of one step, int64 [n_samples, n_tokens]; a target is the next byte.

        Each sample starts at any place that leaves it whole, all equally likely. The places follow
        from `seed` and `step` alone, so every rank and a resumed run read the same batch.
        ValueError where the corpus is shorter than one sample, n_tokens + 1 bytes.
        """
        require_at_least(1, n_samples=n_samples, n_tokens=n_tokens)
        n_places = len(self.data) - n_tokens
        if n_places < 1:
            raise ValueError(
                f"corpus {self.name} holds {len(self.data)} bytes and n_tokens={n_tokens} needs "
                f"{n_tokens + 1} per sample; give a longer text or fewer tokens"
            )
        generator = keyed_generator(seed, "batch", step)
        start = torch.randint(n_places, (n_samples, 1), generator=generator)
        place = start + torch.arange(n_tokens)
        return self.data[place].long(), self.data[place + 1].long()


def load_corpus(path: Path | None = None) -> Corpus:
    """The text at `path`, or the sources of this interpreter's standard library without one.

    ValueError where the file is missing, a folder, not readable or empty.
    """
    if path is None:
        name, text = _standard_library()
    else:
        name, text = path.name, _read(path)
    # a bytearray, because torch warns of memory that cannot be written
    data = torch.frombuffer(bytearray(text), dtype=torch.uint8)
    return Corpus(name, data, hashlib.sha256(text).hexdigest()[:12])


def _read(path: Path) -> bytes:
    try:
        if path.is_dir():
            fault = "is a folder"
        elif path.exists() and not path.is_file():  # reading a pipe or a device may never end
            fault = "is not a regular file"
        elif text := path.read_bytes():
            return text
        else:
            fault = "is empty, 0 bytes"
    except FileNotFoundError:
        fault = "does not exist"
    except OSError as error:
        fault = f"cannot be read ({error.strerror})"
    raise ValueError(
        f"corpus {path} {fault}; give a file of text, or none for the standard library"
    )


def _standard_library() -> tuple[str, bytes]:
    root = Path(sysconfig.get_path("stdlib"))
    # sorted by their names within the library, so that the order is the same wherever it lies
    files = sorted(_sources(root), key=lambda path: path.relative_to(root).as_posix())
    if not files:
        raise ValueError(f"no standard library sources in {root}; give a file of text instead")
    name = f"Python {platform.python_version()} standard library, {len(files)} files"
    return name, b"".join(path.read_bytes() for path in files)


def _sources(root: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(root):
        folders[:] = [n for n in folders if n not in LEFT_OUT and not n.startswith(BUILD_FACTS)]
        for name in names:
            if name.endswith(".py") and not name.startswith(BUILD_FACTS):
                yield Path(folder, name)
