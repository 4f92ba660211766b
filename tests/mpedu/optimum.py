"""The shortest schedule there is, for small cases: every list that is legal, by branch and bound.

It shares no code with the search, and nothing is left out but what can be no better: a rank may
wait although it has work, and every stage takes the micro-batches in order.
"""


class Optimum:
    """One case. seconds: of each kind, by stage; latency_s: of every message between ranks."""

    def __init__(self, placement, n_microbatches, seconds, latency_s, caps, freed_by):
        self.placement, self.m, self.seconds = placement, n_microbatches, seconds
        self.latency_s, self.caps, self.freed_by = latency_s, caps, freed_by
        self.kinds = "".join(seconds)
        self.n_stages, self.n_ranks = len(placement), 1 + max(placement)
        self.n_nodes = 0

    def shorter_than(self, limit_s):
        """The least makespan if it is below `limit_s`, else `limit_s`."""
        self.best_s, self.seen = limit_s, {}
        counts = ((0,) * self.n_stages,) * len(self.kinds)
        self.go_on(counts, (0,) * self.n_ranks, {}, (0, -1))
        return self.best_s

    def go_on(self, counts, free_s, links, last_start):
        self.n_nodes += 1
        if sum(map(sum, counts)) == len(self.kinds) * self.n_stages * self.m:
            self.best_s = min(self.best_s, max(free_s))
            return
        if self.bound(counts, free_s) >= self.best_s or self.is_known(counts, free_s, links):
            return
        for kind, stage, start_s in sorted(self.ready(counts, free_s, links), key=lambda c: c[2]):
            rank = self.placement[stage]
            if (start_s, rank) < last_start:
                continue  # the same lists are met with these two the other way round
            end_s = start_s + self.seconds[kind][stage]
            number = self.kinds.index(kind)
            row = counts[number]
            more = (*row[:stage], row[stage] + 1, *row[stage + 1 :])
            self.go_on(
                (*counts[:number], more, *counts[number + 1 :]),
                (*free_s[:rank], end_s, *free_s[rank + 1 :]),
                self.carried(kind, stage, end_s, links),
                (start_s, rank),
            )

    def ready(self, counts, free_s, links):
        """(kind, stage, start) of all that could come next."""
        for stage, rank in enumerate(self.placement):
            done = dict(zip(self.kinds, (row[stage] for row in counts), strict=True))
            for kind in self.kinds:
                if done[kind] == self.m or (
                    kind == "F" and self.held(counts, rank) + 1 > self.caps[rank]
                ):
                    continue
                if kind == "W":
                    if done["W"] < done["I"]:
                        yield kind, stage, free_s[rank]
                    continue
                if kind != "F" and done[kind] == done["F"]:
                    continue
                source = stage - 1 if kind == "F" else stage + 1
                if not 0 <= source < self.n_stages:
                    yield kind, stage, free_s[rank]
                elif self.placement[source] == rank:
                    if counts[self.kinds.index(kind)][source] > done[kind]:
                        yield kind, stage, free_s[rank]
                else:
                    queue = links.get((kind, self.placement[source], rank), ())
                    if queue and queue[0][0] == stage:
                        yield kind, stage, max(free_s[rank], queue[0][1])

    def held(self, counts, rank):
        freeing = "B" if "B" in self.kinds else self.freed_by
        return sum(
            counts[0][stage] - counts[self.kinds.index(freeing)][stage]
            for stage in range(self.n_stages)
            if self.placement[stage] == rank
        )

    def carried(self, kind, stage, end_s, links):
        """The links once an action has taken its input and sent its result."""
        if kind == "W":
            return links
        way, rank, links = 1 if kind == "F" else -1, self.placement[stage], dict(links)
        for other in (stage - way, stage + way):
            if not 0 <= other < self.n_stages or self.placement[other] == rank:
                continue
            if other == stage - way:
                link = (kind, self.placement[other], rank)
                links[link] = links[link][1:]
            else:
                link = (kind, rank, self.placement[other])
                links[link] = (*links.get(link, ()), (other, end_s + self.latency_s))
        return links

    def bound(self, counts, free_s):
        """No rank ends before it has done its work, nor before its last micro-batch is home."""
        longest = 0
        for stage, rank in enumerate(self.placement):
            left_s = sum(
                (self.m - row[other]) * self.seconds[kind][other]
                for kind, row in zip(self.kinds, counts, strict=True)
                for other in range(self.n_stages)
                if self.placement[other] == rank
            )
            longest = max(longest, free_s[rank] + left_s)
            if counts[0][stage] < self.m:
                backward = self.seconds[self.kinds[1]]
                way_s = sum(self.seconds["F"][stage + 1 :]) + sum(backward)
                way_s += (self.m - counts[0][stage]) * self.seconds["F"][stage]
                longest = max(longest, free_s[rank] + way_s)
            elif counts[1][stage] < self.m:
                backward = self.seconds[self.kinds[1]]
                way_s = (self.m - counts[1][stage]) * backward[stage] + sum(backward[:stage])
                longest = max(longest, free_s[rank] + way_s)
        return longest

    def is_known(self, counts, free_s, links):
        """Whether as much was done before, and everything was there as early."""
        filled = sorted((link, queue) for link, queue in links.items() if queue)
        key = (counts, tuple((link, tuple(s for s, _ in queue)) for link, queue in filled))
        times = (*free_s, *(when_s for _, queue in filled for _, when_s in queue))
        known = self.seen.setdefault(key, [])
        if any(all(a <= b for a, b in zip(old, times, strict=True)) for old in known):
            return True
        known[:] = [
            old for old in known if not all(a >= b for a, b in zip(old, times, strict=True))
        ]
        known.append(times)
        return False
