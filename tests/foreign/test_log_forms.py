"""Each form of docs/logs.md: values, keys, row count, last position with its unit, state."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.clock import SystemClock
from harness.views.follow_logs import LogFollower
from harness.views.watching import read_all
from tests.foreign.log_forms import FORMS, Form

DOCUMENT = Path(__file__).parents[2] / "docs" / "logs.md"


def watched(path: Path) -> list[Mapping[str, Any]]:
    """What `harness watch --once --json` says of the runs in an old log."""
    os.utime(path, (1_700_000_000, 1_700_000_000))
    follower = LogFollower([path], SystemClock())
    read_all(follower)
    return follower.document()["runs"]  # type: ignore[no-any-return]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_form(tmp_path: Path, form: Form) -> None:
    path = tmp_path / form.file
    path.write_bytes(form.text().encode())
    (run,) = watched(path)
    axis = "epoch" if form.unit == "epoch" else "step"
    assert run["rows"] == form.rows
    assert (run["unit"], run[axis]) == (form.unit, form.place)
    assert run[f"total_{axis}s"] == form.total
    assert set(run["metrics"]) == form.keys
    assert form.last.items() <= run["metrics"].items()
    assert (run["status"], run["notes"]) == (form.state, [])


def test_the_document_names_each_form() -> None:
    rows = [
        line.split("|")[1].strip()
        for line in DOCUMENT.read_text().splitlines()
        if line[:2] == "| "
    ]
    assert len(FORMS) >= 45
    assert rows[1:] == [form.name for form in FORMS]
