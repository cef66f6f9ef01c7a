"""`harness report --out FILE.html|.pdf`, --prose and --card, on three experiments."""

import json
import math
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from click.testing import CliRunner, Result

from harness.cli.main import harness
from harness.decisions.experiments import decide
from harness.domain.statuses import DecisionKind, GateName, Split
from harness.evaluation.experiment import evaluate_experiment
from harness.gates.check import check_gate, require_validation_passed
from harness.run_logger import RunLogger
from harness.runs.train_job import code_now
from harness.views.drawing import Words
from harness.views.figures import WIDTH, lineage, ticks
from harness.views.report import report as made_report
from harness.views.report import series
from harness.views.report_blocks import Figure, blocks
from harness.views.report_pdf import pdf
from tests.world import GOOD, POOR, InProcess, World

HOSTILE = "<script>alert(1)</script> a `cut` | at ünï €"


def ten_epochs(log: RunLogger, folder: Path, cut: float) -> None:
    with log:
        log.start(total_epochs=10)
        for epoch in range(10):
            log.epoch(epoch, {"loss": math.exp(-epoch / 4) + abs(cut), "accuracy": 1 - abs(cut)})
        path = log.checkpoint_dir / "last.json"
        path.write_text(json.dumps({"cut": cut, "seed": log.seed}))
        log.checkpoint_saved(path, epoch=9, final=True)


def led(world: World, hypothesis: str, cuts: tuple[float, ...], parent: str | None = None) -> str:
    """An experiment from its opening to KEEP, or to DISCARD where it is not good enough."""
    name = world.open(hypothesis, parent).id
    world.train(name, cuts, log=ten_epochs)
    kind = DecisionKind.KEEP
    for split, gate in (
        (Split.VALIDATION, GateName.VALIDATION),
        (Split.HELD_OUT, GateName.HELD_OUT),
    ):
        evaluate_experiment(
            world.project,
            name,
            split,
            InProcess(),
            environment={},
            shuffle_seed=7,
            admit=require_validation_passed,
        )
        if gate is GateName.VALIDATION:
            world.result(name)
        verdict = check_gate(world.project, name, gate)
        if verdict.verdict != "PASS" or (verdict.comparison or {}).get("better") is False:
            kind = DecisionKind.DISCARD
            break
    decide(
        world.project,
        kind=kind,
        experiment=name,
        by="harness",
        context="A test.",
        choice=f"{kind} it.",
        alternatives="none",
        reason="Its verdict says so.",
        confidence="high",
        verdict=verdict.id,
    )
    return name


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World.make(tmp_path_factory.mktemp("report"))
    led(made, "A cut far from the middle", POOR)
    led(made, HOSTILE, GOOD)
    led(made, "The same cut, but a little later", (0.05, 0.06, 0.04), parent="exp-0002")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in made.environment.items():
            patch.setenv(name, value)
        for name in ("CLAUDECODE", "CLAUDE_CODE_SESSION_ID"):
            patch.delenv(name, raising=False)
        yield made
    made.project.close()


def one_epoch(log: RunLogger, folder: Path, cut: float) -> None:
    with log:
        log.start(total_epochs=1)
        log.epoch(0, {"loss": 0.0, "accuracy": 1 - abs(cut)})
        path = log.checkpoint_dir / "last.json"
        path.write_text(json.dumps({"cut": cut, "seed": log.seed}))
        log.checkpoint_saved(path, epoch=0, final=True)


def report(world: World, *words: str) -> Result:
    return CliRunner().invoke(harness, ["report", *words, "--project", str(world.root)])


def written(world: World, name: str, *words: str) -> bytes:
    path = world.root / name
    answer = report(world, *words, "--out", str(path))
    assert answer.exit_code == 0, answer.output
    return path.read_bytes()


def test_the_page_in_html_has_every_figure_and_loads_nothing(world: World) -> None:
    text = written(world, "report.html").decode()
    assert re.findall(r'(?:src|href)="|<script|url\(', text) == []
    assert "default-src 'none'" in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt; a `cut` | at ünï €" in text
    drawn = re.findall(r"<svg.*?</svg>", text, re.S)
    labels = [ElementTree.fromstring(one).get("aria-label") for one in drawn]
    assert labels[:2] == ["What was tried, as a tree", "Scores with their intervals"]
    assert labels[2:8] == ["accuracy by seed", "loss by seed"] * 3
    assert labels[8:] == ["Training minutes over time"]
    curve = ElementTree.fromstring(drawn[2])
    lines = [one for one in curve.iter() if one.get("stroke-width") == "1.3"]
    assert [len(str(one.get("points")).split()) for one in lines] == [10, 10, 10]
    assert "minutes since the first experiment" in text
    for level in ("recomputed", "a line for each seed: logged", "minutes (measured)"):
        assert level in text


