"""Looking reads nothing twice and misses no change; gates believe nothing of what a look kept."""

import builtins
import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from harness.artifacts import looked
from harness.artifacts.looked import looking, remembered
from harness.domain.findings import Finding
from harness.domain.statuses import Split, Verdict
from harness.evaluation.experiment import evaluate_experiment
from harness.gates import claim_facts, prose
from harness.gates.check import check_gate, require_validation_passed
from harness.gates.collect import changed
from harness.views.snapshot import experiment_rows
from tests.fixtures import world
from tests.world import InProcess, World

__all__ = ["world"]


@pytest.fixture(autouse=True)
def _settled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looked, "SETTLED_NS", -(10**15))  # files of a test are new


@contextmanager
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Path]]:
    """The files that are opened, in whatever way Python opens one."""
    paths: list[Path] = []
    with monkeypatch.context() as patch:
        for module in (builtins, io, os):
            genuine = module.open  # type: ignore[attr-defined]

            def noted(path: Any, *words: Any, _open: Any = genuine, **values: Any) -> Any:
                if not isinstance(path, int):
                    paths.append(Path(os.fsdecode(path)))
                return _open(path, *words, **values)

            patch.setattr(module, "open", noted)
        yield paths


def judged(world: World) -> str:
    experiment = world.open().id
    world.train(experiment)
    evaluate_experiment(
        world.project,
        experiment,
        Split.VALIDATION,
        InProcess(),
        admit=require_validation_passed,
    )
    world.result(experiment, accuracy="0.98")
    assert check_gate(world.project, experiment).evidence
    return str(experiment)


def test_a_second_look_opens_neither_rows_nor_checkpoints(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = judged(world)
    project = world.project
    run = project.ledger.runs(experiment)[-1]
    metrics = project.layout.run(experiment, run.id, "metrics")
    (point,) = [one for one in project.ledger.checkpoints(experiment, run.id) if one.final]
    large = {metrics, *(project.layout.root / point.path).rglob("*")}
    with opened(monkeypatch) as first:
        (row,) = experiment_rows(project)
    assert row["verdict"] != Verdict.STALE
    assert metrics in first
    with opened(monkeypatch) as second:
        (row,) = experiment_rows(project)
    assert row["verdict"] != Verdict.STALE
    assert large.isdisjoint(second)
    data = metrics.read_bytes()
    metrics.write_bytes(data[:-2] + b" \n")  # of the same size
    (row,) = experiment_rows(project)
    assert row["verdict"] == Verdict.STALE
    assert f"{run.id}/metrics" in row["findings"][0]["message"]


def test_a_gate_reads_whatever_a_look_kept(world: World) -> None:
    experiment = judged(world)
    project = world.project
    verdict = project.ledger.latest_verdict(experiment)
    assert verdict is not None
    run = project.ledger.runs(experiment)[-1]
    metrics = project.layout.run(experiment, run.id, "metrics")
    experiment_rows(project)
    kept = json.loads(project.layout.looked.read_bytes())
    name = f"hash {metrics}"
    assert name in kept
    kept[name][1] = "0" * 64
    project.layout.looked.write_text(json.dumps(kept), "utf-8")
    with looking(project.layout.looked):
        assert changed(project, verdict) == (f"{run.id}/metrics",)
    assert changed(project, verdict) == ()


def test_what_older_rules_found_in_a_text_is_asked_again(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, rule, asked = world.project, tmp_path / "rules" / "rule.py", []
    experiment, genuine = judged(world), claim_facts.prose_findings

    def noted(*words: Any) -> tuple[Finding, ...]:
        asked.append(words)
        return genuine(*words)

    def look() -> int:
        prose.rules.cache_clear()  # another process
        (row,) = experiment_rows(project)
        assert row["experiment"] == experiment
        return len(asked)

    rule.parent.mkdir()
    rule.write_text("older = True\n")
    monkeypatch.setattr(claim_facts, "prose_findings", noted)
    monkeypatch.setattr(prose, "RULES", (rule.parent,))
    assert [look(), look()] == [1, 1]
    rule.write_text("newer = True\n")
    assert [look(), look()] == [2, 2]
    prose.rules.cache_clear()


def test_the_rules_of_a_text_are_code_of_the_harness() -> None:
    names = {path.name for folder in prose.RULES for path in folder.glob("*.py")}
    assert {"claim_facts.py", "judge.py", "vocabulary.py"} <= names


def test_what_is_remembered_goes_with_its_files(tmp_path: Path) -> None:
    file, asked = tmp_path / "data", []

    def look(also: object = None) -> str:
        def make() -> str:
            asked.append(also)
            return file.read_text() if file.exists() else "none"

        with looking(tmp_path / "looked.json"):
            return remembered("it", [file], make, also=also)

    assert [look(), look()] == ["none", "none"]
    assert len(asked) == 1
    file.write_text("one")
    assert [look(), look(), look(2)] == ["one", "one", "one"]
    assert len(asked) == 3
    os.utime(file, (1, 1))  # the time of change tells
    assert [look(2), len(asked)] == ["one", 4]
    (tmp_path / "looked.json").write_text("no JSON")
    assert [look(2), len(asked)] == ["one", 5]
    assert remembered("it", [file], lambda: "made", also=2) == "made"  # outside


def test_what_changed_just_now_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looked, "SETTLED_NS", 2_000_000_000)
    file, asked = tmp_path / "data", []
    file.write_text("one")
    for _ in range(2):
        with looking(tmp_path / "looked.json"):
            remembered("it", [file], lambda: asked.append(1))
    assert len(asked) == 2
