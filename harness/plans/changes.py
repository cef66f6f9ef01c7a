"""What a further approval changes, and what follows from it: told to the person before it counts.

An agent may have edited the plan, the scorer or the data since. The person sees the difference to
what was approved last, and confirms that difference by its digest: what is edited after it was
shown has another one. Both approvals are facts, so which names and hashes changed is on record.
"""

import contextlib
import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from harness.artifacts.content import hash_file
from harness.artifacts.objects import ObjectDamagedError, load_object
from harness.domain.late import Late, dataclass
from harness.domain.plain_text import one_line, plain_json
from harness.domain.statuses import Split
from harness.errors import RefusedError, UsageError
from harness.files import canonical_json, sha256_bytes
from harness.ledger.facts import ApprovedPlan
from harness.ledger.facts.plan import JUDGES, REHEARSAL, basis_of, scorer_parts
from harness.ledger.project import Project
from harness.plans.approved import secret
from harness.plans.first_plan import listing

_MOST_NAMED = 8
_WIDEST = 160
_WRAPPED = 92
"""Columns of a shown line; what is longer goes on in the next one, behind a mark."""
_GOES_ON = "    ~ "
_OF_AGENTS = ", which a session of Claude Code may have written"
_SHOWN = 12
"""Digits of a hash."""


@dataclass(frozen=True, kw_only=True)
class FileChange(Late):
    path: str
    before: str | None
    """Its hash; None where it was no part of the approval."""
    after: str | None

    @property
    def words(self) -> str:
        before, after = ((one or "none")[:_SHOWN] for one in (self.before, self.after))
        return f"{self.path}: {before} -> {after}"

    @property
    def now(self) -> str:
        return f"{self.path}: {(self.after or 'none')[:_SHOWN]}"


@dataclass(frozen=True, kw_only=True)
class Changes(Late):
    """What is not as it was approved last."""

    what: str
    """E.g. "toy version 2 instead of version 1"."""
    fields: tuple[str, ...]
    """E.g. "oracle.tiers.must: 0.8 -> 0.7"."""
    files: tuple[FileChange, ...]
    diff: tuple[str, ...] = ()
    """Unified, of the plan and of the code that was frozen."""
    follows: tuple[str, ...] = ()
    """Sentences."""
    first: bool = False
    """Nothing was approved before: fields and files are shown as they are."""

    @property
    def digest(self) -> str:
        """Of 128 bits: with fewer an agent could make two edits that have the same one."""
        files = [[one.path, one.before, one.after] for one in self.files]
        return sha256_bytes(canonical_json([self.what, list(self.fields), files]))[:32]

    @property
    def text(self) -> str:
        """All of it, invisible characters too: a person confirms what they saw."""
        files = [one.now if self.first else one.words for one in self.files]
        lines = [*self.fields, *files, *self.diff]
        return "\n".join([*(part for line in lines for part in _wrapped(line)), *self.follows])

    def plain(self) -> dict[str, Any]:
        return {
            "what": self.what,
            "digest": self.digest,
            "fields": list(self.fields),
            "files": [vars(one) for one in self.files],
            "diff": list(self.diff),
            "follows": list(self.follows),
        }


def require_seen(changes: Changes, seen: str | None, line: str) -> None:
    """Raises RefusedError (changes_not_confirmed) unless `seen` is the digest of these changes.
    `line`: the command that a person types."""
    if seen == changes.digest:
        return
    other = "" if seen is None else f" --changes {seen} was for other changes: these are new."
    raise RefusedError(
        f"This would approve {changes.what}:{other}\n{changes.text}\n",
        hint=f"Read it; if all of it is yours: `{line} --changes {changes.digest}`.",
        code="changes_not_confirmed",
    )


def _wrapped(line: str) -> Iterator[str]:
    shown = plain_json(line)
    yield f"  {shown[:_WRAPPED]}"
    for start in range(_WRAPPED, len(shown), _WRAPPED):
        yield f"{_GOES_ON}{shown[start : start + _WRAPPED]}"


def bounded(lines: Sequence[str], most: int, what: str) -> list[str]:
    more = len(lines) - most
    shown = [line[:_WIDEST] for line in lines[:most]]
    return [*shown, f"... and {more} more {what}"] if more > 0 else shown


def plan_changes(
    project: Project,
    before: ApprovedPlan,
    *,
    name: str,
    sha256: str,
    content: Mapping[str, Any],
    scorer: Mapping[str, Any],
    data: Mapping[str, str],
) -> Changes | None:
    """Against `before`, the plan in force; None when nothing is another. `sha256` and the scorer's
    files lie in the vault; `data`: split -> hash of its file as it is now; `name`: of the plan as
    its next version is recorded, see `recorded_name`."""
    versions = [plan.version for plan in project.ledger.plans() if plan.name == name]
    files = [*file_changes({before.path: before.sha256}, {before.path: sha256})]
    code = list(file_changes(scorer_parts(before.scorer), scorer_parts(scorer)))
    tables = {split: before.splits[split]["sha256"] for split in data if split in before.splits}
    moved = [_table(before, change) for change in file_changes(tables, data)]
    if not (files or code or moved):
        return None
    version = max(versions, default=0) + 1
    return Changes(
        what=f"{name} version {version} instead of {before.name} version {before.version}",
        fields=tuple(field_changes(before.content, content)),
        files=(*files, *code, *moved),
        diff=tuple(differences(project.layout.objects, [*code, *files])),
        follows=tuple(_follows(project, before, content, scorer, data, name=name)),
    )


