"""From a folder with one table to a judged experiment, as the documents say it: `harness init --data`, a
person's approval, and the verbs."""

import csv
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from harness.errors import RefusedError
from harness.install.target import place_of
from harness.settings import load_settings
from tests.cli.journey import Answer, Journey

ROWS = 400


@pytest.fixture
def journey(tmp_path: Path) -> Journey:
    """A folder with one table, and nothing else."""
    root, home = tmp_path / "churn", tmp_path / "home"
    home.mkdir()
    table(root / "data/all.csv", ROWS, 3)
    return Journey(root, home)


def table(path: Path, rows: int, seed: int, ids: bool = False) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(seed)
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow([*(["id"] if ids else []), "age", "plan", "spent", "churned"])
        for row in range(rows):
            age, plan = round(float(draw.normal()), 3), draw.choice(["free", "paid"])
            gone = int(age + 1.5 * (plan == "free") + 0.3 * draw.normal() > 0.6)
            own = [f"{seed}-{row}"] if ids else []
            writer.writerow([*own, age, plan, round(20 + 5 * age, 3), gone])


def numpy_alone(root: Path) -> None:
    """A virtual environment of the project that has numpy and nothing else: it starts fast."""
    import numpy

    here = Path(numpy.__file__).parents[1]
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site = root / ".venv/lib" / version / "site-packages"
    site.mkdir(parents=True)
    for path in here.glob("numpy*"):
        (site / path.name).symlink_to(path)
    (root / ".venv/bin").mkdir()
    (root / ".venv/bin/python").symlink_to(Path(sys.executable).resolve())
    home = Path(sys.executable).resolve().parent
    (root / ".venv/pyvenv.cfg").write_text(f"home = {home}\n")


def must(journey: Journey, *words: str) -> Answer:
    answer = journey.harness(*words)
    assert answer.exit_code == 0, (words, answer.stdout, answer.stderr)
    return answer


def judged(journey: Journey) -> dict:
    """By the verbs that stand behind one experiment; the verdict."""
    must(journey, "experiment", "new", "--hypothesis", "first")
    must(journey, "train")
    must(journey, "evaluate")
    must(journey, "experiment", "result", "--summary", "As measured.")
    answer = journey.harness("gate", "check", "--json")
    return answer.document


@pytest.mark.slow
@pytest.mark.ci
def test_from_one_table_to_a_judged_experiment(journey: Journey) -> None:
    numpy_alone(journey.root)
    done = must(
        journey, "init", "--data", "data/all.csv", "--label", "churned", "--metric", "accuracy"
    )
    assert "filled in plan.md" in done.stdout
    assert "wrote train.py and predict.py: a start for this table, yours to change" in done.stdout
    assert "next: read plan.md, then `harness plan approve`" in done.stdout
    checked = must(journey, "plan", "check", "--json").document
    assert checked["problems"] == []
    unlooked, small = checked["findings"]
    assert (unlooked["code"], small["code"]) == ("rows_not_looked_for", "validation_small")
    assert small["data"]["rows"] == 40
    assert f"note: {small['message']} {small['hint']}" in done.stdout
    plan = (journey.root / "plan.md").read_text()
    assert "# A start, yours to change: a quarter and half of the way from" in plan
    assert "  metric: accuracy\n  direction: maximize\n  scorer: accuracy\n" in plan
    must(journey, "plan", "approve")
    verdict = judged(journey)
    assert verdict["verdict"] == "PASS"
    # On 40 rows the seeds agree by luck, now and then.
    assert {one["code"] for one in verdict["findings"]} <= {"seeds_answer_alike"}


FORMS = [
    ("spent", "mae", ["id", "prediction"]),
    ("churned", "AUROC", ["id", "p_0", "p_1"]),
    ("plan", "f1", ["id", "prediction"]),
    ("plan", "log_loss", ["id", "p_free", "p_paid"]),
]


