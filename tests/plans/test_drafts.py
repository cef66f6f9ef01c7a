"""The next version of a plan is drafted beside it; a person's approval puts it in its place."""

import os
from pathlib import Path
from typing import Any

import pytest

from harness.errors import RefusedError
from harness.files import sha256_file
from harness.ledger.facts import SessionBegan
from harness.ledger.ledger import Ledger
from harness.ledger.project import Project
from harness.plans import drafts
from harness.plans.approval import approve_plan
from harness.plans.approved import frozen_changes
from harness.plans.changes import Changes, require_seen
from harness.plans.scaffold import PLAN_FORM

DRAFT = "plans/plan.draft.md"


def drafted(root: Path, queries: int, name: str = DRAFT) -> Path:
    path = root / name
    path.parent.mkdir(exist_ok=True)
    text = (root / "plan.md").read_text()
    path.write_text(text.replace("queries: 20", f"queries: {queries}"))
    return path


def approve(project: Project, path: Path, seen: str | None = None) -> list[Changes]:
    shown: list[Changes] = []

    def confirm(changes: Changes) -> None:
        shown.append(changes)
        require_seen(changes, seen, f"harness plan approve {path}")

    approve_plan(project, path, by="ada", on_changes=confirm)
    return shown


def test_a_draft_shows_its_changes_and_takes_the_place_of_the_plan(
    project: Project, root: Path
) -> None:
    approve(project, root / "plan.md")
    draft = drafted(root, 21)
    with pytest.raises(RefusedError, match=r"oracle\.queries: 20 -> 21") as refused:
        approve(project, draft)
    assert refused.value.code == "changes_not_confirmed"
    assert "queries: 20" in (root / "plan.md").read_text()
    approve(project, draft, refused.value.hint.rpartition("--changes ")[2].strip("`."))
    plan = project.plan()
    assert (plan.version, plan.path, plan.sha256) == (2, "plan.md", sha256_file(root / "plan.md"))
    assert plan.content["oracle"]["queries"] == 21
    assert not draft.exists()
    assert frozen_changes(project, plan) == []


def test_the_first_plan_may_be_a_draft_too(project: Project, root: Path) -> None:
    draft = drafted(root, 20)
    (root / "plan.md").write_text(PLAN_FORM)
    approve(project, draft)
    assert (project.plan().path, draft.exists()) == ("plan.md", False)


def test_another_name_is_another_file(project: Project, root: Path) -> None:
    approve(project, drafted(root, 20, "plans/wide.draft.md"))
    assert project.plan().path == "plans/wide.md"
    (root / "plan.md").unlink()
    assert sha256_file(root / "plans/wide.md") == project.plan().sha256


def test_what_a_person_wrote_in_its_place_is_not_overwritten(project: Project, root: Path) -> None:
    approve(project, root / "plan.md")
    draft = drafted(root, 21)
    (root / "plan.md").write_text((root / "plan.md").read_text() + "My own words.\n")
    with pytest.raises(RefusedError, match="text that nobody approved") as refused:
        approve(project, draft)
    assert refused.value.code == "plan_edited"
    assert (root / "plan.md").read_text().endswith("My own words.\n")


def test_a_link_in_its_place_is_not_followed(project: Project, root: Path) -> None:
    draft = drafted(root, 20, "plans/wide.draft.md")
    (root / "notes.md").write_text("mine")
    (root / "plans" / "wide.md").symlink_to("../notes.md")
    with pytest.raises(RefusedError) as refused:
        approve(project, draft)
    assert refused.value.code == "link_in_place"
    assert (root / "notes.md").read_text() == "mine"


def test_a_link_that_comes_after_the_last_look_is_not_followed(
    project: Project, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = drafted(root, 20, "plans/wide.draft.md")
    outside = tmp_path / "outside"
    outside.mkdir()
    look = drafts.in_its_place

    def looked(*words: Any) -> Any:
        placed = look(*words)
        (root / "plans").rename(root / "old")
        (root / "plans").symlink_to(outside)
        return placed

    # The second look; the first one is the approval's own.
    monkeypatch.setattr(drafts, "in_its_place", looked)
    with pytest.raises(RefusedError) as refused:
        approve(project, draft)
    assert refused.value.code == "link_in_place"
    assert list(outside.iterdir()) == []


class Killed(BaseException):
    pass


@pytest.mark.parametrize("step", [(Ledger, "append"), (Path, "unlink")], ids=["before", "after"])
def test_an_approval_that_was_cut_is_finished_by_the_next_one(
    project: Project, root: Path, step: tuple[type, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut when plan.md holds the draft's text and nothing is recorded, and when all is recorded."""
    approve(project, root / "plan.md")
    draft = drafted(root, 21)
    with pytest.raises(RefusedError) as refused:
        approve(project, draft)
    seen = refused.value.hint.rpartition("--changes ")[2].strip("`.")

    def killed(*_: object, **__: object) -> None:
        if draft.exists() and sha256_file(root / "plan.md") == sha256_file(draft):
            raise Killed
        raise AssertionError("not yet")

    with monkeypatch.context() as patch:
        patch.setattr(*step, killed)
        with pytest.raises(Killed):
            approve(project, draft, seen)
    assert os.listdir(root / "plans") == ["plan.draft.md"]
    approve(project, draft, seen)
    assert (project.plan().version, os.listdir(root / "plans")) == (2, [])
    assert frozen_changes(project, project.plan()) == []


def test_a_session_that_took_its_receipt_away_is_known_by_its_beginning(
    project: Project, root: Path
) -> None:
    project.ledger.append(SessionBegan(session="s-1", process={}))
    with pytest.raises(RefusedError, match="a session of Claude Code may have written"):
        approve(project, root / "plan.md")


def test_a_first_plan_that_an_agent_may_have_written_is_shown_before_it_counts(
    project: Project, root: Path
) -> None:
    receipts = project.layout.project("receipts")
    receipts.mkdir(parents=True)
    (receipts / "s-1.jsonl").write_text("{}\n")
    with pytest.raises(RefusedError) as refused:
        approve(project, root / "plan.md")
    words = str(refused.value)
    assert "version 1, which a session of Claude Code may have written" in words
    assert "queries=20" in words
    assert "->" not in words
    assert project.ledger.plan() is None
    seen = refused.value.hint.rpartition("--changes ")[2].strip("`.")
    text = (root / "plan.md").read_text()
    (root / "plan.md").write_text(text.replace("queries: 20", "queries: 200"))
    with pytest.raises(RefusedError, match="was for other changes"):
        approve(project, root / "plan.md", seen)
    (root / "plan.md").write_text(text)
    approve(project, root / "plan.md", seen)
    assert project.plan().version == 1


def test_a_first_plan_of_a_persons_own_is_shown_to_who_asks(project: Project, root: Path) -> None:
    def refuse(changes: Changes) -> None:
        shown.append(changes)
        raise RefusedError("no", hint="")

    shown: list[Changes] = []
    with pytest.raises(RefusedError):
        approve_plan(project, root / "plan.md", by="human:ada", on_changes=refuse, first_too=True)
    assert shown[0].what.endswith("version 1")
    assert "\n  oracle: metric=accuracy, direction=maximize," in shown[0].text
    assert "none" not in shown[0].text
    assert project.ledger.plan() is None
    approve_plan(project, root / "plan.md", by="human:ada", on_changes=refuse)
    assert len(shown) == 1
