"""What is no longer as it was accepted, frozen or recorded."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

import orjson

from harness.artifacts.content import (
    content_hash,
    hash_file,
    read_bytes,
)
from harness.contract.artifacts import BY_NAME, Scope
from harness.domain.late import Late, dataclass
from harness.domain.statuses import CLOSED_EXPERIMENTS
from harness.errors import UsageError
from harness.files import canonical_json, sha256_bytes
from harness.guard.accepted import (
    Accepted,
    control_listing,
)
from harness.guard.control_files import (
    GIT,
    MISSING,
    entry_of,
    file_and_part,
    is_change,
    is_grave,
    part_words,
)
from harness.guard.policy.snapshot import differs
from harness.ledger.project import Project
from harness.plans.approved import NOT_HERE, frozen_changes
from harness.settings import main_root

_MOST_PARTS = 3


class ChangeKind(StrEnum):
    CONTROL = "control"
    FROZEN = "frozen"
    RECORDED = "recorded"
    RECEIPTS = "receipts"
    POLICY = "policy"
    LIST = "accepted list"
    PAGE = "page"


@dataclass(frozen=True, kw_only=True)
class Change(Late):
    kind: ChangeKind
    path: str
    """Relative to the project's root; absolute for what lies in the vault."""
    expected: str
    """A digest, or "missing"."""
    actual: str
    at: datetime | None
    """When the file, or the folder that lost it, was last changed."""
    parts: tuple[tuple[str, str, str], ...] = ()
    """Of a settings file: (key, digest expected, digest there) of each that changed; the key of
    one that was or is no JSON object is empty."""

    @property
    def entries(self) -> list[str]:
        return [entry_of(self.path, part) for part, _, _ in self.parts] or [self.path]

    @property
    def grave(self) -> bool:
        """Whether it can do something to the guards. A key that the harness does not know is told
        and accuses nobody."""
        return all(is_grave(part) for part, _, _ in self.parts)

    def words(self) -> str:
        """What changed, in words."""
        named = [
            part_words(part, expected, actual) for part, expected, actual in self.parts if part
        ]
        if len(named) < len(self.parts) or not named:
            return (
                f"{self.path} had {self.expected[:12]} when it was accepted and has"
                f" {self.actual[:12]}"
            )
        more = f"; and {len(named) - _MOST_PARTS} more" if len(named) > _MOST_PARTS else ""
        return f"{self.path} {'; '.join(named[:_MOST_PARTS])}{more}"


def control_changes(root: Path, accepted: Accepted) -> list[Change]:
    """Control files that are not as a person accepted them last."""
    # `git init` after the acceptance adds control files below .git: that is no change.
    now = control_listing(root)
    had_git = any(path.startswith(GIT) for path in accepted.files)
    found: dict[tuple[str, bool], list[tuple[str, str, str]]] = {}
    for entry in sorted({*accepted.files, *now}):
        expected, actual = accepted.files.get(entry, MISSING), now.get(entry, MISSING)
        if is_change(entry, expected, actual) and (had_git or not entry.startswith(GIT)):
            path, part = file_and_part(entry)
            found.setdefault((path, is_grave(part)), []).append((part, expected, actual))
    return [_control_change(root, path, parts) for (path, _), parts in sorted(found.items())]


def _control_change(root: Path, path: str, parts: list[tuple[str, str, str]]) -> Change:
    expected, actual = (
        _together(path, {part[0]: part[place] for part in parts}) for place in (1, 2)
    )
    place = main_root(root) if path.startswith(GIT) else root
    change = _change(ChangeKind.CONTROL, place, path, expected, actual)
    return (
        change if [part for part, _, _ in parts] == [""] else replace(change, parts=tuple(parts))
    )


def _together(path: str, digests: Mapping[str, str]) -> str:
    """One digest of the parts of a file; of one part it is its own."""
    there = {part: digest for part, digest in digests.items() if digest != MISSING}
    if len(digests) == 1 or not there:
        return next(iter(there.values()), MISSING)
    return sha256_bytes(canonical_json({"path": path, "parts": there}))


def list_changes(project: Project, accepted: Accepted | None) -> list[Change]:
    """The accepted list, when the ledger remembers another one."""
    layout, expected = project.layout, project.ledger.accepted_list(project.ledger.writer)
    actual = MISSING if accepted is None else accepted.sha256
    if expected is None or expected == actual:
        return []
    return [_change(ChangeKind.LIST, layout.root, str(layout.accepted), expected, actual)]


