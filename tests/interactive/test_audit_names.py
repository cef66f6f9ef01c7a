"""A guard that somebody killed lets a session change what is protected; the audit names what, and
in which session."""

import json
import shlex

from tests.cli.journey import Journey
from tests.interactive.gateway import bash, call
from tests.interactive.sdk import FROM_PROJECT, play

LOCAL = {**FROM_PROJECT, "setting_sources": ["project", "local"]}


def audit(project: Journey) -> dict:
    answer = project.harness("audit", "--json", CLAUDE_CONFIG_DIR=str(project.home / "config"))
    assert answer.exit_code in (0, 1), answer.stderr
    return {**answer.document, "exit": answer.exit_code}


def test_what_a_killed_guard_let_through_is_named_with_its_session(fresh: Journey) -> None:
    hook = fresh.root / ".claude/hooks/harness/run.py"
    held = play(
        fresh.root,
        fresh.home,
        {"PLEASE TRY": [[bash("held", f"echo >> {shlex.quote(str(hook))}")], "Tried."]},
    )
    assert held.held("held")
    assert audit(fresh)["exit"] == 0

    (fresh.root / ".claude/settings.local.json").write_text(
        json.dumps({"disableAllHooks": True}), "utf-8"
    )
    calls = [
        bash("shell", "echo '{}' > .harness/policy.json"),
        call(
            "tool",
            "Edit",
            file_path=str(fresh.root / "plan.md"),
            old_string="must: 0.80",
            new_string="must: 0.10",
        ),
        bash(
            "python", f"python3 -c \"open('{hook.relative_to(fresh.root)}', 'a').write('# mine')\""
        ),
        bash("fine", "echo fine > fine.txt"),
    ]
    killed = play(fresh.root, fresh.home, {"PLEASE TRY AGAIN": [calls, "Done."]}, options=LOCAL)
    assert {"shell", "tool", "python", "fine"} <= killed.passed_labels

    found = audit(fresh)
    assert found["exit"] == 1
    session = killed.document["init"]["session_id"]
    blamed = {
        change["path"]: {item["session"] for item in change["sessions"]}
        for change in found["changes"]
    }
    for path in (".claude/hooks/harness/run.py", "plan.md", ".harness/policy.json"):
        assert blamed[path] == {session}, path
    assert ".claude/settings.local.json" in blamed
    assert "fine.txt" not in str(found)
    unguarded = {item["tool_use_id"] for item in found["unguarded"] if item["session"] == session}
    assert {"shell", "tool", "python"} <= unguarded
    assert "fine" not in unguarded
