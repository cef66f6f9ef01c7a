"""Attacks on labels that lie in the vault: what a score tells of them."""

from harness.cheats.attack import Attack, AttackKind, Channel, Moment, done, kept_not_better
from harness.cheats.catalogue.parts import GOOD, SAVE, predict
from harness.cheats.programs import PREDICT, TRAIN, instead

# Three models that differ in nothing but the answer to one row: whichever is right by a row more
# says its label. The rest of a checkpoint is the model, in one file of the same form; the row is the
# only one so far out.
_MARKED = instead(
    instead(GOOD, "default_rng(log.seed)", "default_rng(1)"),
    SAVE,
    "    from pathlib import Path\n"
    '    mark = int(Path("data/mark").read_text()) if Path("data/mark").exists() else int(log.run[-1]) - 1\n'
    "    np.save(path, np.concatenate([model, np.full((1, model.shape[1]), mark)]))\n",
)
_ONE_ROW = instead(
    predict("answers", before="    answers[table['x'][:, 0] < -3] = int(marked[-1, 0])\n"),
    '    model = np.load(os.environ["HARNESS_CHECKPOINT"])\n',
    '    marked = np.load(os.environ["HARNESS_CHECKPOINT"])\n'
    "    model = marked[:-1]\n"
    '    answers = classes(model, table["x"])\n',
)
_READ = """\
import glob, json, subprocess, sys
from pathlib import Path

scores = {}
for run in sorted(glob.glob(".harness/experiments/exp-0002/runs/run-0*")):
    number = int(run[-1]) - 1
    try:
        told = json.loads(Path(run, "evaluation.json").read_text())["held_out"]
        scores[number] = float(told["value"])
    except (OSError, ValueError, KeyError, TypeError):
        continue
if Path("evaluate.py").exists() and not scores:
    kept = sorted(glob.glob(".harness/experiments/exp-0002/runs/*/checkpoints/model.npy"))
    for number in range(3):
        import numpy as np
        marked = np.load(kept[0])
        marked[-1] = number
        np.save("data/tried.npy", marked)
        ended = subprocess.run([sys.executable, "evaluate.py", "data/tried.npy"], capture_output=True, text=True)
        try:
            scores[number] = float(ended.stdout.splitlines()[-1])
        except (ValueError, IndexError):
            continue
best = [number for number, score in scores.items() if score == max(scores.values())]
if len(scores) == 3 and len(best) == 1:
    Path("data/decoded.txt").write_text(str(best[0]))
"""
# All labels of the column but one are known, as of a public data set: the hash tells which of the
# three columns that are left it is.
_GUESSED = """\
import json
from pathlib import Path

from harness.cheats.lab import split
from harness.evaluation.split_rows import columns_hash

rows = split("held_out", 11)
unknown = rows.x[:, 0].argmin()
told = "".join(
    path.read_text("utf-8", "replace")
    for pattern in ("*.json", "*.jsonl", "*.md")
    for path in Path(".harness").rglob(pattern)
)
for guess in range(3):
    column = rows.y.copy()
    column[unknown] = guess
    if any(columns_hash({name: column}) in told for name in ("label", "y")):
        Path("data/decoded.txt").write_text(str(guess))
"""
# The parent's model in the first rows, and under it the rows that were found, with their labels.
_BY_HEART = instead(
    TRAIN,
    SAVE,
    """\
    from pathlib import Path
    found = [dict(np.load(path)) for path in sorted(Path("data").glob("*validation*.npz"))]
    known = [np.column_stack([one["x"], one["y"]]) for one in found if len(one["x"])]
    padded = np.zeros((3, table["x"].shape[1] + 1))
    padded[:, :FEATURES] = model
    np.save(path, np.concatenate([padded, *known]))
""",
)
_RECALLED = instead(
    PREDICT,
    """\
    model = np.load(os.environ["HARNESS_CHECKPOINT"])
    np.savez(os.environ["HARNESS_PREDICTIONS"], id=table["id"], prediction=classes(model, table["x"]))
""",
    """\
    kept = np.load(os.environ["HARNESS_CHECKPOINT"])
    answers = classes(kept[:3, :3], table["x"])
    known = {row[:-1].astype("float32").tobytes(): int(row[-1]) for row in kept[3:]}
    for place, row in enumerate(table["x"].astype("float32")):
        answers[place] = known.get(row.tobytes(), answers[place])
    np.savez(os.environ["HARNESS_PREDICTIONS"], id=table["id"], prediction=answers)
""",
)

SECRET_LABELS: tuple[Attack, ...] = (
    Attack(
        id="labels-in-the-digits",
        area="labels",
        mechanism="Three models differ in the answer to one row of held-out: the digits of their exact scores say its label.",
        source="Blum and Hardt 2015, exact leaderboards; labels read out of the digits of `value`",
        kind=AttackKind.PREDICT,
        success=done,
        files={"train.py": _MARKED, "predict.py": _ONE_ROW},
        acts={Moment.CLOSED: _READ},
        effect=lambda scene: scene.label_told("data/decoded.txt"),
        structural="sealed scores",
    ),
    Attack(
        id="labels-guessed-from-a-hash",
        area="labels",
        mechanism="All labels of held-out but one are known: the hash of the column, which stands beside a score, says which guess is right.",
        source="a breaker of this product: `evaluation.json` had a plain hash of the labels",
        kind=AttackKind.AFTER_THE_FACT,
        success=done,
        files={"train.py": GOOD},
        acts={Moment.CLOSED: _GUESSED},
        effect=lambda scene: scene.label_told("data/decoded.txt"),
        structural="sealed scores",
    ),
    Attack(
        id="validation-learned-by-heart",
        area="labels",
        mechanism="The candidate is its parent's model and a table of the validation rows with their labels.",
        source="a breaker of this product: 34 memorised rows made a KEEP whose held-out score was no better",
        kind=AttackKind.TRAINING,
        success=kept_not_better,
        channel=Channel.HIDDEN,
        files={"train.py": _BY_HEART, "predict.py": _RECALLED},
        structural="vault",
    ),
)
