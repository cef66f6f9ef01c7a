"""Compares the files on disk with those of an installation.
Writes nothing but `sweep`."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version

from harness.contract.artifacts import BY_NAME, INNER_PLAN
from harness.contract.installation import MCP_SERVERS, SETTINGS, VENDORED
from harness.domain.statuses import HooksMode
from harness.errors import UsageError
from harness.files import remove_leftovers, sha256_bytes
from harness.install import manifest as manifests
from harness.install.file_changes import Conflict, FileChange, current, inside
from harness.install.manifest import Manifest, read_manifest
from harness.install.merged_settings import (
    rules_of,
    with_hooks,
    with_rules,
    with_server,
    without_rules,
    without_server,
)
from harness.install.status_line import is_anothers, with_status_line, without_entries
from harness.install.target import InstallTarget
from harness.install.undo_record import Undo, undo_of
from harness.plans.scaffold import forms
from harness.rendering.claude_files import (
    PACKAGE,
    allowed_rules,
    project_hooks,
    project_server,
    project_status_line,
)
from harness.rendering.render import expected, installed_texts, is_rendered
from harness.rendering.vendored_hooks import vendored_files
from harness.settings import CONFIG

MERGED = (MCP_SERVERS, SETTINGS)
"""A person's files that get entries; the settings last, since
they switch the hooks on."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    changes: tuple[FileChange, ...]
    """In the order in which they are made."""
    conflicts: tuple[Conflict, ...]
    notes: tuple[str, ...] = ()


def wanted(
    place: InstallTarget, interpreter: str, undo: Undo, *, plan: bool, allow: bool
) -> Wanted:
    """Everything but config.toml. `plan`: whether the project gets the form of a plan; `allow`:
    whether tools, and verbs that decide nothing, are to run without a prompt."""
    changes = list(_forms(place, plan=plan))
    conflicts: list[Conflict] = []
    notes: tuple[str, ...] = ()
    if place.own:
        own = {str(path): text.encode() for path, text in expected(place.root).items()}
        sort(_owned(place, own, {}, undo), changes, conflicts)
    elif place.mode is HooksMode.PROJECT:
        more = _hooks(place, interpreter, undo, allow=allow)
        changes += more.changes
        conflicts += more.conflicts
        notes = tuple(_other_status_line(place, interpreter))
    return Wanted(changes=tuple(changes), conflicts=tuple(conflicts), notes=notes)


def base_of(change: FileChange, manifest: Manifest | None) -> bytes | None:
    """The file's bytes before the change, without any entry of ours; None for our own files."""
    if change.before is None or change.path not in MERGED:
        return None
    return stripped(change.path, change.before.decode("utf-8"), manifest).encode()


def stripped(path: str, text: str, manifest: Manifest | None) -> str:
    """A person's file without our entries; `manifest`: of what was installed. Raises UsageError."""
    if path != SETTINGS:
        return without_server(text, path)
    allowed = () if manifest is None else manifest.allowed
    return without_rules(without_entries(text, path), allowed, path)


def _forms(place: InstallTarget, *, plan: bool) -> Iterator[FileChange]:
    if place.layout.root != place.root:
        return
    where = BY_NAME["plan"].path
    inner = f".harness/{where}"
    taken = any(current(place.root, path) is not None for path in (where, inner))
    for path, text in forms(where if place.mode is HooksMode.PROJECT else inner).items():
        is_plan = path in (where, inner)
        if (plan and not taken) if is_plan else current(place.root, path) is None:
            yield FileChange(path=path, before=None, after=text.encode())


def _hooks(place: InstallTarget, interpreter: str, undo: Undo, *, allow: bool) -> Wanted:
    """Vendored hooks, agents, commands and our entries in a person's files."""
    before = read_manifest(place.root)
    known = {} if before is None else before.hashes()
    vendored = {f"{VENDORED}/{name}": data for name, data in vendored_files().items()}
    rendered = {str(path): text.encode() for path, text in installed_texts().items()}
    changes: list[FileChange] = []
    conflicts: list[Conflict] = []
    sort(_owned(place, vendored, known, undo), changes, conflicts)
    sort(_stale(place, {**vendored, **rendered}, known, undo), changes, conflicts)
    texts = list(_owned(place, rendered, known, undo))
    rules = allowed_rules() if allow else ()
    merged = [_server(place, interpreter), _settings(place, interpreter, rules)]
    taken = {item.path for item in (*texts, *merged) if isinstance(item, Conflict)}
    manifest = Manifest(
        version=version(PACKAGE),
        interpreter=interpreter,
        files={name: sha256_bytes(data) for name, data in vendored_files().items()},
        rendered={
            path: sha256_bytes(data)
            for path, data in rendered.items()
            if path not in taken or path in known
        },
        settings=project_hooks(interpreter),
        server=None if MCP_SERVERS in taken else project_server(interpreter),
        created=_created(place, before, merged),
        allowed=_allowed(place, before, rules),
    )
    sort(
        (_changed(place, manifests.PATH, manifest.text().encode()), *texts, *merged),
        changes,
        conflicts,
    )
    return Wanted(changes=tuple(changes), conflicts=tuple(conflicts))


def sort(
    results: Iterable[FileChange | Conflict | None],
    changes: list[FileChange],
    conflicts: list[Conflict],
) -> None:
    for result in results:
        if isinstance(result, Conflict):
            conflicts.append(result)
        elif result is not None:
            changes.append(result)


