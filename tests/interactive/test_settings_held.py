"""A settings edit that gets past the guards is refused while the session runs: the hooks stay as they are."""

import json
import shlex
from pathlib import Path

import pytest

from tests.cli.journey import Journey
from tests.interactive.door import bash
from tests.interactive.sdk import FROM_PROJECT, Played, play

OFF = {
    "hooks removed": ("settings.json", {"hooks": {}}),
    "all off in project settings": ("settings.json", {"disableAllHooks": True}),
    "all off in local settings": ("settings.local.json", {"disableAllHooks": True}),
}
WRITER = """\
import json, pathlib, sys, time

name, change = sys.argv[1:]
path = pathlib.Path(".cla" + "ude", name)
found = json.loads(path.read_text()) if path.exists() else {}
path.write_text(json.dumps({**found, **json.loads(change)}))
for _ in range(200):  # until the session has noticed it
    if any('"ConfigChange"' in item.read_text() for item in pathlib.Path(".harness/receipts").glob("*.jsonl")):
        break
    time.sleep(0.1)
"""


def try_to_switch_off(project: Journey, name: str, change: dict[str, object]) -> Played:
    """A program changes the settings where no hook can see it; then the model tries what is protected."""
    (project.root / "w.py").write_text(WRITER, "utf-8")
    policy = project.root / ".harness/policy.json"
    turns = [
        [bash("before", f"echo x > {shlex.quote(str(policy))}")],
        [bash("edit", f"python3 w.py {name} {shlex.quote(json.dumps(change))}")],
        [bash("after", f"echo x > {shlex.quote(str(policy))}")],
        [bash("ordinary", "echo fine")],
        "Tried.",
    ]
    options = {**FROM_PROJECT, "setting_sources": ["project", "local"]}
    return play(project.root, project.home, {"PLEASE SWITCH IT OFF": turns}, options=options)


def receipts(root: Path) -> list[dict[str, object]]:
    lines = [path.read_text("utf-8").splitlines() for path in (root / ".harness/receipts").glob("*.jsonl")]
    return [json.loads(line) for part in lines for line in part]


@pytest.mark.parametrize(("name", "change"), OFF.values(), ids=list(OFF))
def test_hooks_switched_off_behind_the_guard_still_hold(name: str, change: dict[str, object], fresh: Journey) -> None:
    played = try_to_switch_off(fresh, name, change)
    assert not played.failed("edit"), played.text("edit")
    assert json.loads((fresh.root / ".claude" / name).read_text("utf-8")).items() >= change.items()
    assert played.held("before")
    assert played.held("after")
    assert not played.failed("ordinary")
    assert [line["permission"] for line in receipts(fresh.root) if line["event"] == "ConfigChange"] == ["deny"]
