"""docs/hooks.md names every event with its kind, program and callback, as the code has them."""

import re
from pathlib import Path

from harness.driver.callbacks import Guard
from harness.guard.hooks.table import EVENTS, PROGRAM

ROOT = Path(__file__).resolve().parents[2]
ROWS = re.findall(
    r"^\| (\w+) \| (\w+) \| ([^|]+) \| `([\w. ]+)` \| [^|]+ \|$",
    (ROOT / "docs/hooks.md").read_text("utf-8"),
    re.M,
)


def test_the_table_is_the_handlers_table() -> None:
    assert sorted((name, kind, program) for name, kind, _, program in ROWS) == sorted(
        (event.name, event.kind, f"{PROGRAM} {event.name}") for event in EVENTS
    )


def test_each_program_stands_in_hooks() -> None:
    assert all((ROOT / "hooks" / program.partition(" ")[0]).is_file() for *_, program in ROWS)


def test_each_callback_that_the_table_names_is_one() -> None:
    # Also of an event that the SDK's sessions alone have.
    named = set(re.findall(r"`Guard\.(\w+)`", (ROOT / "docs/hooks.md").read_text("utf-8")))
    assert named == {"before_tool", "after_tool", "before_stop", "before_compaction"}
    assert all(callable(getattr(Guard, name)) for name in named)
