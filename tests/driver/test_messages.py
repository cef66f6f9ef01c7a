"""First messages: findings word for word, a briefing of bounded size, the plan's own words."""

from dataclasses import replace
from pathlib import Path

from harness.artifacts.locate import Layout
from harness.domain.findings import Finding, as_text
from harness.driver.messages import (
    BRIEFING_CHARACTERS,
    build_message,
    judge_message,
    read_briefing,
)
from harness.ledger.facts import ApprovedPlan
from harness.loop.steps import Build, JudgeResult
from harness.settings import Settings

PLAN = ApprovedPlan(
    name="p",
    version=1,
    comparison=1,
    basis="1" * 64,
    path="plan.md",
    sha256="0" * 64,
    content={
        "objective": "Tell clouds apart",
        "workflow": "classical-ml",
        "data": {"train": "data/train.npz"},
        "training": {"entry": "python fit.py"},
        "oracle": {
            "predict": "python guess.py",
            "metric": "mse",
            "direction": "minimize",
            "tiers": {"must": 0.5},
            "seeds": 3,
            "queries": 5,
        },
    },
    splits={
        "train": {"path": "data/train.npz", "rows": 60},
        "held_out": {"vault": "vault/held_out/x.npz"},
    },
    scorer={},
    by="human:test",
    at="2026-01-01T00:00:00.000Z",
)
FINDINGS = (
    Finding(
        "below_tier",
        "mse is 0.7\n with a second line; below the must tier, needs <= 0.5.",
        "Try another.",
    ),
    Finding("seed_ignored", "Seeds 1, 2 gave the same checkpoint.", "Use log.seed."),
)
STEP = Build(index=2, attempt=1, parent=None, findings=FINDINGS)


def test_findings_stand_word_for_word() -> None:
    assert as_text(FINDINGS) in build_message(STEP, PLAN, "")


def test_every_role_is_told_where_the_rows_are() -> None:
    assert "Data: train data/train.npz (60 rows)." in build_message(STEP, PLAN, "")
    drawn = {
        name: {"path": f"data/train.{name}.npz", "rows": rows}
        for name, rows in (("train", 48), ("validation", 12))
    }
    told = build_message(STEP, replace(PLAN, splits=drawn), "")
    assert (
        "train data/train.train.npz (48 rows), validation data/train.validation.npz (12 rows); the"
        " harness made both from data/train.npz."
    ) in told
    hidden = {**PLAN.splits, "validation": {"hidden": True, "rows": 12}}
    told = build_message(STEP, replace(PLAN, splits=hidden), "")
    assert "validation (12 rows) is hidden: training holds out rows of its own." in told


def test_a_builder_is_told_objective_commands_and_what_it_is_compared_with() -> None:
    text = build_message(Build(index=1, attempt=1, parent="exp-0004"), PLAN, "where we are")
    for words in (
        "Tell clouds apart",
        "lower is better",
        "must 0.5",
        "python fit.py",
        "python guess.py",
        "exp-0004",
    ):
        assert words in text
    assert "\nWorkflow: classical-ml.\n" in text
    assert "where we are" in text
    assert "The gate did not pass" not in text


def test_nobody_is_told_where_held_out_rows_are() -> None:
    judge = JudgeResult(experiment="exp-0001", index=1, attempt=1)
    for text in (
        build_message(Build(index=1, attempt=1, parent=None), PLAN, ""),
        judge_message(judge, PLAN),
    ):
        assert "vault" not in text
        assert "held_out" not in text


def test_an_open_experiment_is_named_with_its_hypothesis() -> None:
    step = Build(index=1, attempt=2, parent=None, experiment="exp-0001")
    text = build_message(step, PLAN, "", "Wider is better")
    assert "exp-0001 is already open" in text
    assert "Wider is better" in text


def test_a_long_briefing_is_cut_at_a_line_end(tmp_path: Path) -> None:
    settings = Settings(
        root=tmp_path,
        state=tmp_path,
        project_id="abc",
        interpreter=None,
        memory_dir="memory",
        readable=(),
    )
    layout = Layout(settings)
    assert read_briefing(layout) == ""
    layout.briefing.parent.mkdir(parents=True)
    layout.briefing.write_text("".join(f"line {number}\n" for number in range(3000)), "utf-8")
    text = read_briefing(layout)
    assert len(text) <= BRIEFING_CHARACTERS
    assert text.endswith("\n(cut here)")
    assert text.splitlines()[-2].startswith("line ")
