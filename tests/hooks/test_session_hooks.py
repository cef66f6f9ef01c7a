"""SessionStart hands the briefing over and says what is wrong; it and SessionEnd leave a
receipt."""

import json
import shlex
import subprocess
import time
from pathlib import Path

import pytest
from hook_project import Answer, HookProject

from harness.guard.hooks.self_check import library_digest

BRIEFING = ".harness/memory/BRIEFING.md"


def start(project: HookProject, source: str = "startup", **environment: str) -> str:
    """What the model is told."""
    return started(project, source, **environment).context


def started(project: HookProject, source: str = "startup", **environment: str) -> Answer:
    payload = {
        "session_id": "s-1",
        "cwd": str(project.root),
        "hook_event_name": "SessionStart",
        "source": source,
    }
    return project.start("SessionStart", json.dumps(payload).encode(), **environment)


NOT_ISOLATED = (
    "harness: this session is not isolated from the judge, so scores say `recomputed, session not"
    " isolated`. A person gets the better mode by starting Claude with `harness claude`.\n"
)


@pytest.mark.parametrize("source", ["startup", "resume", "clear", "compact", "fork"])
def test_the_mode_and_the_briefing_are_all_that_a_sound_session_hears(
    sound: HookProject, source: str
):
    sound.write(BRIEFING, "# Briefing\n\nexp-0002 is open: größer.\n")
    assert start(sound, source) == NOT_ISOLATED + "# Briefing\n\nexp-0002 is open: größer.\n"
    (line,) = sound.receipts()
    assert (line["event"], line["source"], line["dead"]) == ("SessionStart", source, [])


def test_a_plugin_of_others_that_may_change_a_judged_call_is_named(sound: HookProject):
    folder = sound.folder / "claude"
    for name, hooks in {"wide": {"PreToolUse": [{}]}, "quiet": {"Stop": [{}]}}.items():
        place = folder / name / "hooks"
        place.mkdir(parents=True)
        (place / "hooks.json").write_text(json.dumps({"hooks": hooks}))
    inline = folder / "inline" / ".claude-plugin"
    inline.mkdir(parents=True)
    (inline / "plugin.json").write_text(json.dumps({"hooks": {"PermissionRequest": [{}]}}))
    names = ("wide", "quiet", "inline", "gone", "harness")
    lies = {f"{name}@shop": [{"installPath": str(folder / name)}] for name in names}
    (folder / "plugins").mkdir()
    (folder / "plugins/installed_plugins.json").write_text(json.dumps({"plugins": lies}))
    (folder / "settings.json").write_text(
        json.dumps({"enabledPlugins": dict.fromkeys(lies, True)})
    )
    said = (
        "harness: Plugins of others have hooks that may change a call after the guards judged it:"
    )
    told = start(sound, CLAUDE_CONFIG_DIR=str(folder))
    both = f"{said} inline@shop (PermissionRequest); wide@shop (PreToolUse).\n"
    assert told == both + NOT_ISOLATED
    sound.write(".claude/settings.local.json", '{"enabledPlugins": {"wide@shop": false}}')
    told = start(sound, CLAUDE_CONFIG_DIR=str(folder))
    assert told == f"{said} inline@shop (PermissionRequest).\n" + NOT_ISOLATED


def with_command(project: HookProject, body: str) -> Path:
    """A `harness` in the snapshot; returns where it writes."""
    told = project.folder / "told"
    command = project.folder / "harness"
    command.write_text(f"#!/bin/sh\n{body.replace('TOLD', str(told))}\n")
    command.chmod(0o700)
    state = project.folder / "state_home/harness/project"
    state.mkdir(parents=True)
    project.save({**project.snapshot, "command": str(command), "state": str(state)})
    return told


def test_a_plain_session_is_told_to_the_ledger_before_it_hears_anything(sound: HookProject):
    told = with_command(sound, 'echo "$CLAUDECODE $CLAUDE_CODE_SESSION_ID $*" >>TOLD; sleep 0.2')
    start(sound)
    assert told.read_text() == f"1 s-1 audit --began s-1 --project {sound.root}\n"
    start(sound, XDG_STATE_HOME=str(sound.folder / "another"))  # another state: none of its facts
    assert len(told.read_text().splitlines()) == 1


