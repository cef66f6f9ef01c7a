"""The Python examples of docs/api.md, docs/extending.md and docs/training-programs.md run."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = [DOCS / "api.md", DOCS / "extending.md", DOCS / "training-programs.md"]
EXAMPLES = [
    example
    for page in PAGES
    for example in re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)
]


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 2


@pytest.mark.parametrize("code", EXAMPLES)
def test_example_runs(code: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
