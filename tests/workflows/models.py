"""Honest uses about models and data: programs, plans, and what the next experiment does."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tests.centroids import PREDICT, TRAIN
from tests.cli.journey import blobs
from tests.workflows.honest import Place

DETERMINISTIC = {"entry: python train.py": "entry: python train.py, deterministic: true"}
_FIT = "    centroids = np.stack([x[y == label].mean(0) for label in np.unique(y)])\n"
_ROWS = TRAIN[TRAIN.index("    rows = ") : TRAIN.index("    x, y =")]
_SAVED = TRAIN[TRAIN.index("    log.epoch(0") :]
_LOADED = 'centroids = np.load(os.environ["HARNESS_CHECKPOINT"])\n'
_NEAREST = PREDICT[PREDICT.index("nearest = ") : PREDICT.index("np.savez")]

NEIGHBOURS = (
    TRAIN.replace(_ROWS, "    rows = slice(None)\n")
    .replace(_FIT, "    model = {'x': x, 'y': y}\n")
    .replace(_SAVED, '    log.epoch(0, {"loss": 0.0})\n')
    + '    path = log.checkpoint_dir / "rows.npz"\n'
    "    np.savez(path, **model)\n"
    "    log.checkpoint_saved(path, epoch=0, final=True)\n"
)
BY_NEIGHBOURS = PREDICT.replace(
    _LOADED, 'known = np.load(os.environ["HARNESS_CHECKPOINT"])\n'
).replace(
    _NEAREST,
    'far = ((table["x"][:, None] - known["x"][None]) ** 2).sum(-1)\n'
    'near = known["y"][np.argsort(far, axis=1)[:, :15]]\n'
    "nearest = np.array([np.bincount(row, minlength=3).argmax() for row in near])\n",
)
CLOSED_FORM = TRAIN.replace(_ROWS, "    rows = slice(None)\n")
_GRADIENT = """\
    own = np.random.default_rng(log.seed).permutation(len(y))
    kept_back, rest = own[:60], own[60:]
    weights, best, left = np.random.default_rng(log.seed).normal(size=(4, 3)), None, PATIENCE
    for epoch in range(60):
        shown = x[rest] @ weights
        shares = np.exp(shown - shown.max(1, keepdims=True))
        shares /= shares.sum(1, keepdims=True)
        shares[np.arange(len(rest)), y[rest]] -= 1
        weights = weights - RATE * x[rest].T @ shares / len(rest)
        right = float(((x[kept_back] @ weights).argmax(1) == y[kept_back]).mean())
        log.epoch(epoch, {"accuracy": right})
        path = log.checkpoint_dir / f"epoch-{epoch:02}.npy"
        np.save(path, weights)
        if best is None or right > best[0]:
            best, left = (right, path, epoch), PATIENCE
        log.checkpoint_saved(path, epoch=epoch)
        left -= 1
        if not left:
            break
    log.checkpoint_saved(best[1], epoch=best[2], final=True)
