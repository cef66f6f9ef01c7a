"""`harness posttrain` as a person types it: from a specification to a model that is served, and back."""

import json
from pathlib import Path

import pytest

from tests.cli.journey import Journey
from tests.posttrain import programs

SPEC = (
    *("posttrain", "spec", "--mode", "orpo", "--model", programs.MODEL, "--profile", "local-reader"),
    *("--dataset", "train.jsonl", "--benchmark", "held_out.jsonl", "--evaluator", '["python", "judge.py"]'),
)
TRAINER = ("--backend", "command", "--trainer", '["python", "trainer.py"]')


@pytest.fixture
def tuning(tmp_path: Path) -> Journey:
    (tmp_path / "home").mkdir()
    return Journey(programs.make_root(tmp_path / "tuning"), tmp_path / "home")


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Journey:
    """For specifications that are refused."""
    base = tmp_path_factory.mktemp("untouched")
    (base / "home").mkdir()
    return Journey(programs.make_root(base / "tuning"), base / "home")


def test_from_a_specification_to_a_judged_model(tuning: Journey):
    made = tuning.harness(*SPEC, *TRAINER, "--json")
    assert made.exit_code == 0, made.stderr
    name = made.document["experiment"]
    ran = tuning.harness("posttrain", "run", name, "--cage", "none", "--json")
    assert ran.exit_code == 0, ran.stdout + ran.stderr
    (model,) = tuning.harness("posttrain", "status", "--json").document["models"]
    early = tuning.harness("posttrain", "promote", model["id"], "--reason", "looks good", "--json")
    assert early.exit_code == 1
    judged = tuning.harness("posttrain", "evaluate", model["id"], "--cage", "none", "--json")
    assert judged.exit_code == 0, judged.stdout + judged.stderr
    assert (judged.document["verdict"], judged.document["n"]) == ("PASS", 40)
    took = tuning.harness("posttrain", "promote", model["id"], "--reason", "passes", "--json")
    assert took.exit_code == 0, took.stdout + took.stderr
    unserved = tuning.harness("posttrain", "serve-path", "--json")
    assert unserved.exit_code == 2
    assert unserved.document["error"]["mend"]
    tree = json.dumps(tuning.harness("posttrain", "lineage", model["id"], "--json").document)
    assert name in tree
    assert tuning.harness("posttrain", "reject", model["id"], "--reason", "not ours").exit_code == 0
    (model,) = tuning.harness("posttrain", "status", "--json").document["models"]
    assert model["state"] == "rejected"


def test_names_of_the_documents_are_those_of_the_options(tuning: Journey):
    made = tuning.harness(*SPEC, "--backend", "dry-run", "--json")
    assert made.exit_code == 0, made.stdout + made.stderr
    ran = tuning.harness("posttrain", "run", made.document["experiment"], "--cage", "none", "--json")
    assert ran.exit_code == 0, ran.stdout + ran.stderr
    assert tuning.harness("posttrain", "status", "--json").document["models"] == []


def test_a_family_that_made_trains_and_judges_is_told(tuning: Journey):
    makers = {"teacher": "HuggingFaceTB/SmolLM2-1.7B-Instruct", "judge": "Qwen/Qwen2.5-7B-Instruct"}
    path = tuning.root / "train.jsonl"
    programs.write_rows(path, [row | {"provenance": makers} for row in programs.rows(20)])
    made = tuning.harness(*SPEC, "--backend", "dry-run")
    assert made.exit_code == 0, made.stderr
    assert "warning: smollm2: shared by teacher, trained model" in made.stdout
    assert "qwen2.5" not in made.stdout
    programs.write_rows(path, [row | {"provenance": {"judge": makers["judge"]}} for row in programs.rows(20)])
    other = tuning.harness(*SPEC, "--backend", "dry-run", "--json")
    assert other.document["warnings"] == []


def test_a_base_model_is_added_before_there_is_a_ledger(tuning: Journey):
    weights = tuning.root.parent / "weights"
    weights.mkdir()
    (weights / "config.json").write_text("{}")
    added = tuning.harness("posttrain", "model", "add", "--weights", str(weights), "--json")
    assert added.exit_code == 0, added.stderr
    (found,) = [item for item in added.document["models"] if item["path"]]
    assert (found["id"], found["path"]) == (programs.MODEL, str(weights))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--backend", "trl-orpo", "--set", "learning_rate=nan"), "learning_rate"),
        (("--backend", "trl-orpo", "--minutes", "-1"), "minutes"),
        (("--backend", "no-such"), "trl-orpo"),
        (("--backend", "command", "--trainer", "python trainer.py"), "--trainer"),
    ],
)
def test_bad_specifications_are_refused_in_words(untouched: Journey, words: tuple[str, ...], said: str):
    answer = untouched.harness(*SPEC, *words, "--json")
    assert answer.exit_code == 2
    assert said in answer.stdout + answer.stderr
    assert untouched.harness("posttrain", "status", "--json").document.get("programs", []) == []
