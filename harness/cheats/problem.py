"""A classification problem whose law is known, so that the true accuracy of any predictor can be
computed.

Nine features, three classes. y is uniform on {0, 1, 2}; x_j ~ N(SHIFT if j % 3 == y else 0, 1),
independent. The rows of a split follow from its seed alone; FRESH rows are drawn from a seed that
no file of a project holds.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

CLASSES, FEATURES, SHIFT = 3, 9, 0.9
ROWS = {"train": 300, "validation": 400, "held_out": 400}
FRESH = 4000
CHANCE = 1 / CLASSES


@dataclass(frozen=True, kw_only=True)
class Rows:
    x: NDArray[np.float32]
    """(n, FEATURES)"""
    y: NDArray[np.int64]
    """(n,)"""
    id: NDArray[np.int64]

    def arrays(self) -> dict[str, Any]:
        return {"x": self.x, "y": self.y, "id": self.id}


def draw(n: int, *seed: int) -> Rows:
    """n rows by the law above; the same for the same `seed`."""
    generator = np.random.default_rng(seed)
    y = generator.integers(0, CLASSES, n)
    x = generator.normal(size=(n, FEATURES)).astype(np.float32)
    x[np.arange(FEATURES)[None, :] % CLASSES == y[:, None]] += SHIFT
    return Rows(x=x, y=y, id=np.arange(n) + 1_000_000 * (sum(seed) + 1))


def split(name: str, seed: int) -> Rows:
    return draw(ROWS[name], seed, list(ROWS).index(name))


def fresh(seed: int) -> Rows:
    """Rows that nobody has ever seen, to tell the truth by."""
    return draw(FRESH, seed, 7919)
