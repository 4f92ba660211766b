"""Where the cases of a check come from: a seed that is public at home and secret in the grader."""

import hashlib
import hmac
import os
import secrets
from pathlib import Path

PUBLIC_SECRET = b"mpedu: the cases a student sees"
MIN_SECRET_BYTES = 16


def case_seed(secret: bytes, unit: str, exercise: str, round_number: int = 0) -> bytes:
    """HMAC-SHA256(secret, unit, exercise, round), 32 bytes; a new round draws new cases.

    ValueError for a secret under 128 bits, which could be found by trying.
    """
    if len(secret) < MIN_SECRET_BYTES:
        raise ValueError(
            f"the class secret has {len(secret)} bytes; give {MIN_SECRET_BYTES} random ones or more"
        )
    message = "\0".join((unit, exercise, str(round_number))).encode()
    return hmac.new(secret, message, hashlib.sha256).digest()


def class_secret(out: Path, file: Path | None) -> bytes:
    """The class secret of at least 128 bits: from `file`, else `out/secret-seed`, made if absent.

    ValueError in one sentence if the file holds none.
    """
    path = out / "secret-seed" if file is None else file
    if file is None and not path.exists():
        _make_secret(path)
    try:
        secret = bytes.fromhex(path.read_text(encoding="ascii"))
    except (OSError, ValueError) as error:
        detail = error.strerror if isinstance(error, OSError) else "it is not a hex number"
        raise ValueError(f"The class secret cannot be read from {path}: {detail}.") from None
    if len(secret) < MIN_SECRET_BYTES:
        raise ValueError(
            f"The class secret in {path} has {len(secret)} bytes;"
            f" at least {MIN_SECRET_BYTES} as hex digits are needed."
        )
    return secret


def _make_secret(path: Path) -> None:
    """Writes 32 random bytes as hex to a file only its owner may read, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(32) + "\n")
            file.flush()
            os.fsync(descriptor)
        part.rename(path)
    finally:
        part.unlink(missing_ok=True)
