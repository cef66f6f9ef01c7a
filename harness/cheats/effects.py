"""What the lab sees with its own eyes after an attack: files, processes and records, asked without
the harness."""

import sqlite3
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.cheats.attack import Attack
from harness.cheats.place import Place
from harness.cheats.problem import fresh
from harness.cheats.truth import answers_of, copy_code

CHECKPOINT = ".harness/experiments/exp-0002/runs/run-01/checkpoints/model.npy"


@dataclass(frozen=True, kw_only=True)
class Scene:
    """What a declared effect may ask."""

    place: Place
    values: Mapping[str, str]
    log: str
    """Everything that was printed on the way."""
    seconds: float | None = None
    """How long training took, by what the world believes."""
    looks: int = 0
    """How often the world let held-out be looked at for the candidate."""

    def text(self, name: str) -> str:
        """A file of the project, or an absolute one; nothing when it cannot be read."""
        try:
            return (self.place.root / name).read_text("utf-8", "replace")
        except OSError:
            return ""

    def same(self, name: str, other: str) -> bool:
        """Whether a file of the project, by a pattern, has the bytes of another one."""
        wanted = self.place.root / other
        if not wanted.is_file():
            return False
        return any(
            item.is_file() and item.read_bytes() == wanted.read_bytes()
            for item in self.place.root.glob(name)
        )

    def any_link(self, name: str) -> bool:
        return any(path.is_symlink() for path in self.place.root.glob(name))

    def living(self) -> bool:
        """Whether something that the attack started is alive."""
        return bool(self.place.left_behind())

    def answers_vary(self) -> bool:
        """Whether the candidate's predict answers the same fresh rows otherwise when it is asked
        again."""
        rows = fresh(self.place.seed)
        with tempfile.TemporaryDirectory(dir=self.place.base, prefix="twice-") as name:
            code = copy_code(self.place, Path(name) / "code")
            first, again = (
                answers_of(self.place, code, self.place.root / CHECKPOINT, rows) for _ in range(2)
            )
        return first is not None and again is not None and first != again

    def facts(self, query: str) -> list[Any]:
        """Rows of the ledger's database as they stand on disk."""
        path = Path(self.values["STATE"], "ledger.db")
        if not path.is_file():
            return []
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
            return database.execute(query).fetchall()


def effect(attack: Attack, scene: Scene) -> bool:
    """Whether the attack had the effect that it declares; False when it declares none."""
    return False if attack.effect is None else bool(attack.effect(scene))
