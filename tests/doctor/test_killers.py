"""Each way to kill a guard, really done to a project that `harness init` made: the doctor names it
and its hint."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.doctor import doctor
from harness.doctor.start_hooks import guards_answer, others_answer
from harness.doctor.start_hooks import interpreter as interpreter_check
from harness.files import sha256_file
from tests.doctor.made import Made

INIT = "harness init"
RENDER = "harness render"


@dataclass(frozen=True)
class Killer:
    name: str
    kill: Callable[[Made], dict[str, Any] | None]
    """Does it; returns further arguments for the doctor."""
    check: str
    message: tuple[str, ...]
    hint: str
    guard: bool = True
    """False: no guard is dead of it, and the doctor only says what is amiss."""


def entry(event: str, **changes: Any) -> Callable[[Made], None]:
    """Change the hook entry of `event`; a value of None removes the key."""

    def kill(made: Made) -> None:
        settings = made.settings()
        hook = settings["hooks"][event][0]["hooks"][0]
        for key, value in changes.items():
            if value is None:
                del hook[key]
            else:
                hook[key] = value
        made.write(settings)

    return kill


def matcher(event: str, value: Any) -> Callable[[Made], None]:
    def kill(made: Made) -> None:
        settings = made.settings()
        settings["hooks"][event][0]["matcher"] = value
        made.write(settings)

    return kill


def settings_with(**changes: Any) -> Callable[[Made], None]:
    return lambda made: made.write({**made.settings(), **changes})


def text_in(name: str, text: str) -> Callable[[Made], None]:
    """Write a file below the project; `text` is all of it."""

    def kill(made: Made) -> None:
        path = made.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")

    return kill


def in_hooks(name: str, act: Callable[[Path], object]) -> Callable[[Made], None]:
    return lambda made: void(act(made.hooks / name))


def void(_value: object) -> None:
    return None


def edited(path: Path) -> None:
    path.write_text(path.read_text("utf-8") + "\n# edited\n", "utf-8")


def answering(event: str, text: str) -> Callable[[Path], None]:
    """Let the hooks' program do `text` at `event`, and its own work at every other one."""

    def rewrite(path: Path) -> None:
        own = path.read_text("utf-8")
        instead = f"    exec({text!r})\n    sys.exit(0)\n"
        path.write_text(f"import sys\nif sys.argv[1:] == [{event!r}]:\n{instead}{own}", "utf-8")

    return rewrite


def hanging(made: Made) -> None:
    in_hooks("run.py", answering("PreToolUse", "import time\ntime.sleep(60)\n"))(made)
    entry("PreToolUse", timeout=0.5)(made)


def closed(path: Path) -> None:
    path.chmod(0)


def another_version(made: Made) -> None:
    """As an older harness would have installed it: another library, and a manifest that says so."""
    name = "lib/harness/guard/policy/path_rules.py"
    edited(made.hooks / name)
    manifest = json.loads((made.hooks / "MANIFEST.json").read_text("utf-8"))
    manifest["files"][name] = sha256_file(made.hooks / name)
    (made.hooks / "MANIFEST.json").write_text(json.dumps(manifest), "utf-8")


def taken_out(made: Made) -> None:
    shutil.rmtree(made.root / ".claude")
    in_snapshot(hooks="none")(made)


def in_snapshot(**changes: Any) -> Callable[[Made], None]:
    def kill(made: Made) -> None:
        made.policy.write_text(
            json.dumps({**json.loads(made.policy.read_text("utf-8")), **changes}), "utf-8"
        )

    return kill


def ledger_moved_on(made: Made) -> None:
    """The snapshot is what it was before an approval: written back after the ledger went on."""
    before = made.policy.read_bytes()
    made.approve()
    made.policy.write_bytes(before)


def interpreter(make: Callable[[Made], Path]) -> Callable[[Made], None]:
    def kill(made: Made) -> None:
        program = str(make(made))
        settings = made.settings()
        for groups in settings["hooks"].values():
            groups[0]["hooks"][0]["command"] = program
        made.write(settings)

    return kill


def program(made: Made, place: str, text: str) -> Path:
    path = made.home / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    path.chmod(0o755)
    return path


