"""Does predict use its checkpoint? It answers rows again with other weights; its answers differ.

First with another seed's checkpoint, on the few rows that are repeated anyway; where the answers
stay, with copies whose weights no working model can ignore, on more rows. A call that fails or
gives invalid answers on other weights has used them. Not found: a predict that reads its weights
only to tell them from others.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from harness.artifacts.content import hash_path
from harness.domain.findings import Finding
from harness.evaluation import problems
from harness.evaluation.check_predictions import differing
from harness.evaluation.checkpoint_copy import copy_checkpoint
from harness.evaluation.near_weights import near
from harness.evaluation.perturbed import Change, perturbed
from harness.evaluation.problems import Unscorable
from harness.evaluation.scorer_program import Columns

MOST_ROWS = 1000
"""Of a split that are answered again with perturbed weights."""

Answer = Callable[[Path, str, Sequence[int]], Columns | None]
"""(checkpoint, its hash, rows) -> valid answers in the order of the rows, or None."""


@dataclass(frozen=True, kw_only=True)
class OtherCheckpoint:
    """Another seed's, of the same experiment, with other bytes."""

    seed: int
    path: Path
    sha256: str


@dataclass(frozen=True, kw_only=True)
class WeightsProbe:
    checkpoint: Path
    """The verified copy that was predicted with."""
    other: OtherCheckpoint | None
    root: Path
    """The project: another checkpoint is taken from within it only."""
    work: Path
    """Fresh folders are made and removed below it."""
    part: Sequence[int]
    """A few rows."""
    wide: Sequence[int]
    """More of them."""
    first: Columns
    """The answers of all rows."""
    names: Sequence[str]
    """Of all rows."""
    answer: Answer
    seed: int = 0
    others: tuple[OtherCheckpoint, ...] = ()
    """Those of all other seeds."""
    deterministic: bool = False
    """Whether the plan says that training draws nothing at random."""

    def findings(self) -> tuple[Finding, ...]:
        """Empty when some other weights give other answers; `weights_unused` when none do; the note
        `weights_not_probed` when too little could be changed to say so. And what `seeds_alike`
        says of seeds that gave the same model but for noise."""
        alike = {one.seed for one in self.others if self._near(one)}
        return (*self._of_weights(alike), *self._of_seeds(alike))

    def _near(self, other: OtherCheckpoint) -> bool:
        inside = other.path.resolve().is_relative_to(self.root.resolve())
        return inside and bool(near(self.checkpoint, other.path))

    def _of_seeds(self, alike: set[int]) -> tuple[Finding, ...]:
        seeds = sorted({self.seed, *alike})
        return (problems.seeds_alike(seeds, self.deterministic),) if alike else ()

    def _of_weights(self, alike: set[int]) -> tuple[Finding, ...]:
        """Adds to `alike` a seed whose weights answer with the same numbers."""
        tried: list[str] = []
        if self.other is not None and (used := self._by_seed(self.other, self.part)) is not None:
            if used:
                return ()
            # Classes may be the same by luck: of numbers so many are not.
            if _measured(self.first) and self._by_seed(self.other, self.wide) is False:
                alike.add(self.other.seed)
            tried.append(f"those of seed {self.other.seed}")
        opaque: set[str] = set()
        changed = False
        for change in Change:
            with self._folder() as folder:
                copy = perturbed(self.checkpoint, Path(folder).resolve() / "copy", change)
                opaque.update(copy.opaque)
                if not copy.changed:
                    continue
                digest = hash_path(copy.path)
                # Named as the true one is: a name tells nothing.
                path = copy.path.rename(copy.path.with_name(digest + self.checkpoint.suffix))
                if self._differs(path, digest, self.wide):
                    return ()
            changed = True
            tried.append(f"its own {change}")
        if changed and not opaque:
            return (problems.weights_unused(tried),)
        if self.other is not None and self._by_seed(self.other, self.wide):
            return ()  # on few rows two good models answer alike
        return (problems.weights_not_probed(tried, sorted(opaque)),)

    def _by_seed(self, other: OtherCheckpoint, rows: Sequence[int]) -> bool | None:
        """Whether its weights give other answers; None when they are not there any more."""
        with self._folder() as folder:
            try:
                copy = copy_checkpoint(
                    other.path, Path(folder).resolve(), root=self.root, expected=other.sha256
                )
            except Unscorable:
                return None
            return self._differs(copy, other.sha256, rows)

    def _folder(self) -> TemporaryDirectory[str]:
        return TemporaryDirectory(dir=self.work, prefix="weights-", ignore_cleanup_errors=True)

    def _differs(self, checkpoint: Path, digest: str, rows: Sequence[int]) -> bool:
        after = self.answer(checkpoint, digest, rows)
        if after is None or set(after) != set(self.first):
            return True
        before = {name: [values[row] for row in rows] for name, values in self.first.items()}
        return bool(differing(before, after, [self.names[row] for row in rows]))


def _measured(answers: Columns) -> bool:
    return any(
        isinstance(value, float) and value != round(value, 3)
        for values in answers.values()
        for value in values
    )
