"""What docs/traces.md says to type does what it says."""

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from harness.traces.forms.table import FORMS
from tests.cli.journey import Journey
from tests.posttrain import programs
from tests.traces.rows import Transcript

pytest.importorskip("detect_secrets", reason="the extra `traces` is not installed")
ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/traces.md").read_text("utf-8")
SESSION = "967e501d"


def typed() -> list[str]:
    blocks = re.findall(r"^```\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    return [line for block in blocks for line in block.splitlines() if line.startswith("harness")]


def test_every_command_of_the_page_works(tmp_path: Path):
    (tmp_path / "home").mkdir()
    journey = Journey(programs.make_root(tmp_path / "p"), tmp_path / "home")
    shutil.copytree(ROOT / "tests/traces/inputs/collected", journey.root / "sessions")
    place = re.sub(r"[^A-Za-z0-9]", "-", str(journey.root))
    kept = journey.home / ".claude/projects" / place / f"{SESSION}.jsonl"
    main = Transcript(kept, session=SESSION, cwd=journey.root)
    main.prompt("hello")
    main.call("t", "Read")
    shutil.copy(kept, journey.root / "sessions")
    lines = typed()
    assert len(lines) > 6
    for line in lines:
        words = shlex.split(line.replace("SESSION", SESSION))
        done = journey.harness(*words[1:])
        assert done.exit_code == 0, (line, done.stdout, done.stderr)
    rows = [json.loads(row) for row in (journey.root / "states.jsonl").read_text().splitlines()]
    assert rows
    assert all(row["session"] != SESSION for row in rows)
    named = set(re.findall(r"^\| (`.*?`) \| ", PAGE, re.MULTILINE))
    fields = {name for cell in named for name in re.findall(r"`([\w-]+)`", cell)}
    assert set(rows[0]) <= fields
    assert {form.name for form in FORMS} <= fields
