"""Checkpoints: a folder per saved step with one file per rank, there as a whole or not at all.

`step-000200/` holds `rank-00-of-02.safetensors`, .. and `about.json`, which names every file with
its size and SHA-256 and says what the run was.
"""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from mpedu.comm import Comm
from mpedu.faults import require_at_least

ABOUT = "about.json"
PARTIAL = ".partial"  # ends the name of a folder that is being written


class Checkpoint(NamedTuple):
    """One saved step: its folder, and what about.json says of the run."""

    path: Path
    step: int
    about: dict[str, Any]

    def load(self, rank: int, names: Iterable[str] | None = None) -> dict[str, Tensor]:
        """The tensors that `rank` saved, by name, on the CPU; all of them without `names`.

        ValueError for a rank or a name that was not saved, and for a damaged file.
        """
        files: dict[str, dict[str, Any]] = self.about["files"]
        file_name = _file_name(rank, len(files))
        if file_name not in files:
            raise ValueError(
                f"checkpoint {self.path} has no rank {rank}; its ranks are 0 to {len(files) - 1}"
            )
        try:
            _require_whole(self.path / file_name, files[file_name])
        except ValueError as error:
            raise ValueError(f"checkpoint {self.path} is damaged: {error}") from None
        with safe_open(self.path / file_name, framework="pt") as file:
            there = list(file.keys())
            wanted = there if names is None else list(names)
            if unknown := [name for name in wanted if name not in there]:
                raise ValueError(
                    f"{self.path / file_name} has no tensor {unknown[0]!r}; it has {len(there)}, "
                    f"from {there[:1]} to {there[-1:]}"
                )
            # Copies: tensors mapped to the file would change, or end the process, with it.
            return {name: file.get_tensor(name).clone() for name in wanted}


def save_checkpoint(
    folder: Path,
    comm: Comm,
    step: int,
    tensors: Mapping[str, Tensor],
    about: Mapping[str, Any],
    keep: int = 2,
) -> Path:
    """The folder `step-NNNNNN` in `folder`, written by all ranks together and found only whole.

    Every rank calls this with its own tensors; rank 0's `about` (JSON values) is written, with the
    step, and every file's name, size in bytes and SHA-256. Of this and earlier steps `keep`
    stay. A run stopped in here leaves the checkpoints as they were, and a `.partial` folder for
    `remove_partial` or the next save to remove. ValueError when nothing can be written, and for a
    step saved already.
    """
    require_at_least(0, step=step)
    require_at_least(1, keep=keep)
    words = json.loads(json.dumps(dict(about)))  # what is no JSON fails before anything is written
    path = Path(folder) / f"step-{step:06d}"
    if _is_whole(path):
        raise ValueError(f"checkpoint {path} is there already; save the run in another folder")
    partial = path.with_name(path.name + PARTIAL)
    if comm.rank == 0:
        with _writing(path):
            remove_partial(path.parent)
            partial.mkdir(parents=True)
    comm.barrier()
    with _writing(path):
        _write_tensors(partial / _file_name(comm.rank, comm.size), tensors)
    comm.barrier()
    if comm.rank == 0:
        with _writing(path):
            _publish(partial, path, {**words, "step": step}, comm.size)
            _remove([old for at, old in _saved(path.parent) if at <= step][keep:])
    comm.barrier()
    return path


def remove_partial(folder: Path) -> None:
    """Nothing; removes what saves that did not end left in `folder`. No save may be under way."""
    _remove(folder.glob(f"step-*{PARTIAL}"))


def latest_checkpoint(folder: Path) -> Checkpoint | None:
    """The checkpoint of the highest step, every file as it was saved; None where none was saved.

    ValueError when it is damaged, naming the newest whole one, which is not used unasked.
    """
    newest_first = [path for _, path in _saved(Path(folder))]
    if not newest_first:
        return None
    try:
        return _read(newest_first[0])
    except ValueError as error:
        whole = next((path.name for path in newest_first[1:] if _is_whole(path)), None)
        next_best = f"go on from {whole}, which is whole" if whole else "start anew"
        name = newest_first[0].name
        raise ValueError(f"{error}; remove the folder {name} to {next_best}") from None


