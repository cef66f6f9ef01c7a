"""What a specification reads, it reads once, in the project or what config.toml declares."""

import os
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.ledger.project import Project
from harness.posttrain.field_problems import SpecificationError
from harness.posttrain.program import TrainingProgram
from harness.posttrain.untrusted_json import read_within
from tests.posttrain import programs


def refused(program: TrainingProgram, **more: str) -> dict[str, str]:
    with pytest.raises(SpecificationError) as told:
        program.create(programs.request(**more), by="agent")
    return {item.field: item.reason for item in told.value.problems}


def test_rows_outside_of_the_project_are_refused_by_path_and_by_link(
    program: TrainingProgram, root: Path, tmp_path: Path
) -> None:
    programs.write_rows(tmp_path / "secret.jsonl", programs.rows(20))
    (root / "linked.jsonl").symlink_to(tmp_path / "secret.jsonl")
    for name in ("dataset", "benchmark"):
        for path in (str(tmp_path / "secret.jsonl"), "linked.jsonl", "../secret.jsonl"):
            assert "leads out of the project" in refused(program, **{name: path})[name]


def test_nothing_of_the_harness_itself_is_a_dataset(
    project: Project, program: TrainingProgram
) -> None:
    kept = project.layout.state / "vault" / "rows.jsonl"
    kept.parent.mkdir(parents=True, exist_ok=True)
    programs.write_rows(kept, programs.rows(20))
    assert "dataset" in refused(program, dataset=str(kept))


def test_a_link_that_is_exchanged_after_the_look_leads_nowhere(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret").write_text("secret")
    (root / "mine").write_text("mine")
    link = root / "link"
    link.symlink_to(tmp_path / "secret")
    real = os.open

    def swap(path: object, *rest: object, **more: object) -> int:
        opened = real(path, *rest, **more)  # type: ignore[arg-type]
        if path == link:  # what was opened is the secret; what the path names now is not
            link.unlink()
            link.symlink_to(root / "mine")
        return opened

    monkeypatch.setattr(os, "open", swap)
    with pytest.raises(UsageError, match="leads out of the project"):
        read_within(link, [root])
    assert read_within(root / "mine", [root]) == b"mine"


SEES = """
made = sorted(str(path.relative_to(Path.cwd())) for path in Path.cwd().rglob("*.jsonl"))
adapter(out / "adapter", [1.5, 2.0])
(out / "seen").write_text(json.dumps([made, spec["dataset"]["path"]]))
print(json.dumps(result()))
"""


def test_a_trainer_reads_a_checked_copy_of_the_dataset_and_no_benchmark(
    execute, project: Project, root: Path
) -> None:
    report = execute(SEES)
    assert report.model is not None, report.run.reason
    seen = project.layout.run(report.run.experiment, report.run.id, "checkpoints") / "seen"
    text = seen.read_text()
    assert "train.jsonl" in text
    assert "held_out" not in text
    assert str(root / "train.jsonl") not in text, "without a sandbox it stands elsewhere"


def test_a_dataset_that_changed_is_not_trained_on(program: TrainingProgram, root: Path) -> None:
    made = program.create(programs.request(), by="me")
    programs.write_rows(root / "train.jsonl", programs.rows(20, 50))
    report = program.execute(made.experiment)
    assert (report.run.status, report.model) == ("failed", None)
    assert "changed since it was approved, or specified" in report.run.reason
