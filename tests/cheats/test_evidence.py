"""The recorded runs: every defence is needed, all of the catalogue was tried, every miss stands in
the pages."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from harness.cheats.catalogue import ATTACKS, CONTROLS
from harness.cheats.outcome_rows import digest
from harness.cheats.report import CAUGHT_AT_LEAST, figures, needed, page, problems, through

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("sandboxed", "landlock", "unsandboxed")
DOCUMENTS: dict[str, dict[str, Any]] = {
    name: json.loads((ROOT / f"docs/evidence/cheats-{name}.json").read_text("utf-8"))
    for name in NAMES
}


NEVER_ALONE = {"checkpoint record", "weights probe", "registration"}
"""Of these each attack is stopped by another one too; the mechanisms have tests of their own."""


@pytest.mark.parametrize("name", NAMES)
def test_the_run_holds(name: str):
    document = DOCUMENTS[name]
    assert problems(document) == []
    assert figures(document)["caught_share"] >= CAUGHT_AT_LEAST


@pytest.mark.parametrize("name", NAMES)
def test_the_run_is_of_this_catalogue(name: str):
    document = DOCUMENTS[name]
    assert {row["id"]: row["digest"] for row in document["attacks"]} == {
        item.id: digest(item) for item in ATTACKS
    }
    assert {row["id"]: row["digest"] for row in document["controls"]} == {
        item.id: digest(item) for item in CONTROLS
    }


def test_each_defence_stops_an_attack_that_gets_through_without_it():
    assert {
        name for name, attacks in needed(list(DOCUMENTS.values())).items() if not attacks
    } == NEVER_ALONE


def test_the_page_is_rendered_from_the_evidence():
    assert (ROOT / "docs/cheats.md").read_text("utf-8") == page(
        [DOCUMENTS[name] for name in NAMES]
    )


def test_the_threat_model_names_what_gets_through_and_nothing_else():
    text = (ROOT / "docs/threat-model.md").read_text("utf-8")
    told = {
        name: set(re.findall(r"`([a-z0-9-]+)`", line))
        for name, line in re.findall(
            r"^- (Sandboxed|Landlock|Unsandboxed) gets through: (.*)$", text, re.MULTILINE
        )
    }
    missed = {
        name.capitalize(): {row["id"] for row in DOCUMENTS[name]["attacks"] if through(row)}
        for name in NAMES
    }
    assert told == missed
