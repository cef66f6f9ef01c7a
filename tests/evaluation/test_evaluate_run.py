"""evaluate_run with honest predict programs, in every sandbox that works here."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from harness.artifacts.code_snapshot import take_snapshot
from harness.artifacts.content import hash_path
from harness.clock import ManualClock
from harness.domain.statuses import SandboxKind
from harness.errors import SandboxError
from harness.evaluation.evaluate_run import evaluate_run
from harness.evaluation.scoring import FrozenScorer
from harness.plans.tables import read_table
from harness.sandbox.select import SANDBOXES, available

from .workplace import HONEST, PREDICT, N, codes


def test_honest_predict_gets_its_accuracy_and_the_trivial_baseline(workplace, unsandboxed):
    outcome = workplace.evaluate(HONEST, unsandboxed)
    assert outcome.findings == ()
    assert outcome.value == pytest.approx(0.9)
    assert outcome.baseline == pytest.approx(0.5, abs=0.11)  # class a, the commoner in training
    assert outcome.n == N
    assert outcome.interval[0] < 0.9 < outcome.interval[1]
    assert outcome.sandbox is SandboxKind.NONE


def test_the_outcome_names_everything_by_hash(workplace, unsandboxed):
    request = workplace.request()
    first = workplace.evaluate(HONEST, unsandboxed)
    again = workplace.evaluate(HONEST, unsandboxed, shuffle_seed=1)
    assert first.checkpoint == request.checkpoint_hash
    assert first.code == request.snapshot.hash
    hashes = [first.inputs, first.labels, first.scorer, first.predictions]
    assert all(len(value) == 64 for value in hashes)
    assert hashes == [
        again.inputs,
        again.labels,
        again.scorer,
        again.predictions,
    ]  # whatever the shuffle
    assert (first.value, first.interval) == (again.value, again.interval)


def test_works_in_a_sandbox(workplace, sandboxed):
    outcome = workplace.evaluate(HONEST, sandboxed)
    assert outcome.findings == ()
    assert outcome.value == pytest.approx(0.9)
    assert outcome.sandbox is sandboxed.kind


def test_predict_sees_inputs_checkpoint_and_code_and_nothing_else_of_ours(workplace, unsandboxed):
    target = workplace.state / "seen.json"
    program = (
        PREDICT + "import json, pathlib\nseen = {'header': list(rows[0]), 'environment':"
        " sorted(os.environ), 'files': sorted(os.listdir('.')),\n        'checkpoint':"
        " pathlib.Path(os.environ['HARNESS_CHECKPOINT']).read_text(),\n        'name':"
        " pathlib.Path(os.environ['HARNESS_CHECKPOINT']).name, 'ids': [row['id'] for row in"
        " rows],\n        'x': [float(row['x']) for row in rows], 'data': os.listdir('data') if"
        f" os.path.isdir('data') else []}}\nopen({str(target)!r}, 'w').write(json.dumps(seen))\n"
    )
    workplace.evaluate(program, unsandboxed)
    seen = json.loads(target.read_text())
    assert seen["header"] == ["id", "x"]
    assert "SECRET_TOKEN" not in seen["environment"]
    assert seen["checkpoint"] == "0.0"
    assert seen["name"] == f"{hash_path(workplace.checkpoint)}.txt"
    assert "predict.py" in seen["files"]
    assert seen["data"] == []
    source = [(-1.0 if i % 2 else 1.0) * (i + 1) for i in range(N)]
    assert sorted(seen["x"]) == sorted(source)
    assert seen["x"] != source
    assert len(set(seen["ids"])) == N
    assert not any("row" in identifier for identifier in seen["ids"])


def test_data_files_in_the_snapshot_are_left_out_of_the_code(workplace, unsandboxed):
    workplace.request()
    snapshot = take_snapshot(workplace.project, workplace.objects)
    assert "data/train.csv" in snapshot.files
    program = PREDICT + "open('data/train.csv')\n"
    (workplace.project / "predict.py").write_text(program)
    snapshot = take_snapshot(workplace.project, workplace.objects)
    outcome = workplace.evaluate(
        program, unsandboxed, snapshot=snapshot, data_files=("data/train.csv",)
    )
    assert codes(outcome) == ["predict_crashed"]
    assert "FileNotFoundError" in outcome.findings[0].message
    assert "not the project's data" in outcome.findings[0].hint


@pytest.mark.parametrize(
    "how", ["open('parts/vocabulary.txt')", "open(os.path.abspath('parts/vocabulary.txt'))"]
)
def test_a_file_that_the_snapshot_does_not_hold_is_named_with_the_reason(
    workplace, unsandboxed, how
):
    """It lies in the project now, but was made after the run was registered."""
    workplace.request()
    (workplace.project / "predict.py").write_text(PREDICT + how)
    snapshot = take_snapshot(workplace.project, workplace.objects)
    (workplace.project / "parts").mkdir()
    (workplace.project / "parts" / "vocabulary.txt").write_text("a b c")
    (found,) = workplace.evaluate(PREDICT + how, unsandboxed, snapshot=snapshot).findings
    assert found.code == "predict_crashed"
    assert (
        "snapshot taken when the run was registered, and 'parts/vocabulary.txt' was not in it"
        in found.hint
    )
    assert found.hint.endswith("Commit it or stop ignoring it, then train again.")


def test_a_predict_program_that_the_snapshot_does_not_hold_is_named(workplace, unsandboxed):
    (found,) = workplace.evaluate(HONEST, unsandboxed, predict=("python", "scoring.py")).findings
    assert found.code == "predict_crashed"
    assert "'scoring.py' was not in it" in found.hint


def test_a_missing_package_is_named_with_the_python_that_lacks_it_and_no_path_of_the_one_call(
    workplace, unsandboxed
):
    body = PREDICT + "import no_such_package.sub"
    found, again = (workplace.evaluate(body, unsandboxed).findings[0] for _ in range(2))
    assert found.code == "predict_crashed"
    assert (
        f"predict runs with {workplace.request().interpreter}, which has no 'no_such_package'"
        in found.hint
    )
    assert "-m pip install no_such_package`" in found.hint
    assert found == again, "the same fault of each seed is one finding"
    assert 'File "code/predict.py"' in found.message


def test_predict_needs_no_run_logger_and_is_told_where_to_import_it(workplace, unsandboxed):
    body = PREDICT + "raise ModuleNotFoundError(\"No module named 'harness'\")"
    (found,) = workplace.evaluate(body, unsandboxed).findings
    assert found.code == "predict_crashed"
    assert "import the run logger there inside the function that trains" in found.hint
    assert "`harness train EXP --from EXP`" in found.hint
    assert "pip install" not in found.hint


@pytest.mark.parametrize(
    "how",
    [
        "open('/no/such/place')",
        "open('../elsewhere')",
        "1/0",
        "os.remove('predict.py'); open('predict.py')",
    ],
)
def test_another_crash_is_not_put_down_to_the_snapshot(workplace, unsandboxed, how):
    (found,) = workplace.evaluate(PREDICT + how, unsandboxed).findings
    assert "Run it by hand" in found.hint


def test_leaves_nothing_in_the_work_folder(workplace, unsandboxed):
    workplace.evaluate(HONEST, unsandboxed)
    workplace.evaluate("1/0", unsandboxed)
    assert list((workplace.state / "work").iterdir()) == []


def test_npz_in_npz_out_with_probabilities(workplace, unsandboxed):
    generator = np.random.default_rng(0)
    x = generator.normal(size=(30, 4)).astype(np.float32)
    y = (x[:, 0] > 0).astype(np.int64)
    table = workplace.table(workplace.vault / "held_out.npz", x=x, y=y)
    train = workplace.table(
        workplace.project / "data" / "train.npz", x=x[:4], y=np.array([0, 1, 1, 1])
    )
    program = (
        "import os, numpy as np\n"
        "given = np.load(os.environ['HARNESS_INPUTS'], allow_pickle=False)\n"
        "assert sorted(given.files) == ['id', 'x'] and given['x'].dtype == np.float32\n"
        "cut = float(open(os.environ['HARNESS_CHECKPOINT']).read())\n"
        "p = np.where(given['x'][:, 0] > cut, 0.8, 0.2)\n"
        "np.savez(os.environ['HARNESS_PREDICTIONS'], id=given['id'], p_0=1 - p, p_1=p)\n"
    )
    scorer = FrozenScorer(name="log_loss")
    outcome = workplace.evaluate(
        program, unsandboxed, table=table, train=train, scorer=scorer, metric="log_loss"
    )
    assert outcome.findings == ()
    assert outcome.value == pytest.approx(-np.log(0.8))
    ones = y.mean()
    assert outcome.baseline == pytest.approx(-(ones * np.log(0.75) + (1 - ones) * np.log(0.25)))


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
@pytest.mark.parametrize("metric", ["mse", "mae"])
def test_regression(workplace, unsandboxed, suffix, metric):
    x = np.arange(12) / 4
    table = workplace.table(workplace.vault / f"held_out{suffix}", x=x, y=2 * x)
    train = workplace.table(
        workplace.project / "data" / f"train{suffix}", x=x[:3], y=np.array([0.0, 1.0, 5.0])
    )
    program = (
        "import csv, json, os\n"
        "text = open(os.environ['HARNESS_INPUTS']).read()\n"
        "form = os.environ['HARNESS_INPUTS'].rpartition('.')[2]\n"
        "rows = [json.loads(line) for line in text.splitlines()] if form == 'jsonl' "
        "else list(csv.DictReader(text.splitlines()))\n"
        "with open(os.environ['HARNESS_PREDICTIONS'], 'w') as stream:\n"
        "    csv.writer(stream).writerow(('id', 'prediction'))\n"
        "    add = 0.5 + float(open(os.environ['HARNESS_CHECKPOINT']).read())\n"
        "    csv.writer(stream).writerows((row['id'], 2 * float(row['x']) + add) for row in rows)\n"
    )
    scorer = FrozenScorer(name=metric)
    outcome = workplace.evaluate(
        program, unsandboxed, table=table, train=train, scorer=scorer, metric=metric
    )
    assert outcome.findings == ()
    assert outcome.value == pytest.approx(0.25 if metric == "mse" else 0.5)
    constant = 2.0 if metric == "mse" else 1.0  # mean and median of 0, 1, 5
    errors = 2 * x - constant
    assert outcome.baseline == pytest.approx(
        np.mean(errors**2) if metric == "mse" else np.mean(np.abs(errors))
    )


def test_f1_macro_has_an_interval(workplace, unsandboxed):
    outcome = workplace.evaluate(
        HONEST, unsandboxed, scorer=FrozenScorer(name="f1_macro"), metric="f1_macro"
    )
    assert outcome.findings == ()
    assert outcome.interval[0] < outcome.value < outcome.interval[1]


SCORED = PREDICT + "write([(row['id'], float(row['x']) - cut) for row in rows], HEADER)\n"


@pytest.mark.parametrize(
    ("metric", "header"), [("roc_auc", "score"), ("average_precision", "prediction")]
)
def test_a_ranking_of_two_classes_takes_one_number_a_row(workplace, unsandboxed, header, metric):
    """`b` is the greater label; `a` as the positive class turns the ranking round."""
    program = SCORED.replace("HEADER", repr(("id", header)))
    labels = read_table(workplace.held_out.path).columns["y"] == "b"
    x = read_table(workplace.held_out.path).columns["x"]
    theirs = {"roc_auc": roc_auc_score, "average_precision": average_precision_score}[metric]
    found = {}
    for positive in (None, "a"):
        scorer = FrozenScorer(name=metric, positive=positive)
        found[positive] = workplace.evaluate(program, unsandboxed, scorer=scorer, metric=metric)
        assert found[positive].findings == ()
    assert found[None].value == pytest.approx(theirs(labels, x))
    assert found["a"].value == pytest.approx(theirs(~labels, x))
    assert found[None].scorer != found["a"].scorer
    low, high = found[None].interval
    assert low < found[None].value < high
    assert found[None].baseline == pytest.approx(0.5 if metric == "roc_auc" else labels.mean())


def test_a_ranking_takes_the_positive_probability_before_a_class(workplace, unsandboxed):
    told = "[(row['id'], guess(row), float(row['x']) >= cut) for row in rows]"
    program = PREDICT + f"write({told}, ('id', 'prediction', 'p_b'))\n"
    program = program.replace("float(row['x']) >= cut)", "0.9 if float(row['x']) >= cut else 0.1)")
    outcome = workplace.evaluate(
        program, unsandboxed, scorer=FrozenScorer(name="roc_auc"), metric="roc_auc"
    )
    assert outcome.findings == ()
    assert outcome.value == pytest.approx(0.9, abs=0.02)


@pytest.mark.parametrize(
    ("metric", "columns", "words"),
    [
        ("roc_auc", ("id", "p_a"), "`score` (a number, the higher the likelier 'b'), or `p_b`"),
        ("f1", ("id", "score"), "`id` and `prediction` (a class)"),
        ("brier", ("id", "score"), "`id`, p_a, p_b (probabilities)"),
        ("top_k_accuracy", ("id", "prediction"), "`id`, p_a, p_b (probabilities)"),
    ],
)
def test_a_form_that_the_metric_does_not_take_is_told_with_what_to_write(
    workplace, unsandboxed, metric, columns, words
):
    program = PREDICT + f"write([(row['id'], 0.5) for row in rows], {columns!r})\n"
    outcome = workplace.evaluate(
        program, unsandboxed, scorer=FrozenScorer(name=metric), metric=metric
    )
    (finding,) = outcome.findings
    assert finding.code == "predictions_wrong_columns"
    assert words in finding.message
    assert words in finding.hint


def test_r_squared_has_no_lowest_value(workplace, unsandboxed):
    x = np.arange(12) / 4
    numbers = {
        "table": workplace.table(workplace.vault / "held_out.csv", x=x, y=2 * x),
        "train": workplace.table(workplace.project / "data" / "train.csv", x=x, y=2 * x),
    }
    program = SCORED.replace("HEADER", repr(("id", "prediction")))
    program = program.replace("float(row['x']) - cut", "1e3 * float(row['x']) - cut")
    outcome = workplace.evaluate(
        program, unsandboxed, scorer=FrozenScorer(name="r2"), metric="r2", **numbers
    )
    assert outcome.findings == ()
    assert outcome.value < -1e5
    assert outcome.interval[0] < outcome.value < outcome.interval[1] <= 1
    assert outcome.baseline == pytest.approx(0.0)


def test_the_wrong_number_of_classes_ends_in_a_finding(workplace, unsandboxed):
    x = np.arange(6.0)
    three = workplace.table(workplace.project / "data" / "train.csv", x=x, y=[*"aabbcc"])
    outcome = workplace.evaluate(
        HONEST, unsandboxed, scorer=FrozenScorer(name="f1"), metric="f1", train=three
    )
    (finding,) = outcome.findings
    assert "f1 takes two classes, and there are 3: 'a', 'b', 'c'" in finding.message
    assert "f1_macro" in finding.message


def test_a_checkpoint_folder_is_handed_out_as_a_folder(workplace, unsandboxed):
    folder = workplace.checkpoint.parent / "epoch-3"
    (folder / "shards").mkdir(parents=True)
    (folder / "shards" / "0.txt").write_text("0.0")
    where = 'os.environ["HARNESS_CHECKPOINT"]'
    program = HONEST.replace(where, f'os.path.join({where}, "shards", "0.txt")')
    outcome = workplace.evaluate(
        program, unsandboxed, checkpoint=folder, checkpoint_hash=hash_path(folder)
    )
    assert outcome.findings == ()
    assert outcome.value == pytest.approx(0.9)


def test_a_changed_split_training_file_or_checkpoint_is_named_and_not_scored(
    workplace, unsandboxed
):
    request = workplace.request()
    for change, code in (
        ({"table": replace(request.table, sha256="0" * 64)}, "split_changed"),
        ({"train": replace(request.train, sha256="0" * 64)}, "split_changed"),
        ({"checkpoint_hash": "0" * 64}, "checkpoint_changed"),
        ({"checkpoint": workplace.checkpoint.parent / "absent.pt"}, "checkpoint_missing"),
        ({"label": "z"}, "split_unusable"),
        ({"inputs": ("x", "y")}, "split_unusable"),
        ({"scorer": FrozenScorer(name="bleu")}, "scorer_failed"),
    ):
        outcome = workplace.evaluate(HONEST, unsandboxed, **change)
        assert codes(outcome) == [code], change
        assert outcome.value is None


def test_a_label_that_cannot_be_read_is_named_where_it_is_no_secret(workplace, unsandboxed):
    words = np.array(["1.5", "2.5", "one and a half"])
    table = workplace.table(workplace.vault / "words.csv", x=np.arange(3.0), y=words)
    numbers = workplace.table(workplace.project / "data" / "train.csv", x=[1, 2], y=[1.0, 2.0])
    change = {"table": table, "train": numbers, "scorer": FrozenScorer(name="mae")}
    (told,) = workplace.evaluate(HONEST, unsandboxed, **change).findings
    assert (told.code, "row 2 is 'one and a half'" in told.message) == ("split_unusable", True)
    (kept,) = workplace.evaluate(HONEST, unsandboxed, sealed=True, **change).findings
    assert kept.code == "split_unusable"
    assert "row 2" not in kept.message
    assert "half" not in repr(kept)
    assert "harness plan check" in kept.hint
    # The training rows are no secret.
    train = workplace.table(workplace.project / "data" / "no_label.csv", x=np.arange(3.0))
    (of_train,) = workplace.evaluate(
        HONEST, unsandboxed, sealed=True, **(change | {"table": numbers, "train": train})
    ).findings
    assert "have no column 'y'" in of_train.message


def test_a_lost_code_object_is_a_finding(workplace, unsandboxed):
    request = workplace.request()
    (workplace.objects / request.snapshot.files["predict.py"]).unlink()
    assert codes(evaluate_run(request, unsandboxed, ManualClock())) == ["code_unavailable"]


def test_a_command_that_is_not_python_runs_as_it_is(workplace, unsandboxed):
    outcome = workplace.evaluate(HONEST, unsandboxed, predict=(sys.executable, "-I", "predict.py"))
    assert outcome.value == pytest.approx(0.9)
    outcome = workplace.evaluate(HONEST, unsandboxed, predict=("no-such-program",))
    assert codes(outcome) == ["predict_crashed"]


def test_what_cannot_be_confined_costs_no_look(workplace):
    if reason := available()[SandboxKind.LANDLOCK]:
        pytest.skip(reason)
    looks = []
    # Landlock's rules add up: the state directory cannot be hidden in a folder that is readable.
    with pytest.raises(SandboxError, match="cannot hide"):
        workplace.evaluate(
            HONEST,
            SANDBOXES[SandboxKind.LANDLOCK](),
            readable=(workplace.state.parent,),
            hidden=(workplace.state,),
            before_predict=lambda: looks.append("taken"),
        )
    assert looks == []