def test_a_compaction_and_the_end_have_the_session_hand_over(sound: HookProject):
    told = with_command(sound, 'sleep 0.2; echo "$CLAUDECODE $*" >>TOLD')
    start(sound, "compact")
    project = f"--project {sound.root}"
    summarised = f"1 handoff --left s-1 --why had its context summarised {project}\n"
    assert told.read_text() == summarised  # before the briefing is read
    answer = sound.event("SessionEnd", reason="other")
    assert (answer.code, answer.output, answer.errors) == (0, "", "")
    deadline = time.monotonic() + 20
    while told.read_text() == summarised and time.monotonic() < deadline:
        time.sleep(0.02)
    assert told.read_text() == f"{summarised}1 handoff --left s-1 --why ended {project}\n"


def faults(project: HookProject) -> list[tuple[str, str]]:
    lines = [line for line in project.receipts() if line["rule"] == "hook_failed"]
    return [(line["event"], line["error"]) for line in lines]


def test_a_harness_that_fails_stops_no_session(sound: HookProject):
    """A hand-off that is not recorded leaves a receipt, also where nobody waits for it."""
    with_command(sound, "echo noise; echo noise >&2; exit 3")
    sound.write(BRIEFING, "the briefing\n")
    assert start(sound) == NOT_ISOLATED + "the briefing\n"
    assert faults(sound) == []
    assert start(sound, "compact") == NOT_ISOLATED + "the briefing\n"
    failed = "`harness handoff --left` ended with 3"
    assert faults(sound) == [("SessionStart", failed)]
    answer = sound.event("SessionEnd", reason="other")
    assert (answer.code, answer.output, answer.errors) == (0, "", "")
    deadline = time.monotonic() + 20
    while len(faults(sound)) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert faults(sound)[1:] == [("SessionEnd", failed)]


def test_a_harness_whose_interpreter_is_gone_stops_no_session(sound: HookProject):
    command = with_command(sound, "").with_name("harness")
    command.write_text("#!/nowhere/python\n")
    sound.write(BRIEFING, "the briefing\n")
    assert start(sound, "compact") == NOT_ISOLATED + "the briefing\n"
    ((event, error),) = faults(sound)
    assert event == "SessionStart"
    assert "could not be started: No such file" in error


def test_without_a_briefing_only_the_mode_is_said(sound: HookProject):
    assert start(sound) == NOT_ISOLATED


def test_the_snapshot_says_where_the_briefing_is(sound: HookProject):
    sound.save(
        {**sound.snapshot, "mode": "interactive", "role": None, "briefing": "memory/BRIEFING.md"}
    )
    sound.write("memory/BRIEFING.md", "here\n")
    sound.write(BRIEFING, "not here\n")
    assert start(sound) == NOT_ISOLATED + "here\n"


def test_at_most_8000_characters(sound: HookProject):
    sound.write(BRIEFING, "ö" * 20_000)
    text = start(sound)
    assert len(text) == 8_000
    assert text.endswith(f"[shortened; the whole briefing is {sound.root / BRIEFING}]\n")
    sound.write(".claude/settings.local.json", '{"disableAllHooks": true}')
    text = start(sound)
    assert len(text) == 8_000
    assert text.startswith("harness: ")


KILLED = {
    "a program edited": (".claude/hooks/harness/mcp.py", "# x\n", "hook edited: mcp.py"),
    "a module edited": (
        ".claude/hooks/harness/lib/harness/guard/policy/git.py",
        "# x\n",
        "hook edited: lib/harness",
    ),
    "a program missing": (".claude/hooks/harness/mcp.py", None, "hook not found: mcp.py"),
    "a file added": (
        ".claude/hooks/harness/lib/json.py",
        "# x\n",
        "not installed by the harness: lib/json.py",
    ),
    "a damaged manifest": (".claude/hooks/harness/MANIFEST.json", "{", "missing or damaged"),
    "no manifest": (".claude/hooks/harness/MANIFEST.json", None, "missing or damaged"),
    "hooks disabled": (
        ".claude/settings.local.json",
        '{"disableAllHooks": true}',
        "disableAllHooks",
    ),
    "settings damaged": (".claude/settings.json", "{", "no readable JSON"),
    "settings gone": (".claude/settings.json", None, "is gone"),
    "no guard": (
        ".claude/settings.json",
        '{"hooks": {}}',
        "lacks the harness's guard for PreToolUse, PreSkillShellCommand, ConfigChange",
    ),
}


