"""How much memory a function takes: never in bytes, always as a ratio to a reference's."""

from typing import NamedTuple

LEAST_BYTES = 16 * 2**20  # of the reference: what processes differ by anyway must not count


class Peaks(NamedTuple):
    """The most memory that one call of the student's function and of the reference took, in bytes.

    Each above that of a process which has called nothing.
    """

    student_bytes: int
    reference_bytes: int

    @property
    def times_less(self) -> float:
        """How many times less than the reference; ValueError where that takes too little to tell.

        An answer that takes less than a page of the machine's still takes one.
        """
        if self.reference_bytes < LEAST_BYTES:
            raise ValueError(
                f"the reference takes {self.reference_bytes / 2**20:.1f} MiB; choose inputs for"
                f" which it takes {LEAST_BYTES // 2**20} or more"
            )
        return self.reference_bytes / max(self.student_bytes, 4096)
