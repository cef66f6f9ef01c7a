"""Checks of the settings files as such: are they read, from this folder, and do they let hooks run
at all."""

from collections.abc import Iterator

from harness.doctor.report import INSTALL, Check, amiss, dead, good, note
from harness.doctor.scene import Scene
from harness.doctor.settings_files import LOCAL, MANAGED, PLUGIN, PROJECT, USER, SettingsFile
from harness.guard.hooks.scene import Scene as HookScene
from harness.guard.hooks.settings_guard import fault
from harness.guard.hooks.table import PROGRAM


def start_folder(scene: Scene) -> Check:
    """Whether `claude`, started where we are, reads this project's settings: it looks in its own
    folder only."""
    if scene.start == scene.folder:
        return good(
            "start_folder", f"claude started in {scene.folder} reads this project's settings"
        )
    if scene.session is None and scene.environment.get("CLAUDECODE"):
        return note(
            "start_folder",
            "A session is running, and where it was started cannot be seen from here.",
        )
    return dead(
        "start_folder",
        f"claude started in {scene.start} reads {scene.start}/.claude only, so no hook of this"
        " project runs.",
        f"Start it in {scene.folder}.",
    )


def settings_readable(scene: Scene) -> Check:
    """Whether the project's settings are JSON; else the CLI leaves out the whole file, without a
    word."""
    project = scene.file(PROJECT)
    if project.problem:
        return dead(
            "settings_readable",
            f"No hook of {scene.shown(PROJECT)} is loaded: {project.problem}.",
            "Fix what is named, or take the file from git again and run `harness init`.",
        )
    others = [file for file in scene.files if file.problem]
    if others:
        named = "; ".join(f"{file.path}: {file.problem}" for file in others)
        return amiss(
            "settings_readable", f"A settings file is not read: {named}.", "Fix what is named."
        )
    return good("settings_readable", "the settings files are JSON")


def settings_accepted(scene: Scene) -> Check:
    """Whether the guard of settings, ConfigChange, would let the project's settings be loaded as
    they are now."""
    found = [text for source in (PROJECT, LOCAL) if (text := _refused(scene, source))]
    if found:
        return dead("settings_accepted", " ".join(found), f"{INSTALL} Remove other keys by hand.")
    return good("settings_accepted", "the guard of settings has nothing against them")


def _refused(scene: Scene, source: str) -> str:
    """Asked in this process, of the function that the hook calls; a file that is not read is named
    elsewhere."""
    if scene.file(source).problem:
        return ""
    program = str(scene.hooks_folder / PROGRAM)
    plugin = (
        {"CLAUDE_PLUGIN_ROOT": str(scene.hooks_folder.parent)} if scene.source == PLUGIN else {}
    )
    hook = HookScene({"cwd": str(scene.folder)}, program, plugin, 0.0)
    home = hook.projects.at(str(scene.folder))
    return "" if home is None else fault(str(scene.file(source).path), home, hook)


def hooks_enabled(scene: Scene) -> Check:
    """Whether no settings file switches hooks off."""
    faults = list(_off_switches(scene))
    if faults:
        return dead(
            "hooks_enabled",
            f"Hooks are switched off: {'; '.join(faults)}.",
            "Remove the key there; in managed settings, whoever manages this machine must.",
        )
    return good("hooks_enabled", "no settings file switches hooks off")


def _off_switches(scene: Scene) -> Iterator[str]:
    """The strongest file that says something about `disableAllHooks` decides; for a session that
    loads the project's settings alone that file is the project's."""
    for file in scene.files:
        if file.source == MANAGED:
            yield from (f"{file.path} has {key}" for key in _only_managed(file))
    speaking = [file for file in scene.files if file.data.get("disableAllHooks") is not None]
    deciding = speaking[:1] + [file for file in speaking[1:] if file.source == PROJECT]
    for file in deciding:
        value = file.data["disableAllHooks"]
        if value not in (False, "false"):
            name = (
                scene.shown(file.source)
                if file.source in (PROJECT, LOCAL, USER)
                else str(file.path)
            )
            yield f"{name} has disableAllHooks: {value!r}"


def _only_managed(file: SettingsFile) -> Iterator[str]:
    """Keys of managed settings that leave out a project's hooks."""
    if file.data.get("allowManagedHooksOnly") is True:
        yield "allowManagedHooksOnly"
    surfaces = file.data.get("strictPluginOnlyCustomization")
    if surfaces is True or (isinstance(surfaces, list) and "hooks" in surfaces):
        yield "strictPluginOnlyCustomization"
