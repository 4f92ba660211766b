"""What this machine offers to the course, in lines a student can send to a teacher."""

import os
import platform
from importlib import metadata
from pathlib import Path


def environment_lines() -> list[str]:
    """Python, torch, cores and GPUs of this machine, one short line each.

    Reads package metadata and device files only: importing torch would take over a second.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    gpus = len(list(Path("/dev").glob("nvidia[0-9]*")))
    return [
        f"Python {platform.python_version()}",
        f"torch {_version('torch')}",
        f"cores: {cores}",
        f"GPUs: {gpus}",
    ]


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
