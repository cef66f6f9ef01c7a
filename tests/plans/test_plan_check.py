"""`check_plan` finds in one answer what approval refuses, and changes nothing."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from harness.artifacts.git import git_line
from harness.errors import HarnessError, LedgerDamagedError, PlanError
from harness.files import sha256_file, walk_files
from harness.ledger.project import Project, open_project
from harness.plans.approval import PlanCheck, approve_plan, check_plan
from harness.plans.tables import read_table, write_table
from tests.blobs import PLAN, table

Check = Callable[[], PlanCheck]


@pytest.fixture
def check(root: Path, environment: dict[str, str]) -> Check:
    """Check the plan; whatever it finds, every file of the project and of the state directory stays
    as it was."""

    def checked() -> PlanCheck:
        before = {path: sha256_file(path) for path in walk_files(root) if path.is_file()}
        state = Path(environment["XDG_STATE_HOME"])
        names = [path for path in walk_files(state) if path.suffix not in (".db-shm", ".db-wal")]
        answer = check_plan(root, root / "plan.md", environment, by_person=True)
        assert {path: sha256_file(path) for path in walk_files(root) if path.is_file()} == before
        assert [
            path for path in walk_files(state) if path.suffix not in (".db-shm", ".db-wal")
        ] == names
        return answer

    return checked


def codes(answer: PlanCheck) -> list[str]:
    return [problem.code for problem in answer.problems]


def told(answer: PlanCheck) -> str:
    return "\n".join(problem.message for problem in answer.problems)


def refused(root: Path, environment: dict[str, str]) -> HarnessError:
    with open_project(root, environment) as project, pytest.raises(HarnessError) as error:
        approve_plan(project, root / "plan.md", by="ada")
    assert project.layout.root == root
    return error.value


def test_a_sound_plan_has_neither_problems_nor_findings(check: Check) -> None:
    assert check() == PlanCheck(path="plan.md", problems=(), findings=())


def test_all_problems_come_in_one_answer_and_approval_says_the_same(
    root: Path, check: Check, environment: dict[str, str]
) -> None:
    text = PLAN.replace("scorer: accuracy", "scorer: judge.py").replace(
        "metric: accuracy", "metric: weighted"
    )
    (root / "plan.md").write_text(text)
    subprocess.run([*git_line("init", "-q")], cwd=root, check=True)
    subprocess.run([*git_line("add", "data/held_out.npz")], cwd=root, check=True)
    shutil.copy(root / "data/held_out.npz", root / "copy.bin")
    (root / "data/train.npz").unlink()
    write_table(root / "data/validation.npz", {"x": table(30, 1)["x"]})
    answer = check()
    assert codes(answer) == ["plan_invalid"] * 3 + ["held_out_tracked", "held_out_copied"]
    for words in (
        "The scorer judge.py does not exist.",
        "data.train: data/train.npz does not exist.",
        "has no column 'y'",
        "has no column 'row'",
        "data/held_out.npz is known to git: it is tracked.",
        "are in the project: copy.bin.",
    ):
        assert words in told(answer)
    error = refused(root, environment)
    assert isinstance(error, PlanError)
    assert error.message.startswith("plan.md cannot be approved: 5 problems:\n")
    assert all(
        problem.message in error.message and problem.hint in error.message
        for problem in answer.problems
    )
    assert (root / "data/held_out.npz").exists()


@pytest.mark.parametrize("name", ["train", "validation", "held_out"])
def test_a_label_that_the_metric_cannot_read_is_named_before_it_is_secret(
    root: Path, check: Check, environment: dict[str, str], name: str
) -> None:
    numbers = PLAN.replace("accuracy", "mae").replace("maximize", "minimize")
    (root / "plan.md").write_text(numbers.replace("must: 0.90, should: 0.92", "must: 0.9"))
    assert check().problems == ()
    columns = read_table(root / f"data/{name}.npz").columns
    write_table(root / f"data/{name}.npz", {**columns, "y": _worded(columns["y"])})
    (problem,) = check().problems
    assert problem.code == "label_unreadable"
    assert f"The {name} rows in data/{name}.npz, column 'y': the label of row 3 is" in str(problem)
    assert "expected a finite number" in str(problem)
    assert refused(root, environment).code == "label_unreadable"
    assert (root / "data/held_out.npz").exists()
    write_table(root / f"data/{name}.npz", {**columns, "y": columns["y"].astype(str)})
    assert check().problems == (), "texts that spell numbers are read as them"


def _worded(labels: np.ndarray) -> np.ndarray:
    words = labels.astype(str).tolist()
    return np.array([*words[:3], "high", *words[4:]])


def test_a_plan_whose_lines_are_wrong_is_a_problem(root: Path, check: Check) -> None:
    (root / "plan.md").write_text(
        PLAN.replace("seeds: 3", "seeds: none").replace("python predict.py", '"python \'x"')
    )
    answer = check()
    assert codes(answer) == ["plan_invalid"]
    assert "oracle.seeds" in told(answer)
    assert "oracle.predict: found" in told(answer)
    assert "expected a command, its quotes closed" in told(answer)
    (root / "plan.md").unlink()
    assert codes(check()) == ["no_plan_file"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"x": 1.0, "row": 1.0}, "data.validation: data/validation.npz has no column 'y'"),
        (
            {"x": 1.0, "y": 1.0, "row": 0.0},
            "data.validation: data/validation.npz: the ids in column 'row' repeat",
        ),
        ({"x": np.nan, "y": 1.0, "row": 1.0}, "column 'x' holds 60 values that are not finite"),
    ],
)
def test_the_checks_of_tables_name_field_file_and_column(
    root: Path, check: Check, content: dict[str, float], words: str
) -> None:
    columns = table(30, 1)
    write_table(
        root / "data/validation.npz",
        {name: columns[name] * factor for name, factor in content.items()},
    )
    assert words in told(check())


def test_a_held_out_file_that_is_nowhere_is_a_problem_and_one_in_the_vault_is_checked_there(
    root: Path, check: Check, environment: dict[str, str]
) -> None:
    held_out = (root / "data/held_out.npz").read_bytes()
    with open_project(root, environment) as project:
        approve_plan(project, root / "plan.md", by="ada")
    assert check().problems == ()
    (root / "copy.bin").write_bytes(held_out)
    assert codes(check()) == ["held_out_copied"]
    assert refused(root, environment).code == "held_out_copied"
    (root / "copy.bin").unlink()
    (root / "plan.md").write_text(PLAN.replace("label: y", "label: z"))
    assert "data.held_out.path: data/held_out.npz has no column 'z'" in told(check())
    (root / "plan.md").write_text(PLAN.replace("held_out.npz", "other.npz"))
    assert "The held-out file data/other.npz does not exist" in told(check())


def test_a_split_that_the_harness_did_not_make_is_found_before_it_is_in_the_way(
    root: Path, check: Check
) -> None:
    (root / "plan.md").write_text(PLAN.replace("  validation: data/validation.npz\n", ""))
    assert check().problems == ()
    assert not (root / "data/train.train.npz").exists()
    write_table(root / "data/train.validation.npz", table(12, 1))
    assert codes(check()) == ["split_exists"]


def test_a_lost_ledger_is_an_error_as_at_approval(
    root: Path, check: Check, environment: dict[str, str]
) -> None:
    with open_project(root, environment) as project:
        approve_plan(project, root / "plan.md", by="ada")
    for path in project.layout.ledger_db.parent.glob("ledger.db*"):
        path.unlink()
    with pytest.raises(LedgerDamagedError, match="is gone"):
        check()


def test_scripts_that_are_still_to_be_written_are_noted(root: Path, check: Check) -> None:
    (root / "predict.py").unlink()
    text = PLAN.replace("entry: python train.py", "entry: torchrun --nproc 2 trian.py")
    (root / "plan.md").write_text(text)
    answer = check()
    assert answer.problems == ()
    assert [(item.code, item.data) for item in answer.findings] == [
        ("script_not_in_place", {"field": "training.entry", "path": "trian.py"}),
        ("script_not_in_place", {"field": "oracle.predict", "path": "predict.py"}),
    ]
    (root / "plan.md").write_text(PLAN.replace("python predict.py", "python -m predict x.py"))
    assert check().findings == ()


def test_references_that_are_not_there_are_named(root: Path, check: Check) -> None:
    (root / "papers").mkdir()
    (root / "baseline.md").write_text("nearest centroid: 0.8\n")
    plan = PLAN.replace(
        "loop: {", "references: [papers, baseline.md, paper/resnet.pdf, notes.md]\nloop: {", 1
    )
    (root / "plan.md").write_text(plan)
    answer = check()
    assert answer.problems == ()
    assert [(item.code, item.data["path"]) for item in answer.findings] == [
        ("reference_not_in_place", "paper/resnet.pdf"),
        ("reference_not_in_place", "notes.md"),
    ]


def test_a_scorer_with_foreign_imports_is_noted(root: Path, check: Check) -> None:
    text = PLAN.replace("scorer: accuracy", "scorer: judge.py").replace(
        "metric: accuracy", "metric: weighted"
    )
    (root / "plan.md").write_text(text)
    (root / "judge.py").write_text("import numpy.linalg\nscore = numpy.abs\n")
    assert [(item.code, item.data) for item in check().findings] == [
        ("scorer_imports_missing", {"modules": ["numpy"]}),
        ("scorer_not_probed", {"path": "judge.py"}),
    ]


def test_overlapping_splits_and_too_few_seeds_are_noted(root: Path, check: Check) -> None:
    (root / "plan.md").write_text(PLAN.replace("seeds: 3", "seeds: 2"))
    train = read_table(root / "data/train.npz").columns
    write_table(root / "data/validation.npz", {name: column[:7] for name, column in train.items()})
    few, overlap = check().findings
    assert few.code == "seeds_too_few"
    assert overlap.code == "splits_overlap"
    expected = {
        "first": "train",
        "second": "validation",
        "rows": 7,
        "share": 1.0,
        "same_label": 7,
        "repeats": 0.0,
    }
    assert overlap.data == expected
    assert "row 0 = row 0 of train, row 1 = row 1 of train" in overlap.message


def test_rows_of_held_out_are_named_before_an_approval_and_only_counted_after(
    root: Path, check: Check, environment: dict[str, str]
) -> None:
    train = read_table(root / "data/train.npz").columns
    held_out = read_table(root / "data/held_out.npz").columns
    joined = {name: np.concatenate([column, held_out[name][:2]]) for name, column in train.items()}
    write_table(root / "data/train.npz", joined)
    assert "row 0 = row" in check().findings[0].message
    with open_project(root, environment) as project:
        approved = approve_plan(project, root / "plan.md", by="ada")
    assert approved.splits["held_out"]["in_train"]["rows"] == 2
    (found,) = check().findings
    assert (found.code, found.data["rows"]) == ("splits_overlap", 2)
    assert "row 0" not in found.message


def test_an_open_project_may_be_checked(project: Project, check: Check) -> None:
    approve_plan(project, project.layout.root / "plan.md", by="ada")
    assert check().problems == ()


@pytest.mark.parametrize(
    ("metric", "scorer", "closest"),
    [
        ("occuracy", "accuracy", "accuracy"),
        ("quality", "accuracy", None),
        ("micro_f1", "judge.py", "f1_micro"),
        ("auroc", "judge.py", "roc_auc"),
        ("mapes", "judge.py", "mape"),
    ],
)
def test_a_metric_that_the_scorer_does_not_compute_is_told(
    root: Path, check: Check, metric: str, scorer: str, closest: str | None
) -> None:
    text = PLAN.replace("scorer: accuracy", f"scorer: {scorer}").replace(
        "metric: accuracy", f"metric: {metric}"
    )
    (root / "plan.md").write_text(text)
    (root / "judge.py").write_text("def score(labels, predictions):\n    return 1.0\n")
    (finding,) = [one for one in check().findings if one.code != "scorer_not_probed"]
    assert (finding.code, finding.data) == (
        "metric_unknown",
        {"metric": metric, "closest": closest},
    )
    assert f"`metric: {closest or scorer}`" in finding.hint


@pytest.mark.parametrize("scorer", ["accuracy", "judge.py"])
@pytest.mark.parametrize("metric", ["acuracy", "accurracy", "acucracy"])
def test_a_known_metric_that_is_mistyped_is_refused(
    root: Path, check: Check, metric: str, scorer: str
) -> None:
    text = PLAN.replace("scorer: accuracy", f"scorer: {scorer}").replace(
        "metric: accuracy", f"metric: {metric}"
    )
    (root / "plan.md").write_text(text)
    (root / "judge.py").write_text("def score(labels, predictions):\n    return 1.0\n")
    (problem,) = check().problems
    assert problem.code == "metric_mistyped"
    assert "the nearest is 'accuracy'" in problem.message
    assert "metric_unknown" not in [one.code for one in check().findings]


def test_a_scorer_may_be_called_what_looks_mistyped(root: Path, check: Check) -> None:
    text = PLAN.replace("scorer: accuracy", "scorer: acuracy.py").replace(
        "metric: accuracy", "metric: acuracy"
    )
    (root / "plan.md").write_text(text)
    (root / "acuracy.py").write_text("def score(labels, predictions):\n    return 1.0\n")
    assert check().problems == ()


@pytest.mark.parametrize("metric", ["accuracy", "weighted"])
def test_what_a_script_computes_is_the_plans_to_name(
    root: Path, check: Check, metric: str
) -> None:
    (root / "plan.md").write_text(
        PLAN.replace("scorer: accuracy", "scorer: judge.py").replace(
            "metric: accuracy", f"metric: {metric}"
        )
    )
    (root / "judge.py").write_text("def score(labels, predictions):\n    return 1.0\n")
    assert [one.code for one in check().findings] == ["scorer_not_probed"]


def test_rows_of_held_out_elsewhere_are_refused_before_and_after_the_move(
    root: Path, check: Check, environment: dict[str, str]
) -> None:
    held_out = read_table(root / "data/held_out.npz").columns
    rows = np.column_stack(
        [-held_out[name].reshape(len(held_out["y"]), -1) for name in ("x", "y")]
    )
    (root / ".gitignore").write_text("cache/\n")
    (root / "cache").mkdir()
    np.savetxt(root / "cache/log.txt", rows[::-1])
    assert codes(check()) == ["held_out_elsewhere"]
    assert "cache/log.txt" in told(check())
    assert refused(root, environment).code == "held_out_elsewhere"
    assert (root / "data/held_out.npz").exists(), "nothing is moved"
    kept = (root / "cache/log.txt").read_bytes()
    (root / "cache/log.txt").unlink()
    with open_project(root, environment) as project:
        approve_plan(project, root / "plan.md", by="ada")
    (root / "cache/log.txt").write_bytes(kept)
    assert refused(root, environment).code == "held_out_elsewhere"
    # `plan check` is anybody's: it does not say which file holds rows of the vault.
    assert codes(check()) == []


def test_a_label_in_an_inputs_last_bits_is_refused(root: Path, check: Check) -> None:
    for name in ("train", "validation", "held_out"):
        columns = dict(read_table(root / f"data/{name}.npz").columns)
        x = columns["x"].astype(np.float32)
        first = np.ascontiguousarray(x[:, 0]).view(np.uint32)
        x[:, 0] = ((first & ~np.uint32(3)) | columns["y"].astype(np.uint32)).view(np.float32)
        write_table(root / f"data/{name}.npz", {**columns, "x": x})
    assert codes(check()) == ["label_in_last_bits"]