def check_same(checkpoint: Checkpoint, expected_about: Mapping[str, Any]) -> None:
    """Nothing when the checkpoint says of itself all that is expected; else ValueError.

    Its sentence lists every key that differs; keys that only the checkpoint has do not count.
    """
    expected = json.loads(json.dumps(dict(expected_about)))  # a tuple comes back as a list
    there = dict(_flat({key: v for key, v in checkpoint.about.items() if key in expected}))
    here = dict(_flat(expected))
    differing = [
        f"{_said(there, key)} there, {_said(here, key)} here"
        for key in {**there, **here}
        if _said(there, key) != _said(here, key)
    ]
    if differing:
        raise ValueError(
            f"checkpoint {checkpoint.path} is of another run: {'; '.join(differing)}; "
            "ask for what it was saved with, or start anew in another folder"
        )


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every value that is no mapping itself, with its dotted key, ("model.n_layers", 4)."""
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _said(values: Mapping[str, Any], key: str) -> str:
    return f"{key}={values[key]!r}" if key in values else f"no {key}"


def _file_name(rank: int, n_ranks: int) -> str:
    return f"rank-{rank:02d}-of-{n_ranks:02d}.safetensors"


def _saved(folder: Path) -> list[tuple[int, Path]]:
    """(step, folder) of everything that carries a checkpoint's name, newest first."""
    paths = folder.iterdir() if folder.is_dir() else []
    named = [(re.fullmatch(r"step-(\d{6,})", path.name), path) for path in paths]
    return sorted(((int(match[1]), path) for match, path in named if match), reverse=True)


def _remove(folders: Iterable[Path]) -> None:
    for folder in folders:
        shutil.rmtree(folder)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Tells in one sentence what keeps a checkpoint from being written."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        raise ValueError(
            f"checkpoint {path} is not written ({error}); make room, or choose another folder"
        ) from error


def _write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    # Own, contiguous memory for each: the format refuses tensors that share theirs.
    contiguous = torch.contiguous_format
    own = {
        name: x.detach().to("cpu", copy=True, memory_format=contiguous)
        for name, x in tensors.items()
    }
    save_file(own, path)
    _to_disk(path)


def _publish(partial: Path, path: Path, about: dict[str, Any], n_ranks: int) -> None:
    """Gives a folder with every rank's file its about.json and its name, safe from a power cut."""
    names = [_file_name(rank, n_ranks) for rank in range(n_ranks)]
    about["files"] = {name: _fingerprint(partial / name) for name in names}
    (partial / ABOUT).write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    _to_disk(partial / ABOUT)
    _to_disk(partial)
    if path.exists():
        _remove([path])  # damaged: a whole one is refused before
    os.rename(partial, path)
    _to_disk(path.parent)


def _fingerprint(path: Path) -> dict[str, Any]:
    """What tells a file from any other, and from a damaged one."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"bytes": path.stat().st_size, "sha256": digest}


def _to_disk(path: Path) -> None:
    """Waits until a file's bytes, or a folder's names, would outlast a power cut."""
    if path.is_dir() and os.name == "nt":
        return  # Windows opens no folder, and keeps its names safe itself
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _is_whole(path: Path) -> bool:
    with suppress(ValueError):
        return bool(_read(path))
    return False


def _read(path: Path) -> Checkpoint:
    """The checkpoint in a folder, its files proven whole; ValueError with what is damaged."""
    try:
        about = _about_in(path)
        for name, fingerprint in about["files"].items():
            _require_whole(path / name, fingerprint)
    except ValueError as error:
        raise ValueError(f"checkpoint {path} is damaged: {error}") from None
    return Checkpoint(path, about["step"], about)


def _about_in(path: Path) -> dict[str, Any]:
    try:
        about = json.loads((path / ABOUT).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"{ABOUT} is missing") from None
    except (OSError, ValueError) as error:
        raise ValueError(f"{ABOUT} cannot be read ({error})") from None
    files = about.get("files") if isinstance(about, dict) else None
    if not isinstance(files, dict) or not files:
        raise ValueError(f"{ABOUT} names no files")
    if set(files) != {_file_name(rank, len(files)) for rank in range(len(files))}:
        raise ValueError(f"{ABOUT} names files that are not those of ranks 0 to {len(files) - 1}")
    if about.get("step") != int(path.name.removeprefix("step-")):
        raise ValueError(f"{ABOUT} is of step {about.get('step')!r}")
    return dict(about)


def _require_whole(path: Path, saved: Any) -> None:
    """Nothing; ValueError when a file is not the one that was saved, byte for byte."""
    if not isinstance(saved, dict) or set(saved) != {"bytes", "sha256"}:
        raise ValueError(f"{ABOUT} has no size and SHA-256 of {path.name}")
    if not path.is_file():
        raise ValueError(f"{path.name} is missing")
    n_there = path.stat().st_size
    if n_there != saved["bytes"]:
        raise ValueError(f"{path.name} has {n_there} bytes, {saved['bytes']} expected")
    try:
        there = _fingerprint(path)
    except OSError as error:
        raise ValueError(f"{path.name} cannot be read ({error})") from None
    if there != saved:
        raise ValueError(f"{path.name} holds other bytes than were saved (its SHA-256 differs)")