def test_a_page_among_the_code_is_named_as_code(world: World, tmp_path: Path) -> None:
    def told(path: Path) -> str:
        answer = report(world, "--out", str(path))
        assert answer.exit_code == 0, answer.output
        return answer.stderr

    before = code_now(world.project, world.project.plan()).hash
    for beside in (world.root / ".harness/report.md", tmp_path / "report.md"):
        assert told(beside) == ""
    assert code_now(world.project, world.project.plan()).hash == before
    among = world.root / "page.md"
    assert "page.md lies in the project and counts as its code" in told(among)
    assert code_now(world.project, world.project.plan()).hash != before
    among.unlink()
    subprocess.run(["git", "init", "-q", str(world.root)], check=True)
    ignore = world.root / ".gitignore"
    try:
        assert "counts as its code" in told(among)
        ignore.write_text("page.md\n")
        assert told(among) == ""
    finally:
        shutil.rmtree(world.root / ".git")
        ignore.unlink(missing_ok=True)
        among.unlink()


def test_the_score_of_the_table_is_the_score_that_is_drawn(world: World) -> None:
    text = written(world, "report.html").decode()
    document = json.loads(report(world, "--json").stdout)
    row = document["experiments"][1]
    low, high = row["validation"]["interval"]
    scores = ElementTree.fromstring(re.findall(r"<svg.*?</svg>", text, re.S)[1])
    words = [(float(str(one.get("x"))), one.text) for one in scores.iter() if one.text]
    axis = sorted((x, float(text)) for x, text in words if re.fullmatch(r"[\d.]+", str(text)))
    (x0, v0), (x1, v1) = axis[0], axis[-1]
    bars = [str(one.get("points")) for one in scores.iter() if one.get("stroke-width") == "1.6"]
    ends = [float(point.split(",")[0]) for point in bars[1].split()]
    values = [v0 + (x - x0) * (v1 - v0) / (x1 - x0) for x in ends]
    assert values == pytest.approx([low, high], abs=2e-3)


def test_only_the_named_experiments(world: World) -> None:
    text = written(world, "one.html", "exp-0002", "exp-0003").decode()
    assert "exp-0001" not in text
    assert "exp-0003" in text
    page = report(world, "exp-0001").stdout
    assert "exp-0002" not in page
    unknown = report(world, "exp-0009")
    assert "exp-0009" in str(unknown.exception)
    assert unknown.exit_code != 0


def many(world: World, number: int) -> dict[str, object]:
    """The report's document as if `number` experiments each built on the one before."""
    project = world.project
    document = made_report(project, ())
    row = document["experiments"][1]
    rows = [
        {
            **row,
            "experiment": f"exp-{place:04d}",
            "parent": f"exp-{place - 1:04d}",
            "hypothesis": "层" * 90 if place % 2 else "W" * 90,
        }
        for place in range(number)
    ]
    return {**document, "experiments": rows, "series": series(project, document)}


def test_a_hundred_experiments_in_a_line_stay_on_the_paper(world: World) -> None:
    parts = list(blocks(many(world, 100)))
    figures = [one for one in parts if isinstance(one, Figure)]
    shown = [one for one in figures if "builds on" in one.words or "intervals" in one.words]
    assert [one.words.rpartition(" (")[2] for one in shown] == [
        *(f"{place} of 4)" for place in range(1, 5)),
    ] * 2
    for one in shown:
        assert one.drawing.height < 900
        for shape in one.drawing.shapes:
            if isinstance(shape, Words) and shape.anchor == "start":
                broad = sum(8 if sign in "W层" else 4 for sign in shape.text)
                assert shape.at[0] + broad <= WIDTH, shape.text
    pytest.importorskip("reportlab")
    assert pdf("Report: signs", parts, world.project.clock.now()).startswith(b"%PDF-")


def test_a_number_that_is_tied_to_nothing_is_claimed(world: World) -> None:
    path = world.root / "prose.md"
    path.write_text("It took 500 hours.\n", "utf-8")
    answer = report(world, "--prose", str(path))
    assert answer.exit_code == 0, answer.output
    assert "- other number 500: claimed, not checked" in answer.stdout


def test_a_pdf_has_pages_with_the_same_words(world: World) -> None:
    pytest.importorskip("reportlab")
    made = written(world, "report.pdf")
    assert made.startswith(b"%PDF-")
    assert made.rstrip().endswith(b"%%EOF")
    assert len(re.findall(rb"/Type /Page\b", made)) >= 2