"""
BY_GRADIENT = PREDICT.replace(_NEAREST, 'nearest = (table["x"] @ centroids).argmax(1)\n')
_PICKLED = TRAIN.replace("import numpy", "import pickle\n\nimport numpy", 1).replace(
    '    path = log.checkpoint_dir / "centroids.npy"\n    np.save(path, centroids)\n',
    '    path = log.checkpoint_dir / "model.pkl"\n'
    "    path.write_bytes(pickle.dumps({'centroids': centroids}))\n",
)
BY_PICKLE = PREDICT.replace("import numpy", "import pickle\n\nimport numpy", 1).replace(
    _LOADED, 'centroids = pickle.load(open(os.environ["HARNESS_CHECKPOINT"], "rb"))["centroids"]\n'
)
AUGMENTED = PREDICT.replace(
    _NEAREST,
    'views = [table["x"] * scale for scale in (0.9, 1.0, 1.1)]\n'
    "far = sum(((view[:, None] - centroids[None]) ** 2).sum(-1) for view in views)\n"
    "nearest = far.argmin(1)\n",
)
SMOOTHED = PREDICT.replace(
    "import numpy as np\n", "import numpy as np\n\nfrom smooth import post\n"
)
SMOOTHED = SMOOTHED.replace("prediction=nearest", "prediction=post(nearest)")
OF_MEMBERS = PREDICT.replace("import os\n", "import os\nimport pathlib\n").replace(
    _LOADED,
    'members = pathlib.Path(os.environ["HARNESS_CHECKPOINT"]).glob("exp-*/*.npy")\n'
    "centroids = np.mean([np.load(path) for path in sorted(members)], axis=0)\n",
)
_DISTILLED = TRAIN.replace("default_rng(log.seed)", "default_rng([log.seed, 7])").replace(
    _FIT,
    _FIT + "    kept = np.load("
    'f".harness/experiments/exp-0001/runs/{log.run}/checkpoints/centroids.npy")\n'
    "    centroids = (centroids + kept) / 2\n",
)


def nothing(place: Place) -> None:
    """The project as it is."""


def with_programs(train: str, predict: str = PREDICT) -> Callable[[Place], None]:
    def prepare(place: Place) -> None:
        assert (train, predict) != (TRAIN, PREDICT)
        place.train(train)
        place.write("predict.py", predict)

    return prepare


def by_gradient(rate: float, patience: int) -> Callable[[Place], None]:
    text = TRAIN[: TRAIN.index(_FIT)]
    loop = _GRADIENT.replace("RATE", str(rate)).replace("PATIENCE", str(patience))
    return with_programs(text.replace("total_epochs=1", "total_epochs=60") + loop, BY_GRADIENT)


def with_rows(sizes: Sequence[int]) -> Callable[[Place], None]:
    def prepare(place: Place) -> None:
        for name, rows, seed in zip(
            ("train", "validation", "held_out"), sizes, (1, 2, 3), strict=True
        ):
            np.savez(place.root / "data" / f"{name}.npz", **blobs(rows, seed))

    return prepare


def add_column(place: Place, name: str, of: Callable[[int, int], np.ndarray]) -> None:
    """`of`: (which split, rows) -> the column."""
    for number, split in enumerate(("train", "validation", "held_out")):
        path = place.root / "data" / f"{split}.npz"
        table = dict(np.load(path))
        np.savez(path, **table, **{name: of(number, len(table["y"]))})


def grouped(place: Place) -> None:
    """Ten rows a patient, and each patient in one split."""
    add_column(place, "patient", lambda split, rows: 1000 * split + np.arange(rows) // 10)


def by_time(place: Place) -> None:
    """Each split is later than the one before."""
    add_column(place, "day", lambda split, rows: 400.0 * split + np.arange(rows))


def predict_with(text: str, **files: str) -> Callable[[Place], None]:
    def change(place: Place) -> None:
        place.write("predict.py", text)
        for name, content in files.items():
            place.write(f"{name}.py", content)

    return change


def other_features(place: Place) -> None:
    place.train(TRAIN.replace("default_rng(log.seed)", "default_rng([log.seed, 7])"))


def distilled(place: Place) -> None:
    """A person declares the runs whose checkpoints training reads, and approves."""
    place.train(_DISTILLED)
    config = place.root / ".harness/config.toml"
    opened = 'readable = [".harness/experiments/exp-0001/runs"]\n'
    config.write_text(config.read_text("utf-8") + opened, "utf-8")
    shown = place.journey.harness("plan", "approve")
    confirmed = re.search(r"--changes (\w+)", shown.stderr)
    assert confirmed, shown.stderr
    answer = place.journey.harness("plan", "approve", "plan.md", "--changes", confirmed[1])
    assert answer.exit_code == 0, answer.stderr


@dataclass(frozen=True)
class Step:
    """One experiment more."""

    change: Callable[[Place], None]
    take: str = ""
    """The experiments whose checkpoints it takes; empty: it trains."""
    notes: frozenset[str] = frozenset()
    """Codes of what its gate says beside PASS."""
    parent: str | None = "exp-0001"


@dataclass(frozen=True)
class ModelWork:
    name: str
    prepare: Callable[[Place], None] = nothing
    plan: dict[str, str] = field(default_factory=dict)
    """Texts of the plan and what stands in their place."""
    notes: frozenset[str] = frozenset()
    summary: str = "As measured."
    seeds: int = 3
    then: tuple[Step, ...] = ()


TAKEN, ONE = frozenset({"checkpoints_taken"}), frozenset({"seeds_are_one"})
WORKS: Sequence[ModelWork] = (
    ModelWork("nearest-neighbours", with_programs(NEIGHBOURS, BY_NEIGHBOURS), DETERMINISTIC, ONE),
    ModelWork(
        "closed-form",
        with_programs(CLOSED_FORM),
        DETERMINISTIC,
        ONE,
        then=(
            Step(predict_with(AUGMENTED), notes=ONE),
            Step(predict_with(PREDICT + "# again\n"), "exp-0002", TAKEN | ONE),
        ),
    ),
    ModelWork("early-stopping", by_gradient(0.5, 4)),
    ModelWork("final-worse-than-best", by_gradient(8.0, 60)),
    ModelWork("many-seeds", plan={"seeds: 3": "seeds: 8"}, seeds=8),
    ModelWork("tiny-data", with_rows((45, 30, 30)), {"must: 0.80": "must: 0.60"}),
    ModelWork(
        "groups",
        grouped,
        {"data/train.npz": "data/train.npz\n  group: patient"},
    ),
    ModelWork("later-rows", by_time),
    ModelWork(
        "pickled-model",
        with_programs(_PICKLED, BY_PICKLE),
    ),
    ModelWork(
        "another-papers-number",
        summary="Smith et al. (2021) report an accuracy of 0.97 (https://example.org/table-3).",
        notes=frozenset({"prose_unproven"}),
    ),
    ModelWork("test-time-augmentation", then=(Step(predict_with(AUGMENTED), "exp-0001", TAKEN),)),
    ModelWork("predict-changed-and-trained-again", then=(Step(predict_with(AUGMENTED)),)),
    ModelWork(
        "post-processing-of-its-own",
        predict_with(SMOOTHED, smooth="def post(said):\n    return said\n"),
        then=(Step(predict_with(SMOOTHED, smooth="def post(said):\n    return said * 1\n")),),
    ),
    ModelWork(
        "ensemble-of-kept",
        then=(Step(other_features), Step(predict_with(OF_MEMBERS), "exp-0001,exp-0002", TAKEN)),
    ),
    ModelWork(
        "training-from-kept",
        then=(Step(distilled, parent=None),),
    ),
)


def plan_changed(root: Path, replaced: dict[str, str]) -> None:
    text = (root / "plan.md").read_text("utf-8")
    for old, new in replaced.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (root / "plan.md").write_text(text, "utf-8")
