import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from harness.artifacts.experiment_files import read_hypothesis, read_result
from harness.decisions.experiments import decide, open_experiment, record_result
from harness.domain.statuses import DecisionKind, ExperimentStatus
from harness.errors import HarnessError, NotFoundError, RefusedError, TransitionError, UsageError
from harness.ledger.facts import Decision
from harness.ledger.ledger import Ledger
from harness.ledger.project import Project, open_project
from harness.plans.approval import approve_plan
from tests.blobs import PLAN


@pytest.fixture(autouse=True)
def _approved(project: Project, root: Path) -> None:
    approve_plan(project, root / "plan.md", by="ada")


def opened(
    project: Project,
    hypothesis: str = "A wider net",
    parent: str | None = None,
    rationale: str = "It underfits.",
) -> str:
    return open_experiment(
        project,
        hypothesis=hypothesis,
        rationale=rationale,
        parent=parent,
        by="model-builder",
    ).id


def decided(
    project: Project, kind: str, experiment: str | None, **changes: str | None
) -> Decision:
    fields: dict[str, str | None] = {
        "by": "harness",
        "context": "the gate spoke",
        "choice": kind,
        "alternatives": "",
        "reason": "because",
        "confidence": "high",
        "verdict": None,
    }
    return decide(
        project,
        kind=kind,
        experiment=experiment,
        **{**fields, **changes},  # type: ignore[arg-type]
    )


def judged(project: Project, experiment: str, verdict: str = "PASS") -> str:
    recorded = project.ledger.record_verdict(
        experiment=experiment,
        gate="validation",
        verdict=verdict,
        findings=[],
        evidence={},
        score=None,
        tier=None,
        comparison=None,
    )
    project.ledger.move_experiment(experiment, ExperimentStatus.JUDGED, "test")
    return recorded.id


def status(project: Project, experiment: str) -> ExperimentStatus:
    return project.ledger.experiment(experiment).status


def test_opening_makes_folder_and_hypothesis(project: Project) -> None:
    assert opened(project) == "exp-0001"
    read = read_hypothesis(project.layout.experiment("exp-0001", "hypothesis"))
    assert (read.experiment, read.parent, read.hypothesis, read.rationale) == (
        "exp-0001",
        None,
        "A wider net",
        "It underfits.",
    )
    recorded = project.ledger.experiment("exp-0001")
    assert (recorded.plan, recorded.plan_version, recorded.by) == ("blobs", 1, "model-builder")


def test_asking_again_gives_the_same_experiment(project: Project) -> None:
    opened(project)
    project.layout.experiment("exp-0001", "hypothesis").unlink()
    project.layout.experiment("exp-0001").rmdir()
    assert opened(project, "A  wider\nnet") == "exp-0001"
    assert project.layout.experiment("exp-0001", "hypothesis").exists()


def test_one_undecided_experiment_at_a_time(project: Project) -> None:
    opened(project)
    with pytest.raises(RefusedError, match="exp-0001 is open and not decided") as error:
        opened(project, "Another")
    assert error.value.code == "experiment_undecided"
    judged(project, "exp-0001", "FAIL")
    with pytest.raises(RefusedError, match="exp-0001 is judged"):
        opened(project, "Another")
    decided(project, "DISCARD", "exp-0001")
    assert opened(project, "Another", "exp-0001") == "exp-0002"
    assert not project.layout.experiment("exp-0003").exists()


def test_the_budget_of_experiments_ends(project: Project, root: Path) -> None:
    for number in range(3):
        decided(project, "CANCEL", opened(project, f"Idea {number}"))
    with pytest.raises(RefusedError, match="allows 3 experiments and 3 were opened") as error:
        opened(project, "One more")
    assert error.value.code == "budget_spent"
    (root / "plan.md").write_text(PLAN.replace("experiments: 3", "experiments: 4"))
    approve_plan(project, root / "plan.md", by="ada")
    assert opened(project, "One more") == "exp-0004"


def test_an_empty_folder_that_a_kill_left_is_used(project: Project) -> None:
    project.layout.experiment("exp-0001").mkdir(parents=True)
    elsewhere = project.layout.root / "elsewhere"
    elsewhere.mkdir()
    project.layout.experiment("exp-0002").symlink_to(elsewhere)
    assert opened(project) == "exp-0001"
    assert project.layout.experiment("exp-0001", "hypothesis").is_file()
    decided(project, "CANCEL", "exp-0001")
    assert opened(project, "Another") == "exp-0003"  # exp-0002 is a link to another folder