@pytest.mark.parametrize("name", KILLED)
def test_what_kills_a_guard_is_named_with_its_hint(sound: HookProject, name: str):
    path, text, expected = KILLED[name]
    sound.write(BRIEFING, "the briefing\n")
    (sound.root / path).unlink() if text is None else sound.write(path, text)
    answer = started(sound)
    said = answer.context
    assert answer.person.startswith("harness: guards do not work: ")
    by_hand = name in ("hooks disabled", "settings damaged")
    looked_at = by_hand or "--accept" in said
    assert answer.person.endswith(f"run: harness {'doctor' if looked_at else 'init'}")
    assert len(answer.person) <= 200
    first, *_ = said.splitlines()
    assert first.startswith("harness: ")
    assert expected in first
    hints = ("`harness doctor`", "installs the hooks again", "`harness audit --accept`")
    assert [hint in first for hint in hints].count(True) == 1
    assert ("`harness doctor`" in first) is by_hand
    assert ("`harness audit --accept`" in first) is (text is not None and path.endswith(".py"))
    assert said.endswith("the briefing\n")
    assert len(sound.receipts()[0]["dead"]) >= 1


def test_hooks_of_another_version_than_the_snapshot(sound: HookProject):
    digest = library_digest(str(sound.programs / "lib" / "harness"))
    sound.save({**sound.snapshot, "mode": "interactive", "role": None, "policy": digest})
    assert start(sound) == NOT_ISOLATED
    sound.save({**sound.snapshot, "mode": "interactive", "role": None, "policy": "0" * 64})
    assert "of another version" in start(sound)


def test_the_command_is_offered_to_the_sessions_shell(sound: HookProject):
    command = sound.folder / "it's a place" / "harness"
    command.parent.mkdir()
    command.write_text("#!/bin/sh\necho found\n")
    command.chmod(0o755)
    sound.save({**sound.snapshot, "mode": "interactive", "role": None, "command": str(command)})
    variables = sound.folder / "variables"
    for _ in range(2):
        start(sound, CLAUDE_ENV_FILE=str(variables))
    assert variables.read_text().count("export PATH=") == 1
    script = f"PATH=/usr/bin:/bin; . {shlex.quote(str(variables))}; harness"
    assert (
        subprocess.run(["sh", "-c", script], capture_output=True, timeout=10, check=True).stdout
        == b"found\n"
    )


@pytest.mark.parametrize("command", [None, 3, "/nowhere/harness"])
def test_a_command_that_is_not_there_is_not_offered(sound: HookProject, command):
    sound.save({**sound.snapshot, "mode": "interactive", "role": None, "command": command})
    start(sound, CLAUDE_ENV_FILE=str(sound.folder / "variables"))
    assert not (sound.folder / "variables").exists()


def test_the_end_and_a_compaction_leave_a_receipt(project: HookProject):
    answer = project.event("SessionEnd", reason="other")
    assert (answer.code, answer.output, answer.errors) == (0, "", "")
    project.event("SessionStart", source="compact")
    end, compact = project.receipts()
    assert (end["event"], end["reason"]) == ("SessionEnd", "other")
    assert (compact["event"], compact["source"]) == ("SessionStart", "compact")


def test_after_a_resume_the_line_comes_once_with_the_first_answer(sound: HookProject):
    start_line = started(sound).person
    assert start_line.startswith("harness: ")
    assert sound.event("Stop", stop_hook_active=False).person == ""
    start(sound, "resume")
    assert sound.event("Stop", stop_hook_active=False).person == start_line
    assert sound.event("Stop", stop_hook_active=False).person == ""
    start(sound, "compact")
    assert sound.event("Stop", stop_hook_active=False).person == ""


class TestServer:
    """mcp.py becomes the `harness mcp` of the session's project."""

    def start(self, project: HookProject, command: str | None, cwd: Path | str):
        project.save({**project.snapshot, "mode": "interactive", "role": None, "command": command})
        return project.program(["mcp.py"], b"asked\n", cwd=cwd)

    def test_becomes_the_verb(self, project: HookProject):
        command = project.folder / "harness"
        command.write_text('#!/bin/sh\necho "$@"; cat\n')
        command.chmod(0o755)
        for cwd in (project.root, "/"):
            answer = self.start(project, str(command), cwd)
            assert (answer.code, answer.output) == (0, f"mcp --project {project.root}\nasked\n")

    @pytest.mark.parametrize("command", [None, "/nowhere/harness"])
    def test_says_what_is_missing(self, project: HookProject, command: str | None):
        answer = self.start(project, command, "/")
        assert answer.code == 1
        assert "cannot be run" in answer.errors
        assert "Traceback" not in answer.errors

    def test_without_a_project(self, project: HookProject):
        (project.root / ".harness" / "config.toml").unlink()
        answer = project.program(["mcp.py"], b"")
        assert answer.code == 1
        assert "the project of this server is gone" in answer.errors
