"""Which rows a replica trains on, so that each is seen equally often however many replicas there
are. Standard library only."""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from harness.errors import UsageError


class Samples:
    """An endless stream of shuffled passes over `count` rows, dealt out in blocks.

    A block is what one replica trains on in one round. All replicas hold the same state, so each
    knows who has which block without asking. A block of a replica that did not come back with its
    work is dealt again, before new ones; a replica that joins gets its first block in the round
    after. A resume goes on where the stream was.
    """

    def __init__(self, count: int, *, batch: int, seed: int = 0) -> None:
        """`batch`: rows of one inner step of one replica. Raises UsageError."""
        if count < 1 or batch < 1:
            raise UsageError(
                f"{count} rows in batches of {batch}; expected at least one of each.",
                hint="Look at the table that is trained on.",
            )
        self.count, self.batch, self._seed = count, batch, seed
        self._steps = 1
        self._next = 0
        self._again: list[int] = []
        self._members: list[int] = []
        self._order: tuple[int, list[int]] = (-1, [])

    def begin(self, *, steps: int, replicas: int) -> None:
        """Of a new training: every replica is a member. `steps`: inner steps of a round."""
        self._steps, self._members = steps, list(range(replicas))

    def batches(self, replica: int) -> Iterator[list[int]]:
        """The rows of each inner step of this round. A replica that is no member yet gets the
        block of one: what it does before it is healed is thrown away."""
        dealt = self._dealt()
        block = dealt.get(replica, min(dealt.values()))
        rows = self._rows(block)
        for start in range(0, len(rows), self.batch):
            yield rows[start : start + self.batch]

    def commit(self, worked: Iterable[int], members: Iterable[int]) -> None:
        """A round counts: `worked` of its members brought their work, `members` are those of the
        next."""
        dealt, done = self._dealt(), set(worked)
        left = sorted(block for replica, block in dealt.items() if replica not in done)
        new = [block for block in dealt.values() if block >= self._next]
        waiting = [block for block in self._again if block not in dealt.values()]
        self._next = max([*new, self._next - 1]) + 1
        self._again = sorted([*waiting, *left])
        self._members = sorted(members)

    def seen(self) -> list[int]:
        """How often each row was trained on in rounds that count."""
        waiting = set(self._again)
        times = [0] * self.count
        for block in range(self._next):
            if block not in waiting:
                for row in self._rows(block):
                    times[row] += 1
        return times

    def report(self) -> dict[str, Any]:
        """`{"rows": 12, "seen": {"1": 10, "2": 2}}`: how many rows were seen how often; of few
        rows also `times`, that of each."""
        times = self.seen()
        counted = {str(often): rows for often, rows in sorted(Counter(times).items())}
        told: dict[str, Any] = {"rows": self.count, "seen": counted}
        return told | ({"times": times} if self.count <= 10_000 else {})

    def state(self) -> dict[str, Any]:
        return {
            "count": self.count,
            "batch": self.batch,
            "seed": self._seed,
            "steps": self._steps,
            "next": self._next,
            "again": list(self._again),
            "members": list(self._members),
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Raises UsageError where it is of another table or another batch."""
        own = self.state()
        for name in ("count", "batch", "seed", "steps"):
            if state[name] != own[name]:
                raise UsageError(
                    f"The kept state has {name} {state[name]} of rows; here it is {own[name]}.",
                    hint="Go on with the same table, batch, seed and sync_every, or start anew.",
                    code="samples_differ",
                )
        self._next, self._again = state["next"], list(state["again"])
        self._members = list(state["members"])

    def _dealt(self) -> dict[int, int]:
        """Member -> its block of this round."""
        wanted = len(self._members)
        new = range(self._next, self._next + max(0, wanted - len(self._again)))
        return dict(zip(self._members, [*self._again, *new], strict=False))

    def _rows(self, block: int) -> list[int]:
        size = self.batch * self._steps
        return [self._row(place) for place in range(block * size, (block + 1) * size)]

    def _row(self, place: int) -> int:
        number, inside = divmod(place, self.count)
        if self._order[0] != number:
            order = list(range(self.count))
            random.Random(f"{self._seed}/{number}").shuffle(order)
            self._order = number, order
        return self._order[1][inside]
