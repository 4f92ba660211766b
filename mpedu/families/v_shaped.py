"""Schedules of V placement: rank r holds stage r and stage 2 * n_ranks - 1 - r.

The first and the last stage are on one rank, so the loss is known where the batch is, and every
rank holds as many activations as any other. Both are split into halves where that fills a gap.
"""

from mpedu.faults import require_at_least
from mpedu.schedule import Action, Schedule


def zbv(n_ranks: int, n_microbatches: int) -> Schedule:
    """The zero-bubble schedule of V shape: the memory of 1F1B's first rank on every rank.

    ZB-V (Qi et al. 2024, "Zero Bubble Pipeline Parallelism", arXiv 2401.10241, section 6). With
    equal F, I and W the only bubble is the warm-up's. It is laid out for at least 2 * n_ranks - 1
    micro-batches; of fewer the others' work is left out.
    """
    require_at_least(1, n_ranks=n_ranks, n_microbatches=n_microbatches)
    n_laid_out = max(n_microbatches, 2 * n_ranks - 1)
    return [_Rank(n_ranks, rank, n_microbatches).zbv(n_laid_out) for rank in range(n_ranks)]


def dualpipe_v(n_ranks: int, n_microbatches: int) -> Schedule:
    """DualPipe cut in half: a forward on one stage beside a backward on the other.

    DualPipeV (DeepSeek-AI 2025, the DualPipe repository). What overlaps on a GPU stands here one
    after the other, forward first. ValueError with fewer than 2 * n_ranks micro-batches: its
    steady part needs as many micro-batches as there are stages.
    """
    require_at_least(1, n_ranks=n_ranks, n_microbatches=n_microbatches)
    if n_microbatches < 2 * n_ranks:
        raise ValueError(
            f"dualpipe_v with n_microbatches={n_microbatches} on n_ranks={n_ranks}: it needs "
            f"n_microbatches >= {2 * n_ranks}, one for each of the {2 * n_ranks} stages; "
            "zbv runs with any number"
        )
    return [_Rank(n_ranks, rank, n_microbatches).dualpipe_v() for rank in range(n_ranks)]


class _Rank:
    """One rank's list while it is written: what is next on the way down (0) and up (1)."""

    def __init__(self, n_ranks: int, rank: int, n_microbatches: int) -> None:
        self.n_ranks, self.rank, self.n_microbatches = n_ranks, rank, n_microbatches
        self.after = n_ranks - 1 - rank  # ranks between this one and the turn of the V
        self.stages = (rank, 2 * n_ranks - 1 - rank)
        self.next = {"F": [0, 0], "B": [0, 0]}
        self.waiting: list[tuple[int, int]] = []  # legs and micro-batches of weights' halves due
        self.actions: list[Action] = []

    def add(self, kind: str, leg: int) -> None:
        """The next F, or a backward: B whole, I with its W left for later, IW both at once."""
        counter = self.next["F" if kind == "F" else "B"]
        microbatch, counter[leg] = counter[leg], counter[leg] + 1
        for half in kind:
            self.put(half, self.stages[leg], microbatch)
        if kind == "I":
            self.waiting.append((leg, microbatch))

    def add_weights(self, *legs: int) -> None:
        """The weights' half that has waited longest on one of these legs."""
        leg, microbatch = next(due for due in self.waiting if due[0] in legs)
        self.waiting.remove((leg, microbatch))
        self.put("W", self.stages[leg], microbatch)

    def put(self, kind: str, stage: int, microbatch: int) -> None:
        if microbatch < self.n_microbatches:
            self.actions.append(Action(kind, stage, microbatch))

    def zbv(self, n_microbatches: int) -> list[Action]:
        """Down until the V returns, then up and down in turns, then what is left."""
        for _ in range(2 * self.after + 1):
            self.add("F", 0)
        for _ in range(self.rank):
            self.add("F", 1)
            self.add("F", 0)
        for _ in range(self.after + 1):
            self.add("F", 1)
            self.add("IW", 1)
        while self.next["F"][1] < n_microbatches:
            if self.next["F"][0] < n_microbatches:
                self.add("F", 0)
            self.add("IW", 0)
            self.add("F", 1)
            self.add("IW", 1)
        for _ in range(self.rank):
            self.add("I", 0)
            self.add("I", 1)
        for _ in range(self.after + 1):
            self.add("I", 0)
            self.add_weights(0)
        for leg in sorted((leg for leg, _ in self.waiting), reverse=True):
            self.add_weights(leg)
        return self.actions

    def dualpipe_v(self) -> list[Action]:
        """The eight parts of the published layout, in its order."""
        for _ in range(2 * self.after):
            self.add("F", 0)
        for _ in range(self.rank + 1):
            self.add("F", 0)
            self.add("F", 1)
        for _ in range(self.after):
            self.add("IW", 1)
            self.add("F", 1)
        for _ in range(self.n_microbatches - 2 * self.n_ranks + self.rank + 1):
            self.add("F", 0)
            self.add("B", 1)
            self.add("F", 1)
            self.add("B", 0)
        for _ in range(self.after):
            self.add("B", 1)
            self.add("F", 1)
            self.add("B", 0)
        for number in range(2 * (self.rank + 1)):
            self.add("B" if number <= self.rank else "I", 1 - number % 2)
        for _ in range(self.after):
            self.add_weights(0, 1)
            self.add("I", 0)
        while self.waiting:
            self.add_weights(0, 1)
        return self.actions