def _owned(
    place: InstallTarget, files: Mapping[str, bytes], known: Mapping[str, str], undo: Undo
) -> Iterator[FileChange | Conflict]:
    """Files that are wholly ours: made, replaced unless edited,
    else kept and named."""
    for path, data in files.items():
        there = current(place.root, path)
        if there == data:
            continue
        if (
            there is None
            or as_written(path, there, known, undo)
            or (place.own and _rendered_here(path, there))
        ):
            yield FileChange(path=path, before=there, after=data)
        elif path in known or path in undo.files or has_banner(there):
            yield Conflict(
                path=path,
                message=(
                    f"{path} was edited since the harness wrote it; your edit is kept and the newer"
                    " version not written."
                ),
                hint=f"For the harness's version, delete {path}, then run `harness init` again.",
            )
        else:
            yield Conflict(
                path=path,
                message=f"{path} already exists and is not the harness's; it stays as it is.",
                hint="Rename it, then run `harness init` again.",
            )


def as_written(path: str, data: bytes, known: Mapping[str, str], undo: Undo) -> bool:
    """Whether we wrote exactly `data` at `path`."""
    # The banner does not show it: it survives a person's edit.
    return sha256_bytes(data) == known.get(path) or undo.wrote(path, data)


def has_banner(data: bytes) -> bool:
    """Whether it is an agent or a command of ours; a person may
    have edited it since."""
    return is_rendered(data.decode("utf-8", "replace"))


def _rendered_here(path: str, data: bytes) -> bool:
    """For the harness's own repository: the rule of `harness
    render`."""
    return not path.endswith(".md") or has_banner(data)


def _stale(
    place: InstallTarget, files: Mapping[str, bytes], known: Mapping[str, str], undo: Undo
) -> Iterator[FileChange | Conflict]:
    """What an older version installed and this one does not."""
    for path in sorted(set(known) - set(files)):
        there = current(place.root, path)
        if there is not None and as_written(path, there, known, undo):
            yield FileChange(path=path, before=there, after=None)
        elif there is not None:
            yield Conflict(
                path=path,
                message=(
                    f"{path} was edited since the harness wrote it; this version no longer has"
                    " such a file."
                ),
                hint=f"Delete {path} if you do not need it.",
            )


def _settings(
    place: InstallTarget, interpreter: str, rules: tuple[str, ...]
) -> FileChange | Conflict | None:
    after = with_hooks(_text(place, SETTINGS), project_hooks(interpreter), SETTINGS)
    after = with_status_line(after, project_status_line(interpreter), SETTINGS)
    return _changed(place, SETTINGS, with_rules(after, rules, SETTINGS).encode())


def _other_status_line(place: InstallTarget, interpreter: str) -> Iterator[str]:
    """A note where the project's settings have a status line of
    their own: it stays."""
    if is_anothers(_text(place, SETTINGS), SETTINGS):
        command = project_status_line(interpreter)["command"]
        yield f"{SETTINGS} has a status line of its own, which stays; ours would be: {command}"


def _allowed(
    place: InstallTarget, before: Manifest | None, rules: tuple[str, ...]
) -> tuple[str, ...]:
    """The rules that are ours: those that were, and the new ones that no person had."""
    ours = () if before is None else before.allowed
    there = rules_of(_text(place, SETTINGS), SETTINGS) if rules else []
    return (*ours, *(rule for rule in rules if rule not in there and rule not in ours))


def _server(place: InstallTarget, interpreter: str) -> FileChange | Conflict | None:
    there = _text(place, MCP_SERVERS)
    after = with_server(there, project_server(interpreter), MCP_SERVERS)
    if after is None:
        return Conflict(
            path=MCP_SERVERS,
            message=(
                f"{MCP_SERVERS} has another server called harness; it is left as it is, so the"
                " tools are missing."
            ),
            hint="Rename that server, then run `harness init` again.",
        )
    return _changed(place, MCP_SERVERS, after.encode())


def _created(
    place: InstallTarget, before: Manifest | None, merged: list[FileChange | Conflict | None]
) -> tuple[str, ...]:
    new = [item.path for item in merged if isinstance(item, FileChange) and item.before is None]
    return tuple(sorted({*(() if before is None else before.created), *new}))


def _changed(place: InstallTarget, path: str, after: bytes) -> FileChange | None:
    there = current(place.root, path)
    return None if there == after else FileChange(path=path, before=there, after=after)


def _text(place: InstallTarget, path: str) -> str | None:
    data = current(place.root, path)
    try:
        return None if data is None else data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{path} is not UTF-8: {error.reason} at byte {error.start}. Claude Code does not read"
            " such a file either.",
            hint="Save it as UTF-8, then run `harness init` again; nothing was changed.",
            code="settings_invalid",
        ) from error


def sweep(place: InstallTarget) -> None:
    """Remove the temporary files that interrupted writes left;
    those of living writers stay."""
    layout, plan = place.layout, BY_NAME["plan"].path
    names = {CONFIG, manifests.PATH, *MERGED, *forms(plan), *forms(INNER_PLAN)}
    names |= {f"{VENDORED}/{name}" for name in vendored_files()} | {
        str(path) for path in installed_texts()
    }
    names |= {str(path) for path in expected(place.root)} if place.own else set()
    derived = [layout.project(name) for name in ("policy", "checklist", "priors")]
    derived += [
        layout.decision_log,
        layout.state_md,
        layout.briefing,
        layout.project("config_toml"),
    ]
    state = [
        layout.accepted,
        layout.accepted_next,
        layout.approved_config,
        *undo_of(layout.state, place.root).paths(),
    ]
    remove_leftovers([*(inside(place.root, name) for name in sorted(names)), *derived, *state])
