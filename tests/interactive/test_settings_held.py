"""A settings edit that gets past the guards is refused while the session runs: the hooks stay as
they are."""

import json
import shlex
from pathlib import Path

from tests.cli.journey import Journey
from tests.interactive.gateway import Turn, bash
from tests.interactive.sdk import FROM_PROJECT, play

OFF: tuple[tuple[str, dict[str, object]], ...] = (
    ("settings.json", {"hooks": {}}),
    ("settings.json", {"disableAllHooks": True}),
    ("settings.local.json", {"disableAllHooks": True}),
)
WRITER = """\
import json, pathlib, sys, time

name, change, wanted = sys.argv[1:]
path = pathlib.Path(".cla" + "ude", name)
found = json.loads(path.read_text()) if path.exists() else {}
path.write_text(json.dumps({**found, **json.loads(change)}))
for _ in range(200):  # until the session has noticed it
    lines = [line for item in pathlib.Path(".harness/receipts").glob("*.jsonl") for line in item.open()]
    if sum('"ConfigChange"' in line for line in lines) >= int(wanted):
        break
    time.sleep(0.1)
"""
"""Changes the settings where no hook can see it."""


def receipts(root: Path) -> list[dict[str, object]]:
    lines = [
        path.read_text("utf-8").splitlines()
        for path in (root / ".harness/receipts").glob("*.jsonl")
    ]
    return [json.loads(line) for part in lines for line in part]


def test_hooks_switched_off_behind_the_guard_still_hold(fresh: Journey) -> None:
    (fresh.root / "w.py").write_text(WRITER, "utf-8")
    policy = shlex.quote(str(fresh.root / ".harness/policy.json"))
    turns: list[Turn] = [[bash("held_0", f"echo x > {policy}")]]
    for number, (name, change) in enumerate(OFF, 1):
        turns.append(
            [
                bash(
                    f"edit_{number}",
                    f"python3 w.py {name} {shlex.quote(json.dumps(change))} {number}",
                )
            ]
        )
        turns.append(
            [bash(f"held_{number}", f"echo x > {policy}"), bash(f"fine_{number}", "echo fine")]
        )
    options = {**FROM_PROJECT, "setting_sources": ["project", "local"]}
    played = play(
        fresh.root, fresh.home, {"PLEASE SWITCH IT OFF": [*turns, "Tried."]}, options=options
    )
    for number, (name, change) in enumerate(OFF, 1):
        assert not played.failed(f"edit_{number}"), played.text(f"edit_{number}")
        assert (
            json.loads((fresh.root / ".claude" / name).read_text("utf-8")).items()
            >= change.items()
        )
        assert not played.failed(f"fine_{number}")
    assert all(played.held(f"held_{number}") for number in range(len(OFF) + 1))
    changes = [
        line["permission"] for line in receipts(fresh.root) if line["event"] == "ConfigChange"
    ]
    assert changes == ["deny"] * len(OFF)