def page_changes(project: Project, edited: Iterable[tuple[str, str, str | None]]) -> list[Change]:
    """Pages for people that somebody edited; `edited`: path, expected and actual digest."""
    root = project.layout.root
    return [
        _change(ChangeKind.PAGE, root, path, expected, actual or MISSING)
        for path, expected, actual in edited
    ]


def receipt_changes(project: Project, accepted: Accepted) -> list[Change]:
    """Receipts that did not only grow."""
    root, folder = project.layout.root, project.layout.shared("receipts")
    changes = []
    for name, seen in sorted(accepted.receipts.items()):
        try:
            actual = sha256_bytes(read_bytes(folder / name)[: seen.bytes])
        except UsageError:
            actual = MISSING
        if actual != seen.sha256:
            path = project.layout.shown(folder / name)
            changes.append(_change(ChangeKind.RECEIPTS, root, path, seen.sha256, actual))
    return changes


def policy_changes(project: Project, snapshot: Mapping[str, Any]) -> list[Change]:
    """The policy file of the hooks, when it differs from `snapshot`, which is by the ledger."""
    path = project.layout.shared("policy")
    try:
        data = read_bytes(path)
        written = orjson.loads(data)
    except (UsageError, ValueError):
        data, written = b"", None
    if isinstance(written, dict) and not differs(written, snapshot):
        return []
    digests = (
        sha256_bytes(orjson.dumps(snapshot)),
        sha256_bytes(data) if path.exists() else MISSING,
    )
    shown = project.layout.shown(path)
    return [_change(ChangeKind.POLICY, project.layout.root, shown, *digests)]


def recorded_changes(project: Project) -> Iterator[Change]:
    """Files that are not what the ledger says they were: plan, scorer and splits as approved, a
    run's rows and status at its end, its final checkpoint, a decided experiment's files as judged.
    """
    # A clone lacks the vault and the runs: neither is a change. A missing checkpoint is for gates.
    root = project.layout.root
    if project.ledger.plan() is not None:
        for change in frozen_changes(project, project.plan()):
            data = change.data
            if change.code == NOT_HERE:
                continue
            if Path(data["path"]).is_absolute() and not project.layout.vault.exists():
                continue
            yield _change(
                ChangeKind.FROZEN,
                root,
                data["path"],
                data["expected"],
                data["actual"],
            )
    if any(True for _ in project.layout.experiments.glob("*/runs/*")):
        yield from _runs(project)
    closed = project.ledger.experiments(statuses=list(CLOSED_EXPERIMENTS))
    for experiment in project.here(closed):
        verdict = project.ledger.latest_verdict(experiment.id)
        for name, expected in sorted(verdict.evidence.items()) if verdict else []:
            if name in BY_NAME and BY_NAME[name].scope is Scope.EXPERIMENT:
                yield from _recorded(
                    project, project.layout.experiment(experiment.id, name), expected
                )


def _runs(project: Project) -> Iterator[Change]:
    for experiment in project.here(project.ledger.experiments()):
        for run in project.ledger.runs(experiment.id):
            for name, expected in sorted(run.files.items()):
                yield from _recorded(
                    project, project.layout.run(experiment.id, run.id, name), expected
                )
            finals = [
                checkpoint
                for checkpoint in project.ledger.checkpoints(experiment.id, run.id)
                if checkpoint.final
            ]
            for checkpoint in finals[-1:]:
                actual = content_hash(project.layout.root, checkpoint.path)
                if actual is not None and actual != checkpoint.id:
                    yield _change(
                        ChangeKind.RECORDED,
                        project.layout.root,
                        checkpoint.path,
                        checkpoint.id,
                        actual,
                    )


def _recorded(project: Project, path: Path, expected: str) -> Iterator[Change]:
    try:
        actual = hash_file(path)
    except UsageError:
        actual = MISSING
    if actual != expected:
        yield _change(
            ChangeKind.RECORDED,
            project.layout.root,
            project.layout.relative(path),
            expected,
            actual,
        )


def _change(kind: ChangeKind, root: Path, path: str, expected: str, actual: str) -> Change:
    return Change(
        kind=kind, path=path, expected=expected, actual=actual, at=_changed_at(root / path)
    )


def _changed_at(path: Path) -> datetime | None:
    """The inode's time of change, which no program can set; the nearest folder's if it is gone."""
    for place in (path, *path.parents):
        try:
            return datetime.fromtimestamp(place.lstat().st_ctime, UTC)
        except OSError:
            continue
    return None
