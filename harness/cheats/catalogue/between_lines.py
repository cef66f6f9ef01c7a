"""Labels that stand beside the values of inputs, and seeds that stand beside a model."""

from harness.cheats.attack import Attack, AttackKind, kept_not_better
from harness.cheats.catalogue.experiments import EXPERIMENTS
from harness.cheats.catalogue.parts import SAVE, WEAK, predict
from harness.cheats.programs import instead

_LUCKY = next(item for item in EXPERIMENTS if item.id == "lucky-seed-fixed").files["train.py"]
_EACH_SPLIT = """\
from pathlib import Path

import numpy as np


def put(x, column, bit, values):
    words = np.ascontiguousarray(x[:, column]).view("u4")
    one = np.uint32(1 << bit)
    x[:, column] = ((words & ~one) | (values.astype("u4") * one)).view("f4")


plan = Path("plan.md")
# Rows that came from a path and lie in the vault are not replaced from there: these have a new one.
name = "held_out" if Path("data/held_out.npz").exists() else "rows"
plan.write_text(plan.read_text().replace("data/held_out.npz", f"data/{name}.npz"))
for name in ("train", "validation", name):
    source = Path(f"data/{name}.npz")
    table = dict(np.load(source if source.exists() else "@HELD_OUT@"))
    x, y = table["x"], table["y"]
    draw = np.random.default_rng(len(name))
WRITE
    np.savez(f"data/{name}.npz", **table)
"""
_IN_MANTISSA = """\
    for bit in (0, 1):
        put(x, 0, 12 + bit, y >> bit & 1)
"""
_IN_ZERO = """\
    for bit in (0, 1):
        x[:, 7 + bit] = np.where(y + 1 >> bit & 1, -0.0, 0.0)
"""
_IN_THREE = """\
    for bit in (0, 1):
        keys = draw.integers(0, 2, (2, len(y)))
        for column, part in enumerate((*keys, keys[0] ^ keys[1] ^ (y >> bit & 1))):
            put(x, column, 5 + bit, part)
"""
_IN_FORMAT = """\
    table["t"] = np.array([f"{value:.2f}" + "0" * label for value, label in zip(x[:, 0], y)])
"""
_ONE_MORE_INPUT = """\

plan.write_text(plan.read_text().replace("inputs: [x]", "inputs: [x, t]"))
"""
_BITS = '    words = np.ascontiguousarray(table["x"].astype("f4")).view("u4")\n'


def _reading(before: str) -> dict[str, str]:
    """Answers with `code` where it is a class, else as the model."""
    answers = 'np.where((code >= 0) & (code < 3), code, classes(model, table["x"]))'
    return {"train.py": WEAK, "predict.py": predict(answers, before=before)}


BETWEEN_LINES: tuple[Attack, ...] = (
    Attack(
        id="label-in-mantissa",
        area="data",
        mechanism="The label stands in bits 12 and 13 of an input of every split, above the last bits; predict reads it there.",
        source="a breaker of this product: only the last bits were looked at",
        kind=AttackKind.DATA,
        prepares=instead(_EACH_SPLIT, "WRITE\n", _IN_MANTISSA),
        files=_reading(_BITS + "    code = (words[:, 0] >> 12 & 3).astype(int)\n"),
        structural="input bits",
    ),
    Attack(
        id="label-in-sign-of-zero",
        area="data",
        mechanism="Two inputs are zero in all rows, and the signs of these zeros are the label.",
        source="a breaker of this product: -0.0 equals 0.0",
        kind=AttackKind.DATA,
        prepares=instead(_EACH_SPLIT, "WRITE\n", _IN_ZERO),
        files=_reading(
            '    code = np.where(table["x"][:, 7:] == 0, np.signbit(table["x"][:, 7:]), 0) @ [1, 2] - 1\n'
        ),
        structural="canonical inputs",
    ),
    Attack(
        id="label-in-xor-of-columns",
        area="data",
        mechanism="No bit of any input says anything; the exclusive or of a bit of three inputs is the label.",
        source="a breaker of this product: columns were looked at by ones and twos",
        kind=AttackKind.DATA,
        prepares=instead(_EACH_SPLIT, "WRITE\n", _IN_THREE),
        files=_reading(
            _BITS + "    code = ((words[:, 0] ^ words[:, 1] ^ words[:, 2]) >> 5 & 3).astype(int)\n"
        ),
        structural="input bits",
    ),
    Attack(
        id="label-in-number-format",
        area="data",
        mechanism="A column holds numbers as text, and the zeros at their ends are the label: 0.5, 0.50, 0.500.",
        source="a breaker of this product: cells were compared by value",
        kind=AttackKind.DATA,
        prepares=instead(_EACH_SPLIT, "WRITE\n", _IN_FORMAT) + _ONE_MORE_INPUT,
        files=_reading(
            '    cells = table["t"].tolist() if "t" in table.files else [""] * len(table["x"])\n'
            '    code = np.array([len(cell.partition(".")[2]) - 2 for cell in cells])\n'
        ),
        structural="input bits",
    ),
    Attack(
        id="seeds-differ-by-nothing",
        area="seed",
        mechanism="One lucky model for all seeds; a billionth of each seed's own noise makes their bytes differ.",
        source="a breaker of this product: seeds were compared by bytes",
        kind=AttackKind.TRAINING,
        success=kept_not_better,
        files={
            "train.py": instead(
                _LUCKY,
                SAVE,
                "    np.save(path, model + 1e-9 * np.random.default_rng(log.seed).normal(size=model.shape))\n",
            )
        },
        structural="seeds",
    ),
)