def with_config(
    project: Project, config: bytes, changes: Changes | None, what: str
) -> Changes | None:
    """As well what config.toml, now `config`, says otherwise than when it was approved: it grants
    folders to read and names the interpreter. `what`: when nothing else changed."""
    layout = project.layout
    approved = layout.approved_config
    if not approved.is_file() or approved.read_bytes() == config:
        return changes
    path, before = layout.relative(layout.project("config_toml")), approved.read_bytes()
    old, new = (one.decode("utf-8", "replace").splitlines() for one in (before, config))
    names = (f"{path} as approved", f"{path} now")
    lines = difflib.unified_diff(old, new, *names, n=1, lineterm="")
    other = FileChange(path=path, before=sha256_bytes(before), after=sha256_bytes(config))
    base = changes or Changes(what=what, fields=(), files=())
    return replace(base, files=(*base.files, other), diff=(*base.diff, *lines))


def recorded_name(
    before: ApprovedPlan | None,
    content: Mapping[str, Any],
    data: Mapping[str, str],
    scorer: Mapping[str, Any],
) -> str:
    """The name under which the next version counts: that of the plan in force where data and oracle
    are its own. Under another one what it counted would begin from nothing."""
    name: str = content["name"]
    if before is None or basis_of(content, _all_data(before, data), scorer) != before.basis:
        return name
    return before.name.partition(REHEARSAL)[0]


def _all_data(before: ApprovedPlan, data: Mapping[str, str]) -> dict[str, str | None]:
    return {split: data.get(split, entry["sha256"]) for split, entry in before.splits.items()}


def first_approval(
    project: Project,
    path: str,
    *,
    of_agents: bool,
    name: str,
    sha256: str,
    content: Mapping[str, Any],
    scorer: Mapping[str, Any],
    data: Mapping[str, str],
) -> Changes:
    """All that the plan at `path` says, with the text of its scorer, for a person who may not have
    written it: `of_agents`. Other arguments as for `plan_changes`."""
    code = list(file_changes({}, scorer["files"]))
    tables = {f"{split} split": digest for split, digest in data.items()}
    others = file_changes({}, {path: sha256, **tables})
    return Changes(
        what=f"{name} version 1" + (_OF_AGENTS if of_agents else ""),
        fields=(*listing(content), *_notified(project)),
        files=(*others, *code),
        diff=tuple(_texts(project.layout.objects, code)),
        first=True,
    )


def _notified(project: Project) -> Iterator[str]:
    """What config.toml starts outside every sandbox."""
    notify = project.settings.notify
    for words in () if notify is None else notify.words:
        yield f"notify of config.toml {words}, outside every sandbox"


def _texts(objects: Path, files: Sequence[FileChange]) -> Iterator[str]:
    for one in files:
        yield f"{one.path} says:"
        yield from (f"| {line}" for line in _lines(objects, one.after))


def _table(before: ApprovedPlan, change: FileChange) -> FileChange:
    path = before.splits[change.path].get("path", "in the vault")
    return FileChange(
        path=f"{change.path} split ({path})", before=change.before, after=change.after
    )


def data_now(root: Path, paths: Mapping[str, str]) -> dict[str, str]:
    """Split -> hash of its file, of those that are there."""
    hashes = {}
    for name, path in paths.items():
        with contextlib.suppress(UsageError):
            hashes[name] = hash_file(root / path)
    return hashes


def changed_since(project: Project, name: str, version: int) -> list[tuple[ApprovedPlan, str]]:
    """What judges and was changed by approvals of the plan after `version`: the approval, and names
    with hashes in one line."""
    found = []
    versions = [plan for plan in project.ledger.plans() if plan.name == name]
    for before, after in pairwise(versions):
        if after.version <= version:
            continue
        scorers = (scorer_parts(plan.scorer) for plan in (before, after))
        old, new = ({"oracle": plan.content["oracle"]} for plan in (before, after))
        words = [*(one.words for one in file_changes(*scorers)), *field_changes(old, new)]
        for split in Split:
            hashes = [plan.splits.get(split.value, {}).get("sha256") for plan in (before, after)]
            if hashes[0] != hashes[1]:
                words.append(FileChange(path=split.value, before=hashes[0], after=hashes[1]).words)
        if words:
            found.append((after, "; ".join(bounded(words, _MOST_NAMED, "changes"))))
    return found