def test_a_folder_that_the_ledger_does_not_know_is_never_used(project: Project) -> None:
    for number in (1, 2):
        folder = project.layout.experiment(f"exp-000{number}")
        folder.mkdir(parents=True)
        (folder / "result.md").write_text("of an earlier ledger")
    assert opened(project) == "exp-0003"
    assert [item.name for item in project.layout.experiment("exp-0001").iterdir()] == ["result.md"]


@pytest.mark.parametrize("hypothesis", ["", "  \n", "TODO: think", "x" * 501])
def test_a_hypothesis_says_something(project: Project, hypothesis: str) -> None:
    with pytest.raises(UsageError, match="expected 1 to 500"):
        opened(project, hypothesis)


def test_an_unknown_parent_is_refused_before_an_id_is_taken(project: Project) -> None:
    with pytest.raises(NotFoundError):
        opened(project, parent="exp-0009")
    assert opened(project) == "exp-0001"


def test_odd_characters_survive_hypothesis_md(project: Project) -> None:
    text = 'wider: "net" \\ # [a] *b* \u2028 é 🙂'
    opened(project, text)
    read = read_hypothesis(project.layout.experiment("exp-0001", "hypothesis"))
    assert read.hypothesis == " ".join(text.split())


def test_a_rationale_is_words_in_hypothesis_md(project: Project) -> None:
    text = "reason\n\n# Verdict\n\nPASS &#x202e;evil\n\n```\nfence"
    opened(project, "## Kept 0.99", rationale=text)
    path = project.layout.experiment("exp-0001", "hypothesis")
    _, _, body = path.read_text("utf-8").split("---\n", 2)
    tokens = MarkdownIt("commonmark").parse(body)
    kinds = [one.type for one in tokens]
    assert (kinds.count("heading_open"), tokens[1].content) == (1, r"\## Kept 0.99")
    assert kinds.count("blockquote_open") == 1
    assert kinds.index("blockquote_open") == 3, "all else is in it"
    assert not {"fence", "hr", "html_block"} & set(kinds)
    assert "&#x202e;" not in body
    read = read_hypothesis(path)
    assert read.hypothesis == "## Kept 0.99"
    assert read.rationale.startswith("reason\n\n\\# Verdict")


def _open_many(root: Path, environment: dict[str, str], worker: int) -> list[str]:
    ids = []
    with open_project(root, environment) as project:
        for number in range(8):
            try:
                ids.append(opened(project, f"Idea {worker}-{number}"))
            except RefusedError:  # another process has an experiment that is not decided yet
                continue
            decided(project, "CANCEL", ids[-1])
    return ids


def test_processes_open_at_once_without_sharing_an_id(
    project: Project, root: Path, environment: dict[str, str]
) -> None:
    (root / "plan.md").write_text(PLAN.replace("experiments: 3", "experiments: 1000"))
    approve_plan(project, root / "plan.md", by="ada")
    with ProcessPoolExecutor(3, mp_context=multiprocessing.get_context("spawn")) as pool:
        found = list(pool.map(_open_many, [root] * 3, [environment] * 3, range(3)))
    ids = [identifier for part in found for identifier in part]
    assert ids
    assert sorted(ids) == [experiment.id for experiment in project.ledger.experiments()]
    assert len(set(ids)) == len(ids)


def test_record_result_writes_what_the_gate_reads(project: Project) -> None:
    opened(project)
    path = record_result(
        project,
        "exp-0001",
        claims={"accuracy": "0.90", "log_loss": 0.25},
        summary="It learns.",
        shortfalls=["class 3: weak"],
        by="oracle",
    )
    result = read_result(path)
    assert path == project.layout.experiment("exp-0001", "result")
    assert {name: (claim.value, claim.text) for name, claim in result.claims.items()} == {
        "accuracy": (0.9, "0.90"),
        "log_loss": (0.25, "0.25"),
    }
    assert result.shortfalls == ["class 3: weak"]
    assert "It learns." in result.body


@pytest.mark.parametrize("claim", ["93%", "about 0.9", "", float("nan"), float("inf"), "1e9999"])
def test_a_claim_that_is_no_number_is_refused(project: Project, claim: str | float) -> None:
    opened(project)
    with pytest.raises(UsageError, match=r"claims\.accuracy is"):
        record_result(
            project, "exp-0001", claims={"accuracy": claim}, summary="", shortfalls=[], by="oracle"
        )
    assert not project.layout.experiment("exp-0001", "result").exists()


def test_the_result_of_a_decided_experiment_stands(project: Project) -> None:
    decided(project, "CANCEL", opened(project))
    with pytest.raises(RefusedError, match="its result stands"):
        record_result(project, "exp-0001", claims={}, summary="", shortfalls=[], by="oracle")


