"""An approval that is cut at any of its steps is finished by the next one, and held-out rows are
never lost."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.artifacts.vault_key import vault_key
from harness.files import sha256_file
from harness.ledger.ledger import Ledger
from harness.ledger.project import Project
from harness.plans.approval import approve_plan
from harness.plans.approved import frozen_changes
from tests.blobs import PLAN, hide_validation

STEPS = {"given": 19, "drawn": 21, "hidden": 22}
"""Validation, plan, held-out (twice: its keyed name too) and its note are renamed into place, the draft
of the vault's key and the source are unlinked, the approved config.toml and the list of trees are
renamed into place, three facts (the approval, the accepted list, the judge) are stored, their anchors
are renamed into place, and so are the list, beside the old one and over it, and what is remembered of
the judge's files, as seen and as approved. A split that the harness makes adds two files, a hidden
validation its keyed name, its note and its unlink."""


class Killed(BaseException):
    pass


class Countdown:
    """Dies before or after the n-th change that the approval makes: a rename, an unlink or a
    fact. What tests keep elsewhere (tests/once.py) is no change of it."""

    def __init__(self, at: int, *, after: bool, below: Path) -> None:
        self.left = at
        self.after = after
        self.below = below

    def wrap(self, change: Callable[..., object]) -> Callable[..., object]:
        def counted(*positional: object, **named: object) -> object:
            first = positional[0]
            if isinstance(first, str | Path) and not Path(first).is_relative_to(self.below):
                return change(*positional, **named)
            self.left -= 1
            last = self.left == 0
            if last and not self.after:
                raise Killed
            result = change(*positional, **named)
            if last:
                raise Killed
            return result

        return counted


def cut(
    project: Project, plan: Path, at: int, after: bool, monkeypatch: pytest.MonkeyPatch
) -> bool:
    """Whether the approval was cut; False when it has fewer than `at` steps."""
    countdown = Countdown(at, after=after, below=project.layout.root.parent)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", countdown.wrap(os.replace))
        patch.setattr(Path, "unlink", countdown.wrap(Path.unlink))
        patch.setattr(Ledger, "append", countdown.wrap(Ledger.append))
        try:
            approve_plan(project, plan, by="ada")
        except Killed:
            return True
    return False


def prepare(root: Path, split: str) -> None:
    """Its validation table given, drawn by the harness or hidden."""
    if split == "hidden":
        hide_validation(root)
    if split == "drawn":
        (root / "data/validation.npz").unlink()
        (root / "plan.md").write_text(PLAN.replace("  validation: data/validation.npz\n", ""))


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    ("split", "at"),
    [(split, at) for split, steps in STEPS.items() for at in range(1, steps + 1)],
)
def test_any_cut_is_fixed_by_approving_again(
    project: Project, root: Path, split: str, at: int, after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(root, split)
    source, hidden = root / "data/held_out.npz", root / "data/train.validation.npz"
    expected = sha256_file(source)
    validation = sha256_file(hidden) if split == "hidden" else None
    assert cut(project, root / "plan.md", at, after, monkeypatch) is True
    vault = [
        path for path in project.layout.held_out.glob("*.npz") if sha256_file(path) == expected
    ]
    assert source.exists() or vault
    assert split != "hidden" or hidden.exists() or [*project.layout.validation.glob("*.npz")]
    if project.ledger.plan() is not None:
        assert not source.exists()
    approved = approve_plan(project, root / "plan.md", by="ada")
    assert approved.version == 1
    assert not source.exists()
    assert sha256_file(project.layout.state / approved.splits["held_out"]["vault"]) == expected
    key = vault_key(project.layout.vault)
    assert split != "hidden" or approved.splits["validation"]["sha256"] == key.of(str(validation))
    assert split != "hidden" or not hidden.exists()
    assert frozen_changes(project, project.plan()) == []


@pytest.mark.parametrize("split", STEPS)
def test_there_are_as_many_steps_as_are_cut(
    project: Project, root: Path, split: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(root, split)
    assert cut(project, root / "plan.md", STEPS[split] + 1, False, monkeypatch) is False
