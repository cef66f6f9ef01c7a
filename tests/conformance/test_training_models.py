"""What the reference's tests asked of its registry and its promotion gate, asked of ours: runs,
models, evaluations, promotion, lineage. The list of all of them: training_program.yaml."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from harness.clock import ManualClock
from harness.domain.models import ModelState
from harness.domain.statuses import RunStatus
from harness.errors import HarnessError, NotFoundError, RefusedError, TransitionError, UsageError
from harness.ledger.facts import ModelRegistered
from harness.ledger.project import Project, open_project
from harness.posttrain.base_models import add_base_model
from harness.posttrain.promotion import (
    Promotion,
    promote,
    reject_model,
    revocation,
    rollback,
    serve_path,
)
from harness.posttrain.promotion_checks import observe
from harness.posttrain.vocabulary import THRESHOLDS
from tests.blobs import own_environment
from tests.conformance.imported import Imports
from tests.posttrain import programs

READER = "local-reader"
SHADOW = {"shadow observations", "shadow seconds", "arbiter rejection", "execution rejection"}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def project(tmp_path: Path, clock: ManualClock) -> Iterator[Project]:
    with open_project(
        programs.make_root(tmp_path / "tuning"), own_environment(tmp_path), clock=clock
    ) as opened:
        yield opened


@pytest.fixture
def imports(project: Project, tmp_path: Path) -> Imports:
    return Imports(project, tmp_path)


def step(imports: Imports, model: str) -> Promotion:
    return promote(imports.project, model, by="human:ada", reason="it is better")


def unmet(made: Promotion) -> set[str]:
    assert (made.moved, made.decision) == (False, None)
    return {check.constraint.removeprefix("me-0001 ") for check in made.checks if not check.passed}


def to_shadow(imports: Imports, model: str) -> None:
    imports.evaluated(model)
    assert [step(imports, model).after for _ in range(2)] == [
        ModelState.CANDIDATE,
        ModelState.SHADOW,
    ]


def deploy(imports: Imports, clock: ManualClock, model: str) -> None:
    to_shadow(imports, model)
    for _ in range(THRESHOLDS.observations):
        observe(imports.project, model, "accepted", by="arbiter")
    clock.sleep(THRESHOLDS.shadow_seconds)
    assert [step(imports, model).after for _ in range(2)] == [
        ModelState.PROMOTABLE,
        ModelState.DEPLOYED,
    ]


# --- runs and checkpoints


def test_a_right_result_completes_its_run_and_registers_the_checkpoint_before(
    imports: Imports,
) -> None:
    report = imports.bring()
    ledger = imports.project.ledger
    assert (report.run.status, report.problems, report.run.exit_code) == ("completed", (), None)
    assert report.run.ended_at is not None
    assert ledger.model(report.model or "").state is ModelState.REGISTERED
    kinds = [fact.kind for fact in ledger.facts()]
    # The checkpoint may have been hashed while the run went on, before its result was judged.
    order = ["run_registered", "run_started", "training_judged", "model_registered", "run_ended"]
    assert [kind for kind in kinds if kind in order] == order
    recorded = kinds.index("checkpoint_recorded")
    assert kinds.index("run_started") < recorded < kinds.index("model_registered")


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"status": "failed", "failure": "out of memory", "artifact": None}, "out of memory"),
        ({"artifact": None}, "validation failed: artifact"),
        ({"experiment": "exp-0009"}, "validation failed: experiment"),
    ],
)
def test_what_is_not_believed_ends_failed_with_its_reason_and_registers_nothing(
    imports, more, reason
) -> None:
    report = imports.bring(**more)
    assert (report.run.status, report.model, imports.project.ledger.models()) == (
        "failed",
        None,
        [],
    )
    assert reason in report.run.reason
    assert report.run.ended_at is not None


def test_a_dry_run_completes_and_registers_nothing(imports: Imports) -> None:
    made = imports.program.create(programs.request(backend="dry-run"), by="me")
    report = imports.program.execute(made.experiment)
    assert (report.run.status, report.model, imports.project.ledger.models()) == (
        "completed",
        None,
        [],
    )


def test_experiments_and_runs_have_ids_of_the_ledger_and_are_listed(imports: Imports) -> None:
    one, other = imports.bring(), imports.bring(2, status="failed", failure="x", artifact=None)
    ledger = imports.project.ledger
    assert [item.experiment for item in ledger.programs()] == ["exp-0001", "exp-0002"]
    assert (one.run.id, other.run.id) == ("run-01", "run-01")
    statuses = {
        item.experiment: [run.status for run in ledger.runs(item.experiment)]
        for item in ledger.programs()
    }
    assert statuses == {"exp-0001": [RunStatus.COMPLETED], "exp-0002": [RunStatus.FAILED]}
    assert [item.spec["model"]["family"] for item in ledger.programs()] == ["smollm2"] * 2


def test_a_program_starts_without_a_run_and_a_run_pending(imports: Imports) -> None:
    made, ledger = imports.program.create(programs.request(), by="me"), imports.project.ledger
    assert ledger.runs(made.experiment) == []
    more = {
        "argv": ["x"],
        "code": "c" * 64,
        "data": {},
        "environment": {},
        "sandbox": "none",
        "session": None,
    }
    run = ledger.register_run(experiment=made.experiment, seed=1, token="t" * 64, **more)
    assert (run.status, run.started_at) == (RunStatus.PENDING, None)


def test_the_same_weights_are_one_model_and_belong_to_one_program(imports: Imports) -> None:
    first = imports.bring()
    again = imports.bring(asked={"minutes": 9.0})
    assert again.model is None
    assert any(f"those of {first.run.experiment}" in item.reason for item in again.problems)
    assert [item.id for item in imports.project.ledger.models()] == [first.model]


def test_all_of_it_is_there_when_the_project_is_opened_again(
    imports: Imports, tmp_path: Path
) -> None:
    model = imports.model()
    made = imports.evaluated(model)
    step(imports, model)
    root, before = imports.project.layout.root, imports.program.lineage(model)
    with open_project(root, own_environment(tmp_path), read_only=True) as opened:
        assert Imports(opened, tmp_path).program.lineage(model) == before
        assert opened.ledger.model_history(model).evaluations == (made,)
        assert opened.ledger.model(model).state is ModelState.CANDIDATE


def test_a_model_needs_its_run_and_its_program(imports: Imports) -> None:
    model, ledger = imports.model(), imports.project.ledger
    fact = next(fact for fact in ledger.facts() if fact.kind == "model_registered")
    made = ModelRegistered(**{**fact.body(), "model": "d" * 64})
    for change in ({"run": "run-02"}, {"experiment": "exp-0099"}):
        with pytest.raises(HarnessError):
            ledger.append(replace(made, **change))
    failed = imports.bring(2, status="failed", failure="x", artifact=None).run
    with pytest.raises(HarnessError):
        ledger.append(replace(made, experiment=failed.experiment))
    assert [item.id for item in ledger.models()] == [model]


# --- evaluations and lineage


def test_every_evaluation_is_kept_in_order_and_none_is_anothers(imports: Imports) -> None:
    one, other = imports.model(), imports.model(2)
    made = [
        imports.evaluated(one),
        imports.evaluated(one, "FAIL", delta=-0.1),
        imports.evaluated(other),
    ]
    ledger = imports.project.ledger
    assert [item.id for item in made] == ["me-0001", "me-0002", "me-0003"]
    assert ledger.model_history(one).evaluations == tuple(made[:2])
    assert ledger.model_history(other).evaluations == (made[2],)
    with pytest.raises(HarnessError):
        imports.evaluated("f" * 64)


def test_lineage_has_the_whole_chain_and_says_so_where_a_link_is_missing(imports: Imports) -> None:
    model = imports.model()
    tree = imports.program.lineage(model)
    (run,) = tree["runs"]
    assert (run["models"][0]["id"], run["models"][0]["evaluations"]) == (model, ())
    assert tree == imports.program.lineage("exp-0001")
    imports.evaluated(model)
    step(imports, model)
    (found,) = imports.program.lineage(model)["runs"][0]["models"]
    assert [item["verdict"] for item in found["evaluations"]] == ["PASS"]
    assert [item["after"] for item in found["moves"]] == ["candidate"]
    assert tree["specification"]["spec"]["dataset"]["rows"] == 20
    with pytest.raises(NotFoundError):
        imports.program.lineage("f" * 64)
    with pytest.raises(NotFoundError):
        imports.program.lineage("exp-0099")


# --- promotion


def test_nothing_is_promoted_that_is_unknown_unevaluated_failed_or_not_measured(
    imports: Imports,
) -> None:
    with pytest.raises(NotFoundError):
        step(imports, "f" * 64)
    for seed, verdict in enumerate((None, "FAIL", "INCONCLUSIVE"), 1):
        model = imports.model(seed)
        if verdict is not None:
            imports.evaluated(model, verdict)
        assert unmet(step(imports, model)) == {"evaluations"}
        assert imports.project.ledger.model(model).state is ModelState.REGISTERED
    assert imports.project.ledger.decisions() == []
    with pytest.raises(NotFoundError):
        serve_path(imports.project, READER)


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        ({"delta": 0.05, "candidate": 0.65}, set()),
        ({"delta": 0.0499}, {"delta"}),
        ({"candidate": 0.6499}, {"quality"}),
        ({"against": "a" * 64}, {"evaluations"}),
        ({"benchmark": {"sha256": "b" * 64, "evaluator": "perplexity"}, "candidate": -1.5}, set()),
    ],
)
def test_the_edges_of_gain_and_quality(imports: Imports, change: dict, missing: set[str]) -> None:
    model = imports.model()
    imports.evaluated(model, **change)
    made = step(imports, model)
    assert made.moved == (not missing)
    assert made.moved or unmet(made) == missing
    assert all(check.actual is not None and check.threshold is not None for check in made.checks)


@pytest.mark.parametrize(
    ("outcomes", "seconds", "missing"),
    [
        (["accepted"] * 4 + ["rejected"], 3600, set()),
        (["accepted"] * 5, 3599, {"shadow seconds"}),
        (["accepted"] * 4, 3600, {"shadow observations"}),
        (["accepted"] * 7 + ["rejected"] * 2, 3600, {"arbiter rejection"}),
        (["accepted"] * 17 + ["timed_out", "failed", "invalid_output"], 3600, set()),
        (["accepted"] * 5 + ["invalid_output"], 3600, {"execution rejection"}),
        ([], 3600, SHADOW - {"shadow seconds"}),
    ],
)
def test_the_edges_of_shadow(
    imports: Imports, clock: ManualClock, outcomes, seconds, missing
) -> None:
    model = imports.model()
    to_shadow(imports, model)
    for outcome in outcomes:
        observe(imports.project, model, outcome, by="arbiter")
    clock.sleep(seconds)
    made = step(imports, model)
    assert made.moved == (not missing)
    assert made.moved or unmet(made) == missing


def test_a_later_inconclusive_evaluation_holds_back_and_revokes_nothing(
    imports: Imports, clock: ManualClock
) -> None:
    first, second = imports.model(), imports.model(2)
    to_shadow(imports, first)
    imports.evaluated(
        first, "INCONCLUSIVE", delta=None, interval=None, candidate=None, baseline=None, n=0
    )
    assert "evaluations" in unmet(step(imports, first))
    assert imports.project.ledger.model(first).state is ModelState.SHADOW
    deploy(imports, clock, second)
    imports.evaluated(
        second, "INCONCLUSIVE", delta=None, interval=None, candidate=None, baseline=None, n=0
    )
    assert serve_path(imports.project, READER).is_dir()


def test_a_win_over_a_poor_model_makes_up_for_no_failure_against_the_base(
    imports: Imports,
) -> None:
    model = imports.model()
    imports.evaluated(model, "FAIL", delta=0.0)
    imports.evaluated(model, "PASS", against="a" * 64)
    assert unmet(step(imports, model)) == {"evaluations"}


def test_only_models_of_one_base_are_compared(imports: Imports, tmp_path: Path) -> None:
    model = imports.model()
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "config.json").write_text("{}")
    base = add_base_model(
        imports.project, programs.MODEL, weights=tmp_path / "weights", gguf=None, inherited={}
    )
    other = imports.bring(2, base_model_sha256=base.sha256).model
    for against, reason in ((model, "the same"), (other, "of another base")):
        with pytest.raises(RefusedError, match=reason):
            imports.program.attach_evaluation(model, against=against)


def test_time_and_answers_in_shadow_count_from_the_last_coming_into_it(
    imports: Imports, clock: ManualClock
) -> None:
    model, ledger = imports.model(), imports.project.ledger
    to_shadow(imports, model)
    for _ in range(5):
        observe(imports.project, model, "accepted", by="arbiter")
    with pytest.raises(RefusedError):
        observe(imports.project, imports.model(2), "accepted", by="arbiter")
    with pytest.raises(UsageError, match="expected one of"):
        observe(imports.project, model, "fine", by="arbiter")
    clock.sleep(3000)
    assert unmet(step(imports, model)) == {"shadow seconds"}  # asking again starts no new hour
    clock.sleep(600)
    moved = step(imports, model)
    assert moved.after is ModelState.PROMOTABLE
    history = ledger.model_history(model)
    assert [move.after for move in history.moves] == ["candidate", "shadow", "promotable"]
    assert all(move.decision is not None for move in history.moves)
    assert set(history.moves[-1].evidence) >= {"model", "me-0001", "observation 5"}


def test_after_a_revocation_shadow_begins_anew(imports: Imports, clock: ManualClock) -> None:
    model, project = imports.model(), imports.project
    deploy(imports, clock, model)
    fallen = project.ledger.model(model)
    failed = imports.evaluated(model, "FAIL", delta=-0.1)
    for fact in revocation(project, fallen, ModelState.REVOKED, failed.reason, by="harness"):
        project.ledger.append(fact)
    with pytest.raises(NotFoundError):
        serve_path(project, READER)
    assert unmet(step(imports, model)) == {"evaluations"}
    clock.sleep(1)
    imports.evaluated(model)
    assert [step(imports, model).after for _ in range(2)] == [
        ModelState.CANDIDATE,
        ModelState.SHADOW,
    ]
    assert unmet(step(imports, model)) == SHADOW


def test_a_rejected_one_is_final_with_its_reason(imports: Imports, clock: ManualClock) -> None:
    model = imports.model()
    deploy(imports, clock, model)
    made = reject_model(imports.project, model, by="human:ada", reason="it insults people")
    assert (made.kind, made.by, made.reason) == ("REJECT", "human:ada", "it insults people")
    assert imports.project.ledger.model(model).state is ModelState.REJECTED
    imports.evaluated(model)
    for forbidden in (
        lambda: step(imports, model),
        lambda: rollback(imports.project, READER, by="human:ada", reason="x", to=model),
        lambda: serve_path(imports.project, READER),
    ):
        with pytest.raises((RefusedError, NotFoundError)):
            forbidden()
    with pytest.raises(TransitionError):
        reject_model(imports.project, model, by="human:ada", reason="again")


def test_rollback_leads_to_any_earlier_good_model(imports: Imports, clock: ManualClock) -> None:
    models, project = [imports.model(seed) for seed in (1, 2, 3)], imports.project
    for model in models:
        deploy(imports, clock, model)
    states = [project.ledger.model(model).state.value for model in models]
    assert states == ["retired", "retired", "deployed"]
    assert rollback(project, READER, by="human:ada", reason="x", to=models[0]).model == models[0]
    with pytest.raises(NotFoundError):  # the two that came later are what it left
        rollback(project, READER, by="human:ada", reason="x")
    assert rollback(project, READER, by="human:ada", reason="x", to=models[1]).model == models[1]
    unserved = imports.model(4)
    with pytest.raises(RefusedError):
        rollback(project, READER, by="human:ada", reason="x", to=unserved)
    assert (
        serve_path(project, READER) == project.layout.root / project.ledger.model(models[1]).path
    )