def field_changes(before: Any, after: Any, name: str = "") -> Iterator[str]:
    """Lines "a.b: 1 -> 2" of what differs in two documents."""
    if before == after:
        return
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in dict.fromkeys([*before, *after]):
            where = f"{name}.{key}" if name else str(key)
            yield from field_changes(before.get(key), after.get(key), where)
        return
    old, new = (one_line("none" if one is None else str(one)) for one in (before, after))
    yield f"{name}: {old} -> {new}"


def file_changes(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[FileChange]:
    """Of files by path, in the order in which they stand."""
    for path in dict.fromkeys([*before, *after]):
        if before.get(path) != after.get(path):
            yield FileChange(path=path, before=before.get(path), after=after.get(path))


def differences(objects: Path, changes: Sequence[FileChange]) -> Iterator[str]:
    """Unified, of files whose versions lie in `objects`."""
    for change in changes:
        before, after = (_lines(objects, one) for one in (change.before, change.after))
        names = (f"{change.path} as approved", f"{change.path} now")
        yield from difflib.unified_diff(before, after, *names, n=1, lineterm="")


def _lines(objects: Path, sha256: str | None) -> list[str]:
    if sha256 is None:
        return []
    try:
        return load_object(objects, sha256).decode("utf-8", errors="replace").splitlines()
    except (ObjectDamagedError, UsageError, OSError):
        return ["(the approved copy is not on this machine)"]


def _follows(
    project: Project,
    before: ApprovedPlan,
    content: Mapping[str, Any],
    scorer: Mapping[str, Any],
    data: Mapping[str, str],
    *,
    name: str,
) -> Iterator[str]:
    """What becomes of scores, seeds and what was counted."""
    ledger = project.ledger
    basis = basis_of(content, _all_data(before, data), scorer)
    known = {plan.basis for plan in ledger.plans() if plan.name == name}
    if basis == before.basis:
        yield (
            "The comparison goes on: seeds, scores and verdicts stay, for data, metric, scorer,"
            " direction, predict and number of seeds are as they were."
        )
        if content["oracle"]["tiers"] != before.content["oracle"]["tiers"]:
            yield "Tiers are computed again from the scores."
        if content["name"] != name:
            yield (
                f"The plan goes on as {name}, the name that its experiments have: with the same"
                " data and oracle another name is no other plan."
            )
    elif basis in known:
        yield (
            "An earlier comparison goes on: data and oracle are as they were then, and so are its"
            " seeds, scores and verdicts."
        )
    else:
        yield from _begins(project, before, content, scorer, data)
    told, looks = ledger.bits_told(before.name), ledger.queries(before.name, Split.HELD_OUT)
    opened = sum(ledger.counts(before.name)["experiments"].values())
    counted = f"{opened} experiments and {looks} looks at held-out"
    if told or secret(before, Split.VALIDATION.value):
        counted = f"{opened} experiments, {looks} looks at held-out and {told:.1f} bits"
    if name == before.name:
        yield f"What was counted stays counted: {counted} of the plan."
    else:
        yield (
            f"Another name is another plan: {counted} of {before.name} do not count for it, and"
            " what was kept there is no reference. Keep the name unless that is meant."
        )


def _begins(
    project: Project,
    before: ApprovedPlan,
    content: Mapping[str, Any],
    scorer: Mapping[str, Any],
    data: Mapping[str, str],
) -> Iterator[str]:
    """Why a new comparison begins, and what it leaves behind."""
    tables = (content["data"], before.content["data"])
    columns = [
        {"group": one.get("group")}
        | {key: one["held_out"][key] for key in ("inputs", "label", "id")}
        for one in tables
    ]
    judges = [
        name
        for name in JUDGES
        if content["oracle"].get(name) != before.content["oracle"].get(name)
    ]
    whys = [f"oracle.{name}" for name in judges]
    whys += ["the scorer's code"] if scorer["files"] != before.scorer["files"] else []
    sets = [one.get("environment") for one in (before.scorer, scorer)]
    whys += ["the scorer's packages"] if sets[0] != sets[1] else []
    whys += [
        f"the {split} data"
        for split, entry in before.splits.items()
        if data.get(split, entry["sha256"]) != entry["sha256"]
    ]
    whys += ["the columns of the data"] if columns[0] != columns[1] else []
    yield f"This begins a new comparison, for {_joined(whys)} changed."
    ledger = project.ledger
    scored = [
        one.id
        for one in ledger.experiments()
        if one.plan == before.name
        and any(
            made.scored and made.plan_version == before.comparison
            for made in ledger.evaluations(one.id)
        )
    ]
    if scored:
        names = ", ".join(bounded(scored, _MOST_NAMED, "experiments"))
        yield (
            f"Scores count in their own comparison: those of {names} are blank and their verdicts"
            " STALE until `harness evaluate EXP` scores them again; what is not scored again is no"
            " reference and no counted try."
        )
    yield (
        "New seeds are drawn: experiments from now on have no seed in common with earlier ones."
    )


def _joined(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