def a_cli(version: str) -> Callable[[Made], dict[str, Any]]:
    def kill(made: Made) -> dict[str, Any]:
        cli = program(made, "bin/claude", f"#!/bin/sh\necho '{version} (Claude Code)'\n")
        return {"PATH": f"{cli.parent}:/usr/bin:/bin"}

    return kill


def only_local(made: Made) -> None:
    hooks = made.settings()["hooks"]
    made.write({key: value for key, value in made.settings().items() if key != "hooks"})
    text_in(".claude/settings.local.json", json.dumps({"hooks": hooks}))(made)


def twice(made: Made) -> None:
    settings = made.settings()
    settings["hooks"]["PreToolUse"] *= 2
    made.write(settings)


def without(event: str) -> Callable[[Made], None]:
    def kill(made: Made) -> None:
        settings = made.settings()
        del settings["hooks"][event]
        made.write(settings)

    return kill


def subfolder(made: Made) -> dict[str, Any]:
    (made.root / "src").mkdir()
    return {"start": made.root / "src"}


def monorepo(made: Made) -> dict[str, Any]:
    return {"start": made.root.parent}


def user_settings(**values: Any) -> Callable[[Made], None]:
    def kill(made: Made) -> None:
        path = made.home / ".claude/settings.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(values), "utf-8")

    return kill


DENIES = "import sys\nsys.stderr.write('no')\nsys.exit(2)\n"
ALLOWS = """\
import sys
if "policy.json" in sys.stdin.read():
    sys.stderr.write("no")
    sys.exit(2)
print('{"hookSpecificOutput": {"permissionDecision": "allow"}}')
"""
HOOK = ".claude/hooks/harness/run.py"
RELATIVE = ["-I", "-S", HOOK, "PreToolUse"]
MODULE = ["-m", "harness.guard.hooks.frame", "PreToolUse"]
NO_BRACES = ["-I", "-S", f"$CLAUDE_PROJECT_DIR/{HOOK}", "PreToolUse"]
NOT_ISOLATED = [f"${{CLAUDE_PROJECT_DIR}}/{HOOK}", "PreToolUse"]

