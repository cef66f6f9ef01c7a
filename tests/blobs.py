"""The plan and the tables of a small, ordinary project, for the tests of several rooms."""

from pathlib import Path

import numpy as np

from harness.plans.tables import write_table
from harness.settings import create_config
from tests.plan_text import plan_text

PLAN = plan_text(
    "blobs",
    "Tell two blobs apart",
    tiers="must: 0.90, should: 0.92",
    budget="experiments: 3, run_minutes: 1, total_minutes: 5",
    row="row",
)


def table(rows: int, seed: int) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    return {
        "x": generator.normal(size=(rows, 2)),
        "y": generator.integers(0, 2, rows),
        "row": np.arange(rows),
    }


def write_tables(root: Path) -> None:
    for seed, (name, rows) in enumerate([("train", 60), ("validation", 30), ("held_out", 40)]):
        write_table(root / f"data/{name}.npz", table(rows, seed))


def hide_validation(root: Path) -> None:
    """Let the plan of the project hide its validation table, where it is taken from."""
    (root / "data/validation.npz").rename(root / "data/train.validation.npz")
    plan = root / "plan.md"
    plan.write_text(plan.read_text().replace("data/validation.npz", "hidden"))


def make_root(root: Path, *, plan: str = PLAN, train: str = "print('train')\n") -> Path:
    """A project folder whose plan nobody approved yet."""
    create_config(root, name="blobs", token="cafe")
    write_tables(root)
    for name, text in (
        ("plan.md", plan),
        ("train.py", train),
        ("predict.py", "print('predict')\n"),
    ):
        (root / name).write_text(text)
    return root


def own_environment(folder: Path) -> dict[str, str]:
    """A state directory and a home of its own."""
    return {"XDG_STATE_HOME": str(folder / "state"), "HOME": str(folder / "home")}
