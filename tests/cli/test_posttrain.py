"""`harness posttrain` as a person types it: from a specification to a model that is served, and
back."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.journey import UNSANDBOXED, Journey
from tests.posttrain import programs

SPEC = (
    *(
        "posttrain",
        "spec",
        "--mode",
        "orpo",
        "--model",
        programs.MODEL,
        "--profile",
        "local-reader",
    ),
    *(
        "--dataset",
        "train.jsonl",
        "--benchmark",
        "held_out.jsonl",
        "--evaluator",
        '["python", "judge.py"]',
    ),
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


APPROVE = (
    *("posttrain", "approve", "--benchmark", "held_out.jsonl"),
    *("--evaluator", '["python", "judge.py"]'),
)


def test_from_a_specification_to_a_judged_model(tuning: Journey):
    models = []
    for seed in ("1", "2", "3"):
        made = tuning.harness(*SPEC, *TRAINER, "--seed", seed, "--json")
        assert made.exit_code == 0, made.stderr
        name = made.document["experiment"]
        ran = tuning.harness("posttrain", "run", name, *UNSANDBOXED, "--json")
        assert ran.exit_code == 0, ran.stdout + ran.stderr
        models.append(ran.document["model"])
    last = models[-1]
    early = tuning.harness("posttrain", "promote", last, "--reason", "looks good", "--json")
    assert early.exit_code == 1
    unseen = tuning.harness("posttrain", "evaluate", last, *UNSANDBOXED, "--json")
    assert (unseen.exit_code, unseen.document["error"]["code"]) == (2, "benchmark_not_approved")
    by_agent = tuning.harness(*APPROVE, "--json", CLAUDECODE="1")
    assert (by_agent.exit_code, by_agent.document["error"]["code"]) == (2, "human_verb")
    approved = tuning.harness(*APPROVE, "--json")
    assert approved.exit_code == 0, approved.stdout + approved.stderr
    assert (approved.document["seeds"], approved.document["benchmark"]["rows"]) == ([1, 2, 3], 40)
    judged = [
        tuning.harness("posttrain", "evaluate", model, *UNSANDBOXED, "--json") for model in models
    ]
    assert [one.exit_code for one in judged] == [1, 1, 0], judged[-1].stdout
    assert judged[0].document["joint"]["outstanding"] == [2, 3]
    assert (judged[-1].document["verdict"], judged[-1].document["n"]) == ("PASS", 40)
    took = tuning.harness("posttrain", "promote", last, "--reason", "passes", "--json")
    assert took.exit_code == 0, took.stdout + took.stderr
    unserved = tuning.harness("posttrain", "serve-path", "--json")
    assert unserved.exit_code == 2
    assert unserved.document["error"]["hint"]
    tree = json.dumps(tuning.harness("posttrain", "lineage", last, "--json").document)
    assert name in tree
    assert tuning.harness("posttrain", "reject", last, "--reason", "not ours").exit_code == 0
    told = tuning.harness("posttrain", "status", "--json").document
    assert [one["state"] for one in told["models"] if one["id"] == last] == ["rejected"]
    assert [one["sha256"] for one in told["approved"]] == [approved.document["sha256"]]


def test_names_of_the_documents_are_those_of_the_options(tuning: Journey):
    made = tuning.harness(*SPEC, "--backend", "dry-run", "--json")
    assert made.exit_code == 0, made.stdout + made.stderr
    ran = tuning.harness("posttrain", "run", made.document["experiment"], *UNSANDBOXED, "--json")
    assert ran.exit_code == 0, ran.stdout + ran.stderr
    assert tuning.harness("posttrain", "status", "--json").document["models"] == []


def test_a_family_that_made_trains_and_judges_is_told(tuning: Journey):
    makers = {
        "teacher": "HuggingFaceTB/SmolLM2-1.7B-Instruct",
        "judge": "Qwen/Qwen2.5-7B-Instruct",
    }
    path = tuning.root / "train.jsonl"
    programs.write_rows(path, [row | {"provenance": makers} for row in programs.rows(20)])
    made = tuning.harness(*SPEC, "--backend", "dry-run")
    assert made.exit_code == 0, made.stderr
    assert "warning: smollm: shared by teacher, trained model" in made.stdout
    assert "qwen" not in made.stdout
    programs.write_rows(
        path, [row | {"provenance": {"judge": makers["judge"]}} for row in programs.rows(20)]
    )
    other = tuning.harness(*SPEC, "--backend", "dry-run", "--json")
    (warning,) = other.document["warnings"]
    assert (warning["field"], warning["actual"]) == ("benchmark", "not approved")


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
def test_bad_specifications_are_refused_in_words(
    untouched: Journey, words: tuple[str, ...], said: str
):
    answer = untouched.harness(*SPEC, *words, "--json")
    assert answer.exit_code == 2
    assert said in answer.stdout + answer.stderr
    assert untouched.harness("posttrain", "status", "--json").document.get("programs", []) == []


HERE = programs.TRAINER[: programs.TRAINER.index("log = RunLogger")]
"""A trainer that nobody here sees: it has no run logger."""


@pytest.fixture
def elsewhere(tuning: Journey) -> tuple[str, Path]:
    """(experiment, output folder) of a trainer that ran by hand on the specification that the verb
    wrote."""
    programs.write_trainer(tuning.root, head=HERE)
    name = tuning.harness(*SPEC, *TRAINER, "--json").document["experiment"]
    spec, output = tuning.home / "spec.json", tuning.home / "out"
    wrote = tuning.harness("posttrain", "write-spec", name, str(spec), "--json")
    assert (wrote.exit_code, wrote.document["run"]) == (0, "run-01"), wrote.stderr
    words = [
        sys.executable,
        str(tuning.root / "trainer.py"),
        "--spec",
        str(spec),
        "--output-dir",
        str(output),
    ]
    output.mkdir()
    said = subprocess.run(
        words, capture_output=True, check=True, text=True, env=tuning.environment()
    ).stdout
    (output / "result.json").write_text(said)
    return name, output


def test_what_was_trained_elsewhere_is_judged_and_logged_as_that(
    tuning: Journey, elsewhere: tuple[str, Path]
):
    name, output = elsewhere
    by_agent = tuning.harness("posttrain", "import", name, str(output), CLAUDECODE="1")
    assert by_agent.exit_code != 0
    assert tuning.harness("posttrain", "status", "--json").document["programs"][0]["runs"] == []
    made = tuning.harness("posttrain", "import", name, str(output), "--json")
    assert (made.exit_code, made.document["problems"]) == (0, []), made.stdout
    (run,) = tuning.harness("posttrain", "lineage", name, "--json").document["runs"]
    assert (run["status"], run["models"][0]["id"]) == ("completed", made.document["model"])
    told = json.loads(
        (tuning.root / ".harness/experiments" / name / "runs/run-01/run.json").read_text()
    )
    assert (told["argv"], told["sandbox"], told["environment"]) == (
        ["import"],
        "none",
        {"imported": True},
    )
    again = tuning.harness("posttrain", "import", name, str(output), "--json")
    assert (again.exit_code, again.document["error"]["code"]) == (2, "already_completed")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"dataset_sha256": "0" * 64}, "dataset_sha256"),
        pytest.param({"run": "run-02"}, "run", marks=pytest.mark.slow),
        pytest.param({"status": "dry_run"}, "status", marks=pytest.mark.slow),
        pytest.param({"state": "deployed"}, "state", marks=pytest.mark.slow),
        (None, "artifact"),
    ],
)
def test_a_forged_or_torn_import_makes_no_model(
    tuning: Journey, elsewhere: tuple[str, Path], change, field: str
):
    name, output = elsewhere
    result = output / "result.json"
    if change is None:
        (output / "adapter" / "adapter_model.safetensors").write_bytes(b"torn")
    else:
        result.write_text(json.dumps(json.loads(result.read_text()) | change))
    made = tuning.harness("posttrain", "import", name, str(output), "--json")
    assert (made.exit_code, made.document["status"], made.document["model"]) == (1, "failed", None)
    assert field in {item["field"] for item in made.document["problems"]}
    assert tuning.harness("posttrain", "status", "--json").document["models"] == []


def test_an_import_with_links_is_refused_before_anything_is_recorded(
    tuning: Journey, elsewhere: tuple[str, Path]
):
    name, output = elsewhere
    shutil.move(output / "result.json", tuning.home / "result.json")
    (output / "result.json").symlink_to(tuning.home / "result.json")
    assert tuning.harness("posttrain", "import", name, str(output), "--json").exit_code == 2
    assert tuning.harness("posttrain", "lineage", name, "--json").document["runs"] == []


def test_the_specification_goes_to_no_file_of_the_project_and_over_none(tuning: Journey):
    name = tuning.harness(*SPEC, *TRAINER, "--json").document["experiment"]
    before = sorted(path.name for path in tuning.root.iterdir())
    assert (
        tuning.harness("posttrain", "write-spec", name, str(tuning.root / "spec.json")).exit_code
        == 2
    )
    (tuning.home / "there").write_text("mine")
    assert (
        tuning.harness("posttrain", "write-spec", name, str(tuning.home / "there")).exit_code == 2
    )
    assert (tuning.home / "there").read_text() == "mine"
    assert sorted(path.name for path in tuning.root.iterdir()) == before


BAD = (
    ("approve", "--benchmark", "nowhere.jsonl"),
    ("approve", "--benchmark", "held_out.jsonl", "--seeds", "1,2"),
    ("approve", "--benchmark", "held_out.jsonl", "--seeds", "one"),
    ("approve", "--benchmark", "held_out.jsonl", "--delta", "0"),
    ("approve", "--benchmark", "held_out.jsonl", "--rows", "41"),
    ("approve", "--benchmark", "held_out.jsonl", "--evaluator", "mine"),
    ("run", "exp-0009"),
    ("run", "exp-0001", "--resume"),
    ("import", "exp-0001", "nowhere"),
    ("write-spec", "exp-0009", "../x.json"),
    ("lineage", "exp-0009"),
    ("evaluate", "0123"),
    ("evaluate", "0123", "--mode", "best"),
    ("observe", "0123", "--outcome", "fine"),
    ("promote", "0123"),
    ("promote", "0123", "--reason", "good"),
    ("reject", "0123", "--reason", "bad"),
    ("rollback", "--reason", "worse"),
    ("export", "train.jsonl", "out.jsonl"),
    ("model", "add", "no/such"),
    ("serve-path", "--profile", "nobody"),
)


def test_bad_words_are_an_answer_and_change_nothing(tuning: Journey):
    tuning.harness(*SPEC, *TRAINER)
    before = tuning.harness("posttrain", "status", "--json").document
    for words in BAD:
        said = tuning.harness("posttrain", *words, "--json")
        assert said.exit_code == 2, (words, said)
        assert "Traceback" not in said.stderr, words
        assert said.stdout or said.stderr, words
    assert tuning.harness("posttrain", "status", "--json").document == before


def test_rows_that_say_licence_and_consent_are_exported(tuning: Journey):
    tuning.harness(*SPEC, *TRAINER)
    rows = [{**row, "licence": "cc0-1.0", "consent": True} for row in programs.rows(2)]
    programs.write_rows(tuning.root / "mine.jsonl", [*rows, *programs.rows(1, 50)])
    made = tuning.harness("posttrain", "export", "mine.jsonl", "out.jsonl", "--json")
    assert (made.exit_code, made.document["rows"], len(made.document["left_out"])) == (0, 2, 1)


def test_a_killed_trainer_goes_on_by_the_command_line(tuning: Journey):
    programs.write_trainer(
        tuning.root, programs.MADE, head=programs.resuming("os.kill(os.getpid(), 9)")
    )
    name = tuning.harness(*SPEC, *TRAINER, "--json").document["experiment"]
    assert tuning.harness("posttrain", "run", name, *UNSANDBOXED, "--json").exit_code == 1
    went_on = tuning.harness("posttrain", "run", name, "--resume", *UNSANDBOXED)
    assert went_on.exit_code == 0, went_on.stdout + went_on.stderr
    assert "goes on, attempt 2" in went_on.stderr
    assert "run-01, attempt 2  completed" in tuning.harness("posttrain", "lineage", name).stdout
