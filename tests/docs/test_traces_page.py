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
from tests.teachers.service import of_anthropic, of_openai, serving
from tests.traces.rows import Transcript

pytest.importorskip("detect_secrets", reason="the extra `traces` is not installed")
ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/traces.md").read_text("utf-8")
SESSION = "967e501d"


def typed() -> list[str]:
    """`sh` blocks are of a folder of their own: tests/cli/test_own_transcripts.py."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    lines = [line for kind, block in blocks if not kind for line in block.splitlines()]
    return [line for line in lines if line.startswith("harness")]


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
    both = {**of_openai("I ask first.")[2], **of_anthropic("I ask first.")[2]}
    with serving((200, {}, both)) as service:
        for line in lines:
            words = shlex.split(on_loopback(line.replace("SESSION", SESSION), service.url))
            done = journey.harness(*words[1:])
            assert done.exit_code == 0, (line, done.stdout, done.stderr)
        assert {one["path"] for one in service.asked} == {"/v1/chat/completions", "/v1/messages"}

    rows = [json.loads(row) for row in (journey.root / "states.jsonl").read_text().splitlines()]
    assert rows
    assert all(row["session"] != SESSION for row in rows)
    named = set(re.findall(r"^\| (`.*?`) \| ", PAGE, re.MULTILINE))
    fields = {name for cell in named for name in re.findall(r"`([\w-]+)`", cell)}
    assert set(rows[0]) <= fields
    assert {form.name for form in FORMS} <= fields


def on_loopback(line: str, url: str) -> str:
    """No service is asked but the test's own."""
    line = line.replace("http://127.0.0.1:8000/v1", url)
    line = re.sub(r"(anthropic:[\w-]+)", rf"\1@{url}", line)
    teacher = re.search(r"--teacher (\S+)", line)
    assert teacher is None or "replay:" in line or teacher[1].endswith(url), line
    return line
