"""ConfigChange: settings that would switch a guard off are not loaded into the running session."""

from __future__ import annotations

import os

from harness.guard.policy.decide import DENY
from harness.guard.policy.json_text import loads

from .hook_scene import HookAnswer, refused
from .projects import LOCAL_SETTINGS, MANIFEST, SETTINGS, read_json
from .session_receipts import note, said
from .settings_keys import OFF_SWITCHES, PLUGINS, is_on, of_ours, steers, unread
from .table import EVENTS, GUARD, ISOLATED, PROGRAM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .hook_scene import HookScene
    from .projects import HookedProject
    from .table import HookEvent

EVENT = "ConfigChange"
_FILES = {"project_settings": SETTINGS, "local_settings": LOCAL_SETTINGS}
_OTHERS = frozenset({"user_settings", "policy_settings"})


def settings_changed(call: dict[str, Any], scene: HookScene) -> HookAnswer:
    """Exit 2 refuses the reload: the session goes on with the settings that it had."""
    if scene.home is None:
        return HookAnswer()
    path = _path(call, scene.home, scene)
    problem, missing = ("", False) if path is None else fault_and_cause(path, scene.home, scene)
    note(
        scene.home,
        call,
        said(
            DENY if problem else None,
            "guard_switched_off" if problem else "no_rule",
            problem,
            [path] if path else [],
        ),
        event=EVENT,
        role="main",
        now=scene.now,
    )
    if not problem:
        return HookAnswer()
    mends = f"restores {path} with `harness init`" if missing else f"takes that out of {path}"
    return refused(
        f"{problem} The change is not loaded; this session goes on with the settings that it had.",
        f"A person {mends} in their own terminal, or takes the harness out with"
        " `harness init --remove` and starts a new session.",
    )


def fault_and_cause(path: str, home: HookedProject, scene: HookScene) -> tuple[str, bool]:
    """Why the settings file at `path` would leave a guard dead, empty when it does not; and whether
    guards are only missing there, which `harness init` mends."""
    value, unreadable = _read(path)
    carries = scene.installed.root is not None and _same_file(
        path, os.path.join(home.root, SETTINGS)
    )
    if value is None and not unreadable:
        return f"{path} is gone, and with it the harness's hooks." if carries else "", carries
    wrong = f"{path} is no readable JSON: {unreadable}" if unreadable else ""
    wrong = wrong or _wrong(value, path, home, scene, carries=carries)
    if wrong or not carries:
        return wrong, False
    lacking = missing_guards(value, wanted(scene))
    return f"{path} lacks the harness's guard for {', '.join(lacking)}." if lacking else "", True


def _wrong(value: Any, path: str, home: HookedProject, scene: HookScene, *, carries: bool) -> str:
    if not isinstance(value, dict):
        return f"{path} is a JSON {type(value).__name__}; expected an object."
    if value.get("disableAllHooks"):
        return f"{path} has disableAllHooks, which switches every guard off."
    off = switched_off(value)
    if off:
        return f"{path} sets the variable {off[0]}, with which Claude Code runs no hook."
    steered = _steered(value, path, home)
    if steered:
        return f"{path} sets the variable {steered}, which decides what the guards themselves run."
    off_plugin = _plugin_off(value) if scene.installed.root is None else ""
    if off_plugin:
        return f"{path} switches the plugin {off_plugin} off, and with it every guard."
    wrong = unread(value) if carries else ""
    if wrong:
        return f"{path}: Claude Code does not read the value of {wrong}, and then reads no hook."
    return ""


def _read(path: str) -> tuple[Any, str]:
    """As place.read_json; a byte order mark is no fault, as in Claude Code, and nothing waits
    for a pipe."""
    if os.path.exists(path) and not os.path.isfile(path):
        return None, "it is no ordinary file."
    try:
        with open(path, "rb") as file:
            return loads(file.read().decode("utf-8").removeprefix("\ufeff")), ""
    except FileNotFoundError:
        return None, ""
    except (OSError, ValueError, RecursionError) as error:
        return None, f"it cannot be read ({type(error).__name__}: {error})."


