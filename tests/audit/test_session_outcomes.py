"""What the ledger says of the experiments that a session worked on."""

import json
from pathlib import Path

import pytest

from harness.artifacts.trees import this_tree
from harness.audit.session_outcomes import session_outcomes
from harness.domain.statuses import DecisionKind
from harness.ledger.project import open_project
from harness.settings import create_config
from tests.blobs import own_environment
from tests.cli.journey import Journey
from tests.traces.rows import Transcript


def test_a_session_has_the_experiments_that_it_opened(tmp_path: Path):
    pytest.importorskip("detect_secrets", reason="the extra `traces` is not installed")
    (tmp_path / "home").mkdir()
    journey = Journey(tmp_path / "p", tmp_path / "home")
    create_config(journey.root, name="p", token="cafe")
    with open_project(journey.root, own_environment(tmp_path)) as project:
        made = project.ledger.open_experiment(
            hypothesis="It helps.",
            parent=None,
            by="model-builder",
            session="aaaa-1",
            of_plan=False,
            tree=this_tree(project.layout),
        )
        project.ledger.record_decision(
            kind=DecisionKind.ITERATE,
            experiment=made.id,
            by="human:ada",
            context="",
            choice="wait",
            alternatives="",
            reason="Not sure.",
            confidence="low",
            verdict=None,
        )
        outcomes = session_outcomes(project)
    (told,) = outcomes["aaaa-1"]
    assert (told["experiment"], told["status"]) == ("exp-0001", "open")
    assert [one["reason"] for one in told["decisions"]] == ["Not sure."]
    main = Transcript(journey.root / "aaaa-1.jsonl", session="aaaa-1", cwd="/p")
    main.prompt("go")
    main.call("t", "Read")
    done = journey.harness("traces", "ingest", "aaaa-1.jsonl", **own_environment(tmp_path))
    assert done.exit_code == 0, done.stderr
    (row,) = map(json.loads, (journey.root / "traces.jsonl").read_text().splitlines())
    assert row["outcome"]["experiments"][0]["decisions"][0]["reason"] == "Not sure."