@pytest.mark.parametrize(("label", "metric", "columns"), FORMS)
def test_the_programs_answer_in_the_form_that_the_metric_takes(
    journey: Journey, label: str, metric: str, columns: list[str]
) -> None:
    numpy_alone(journey.root)
    words = ("init", "--hooks", "none", "--data", "data/all.csv", "--label", label)
    document = must(journey, *words, "--metric", metric, "--json").document["start"]
    assert document["written"] is True
    assert document["metric"] == {"AUROC": "roc_auc"}.get(metric, metric)

    def run(program: str, **more: str) -> None:
        subprocess.run(
            [".venv/bin/python", program],
            cwd=journey.root,
            env=journey.environment(PYTHONPATH=str(Path(__file__).parents[2]), **more),
            check=True,
            capture_output=True,
            timeout=60,
        )

    run("train.py")
    (model,) = journey.root.glob("harness-runs/*/checkpoints/model.npz")
    table(journey.root / "rows.csv", 50, 9, ids=True)
    given = {"HARNESS_INPUTS": "rows.csv", "HARNESS_PREDICTIONS": "answers.csv"}
    run("predict.py", HARNESS_CHECKPOINT=str(model), **given)
    with (journey.root / "answers.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert (len(rows), list(rows[0])) == (50, columns)


@pytest.mark.slow
@pytest.mark.parametrize(("label", "metric", "_columns"), FORMS)
def test_with_scikit_learn_each_is_judged(
    journey: Journey, label: str, metric: str, _columns: list[str]
) -> None:
    words = ("init", "--data", "data/all.csv", "--label", label)
    must(journey, *words, "--metric", metric)
    assert "sklearn" in (journey.root / "train.py").read_text()
    must(journey, "plan", "approve")
    verdict = judged(journey)
    # Some labels are hardly in the inputs: the start need not reach its tier.
    codes = [finding["code"] for finding in verdict["findings"]]
    assert verdict["verdict"] == "PASS" or codes == ["below_tier"], codes


def test_a_repositorys_own_programs_environment_and_split_are_taken(journey: Journey) -> None:
    root = journey.root
    (root / "data/all.csv").unlink()
    for seed, name in enumerate(("train", "val", "test")):
        table(root / f"data/{name}.csv", 100, seed, ids=True)
    (root / "src/net").mkdir(parents=True)
    (root / "src/net/train.py").write_text("import sys\n")
    (root / "scripts").mkdir()
    (root / "scripts/train.py").write_text("import sys\n")
    (root / ".venv/bin").mkdir(parents=True)
    (root / ".venv/pyvenv.cfg").write_text(f"home = {Path(sys.base_prefix) / 'bin'}\n")
    (root / ".venv/bin/python").symlink_to(sys.executable)
    done = must(journey, "init", "--label", "churned")
    assert "your own split: train data/train.csv, held-out data/test.csv" in done.stdout
    assert ".venv/bin/python trains and predicts" in done.stdout
    assert "it may be python src/net/train.py: change it in plan.md" in done.stdout
    assert "does not call the run logger yet" in done.stdout
    assert "no predict.py is here: write one, or change oracle.predict" in done.stdout
    plan = (root / "plan.md").read_text()
    assert "training: {entry: python scripts/train.py}" in plan
    assert "validation: data/val.csv" in plan
    assert "label: churned" in plan
    assert "id: id" in plan
    assert "bits:" not in plan  # what is to be seen by all costs none
    assert load_settings(root, {}).interpreter == str(root / ".venv/bin/python")
    assert not (root / "train.py").exists()


def test_tables_whose_rows_have_no_name_are_told_what_to_do(journey: Journey) -> None:
    for seed, name in enumerate(("train", "test")):
        table(journey.root / f"data/{name}.csv", 100, seed)
    refused = journey.harness("init", "--label", "churned", "--json")
    assert (refused.exit_code, refused.document["error"]["code"]) == (2, "id_missing")
    assert "--data TABLE --label COLUMN" in refused.document["error"]["hint"]


def test_what_is_missing_is_named_with_what_there_is(journey: Journey) -> None:
    refused = journey.harness("init", "--data", "data/all.csv", "--json")
    error = refused.document["error"]
    assert (refused.exit_code, error["code"]) == (2, "label_missing")
    assert "age, plan, spent, churned" in error["message"]
    table(journey.root / "more.csv", 10, 1)
    error = journey.harness("init", "--label", "churned", "--json").document["error"]
    assert error["code"] == "table_missing"
    assert "more.csv, data/all.csv" in error["message"]
    words = ("init", "--data", "data/all.csv", "--label", "churned", "--metric", "niceness")
    error = journey.harness(*words, "--json").document["error"]
    assert "niceness" in error["message"]
    words = ("init", "--data", "data/all.csv", "--label", "churnde", "--json")
    error = journey.harness(*words).document["error"]
    assert (error["code"], "plan" in error["hint"]) == ("column_missing", False)
    assert "Did you mean 'churned'?" in error["hint"]
    assert not (journey.root / ".harness").exists()


@pytest.mark.parametrize(
    ("label", "metric", "fits"),
    [
        ("plan", "rmse", "accuracy"),
        ("spent", "f1", "mae"),
        ("spent", "accuracy", "mae"),
        ("spent", "log_loss", "mae"),
    ],
)
def test_a_metric_that_the_labels_do_not_have_is_refused_before_anything(
    journey: Journey, label: str, metric: str, fits: str
) -> None:
    words = ("init", "--data", "data/all.csv", "--label", label, "--metric", metric, "--json")
    refused = journey.harness(*words)
    error = refused.document["error"]
    assert (refused.exit_code, error["code"]) == (2, "metric_unfit")
    assert f"--metric {metric} does not fit" in error["message"]
    assert f"`--metric {fits}`" in error["hint"]
    assert [path.name for path in journey.root.iterdir()] == ["data"]
    assert (journey.root / "data/all.csv").is_file()


def test_another_metric_than_the_plans_is_not_taken_in_silence(journey: Journey) -> None:
    words = ("init", "--hooks", "none", "--data", "data/all.csv", "--label", "churned")
    must(journey, *words, "--metric", "roc_auc")
    must(journey, *words, "--metric", "AUROC")
    refused = journey.harness(*words, "--metric", "rmse")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "--metric rmse differs from the plan's roc_auc" in refused.stderr
    own = journey.root / ".harness/plan.md"
    text = own.read_text()
    for key, line in re.findall(r"`((?:metric|scorer|direction|tiers)): (.*?)`", refused.stderr):
        text = re.sub(rf"^  {key}: .*$", f"  {key}: {line}", text, count=1, flags=re.M)
    own.write_text(text)
    must(journey, *words, "--metric", "rmse")
    must(journey, "plan", "check", ".harness/plan.md")
    refused = journey.harness(*words, "--label", "gone")
    assert "Edit data.held_out.label" in refused.stderr
    unread = journey.root / ".harness/plan.md"
    unread.write_text(unread.read_text().replace("rmse", "nothing"))
    must(journey, *words)


def test_nobody_is_told_to_approve_a_plan_that_cannot_be(journey: Journey) -> None:
    for seed, name in enumerate(("train", "test")):
        table(journey.root / f"data/{name}.csv", 100, seed, ids=True)
    held_out = journey.root / "data/test.csv"
    held_out.write_text(held_out.read_text().replace(",1\n", ",0\n").replace(",1\r\n", ",0\r\n"))
    words = ("init", "--hooks", "none", "--label", "churned", "--metric", "roc_auc")
    done = journey.harness(*words)
    assert (done.exit_code, "roc_auc" in done.stderr) == (2, True)
    assert "filled in .harness/plan.md" in done.stdout
    assert "harness plan approve" not in done.stdout


@pytest.mark.parametrize(
    ("typed", "label", "metric"),
    [(b"\nlog_loss\n", "churned", "log_loss"), (b"spent\n\n", "spent", "mae")],
    ids=["Enter for the label, a metric", "a column of real numbers, Enter for the metric"],
)
def test_on_a_terminal_it_asks_for_what_is_missing(
    journey: Journey, typed: bytes, label: str, metric: str
) -> None:
    ours, theirs = pty.openpty()
    try:
        os.write(ours, typed)
        done = subprocess.run(
            [sys.executable, "-m", "harness", "init", "--hooks", "none", "--data", "data/all.csv"],
            cwd=journey.root,
            env=journey.environment(PYTHONPATH=str(Path(__file__).parents[2])),
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=theirs,
            text=True,
            timeout=120,
            check=False,
        )
        asked = os.read(ours, 100_000).decode()
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.returncode == 0, asked
    assert "Column to predict (age, plan, spent, churned) [churned]" in asked
    (named,) = [line for line in asked.splitlines() if line.startswith("Metric (")]
    assert named.endswith("[accuracy]" if label == "churned" else "[mae]")
    assert ("accuracy" in named) is (label == "churned"), "what fits is named, and nothing else"
    plan = (journey.root / ".harness/plan.md").read_text()
    assert f"label: {label}" in plan
    assert f"metric: {metric}" in plan


def test_init_inside_a_folder_of_claude_or_of_the_harness_names_the_project(
    journey: Journey,
) -> None:
    must(journey, "init")
    for name in (".claude", ".harness"):
        refused = journey.harness("init", "--json", cwd=journey.root / name)
        error = refused.document["error"]
        assert (refused.exit_code, error["code"]) == (2, "inside_own_folder")
        assert f"`harness init {journey.root}`" in error["hint"]
        assert not (journey.root / name / ".harness").exists()


def test_a_worktree_of_claude_code_is_no_folder_of_its_own(tmp_path: Path) -> None:
    for name in (".claude/worktrees/wide", ".claude/worktrees/wide/data", "worktrees/a"):
        assert place_of(tmp_path / name, None, {}).root == tmp_path / name
    for name, above in {
        ".claude/worktrees": "",
        ".claude/agents/a": "",
        ".harness/.claude/worktrees/a": "",
        ".claude/worktrees/wide/.claude": ".claude/worktrees/wide",
    }.items():
        with pytest.raises(RefusedError) as error:
            place_of(tmp_path / name, None, {})
        assert error.value.code == "inside_own_folder"
        assert error.value.hint == f"Run `harness init {tmp_path / above}`."


def test_a_kind_of_file_is_one_line_and_verbose_names_each(journey: Journey) -> None:
    short = must(journey, "init").stdout.splitlines()
    assert len([line for line in short if line.startswith("wrote ")]) < 10
    assert any(re.fullmatch(r"wrote \d+ slash commands below .claude/commands", x) for x in short)
    must(journey, "init", "--remove")
    full = must(journey, "init", "-v").stdout.splitlines()
    named = {line.removeprefix("wrote ") for line in full if line.startswith("wrote ")}
    must(journey, "init", "--remove")
    changes = must(journey, "init", "--json").document["changes"]
    assert named == {one["path"] for one in changes}


@pytest.mark.parametrize("library", ["numpy", pytest.param("sklearn", marks=pytest.mark.slow)])
def test_empty_cells_and_free_text_are_taken_and_what_is_left_out_is_said(
    journey: Journey, library: str
) -> None:
    draw = np.random.default_rng(2)
    with (journey.root / "data/hard.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["age", "city", "note", "key", "gone"])
        for row in range(300):
            gone = int(draw.random() < 0.5)
            age = "" if row % 7 == 0 else round(float(draw.normal(gone)), 3)
            said = f"{'bad poor' if gone else 'fine good'} service in week {row}"
            writer.writerow([age, ["Rom", "", "Ulm"][row % 3], said, f"K{row}x", gone])
    python = sys.executable
    if library == "numpy":
        numpy_alone(journey.root)
        python = str(journey.root / ".venv/bin/python")
    words = ("init", "--hooks", "none", "--data", "data/hard.csv", "--label", "gone")
    done = must(journey, *words)
    filled = {"numpy": "mean", "sklearn": "median"}[library]
    assert f"train.py fills empty cells of age with the {filled}" in done.stdout
    left = {"numpy": "key, note", "sklearn": "key"}[library]
    assert f"train.py leaves out {left}: nearly each row has a value of its own" in done.stdout

    def run(*words: str, **more: str) -> None:
        subprocess.run(
            [python, *words],
            cwd=journey.root,
            env=journey.environment(PYTHONPATH=str(Path(__file__).parents[2]), **more),
            check=True,
            capture_output=True,
            timeout=60,
        )

    run("train.py")
    (model,) = journey.root.glob("harness-runs/*/checkpoints/model.*")
    (rows,) = (journey.state / "vault/held_out").glob("*.csv")
    given = {"HARNESS_INPUTS": str(rows), "HARNESS_PREDICTIONS": "answers.csv"}
    inputs = journey.root / "inputs.csv"
    with rows.open(newline="") as stream, inputs.open("w", newline="") as target:
        read = list(csv.DictReader(stream))
        writer = csv.DictWriter(target, ["id", "age", "city", "note", "key"])
        writer.writeheader()
        for number, row in enumerate(read):
            writer.writerow(
                {"id": number} | {name: row[name] for name in ("age", "city", "note", "key")}
            )
    run("predict.py", HARNESS_CHECKPOINT=str(model), **given | {"HARNESS_INPUTS": str(inputs)})
    with (journey.root / "answers.csv").open(newline="") as stream:
        answers = [row["prediction"] for row in csv.DictReader(stream)]
    right = np.mean([one == row["gone"] for one, row in zip(answers, read, strict=True)])
    assert right > {"numpy": 0.5, "sklearn": 0.9}[library]


@pytest.mark.slow
def test_a_training_that_opens_the_split_table_is_told_where_its_rows_are(
    journey: Journey,
) -> None:
    numpy_alone(journey.root)
    (journey.root / "train.py").write_text("open('data/all.csv')\n")
    (journey.root / "predict.py").write_text("")
    words = ("init", "--hooks", "none", "--data", "data/all.csv", "--label", "churned")
    must(journey, *words)
    must(journey, "plan", "approve", ".harness/plan.md")
    tried = journey.harness("try", "first")
    text = " ".join(tried.stdout.split())
    assert tried.exit_code == 1, tried.stderr
    assert "data/all.csv was split and moved: data/all.train.csv has the rows" in text
    assert '`os.environ.get("HARNESS_TRAIN", "data/all.train.csv")`' in text
