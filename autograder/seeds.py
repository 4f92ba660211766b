"""Where the cases of a check come from: a seed that is public at home and secret in the grader."""

import hashlib
import hmac

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
