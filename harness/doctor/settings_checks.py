"""Checks of the settings files: whether they are read from this folder and allow hooks."""

from collections.abc import Iterator

from harness.doctor.report import INSTALL, DoctorCheck, amiss, broken, doctor_check, good, note
from harness.doctor.settings_files import LOCAL, MANAGED, PLUGIN, PROJECT, USER, SettingsFile
from harness.doctor.subject import DoctorSubject
from harness.guard.hooks.hook_scene import HookScene
from harness.guard.hooks.settings_guard import fault_and_cause
from harness.guard.hooks.table import PROGRAM


@doctor_check
def start_folder(subject: DoctorSubject) -> DoctorCheck:
    """Whether `claude`, started here, reads this project's settings: only those of its folder."""
    if subject.start == subject.folder:
        return good(f"claude started in {subject.folder} reads this project's settings")
    if subject.session is None and subject.environment.get("CLAUDECODE"):
        return note(
            "A session is running; the folder where it was started is unknown.",
        )
    return broken(
        f"claude started in {subject.start} reads {subject.start}/.claude only, so no hook of this"
        " project runs.",
        f"Start it in {subject.folder}.",
    )


@doctor_check
def settings_readable(subject: DoctorSubject) -> DoctorCheck:
    """Whether the project's settings are JSON; else the CLI silently skips the whole file."""
    project = subject.file(PROJECT)
    if project.problem:
        return broken(
            f"No hook of {subject.shown(PROJECT)} is loaded: {project.problem}.",
            "Correct the file, or restore it from git and run `harness init`.",
        )
    others = [file for file in subject.files if file.problem]
    if others:
        named = "; ".join(f"{file.path}: {file.problem}" for file in others)
        return amiss(
            f"A settings file is not read: {named}.",
            "Correct the files named above.",
        )
    return good("the settings files are JSON")


@doctor_check
def settings_accepted(subject: DoctorSubject) -> DoctorCheck:
    """Whether the ConfigChange hook accepts the project's settings as they are now."""
    faults = [text for source in (PROJECT, LOCAL) if (text := _refused(subject, source))]
    if faults:
        return broken(" ".join(faults), f"{INSTALL} Remove other keys by hand.")
    return good("the ConfigChange hook accepts them")


def _refused(subject: DoctorSubject, source: str) -> str:
    """Why the hook's own function refuses the file; "" if it accepts it or cannot read it."""
    if subject.file(source).problem:
        return ""
    program = str(subject.hooks_folder / PROGRAM)
    plugin = (
        {"CLAUDE_PLUGIN_ROOT": str(subject.hooks_folder.parent)}
        if subject.source == PLUGIN
        else {}
    )
    hook = HookScene({"cwd": str(subject.folder)}, program, plugin, 0.0)
    home = hook.projects.at(str(subject.folder))
    return "" if home is None else fault_and_cause(str(subject.file(source).path), home, hook)[0]


@doctor_check
def hooks_enabled(subject: DoctorSubject) -> DoctorCheck:
    """Whether no settings file switches hooks off."""
    faults = list(_off_switches(subject))
    if faults:
        return broken(
            f"Hooks are switched off: {'; '.join(faults)}.",
            "Remove the key there; managed settings are changed by this machine's administrator.",
        )
    return good("no settings file switches hooks off")


def _off_switches(subject: DoctorSubject) -> Iterator[str]:
    # The strongest file that sets `disableAllHooks` decides; in a session that loads only the
    # project's settings, that is the project's.
    for file in subject.files:
        if file.source == MANAGED:
            yield from (f"{file.path} has {key}" for key in _only_managed(file))
    speaking = [file for file in subject.files if file.data.get("disableAllHooks") is not None]
    deciding = speaking[:1] + [file for file in speaking[1:] if file.source == PROJECT]
    for file in deciding:
        value = file.data["disableAllHooks"]
        if value not in (False, "false"):
            name = (
                subject.shown(file.source)
                if file.source in (PROJECT, LOCAL, USER)
                else str(file.path)
            )
            yield f"{name} has disableAllHooks: {value!r}"


def _only_managed(file: SettingsFile) -> Iterator[str]:
    """Keys of managed settings that exclude a project's hooks."""
    if file.data.get("allowManagedHooksOnly") is True:
        yield "allowManagedHooksOnly"
    surfaces = file.data.get("strictPluginOnlyCustomization")
    if surfaces is True or (isinstance(surfaces, list) and "hooks" in surfaces):
        yield "strictPluginOnlyCustomization"