def switched_off(settings: dict[str, Any]) -> list[str]:
    """The variables of OFF_SWITCHES that `settings` set to something that counts as on."""
    variables = settings.get("env")
    return (
        [name for name in OFF_SWITCHES if is_on(variables.get(name))]
        if isinstance(variables, dict)
        else []
    )


def _steered(settings: dict[str, Any], path: str, home: HookedProject) -> str:
    """The first variable that steers, of those that the project's own settings set; a person's own
    settings may."""
    variables = settings.get("env")
    own = any(_same_file(path, os.path.join(home.root, name)) for name in _FILES.values())
    if not own or not isinstance(variables, dict):
        return ""
    return min((name for name in variables if steers(name)), default="")


def _plugin_off(settings: dict[str, Any]) -> str:
    plugins = settings.get(PLUGINS)
    there = plugins.items() if isinstance(plugins, dict) else ()
    return next((name for name, on in there if of_ours(name) and on is not True), "")


def wanted(scene: HookScene) -> dict[str, Any] | None:
    """The hooks section that was installed, by the manifest beside the programs; None where there
    is none."""
    manifest, _ = read_json(os.path.join(scene.installed.folder, MANIFEST))
    section = manifest.get("settings") if isinstance(manifest, dict) else None
    return section if isinstance(section, dict) else None


def missing_guards(settings: dict[str, Any], section: dict[str, Any] | None) -> list[str]:
    """The guard events whose entry does not stand in `settings` as it stands in `section` (as the
    table says, where that is None): command, arguments, timeout, matcher and onFailure."""
    return [
        event.name
        for event in EVENTS
        if event.kind == GUARD and not _guarded(settings, section, event)
    ]


def _guarded(settings: dict[str, Any], section: dict[str, Any] | None, event: HookEvent) -> bool:
    hooks = settings.get("hooks")
    groups = hooks.get(event.name) if isinstance(hooks, dict) else None
    # What was installed is known by the manifest; without one an entry must fit the table.
    if section is not None:
        ours, there = _flat(section.get(event.name)), _flat(groups)
        return bool(ours) and all(entry in there for entry in ours)
    return any(_as_table(entry, event) for entry in _flat(groups))


def _flat(groups: Any) -> list[tuple[Any, Any]]:
    """(matcher, entry) of each entry of an event's groups; absent, empty and * all mean every
    tool."""
    whole = [group for group in _listed(groups) if isinstance(group, dict)]
    return [
        (group.get("matcher") or "*", entry)
        for group in whole
        for entry in _listed(group.get("hooks"))
    ]


def _as_table(pair: tuple[Any, Any], event: HookEvent) -> bool:
    matcher, entry = pair
    if not isinstance(entry, dict) or matcher != "*":
        return False
    arguments = entry.get("args")
    if not isinstance(arguments, list) or len(arguments) != len(ISOLATED) + 2:
        return False
    *options, program, name = arguments
    return (
        entry.get("type") == "command"
        and tuple(options) == ISOLATED
        and isinstance(program, str)
        and program.startswith("${CLAUDE_PROJECT_DIR}/")
        and program.endswith(f"/{PROGRAM}")
        and name == event.name
        and entry.get("onFailure") == "block"
        and entry.get("timeout") == event.timeout
        and not entry.get("if")
        and not entry.get("async")
    )


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _path(call: dict[str, Any], home: HookedProject, scene: HookScene) -> str | None:
    """The settings file that changed, absolute; None when something else did (a skill, a
    command)."""
    changed_file, source = call.get("file_path"), str(call.get("source"))
    if not isinstance(changed_file, str) or not changed_file or "\0" in changed_file:
        return os.path.join(home.root, _FILES[source]) if source in _FILES else None
    path = os.path.normpath(os.path.join(scene.cwd or "/", changed_file))
    named = os.path.basename(path) in {os.path.basename(name) for name in _FILES.values()}
    return path if named or source in _FILES or source in _OTHERS else None


def _same_file(path: str, other: str) -> bool:
    return os.path.realpath(path) == os.path.realpath(other)
