"""docs/scale.md: its figures of cards are those of the recorded runs, and so are their curves."""

import csv
import json
from argparse import Namespace
from pathlib import Path
from statistics import mean
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
EVIDENCE = ROOT / "docs/evidence"
RECORDED = {
    "small": "scale-2-small",
    "large": "scale-2-large-one-ddp-fsdp2-diloco",
}
_LONG = ("tokens per second", "MB a step")
WAYS = ["one", "ddp", "fsdp2", "diloco"]


def figures_of(model: str) -> dict[str, float]:
    text = (EVIDENCE / f"{RECORDED[model]}.json").read_text("utf-8")
    return dict(json.loads(text)["figures"])


@pytest.fixture
def scale(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    return __import__("scale")


@pytest.mark.parametrize("model", RECORDED)
def test_a_row_for_each_way(model: str) -> None:
    page, figures = (ROOT / "docs/scale.md").read_text("utf-8"), figures_of(model)
    for way in WAYS:
        of = {
            name: figures.get(f"{model} {way}: {name}") for name in ("GiB", "loss", "efficiency")
        }
        tokens, sent = (figures[f"{model} {way}: {name}"] for name in _LONG)
        share = "-" if of["efficiency"] is None else f"{of['efficiency']:g}"
        row = (
            f"| {model} {way} | {tokens:,} | {share} | {of['GiB']} | {sent:,} | {of['loss']:.4f} |"
        )
        assert row in page


@pytest.mark.parametrize("model", RECORDED)
def test_the_curves_end_at_the_recorded_losses(model: str) -> None:
    figures = figures_of(model)
    with (EVIDENCE / f"scale-2-{model}-curves.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    for way in WAYS:
        losses = [float(row["loss"]) for row in rows if row["way"] == way]
        assert len(losses) == figures["steps"]
        assert mean(losses[-len(losses) // 10 :]) == pytest.approx(
            figures[f"{model} {way}: loss"], abs=1e-4
        )


def test_the_program_keeps_the_mean_curve_of_its_cards(scale: ModuleType, tmp_path: Path) -> None:
    cards = [{"losses": [3.0, 2.0]}, {"losses": [4.0, 1.0]}]
    given = Namespace(gpus=2, models="small,large")
    kept = scale.keep_curves(scale.curve("ddp", cards, "small"), given, tmp_path)
    assert kept.name == "scale-2-small-large-curves.csv"
    assert kept.read_text("utf-8") == "model,way,step,loss\nsmall,ddp,0,3.5\nsmall,ddp,1,1.5\n"