KILLERS = (
    # files
    Killer(
        "hook missing",
        in_hooks("run.py", Path.unlink),
        "hook_files_present",
        ("hook not found", HOOK),
        INIT,
    ),
    Killer(
        "hook missing, fed",
        in_hooks("run.py", Path.unlink),
        "guards_answer",
        ("hook not found",),
        INIT,
    ),
    Killer(
        "hooks' folder gone",
        in_hooks("", shutil.rmtree),
        "hook_files_present",
        ("hook not found", HOOK),
        INIT,
    ),
    Killer(
        "hook not readable",
        in_hooks("run.py", closed),
        "hook_files_readable",
        (HOOK,),
        "chmod",
    ),
    Killer(
        "library not readable",
        in_hooks("lib/harness/guard/policy/decide.py", closed),
        "hook_files_readable",
        ("decide.py",),
        "chmod",
    ),
    Killer(
        "hook edited",
        in_hooks("run.py", edited),
        "hook_files_unchanged",
        ("edited", HOOK),
        INIT,
    ),
    Killer(
        "library missing",
        in_hooks("lib/harness/guard/policy/path_rules.py", Path.unlink),
        "hook_files_present",
        ("path_rules.py",),
        INIT,
    ),
    Killer(
        "library missing, fed",
        in_hooks("lib/harness/guard/policy/path_rules.py", Path.unlink),
        "guards_answer",
        ("missing or damaged",),
        INIT,
    ),
    Killer(
        "library edited",
        in_hooks("lib/harness/guard/policy/path_rules.py", edited),
        "hook_files_unchanged",
        ("path_rules.py",),
        INIT,
    ),
    Killer(
        "library of another version",
        another_version,
        "hook_files_current",
        ("another version",),
        INIT,
    ),
    Killer("hooks never installed", taken_out, "hooks_installed", ("No hook is installed",), INIT),
    Killer(
        "a package in a module's place",
        in_hooks(
            "lib/harness/guard/policy/decide/__init__.py",
            lambda path: (path.parent.mkdir(), path.write_text("DENY = 1\n")),
        ),
        "hook_files_unchanged",
        ("not installed by the harness", "decide/__init__.py"),
        INIT,
    ),
    Killer(
        "manifest missing",
        in_hooks("MANIFEST.json", Path.unlink),
        "hook_files_unchanged",
        ("MANIFEST.json",),
        INIT,
    ),
    # a program that answers wrongly
    Killer(
        "lets all pass",
        in_hooks("run.py", answering("PreToolUse", "pass")),
        "guards_answer",
        ("allowed a call",),
        INIT,
    ),
    Killer(
        "ends with 1",
        in_hooks("run.py", answering("PreToolUse", "1 / 0")),
        "guards_answer",
        ("status 1",),
        INIT,
    ),
    Killer(
        "denies all",
        in_hooks("run.py", answering("PreToolUse", DENIES)),
        "guards_answer",
        ("ordinary call: no",),
        "Correct",
    ),
    Killer(
        "says allow",
        in_hooks("run.py", answering("PreToolUse", ALLOWS)),
        "guards_answer",
        ("must print nothing",),
        INIT,
    ),
    Killer("hangs", hanging, "guards_answer", ("did not answer in 0.5 s",), INIT),
    Killer(
        "settings guard passes",
        in_hooks("run.py", answering("ConfigChange", "pass")),
        "guards_answer",
        ("ConfigChange",),
        INIT,
    ),
    # the snapshot
    Killer(
        "snapshot missing",
        lambda made: made.policy.unlink(),
        "snapshot_sound",
        ("missing",),
        RENDER,
    ),
    Killer(
        "snapshot damaged",
        text_in(".harness/policy.json", '{"schema": 1'),
        "snapshot_sound",
        ("snapshot_damaged",),
        RENDER,
    ),
    Killer("snapshot older", in_snapshot(schema=0), "snapshot_sound", ("older",), RENDER),
    Killer("snapshot newer", in_snapshot(schema=2), "snapshot_sound", ("newer",), RENDER),
    Killer(
        "snapshot of another place",
        in_snapshot(root="/elsewhere"),
        "snapshot_sound",
        ("/elsewhere",),
        RENDER,
    ),
    Killer(
        "snapshot behind the ledger",
        ledger_moved_on,
        "snapshot_fresh",
        ("stale", "frozen"),
        RENDER,
    ),
    Killer(
        "snapshot of an older policy",
        in_snapshot(policy="0" * 64),
        "snapshot_fresh",
        ("stale", "policy"),
        RENDER,
    ),
    # the interpreter
    Killer(
        "interpreter missing",
        interpreter(lambda made: made.home / "gone/python3"),
        "interpreter",
        ("does not exist",),
        INIT,
    ),
    Killer(
        "interpreter below shims",
        interpreter(
            lambda made: program(
                made, ".pyenv/shims/python3", '#!/bin/sh\nexec /usr/bin/python3 "$@"\n'
            )
        ),
        "interpreter",
        ("shim",),
        INIT,
    ),
    Killer(
        "interpreter a script",
        interpreter(
            lambda made: program(made, "bin/python3", '#!/bin/sh\nexec /usr/bin/python3 "$@"\n')
        ),
        "interpreter",
        ("script",),
        INIT,
    ),
    Killer(
        "interpreter uv",
        interpreter(lambda made: program(made, "bin/uv", "")),
        "interpreter",
        ("uv",),
        INIT,
    ),
    Killer(
        "interpreter fails",
        interpreter(lambda _: Path("/bin/false")),
        "interpreter",
        ("/bin/false does not deny",),
        INIT,
    ),
    Killer(
        "interpreter by PATH",
        entry("PreToolUse", command="python3"),
        "interpreter",
        ("not an absolute path",),
        INIT,
    ),
    # where it starts
    Killer(
        "relative path",
        entry("PreToolUse", args=RELATIVE),
        "entries_absolute",
        ("relative", "PreToolUse"),
        "CLAUDE_PROJECT_DIR",
    ),
    Killer(
        "relative path, fed",
        entry("PreToolUse", args=RELATIVE),
        "guards_answer",
        ("hook not found",),
        INIT,
    ),
    Killer(
        "module form",
        entry("PreToolUse", args=MODULE),
        "entries_absolute",
        ("-m", "module"),
        "CLAUDE_PROJECT_DIR",
    ),
    Killer(
        "placeholder without braces",
        entry("PreToolUse", args=NO_BRACES),
        "entries_absolute",
        ("$CLAUDE_PROJECT_DIR/",),
        INIT,
    ),
    Killer(
        "not isolated",
        entry("PreToolUse", args=NOT_ISOLATED),
        "entries_absolute",
        ("-I -S",),
        INIT,
    ),
    Killer(
        "shell form",
        entry(
            "PreToolUse", command=f'/usr/bin/python3 -I -S "$CLAUDE_PROJECT_DIR"/{HOOK}', args=None
        ),
        "entries_absolute",
        ("shell",),
        INIT,
    ),
    # settings that are not loaded
    Killer("started in a subfolder", subfolder, "start_folder", ("/src",), "Start it in"),
    Killer("started above the project", monorepo, "start_folder", ("my project",), "my project"),
    Killer(
        "no hooks in settings",
        settings_with(hooks={}),
        "entries_present",
        ("PreToolUse", "ConfigChange"),
        INIT,
    ),
    Killer(
        "settings gone",
        lambda made: made.settings_file.unlink(),
        "entries_present",
        ("PreToolUse",),
        INIT,
    ),
    Killer(
        "one guard left out", without("ConfigChange"), "entries_present", ("ConfigChange",), INIT
    ),
    Killer(
        "local settings only",
        only_local,
        "entries_present",
        (".claude/settings.local.json",),
        INIT,
    ),
    Killer(
        "settings no JSON",
        text_in(".claude/settings.json", '{"hooks": {},}'),
        "settings_readable",
        ("not JSON",),
        INIT,
    ),
    Killer(
        "settings not readable",
        lambda made: made.settings_file.chmod(0),
        "settings_readable",
        ("mode",),
        INIT,
    ),
    Killer(
        "settings with NaN",
        lambda made: void(made.settings_file.write_text('{"x": NaN}')),
        "settings_readable",
        ("NaN",),
        INIT,
    ),
    Killer(
        "settings a list",
        text_in(".claude/settings.json", "[]"),
        "settings_readable",
        ("list",),
        INIT,
    ),
    # switched off
    Killer(
        "off in the project",
        settings_with(disableAllHooks=True),
        "hooks_enabled",
        (".claude/settings.json",),
        "Remove",
    ),
    Killer(
        "off as text",
        settings_with(disableAllHooks="true"),
        "hooks_enabled",
        (".claude/settings.json",),
        "Remove",
    ),
    Killer(
        "off locally",
        text_in(".claude/settings.local.json", '{"disableAllHooks": true}'),
        "hooks_enabled",
        ("settings.local.json",),
        "Remove",
    ),
    Killer(
        "off for the user",
        user_settings(disableAllHooks=True),
        "hooks_enabled",
        ("home/.claude/settings.json",),
        "Remove",
    ),
    Killer(
        "off by a variable",
        lambda _: {"CLAUDE_CODE_SIMPLE": "1"},
        "cli_mode",
        ("CLAUDE_CODE_SIMPLE",),
        "Unset",
    ),
    Killer(
        "safe mode",
        lambda _: {"CLAUDE_CODE_SAFE_MODE": "true"},
        "cli_mode",
        ("CLAUDE_CODE_SAFE_MODE",),
        "Unset",
    ),
    Killer(
        "the user's variable",
        user_settings(env={"CLAUDE_CODE_SIMPLE": "1"}),
        "cli_mode",
        ("home/.claude/settings.json",),
        "Unset",
    ),
    Killer(
        "older CLI", a_cli("2.1.294"), "cli_version", ("2.1.294", "onFailure"), "claude update"
    ),
    # entries that do not guard
    Killer(
        "milliseconds",
        entry("PreToolUse", timeout=30000),
        "entries_timeout",
        ("30000", "seconds"),
        INIT,
    ),
    Killer(
        "too short", entry("PreToolUse", timeout=1), "entries_timeout", ("1 s", "too short"), INIT
    ),
    Killer(
        "timeout as text",
        entry("PreToolUse", timeout="30"),
        "entries_timeout",
        ("'30'", "not a number"),
        INIT,
    ),
    Killer(
        "no timeout", entry("ConfigChange", timeout=None), "entries_timeout", ("no timeout",), INIT
    ),
    Killer(
        "no onFailure",
        entry("PreToolUse", onFailure=None),
        "entries_fail_closed",
        ("PreToolUse", "None"),
        '"block"',
    ),
    Killer(
        "onFailure continue",
        entry("ConfigChange", onFailure="continue"),
        "entries_fail_closed",
        ("continue",),
        '"block"',
    ),
    Killer(
        "asynchronous",
        entry("PreToolUse", **{"async": True}),
        "entries_synchronous",
        ("async",),
        "Remove",
    ),
    Killer(
        "filtered",
        entry("PreToolUse", **{"if": "Bash(git *)"}),
        "entries_synchronous",
        ("if", "git"),
        "Remove",
    ),
    Killer(
        "matcher of another case",
        matcher("PreToolUse", "bash"),
        "entries_matcher",
        ("'bash'", "nothing"),
        '"*"',
    ),
    Killer(
        "matcher Task",
        matcher("PreToolUse", "Task"),
        "entries_matcher",
        ("'Task'", "Write"),
        '"*"',
    ),
    Killer(
        "matcher a list", matcher("PreToolUse", "Write,Edit"), "entries_matcher", ("Bash",), '"*"'
    ),
    Killer(
        "matcher without MCP",
        matcher("PreToolUse", "^[A-Z]"),
        "entries_matcher",
        ("mcp__",),
        '"*"',
    ),
    Killer(
        "matcher of one source",
        matcher("ConfigChange", "user_settings"),
        "entries_matcher",
        ("project_settings",),
        "no matcher",
    ),
    Killer(
        "another type",
        entry("PreToolUse", type="prompt"),
        "entries_type",
        ("'prompt'",),
        '"command"',
    ),
    # amiss, and no guard is dead of it
    Killer("twice", twice, "entries_once", ("PreToolUse has 2",), "Remove", guard=False),
    Killer(
        "observer without a limit",
        entry("Stop", timeout=30000),
        "entries_timeout",
        ("30000",),
        "seconds",
        guard=False,
    ),
    Killer(
        "observer left out",
        without("SessionEnd"),
        "entries_present",
        ("SessionEnd",),
        INIT,
        guard=False,
    ),
    Killer(
        "local settings no JSON",
        text_in(".claude/settings.local.json", "{"),
        "settings_readable",
        ("not JSON",),
        "Correct",
        guard=False,
    ),
)