@pytest.mark.parametrize(
    ("kind", "after"),
    [("KEEP", "kept"), ("DISCARD", "discarded"), ("CANCEL", "discarded"), ("ITERATE", "open")],
)
def test_a_decision_moves_its_experiment(project: Project, kind: str, after: str) -> None:
    verdict = judged(project, opened(project))
    decision = decided(project, kind, "exp-0001", verdict=verdict)
    assert (decision.kind, decision.verdict, status(project, "exp-0001")) == (
        DecisionKind(kind),
        verdict,
        after,
    )
    assert project.ledger.decisions("exp-0001") == [decision]


@pytest.mark.parametrize("kind", ["PROMOTE", "APPROVE", "REJECT", "OVERRIDE"])
def test_other_decisions_leave_the_status(project: Project, kind: str) -> None:
    judged(project, opened(project))
    decided(project, kind, "exp-0001", by="ada")
    assert status(project, "exp-0001") == "judged"


def test_keeping_needs_a_pass_or_a_person(project: Project) -> None:
    verdict = judged(project, opened(project), "FAIL")
    for named in (verdict, None):
        with pytest.raises(RefusedError, match="rests on no PASS"):
            decided(project, "KEEP", "exp-0001", verdict=named)
    with pytest.raises(RefusedError, match="a person's"):
        decided(project, "OVERRIDE", "exp-0001", by="model-builder")
    assert project.ledger.decisions() == []
    decided(project, "OVERRIDE", "exp-0001", by="ada")
    decided(project, "KEEP", "exp-0001", by="ada")
    assert status(project, "exp-0001") == "kept"


def test_a_move_that_is_forbidden_records_nothing(project: Project) -> None:
    opened(project)
    decided(project, "CANCEL", "exp-0001")
    with pytest.raises(TransitionError):
        decided(project, "ITERATE", "exp-0001")
    with pytest.raises(NotFoundError, match="no verdict 'v-000009'"):
        decided(project, "DISCARD", "exp-0001", verdict="v-000009")
    with pytest.raises(UsageError, match="confidence"):
        decided(project, "PROMOTE", None, by="ada", confidence="sure")
    with pytest.raises(UsageError, match="needs the experiment"):
        decided(project, "KEEP", None)
    assert [item.kind for item in project.ledger.decisions()] == ["CANCEL"]


def test_a_decision_that_was_cut_before_the_move_is_finished(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def die(*_: object, **__: object) -> None:
        raise Killed

    verdict = judged(project, opened(project))
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "move_experiment", die)
        with pytest.raises(Killed):
            decided(project, "KEEP", "exp-0001", verdict=verdict)
    assert status(project, "exp-0001") == "judged"
    decided(project, "KEEP", "exp-0001", verdict=verdict)
    assert status(project, "exp-0001") == "kept"
    assert len(project.ledger.decisions()) == 1


def test_iterating_twice_is_two_decisions(project: Project) -> None:
    opened(project)
    for _ in range(2):
        judged(project, "exp-0001", "FAIL")
        decided(project, "ITERATE", "exp-0001")
    assert len(project.ledger.decisions()) == 2


def test_ids_that_are_none_are_refused(project: Project) -> None:
    for name in ("exp-1", "../x", "exp-0001/..", ""):
        with pytest.raises(HarnessError):
            record_result(project, name, claims={}, summary="", shortfalls=[], by="oracle")


@pytest.mark.parametrize(
    "changes",
    [
        {"claims": "0.9"},
        {"claims": [0.9]},
        {"claims": {"accuracy": True}},
        {"shortfalls": "weak"},
        {"shortfalls": [1]},
        {"summary": None},
    ],
)
def test_arguments_of_another_type_are_told_not_crashed_on(
    project: Project, changes: dict[str, object]
) -> None:
    opened(project)
    fields: dict[str, object] = {
        "claims": {},
        "summary": "",
        "shortfalls": [],
        "by": "oracle",
        **changes,
    }
    with pytest.raises(UsageError, match=r"expected a (mapping|plain number|list)|expected text"):
        record_result(project, "exp-0001", **fields)  # type: ignore[arg-type]


def test_a_hypothesis_that_is_no_text_is_refused(project: Project) -> None:
    with pytest.raises(UsageError, match="hypothesis is 7; expected text"):
        open_experiment(
            project,
            hypothesis=7,  # type: ignore[arg-type]
            rationale="",
            parent=None,
            by="x",
        )