@pytest.mark.parametrize(
    ("prose", "wrong"),
    [
        ("exp-0002 reached an accuracy of {right} on validation.\n", None),
        ("exp-0002 reached an accuracy of 0.51 on validation.\n", "contradicted"),
        ("A score of 0.51 was reached.\n", "contradicted"),
        ("The best is `accuracy 0.51`.\n", "contradicted"),
        ("> accuracy 0.51\n", "contradicted"),
        ("<!-- accuracy 0.51 -->\n", "contradicted"),
        ("---\naccuracy 0.51\n---\n", "contradicted"),
        ("\u200b---\naccuracy 0.51\n---\n", "contradicted"),
        ("<div title='accuracy 0.51'>x</div>\n", "contradicted"),
        ("Rows with a score below 0.2 were dropped.\n\nexp-0002: accuracy {right}.\n", None),
        ("Their baseline has a score of 0.84.\n\nexp-0002: accuracy {right}.\n", None),
    ],
)
def test_an_analysts_prose_is_checked(world: World, prose: str, wrong: str | None) -> None:
    document = json.loads(report(world, "--json").stdout)
    right = f"{document['experiments'][1]['validation']['score']:.4f}"
    path, out = world.root / "prose.md", world.root / "with-prose.html"
    path.write_text(prose.format(right=right), "utf-8")
    answer = report(world, "--prose", str(path), "--out", str(out))
    if wrong is not None:
        assert answer.exit_code != 0
        assert "claims that do not hold" in str(answer.exception) + answer.output
        assert wrong in str(answer.exception) + answer.output
        return
    assert answer.exit_code == 0, answer.output
    text = out.read_text("utf-8")
    assert "In an analyst&#x27;s words" in text
    row = f"<td>accuracy</td><td>{right}</td><td>recomputed</td>"
    assert row in text
    out.unlink()


def test_the_card_of_a_kept_model(world: World) -> None:
    text = written(world, "README.md", "exp-0002", "--card", "model").decode()
    _, front, body = text.split("---\n", 2)
    (model,) = yaml.safe_load(front)["model-index"]
    document = json.loads(report(world, "exp-0002", "--json").stdout)
    row = document["experiments"][0]
    values = [one["metrics"][0]["value"] for one in model["results"]]
    assert values[0] == row["validation"]["score"]
    assert "recomputed" in model["results"][0]["metrics"][0]["name"]
    assert "licence: unknown" in body
    assert "    cut: 0.0" in body
    refused = report(world, "exp-0001", "--card", "model")
    assert refused.exit_code != 0
    hub = pytest.importorskip("huggingface_hub")
    card = hub.ModelCard(text)
    results = card.data.eval_results
    assert [one.metric_value for one in results] == values


def test_the_card_of_the_data(world: World) -> None:
    text = report(world, "--card", "dataset").stdout
    _, front, body = text.split("---\n", 2)
    splits = yaml.safe_load(front)["dataset_info"]["splits"]
    rows = {one["name"]: one["num_examples"] for one in splits}
    assert rows == {"train": 60, "validation": 200, "held_out": 200}
    assert "held-out: 200 rows (measured)" in body


def test_a_tree_has_children_below_their_parent() -> None:
    pairs = [("a", None), ("b", "a"), ("c", "elsewhere"), ("d", "a"), ("e", "b")]
    rows = [{"experiment": name, "parent": parent} for name, parent in pairs]
    walked = [(depth, row["experiment"]) for depth, row in lineage(rows)]
    assert walked == [(0, "a"), (1, "b"), (2, "e"), (1, "d"), (0, "c")]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]), (0.91, 0.96, [0.91, 0.92, 0.93, 0.94, 0.95, 0.96])],
)
def test_ticks_are_round_numbers(low: float, high: float, expected: list[float]) -> None:
    assert ticks(low, high) == expected


def test_curves_of_one_epoch_have_its_values_at_their_axes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = World.make(tmp_path)
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    try:
        made.train(made.open("One epoch only").id, (0.05, 0.05, 0.05), log=one_epoch)
        text = written(made, "one.html").decode()
    finally:
        made.project.close()
    shown = {}
    for one in re.findall(r"<svg.*?</svg>", text, re.S):
        curve = ElementTree.fromstring(one)
        words = [piece.text for piece in curve.iter() if piece.tag.endswith("text")]
        shown[curve.get("aria-label")] = [word for word in words if "seed" not in str(word)]
        drawn = [piece for piece in curve.iter() if piece.get("r") == "2.2"]
        assert len(drawn) == (3 if "by seed" in str(curve.get("aria-label")) else 0)
    assert shown["accuracy by seed"] == ["0.95", "0", "epoch"]
    assert shown["loss by seed"] == ["0", "0", "epoch"]
