"""docs/tools.md is rendered from the tools; a new tool is one file and one row."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest

from harness.driver.tool_context import ToolContext
from harness.driver.tools.definition import AgentTool, Answer, argument, schema_of
from harness.driver.tools.table import TOOLS, tool_of

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_is_what_the_tools_say() -> None:
    done = subprocess.run(
        [sys.executable, "docs/tools.py", "--check"], cwd=ROOT, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_each_row_is_a_file_and_each_file_a_row() -> None:
    folder = ROOT / "harness/driver/tools"
    files = {path.stem for path in folder.glob("*.py")} - {"__init__", "definition", "table"}
    assert files == set(TOOLS)
    assert [tool_of(name).name for name in TOOLS] == list(TOOLS)
    with pytest.raises(KeyError):
        tool_of("definition")


@dataclass(frozen=True, kw_only=True)
class Note:
    text: str = argument("One line.")
    tags: list[str] = argument(default=[])
    weight: float | None = argument(default=None, minimum=0)


async def keep(_context: ToolContext, arguments: Note) -> Answer:
    arguments.tags.append(arguments.text)
    return {"tags": arguments.tags}


def test_schema_and_arguments_come_from_one_dataclass() -> None:
    tool = AgentTool(name="keep_note", description="Keep it.", arguments=Note, method=keep)
    assert tool.schema == {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "One line."},
            "tags": {"type": "array", "items": {"type": "string"}},
            "weight": {"type": "number", "minimum": 0},
        },
        "required": ["text"],
        "additionalProperties": False,
    }
    for text in ("a", "b"):  # a default list is made anew for each call
        assert anyio.run(tool.call, None, {"text": text}) == {"tags": [text]}
    with pytest.raises(TypeError, match="no JSON schema"):
        schema_of(bytes)