STARTING = (guards_answer, others_answer, interpreter_check)
LOOKING = tuple(check for check in doctor.OF_THE_HOOKS if check not in STARTING)
SEEN = [killer for killer in KILLERS if killer.check not in {check.__name__ for check in STARTING}]
"""Named by checks that start no hook."""
FED = [killer for killer in KILLERS if killer not in SEEN]


def assert_named(killer: Killer, made: Made) -> None:
    report = made.doctor(**(killer.kill(made) or {}))
    (check,) = [check for check in report.checks if check.name == killer.check]
    assert (check.ok, check.guard, report.broken) == (False, killer.guard, killer.guard), (
        "\n".join(report.lines())
    )
    assert [words for words in killer.message if words not in check.message] == [], check.message
    assert killer.hint in check.hint


@pytest.mark.parametrize("killer", SEEN, ids=lambda killer: killer.name)
def test_each_way_to_kill_a_guard_is_named_with_its_hint(
    killer: Killer, made: Made, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(doctor, "OF_THE_HOOKS", LOOKING)
    assert_named(killer, made)


@pytest.mark.parametrize(
    "killer",
    [*FED, *(pytest.param(killer, marks=pytest.mark.slow) for killer in SEEN)],
    ids=lambda killer: killer.name,
)
def test_with_the_hooks_started_it_is_named_too(killer: Killer, made: Made):
    assert_named(killer, made)
