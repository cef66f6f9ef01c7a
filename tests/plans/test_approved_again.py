"""A further approval says what changed and what follows; it takes nothing without a word."""

import re
from pathlib import Path

import pytest

from harness.errors import RefusedError
from harness.ledger.project import Project
from harness.plans.approval import approve_plan
from harness.plans.changes import Changes, bounded, changed_since, require_seen

SCORER = """\
def score(labels, predictions):
    right = 0
    for label, row in zip(labels, predictions):
        right += row["prediction"] == label
    return right / len(labels)
"""


def approve(project: Project, root: Path, seen: str | None = None) -> list[Changes]:
    shown: list[Changes] = []

    def confirm(changes: Changes) -> None:
        shown.append(changes)
        require_seen(changes, seen, "harness plan approve plan.md")

    approve_plan(project, root / "plan.md", by="ada", on_changes=confirm)
    return shown


def scripted(project: Project, root: Path) -> None:
    (root / "scorer.py").write_text(SCORER)
    (root / "plan.md").write_text(
        (root / "plan.md").read_text().replace("scorer: accuracy", "scorer: scorer.py")
    )
    assert approve(project, root) == []


def test_an_edited_scorer_is_shown_and_taken_only_when_confirmed(
    project: Project, root: Path
) -> None:
    scripted(project, root)
    (root / "scorer.py").write_text(SCORER.replace("== label", "in (label, 7)"))
    with pytest.raises(RefusedError) as refused:
        approve(project, root)
    assert (refused.value.code, refused.value.exit_code) == ("changes_not_confirmed", 2)
    words = str(refused.value)
    assert 'right += row["prediction"] in (label, 7)' in words
    assert "scorer.py: " in words
    assert "a new comparison, for the scorer's code changed" in words
    assert project.plan().version == 1
    digest = refused.value.hint.rpartition("--changes ")[2].strip("`.")
    # With few digits an agent makes two edits that share one, and exchanges them after it was read.
    assert re.fullmatch("[0-9a-f]{32}", digest)
    (shown,) = approve(project, root, digest)
    assert project.plan().version == 2
    assert [one.path for one in shown.files] == ["scorer.py"]
    ((plan, changed),) = changed_since(project, project.plan().name, 1)
    assert plan.version == 2
    assert changed == shown.files[0].words


def test_what_is_edited_after_it_was_shown_is_shown_again(project: Project, root: Path) -> None:
    scripted(project, root)
    (root / "scorer.py").write_text(SCORER + "# harmless\n")
    with pytest.raises(RefusedError) as refused:
        approve(project, root)
    digest = refused.value.hint.rpartition("--changes ")[2].strip("`.")
    (root / "scorer.py").write_text(SCORER.replace("== label", "in (label, 7)"))
    with pytest.raises(RefusedError, match="was for other changes"):
        approve(project, root, digest)
    assert project.plan().version == 1


def test_a_changed_field_says_what_becomes_of_seeds(project: Project, root: Path) -> None:
    approve(project, root)
    text = (root / "plan.md").read_text()
    for line, then in (
        ("queries: 21", "The comparison goes on"),
        ("queries: 20\n  predict_minutes: 3", "The comparison goes on"),
    ):
        (root / "plan.md").write_text(text.replace("queries: 20", line))
        with pytest.raises(RefusedError) as refused:
            approve(project, root)
        assert then in str(refused.value)
        assert "What was counted stays counted" in str(refused.value)
    assert "oracle.predict_minutes: none -> 3.0" in str(refused.value)
    (root / "plan.md").write_text(text.replace("seeds: 3", "seeds: 5"))
    with pytest.raises(RefusedError, match="New seeds are drawn"):
        approve(project, root)


def test_another_name_is_another_plan_with_another_oracle_only(
    project: Project, root: Path
) -> None:
    approve(project, root)
    name = project.plan().name
    text = (root / "plan.md").read_text().replace(f"name: {name}", "name: another")
    (root / "plan.md").write_text(text)
    with pytest.raises(RefusedError, match=f"The plan goes on as {name}, the name that"):
        approve(project, root)
    (root / "plan.md").write_text(text.replace("seeds: 3", "seeds: 5"))
    with pytest.raises(RefusedError, match="Another name is another plan"):
        approve(project, root)


def test_changed_rows_are_named(project: Project, root: Path) -> None:
    approve(project, root)
    path = project.plan().splits["train"]["path"]
    with (root / path).open("ab") as stream:
        stream.write(b"\n")
    with pytest.raises(RefusedError, match="train split"):
        approve(project, root)


def test_honest_the_same_again_asks_nothing(project: Project, root: Path) -> None:
    assert approve(project, root) == []
    assert approve(project, root) == []
    assert project.plan().version == 1
    assert changed_since(project, project.plan().name, 1) == []


def test_all_of_a_long_difference_is_shown(project: Project, root: Path) -> None:
    """The change that matters stands behind a hundred lines, at the end of a long one, and in a
    character that no terminal shows."""
    scripted(project, root)
    harmless = "".join(f"# line {number}\n" for number in range(200))
    long = f"NAMES = {[f'name-{number}' for number in range(60)]!r}  # the long line ends here\n"
    (root / "scorer.py").write_text(
        harmless + long + "CITY = 'Lju\u200bbljana'\n" + SCORER.replace("== label", "!= 7")
    )
    text = (root / "plan.md").read_text()
    (root / "plan.md").write_text(text.replace("python predict.py", f"python {'p' * 300}.py"))
    with pytest.raises(RefusedError) as refused:
        approve(project, root)
    words = str(refused.value)
    assert [number for number in range(200) if f"+# line {number}\n" not in words] == []
    assert 'right += row["prediction"] != 7' in words
    assert "'Lju\\u200bbljana'" in words
    joined = re.sub(r"\n    ~ ", "", words)
    assert f"+{long}" in joined
    assert f"oracle.predict: python predict.py -> python {'p' * 300}.py" in joined
    indented = [line for line in words.splitlines() if line.startswith("  ")]
    assert len(indented) > 200
    assert max(map(len, indented)) <= 99
    assert "more lines" not in words


def test_in_a_finding_changes_are_cut_and_counted() -> None:
    lines = bounded(["x" * 500, *map(str, range(99))], 8, "changes")
    assert (len(lines), len(lines[0]), lines[-1]) == (9, 160, "... and 92 more changes")


def test_a_table_that_was_exchanged_is_named_by_the_new_plans_path(
    project: Project, root: Path
) -> None:
    approve(project, root)
    old = project.plan().splits["train"]["path"]
    other = old.replace("train", "other")
    (root / other).write_bytes((root / old).read_bytes() + b"\n")
    (root / "plan.md").write_text((root / "plan.md").read_text().replace(old, other))
    with pytest.raises(RefusedError, match=r"data.train: .* -> .*other"):
        approve(project, root)


def test_what_the_configuration_grants_since_is_shown_and_confirmed(
    project: Project, root: Path
) -> None:
    assert approve(project, root) == []
    config = project.layout.project("config_toml")
    config.write_text(config.read_text("utf-8") + 'readable = ["data"]\n', "utf-8")
    with pytest.raises(RefusedError) as refused:
        approve(project, root)
    assert refused.value.code == "changes_not_confirmed"
    assert '+readable = ["data"]' in str(refused.value)
    assert b"readable" not in project.layout.approved_config.read_bytes()
    digest = refused.value.hint.rpartition("--changes ")[2].strip("`.")
    approve(project, root, digest)
    assert project.layout.approved_config.read_bytes() == config.read_bytes()
    assert approve(project, root) == []
