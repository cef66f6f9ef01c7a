"""Attacks on labels that lie in the vault: what a score tells of them."""

from harness.cheats.attack import Attack, AttackKind, Moment, done
from harness.cheats.catalogue.parts import GOOD, SAVE, predict
from harness.cheats.programs import instead

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
)
