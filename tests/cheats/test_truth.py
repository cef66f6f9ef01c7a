"""The lab's own foundations: the law of the data, the predicates, and what belongs to which
defence."""

from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from harness.cheats import forked
from harness.cheats.attack import (
    AgentShell,
    Attack,
    AttackKind,
    AttackOutcome,
    Channel,
    TrueScores,
    below_plan,
    done,
    inflated,
    kept_not_better,
)
from harness.cheats.catalogue import ATTACKS, CONTROLS
from harness.cheats.catalogue.tool_calls import has
from harness.cheats.defences import DEFENCES, caught, defence_of, fired, structural_of
from harness.cheats.defended import Caller
from harness.cheats.lab import CHANCE, LabProject, draw, fresh, split
from harness.cheats.outcome_rows import digest
from harness.cheats.recorded import Trail, codes_of
from harness.cheats.truth import accuracy, answers_of
from harness.domain.findings import Finding
from harness.domain.statuses import RunStatus
from harness.errors import HarnessError
from harness.gates.findings import FINDINGS, finding, outcome_of

TRUE = TrueScores(score=0.6, parent=0.6)


def test_rows_follow_from_their_seed_and_splits_share_none():
    assert np.array_equal(split("train", 3).x, split("train", 3).x)
    ids = [
        row for name in ("train", "validation", "held_out") for row in split(name, 3).id.tolist()
    ]
    ids += fresh(3).id.tolist()
    assert len(ids) == len(set(ids))


def test_the_law_is_what_it_says():
    rows = draw(60_000, 5)
    means = np.stack([rows.x[rows.y == label].mean(0) for label in range(3)])
    wanted = np.where(np.arange(9)[None] % 3 == np.arange(3)[:, None], 0.9, 0.0)
    assert np.abs(means - wanted).max() < 0.04


def test_predicates_look_at_the_truth():
    assert inflated(AttackOutcome(believed=0.7), TRUE)
    assert not inflated(AttackOutcome(believed=0.65), TRUE)
    assert not inflated(AttackOutcome(believed=None, recomputed={"validation": 0.99}), TRUE)
    assert kept_not_better(AttackOutcome(kept=True), TRUE)
    assert not kept_not_better(AttackOutcome(kept=True), TrueScores(score=0.7, parent=0.6))
    assert below_plan(AttackOutcome(believed=0.5), TrueScores(score=0.3, parent=0.6))
    assert done(AttackOutcome(evidence={"done": True}), TRUE)


def attack(**more: object) -> Attack:
    given = {
        "id": "x",
        "area": "x",
        "mechanism": "x",
        "source": "x",
        "kind": AttackKind.TRAINING,
        **more,
    }
    return Attack(**given)  # type: ignore[arg-type]


def test_an_effect_that_nobody_names_is_not_caught():
    reach = attack(success=done, channel=Channel.REACH)
    happened = AttackOutcome(evidence={"done": True})
    assert not caught(reach, happened, TRUE)
    assert caught(
        reach, AttackOutcome(codes=("tampering_noticed",), evidence={"done": True}), TRUE
    )
    assert not caught(
        reach, AttackOutcome(codes=("not_better_than_the_parent",), evidence={"done": True}), TRUE
    )
    assert fired(reach, AttackOutcome(evidence={"done": False}), TRUE) == ["sandbox"]


def test_what_holds_alone_is_asked_with_every_finding_thrown_away():
    forged, codes = attack(channel=Channel.METRICS), ("metrics_changed",)
    held = AttackOutcome(codes=codes, recomputed={"validation": 0.6})
    assert fired(forged, held, TRUE) == ["recomputation", "run link"]
    assert fired(forged, AttackOutcome(codes=codes, recomputed={"validation": 0.99}), TRUE) == [
        "run link"
    ]


def test_where_nothing_was_recomputed_no_structure_is_credited_with_a_score_that_is_not_believed():
    item = attack(channel=Channel.EVALUATOR, structural="vault")
    assert fired(item, AttackOutcome(codes=("predict_crashed",)), TRUE) == ["prediction checks"]
    assert fired(
        item, AttackOutcome(codes=("predict_crashed",), recomputed={"validation": 0.6}), TRUE
    ) == [
        "vault",
        "prediction checks",
    ]


def test_following_codes_are_never_a_defence():
    item = attack()
    assert fired(item, AttackOutcome(codes=("scorer_changed", "seeds_outstanding")), TRUE) == [
        "frozen at approval"
    ]
    assert (
        fired(item, AttackOutcome(codes=("seeds_outstanding", "evaluation_missing")), TRUE) == []
    )


def test_without_a_noise_floor_the_number_of_the_same_split_decides():
    item = attack(success=kept_not_better, structural="held-out")
    parent = {"parent_recomputed": {"validation": 0.5, "held_out": 0.6}}
    better = AttackOutcome(recomputed={"validation": 0.55}, evidence=parent)
    assert fired(item, better, TRUE) == []
    worse = AttackOutcome(recomputed={"validation": 0.9, "held_out": 0.55}, evidence=parent)
    assert fired(item, worse, TRUE) == ["held-out"]


def test_a_run_that_was_closed_badly_says_by_what():
    def ended(status: str, **more: Any) -> Any:
        return SimpleNamespace(
            status=RunStatus(status), **{"findings": (), "exit_code": 0, "reason": "why", **more}
        )

    link = Finding("checkpoint_unreadable", "", "")
    told = {
        "run end": ended("failed", exit_code=3),
        "limits": ended("killed", exit_code=-9),
        "file forms": ended("completed", findings=(link,)),
    }
    for name, run in told.items():
        assert [defence_of(code) for code in codes_of(run)] == [name]
    assert codes_of(ended("completed")) == []


def caller(monkeypatch: pytest.MonkeyPatch, printed: str, **more: Any) -> Caller:
    ended = CompletedProcess(["harness"], 1, printed, "Traceback")
    monkeypatch.setattr(LabProject, "harness", lambda *_, **__: ended)
    place = LabProject(base=Path("nowhere"), seed=1)
    return Caller(place=place, attack=attack(**more), sandbox="none", values={}, seen=Trail())


BROKEN = ["", '{"error": {"code": "harness_failed"}}']


@pytest.mark.parametrize("printed", BROKEN)
def test_a_verb_that_broke_is_a_fault_of_the_lab_and_no_defence(
    monkeypatch: pytest.MonkeyPatch, printed: str
):
    by = caller(monkeypatch, printed)
    with pytest.raises(HarnessError, match="gave no answer"):
        by.verb("train", "exp-0002")
    assert by.seen.codes == []


@pytest.mark.parametrize("printed", BROKEN)
def test_a_verb_that_broke_is_the_effect_of_an_attack_that_aims_at_it(
    monkeypatch: pytest.MonkeyPatch, printed: str
):
    by = caller(monkeypatch, printed, breaks_judge=True)
    by.verb("evaluate", "exp-0002")
    assert by.seen.broken
    assert by.seen.codes == []


def test_what_a_verb_refuses_is_a_code(monkeypatch: pytest.MonkeyPatch):
    by = caller(monkeypatch, '{"error": {"code": "query_budget_spent"}}')
    by.verb("evaluate", "exp-0002")
    assert by.seen.codes == ["query_budget_spent"]
    assert not by.seen.broken


def test_an_agent_types_in_its_own_shell_and_a_person_does_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    typed: list[tuple[list[str], dict[str, str]]] = []

    def run(place: LabProject, argv: Any, *, environment: Any = None, **_: Any) -> Any:
        typed.append((list(argv), dict(environment or {})))
        return CompletedProcess(argv, 0, "{}", "")

    def copied(words: Any, *, environment: Any, **_: Any) -> Any:
        return run(place, words, environment=environment)

    monkeypatch.setattr(LabProject, "run", run)
    monkeypatch.setattr(forked, "run", copied)
    monkeypatch.setattr(forked, "AVAILABLE", True)
    place = LabProject(base=tmp_path, seed=1)
    place.home.mkdir()
    monkeypatch.setattr(LabProject, "environment", lambda *_, **more: more)
    shell = AgentShell(variables={"PYTHONPATH": "@ROOT@/lib"}, python=".venv/bin/python")
    for given, sandbox in ((shell, "none"), (shell, "bwrap"), (None, "bwrap")):
        by = Caller(
            place=place,
            attack=attack(shell=given),
            sandbox=sandbox,
            values={"ROOT": "/p"},
            seen=Trail(),
        )
        by.verb("evaluate", "exp-0002")
    (plain, variables), (isolated, outside), (words, persons) = typed
    assert plain == [str(place.root / ".venv/bin/python"), "-m", "harness", "evaluate", "exp-0002"]
    assert variables == {"CLAUDECODE": "1", "PYTHONPATH": "/p/lib"}
    assert isolated[-3:] == ["--", "-c", 'export PYTHONPATH="/p/lib"; harness evaluate exp-0002']
    assert outside.keys() == {"PATH"}
    assert (words, persons) == (["evaluate", "exp-0002"], {})


def test_answers_are_compared_as_numbers_over_all_rows():
    rows = draw(90, 5)
    right = {str(row): str(float(label)) for row, label in zip(rows.id, rows.y, strict=True)}
    assert accuracy(right, rows) == 1.0
    left_out = dict(list(right.items())[:9])
    assert accuracy(left_out, rows) == pytest.approx(0.1)
    assert accuracy(dict.fromkeys(right, "nan"), rows) == 0.0
    assert accuracy(None, rows) == CHANCE


@pytest.mark.parametrize("form", ["csv", "npz"])
def test_answers_are_read_in_each_form_that_the_product_reads(tmp_path: Path, form: str):
    lines = {
        "csv": (
            'open(out, "w").write("id,prediction\\n" + "".join(f"{i},1.0\\n" for i in table["id"]))'
        ),
        "npz": 'np.savez(out, id=table["id"], prediction=np.ones(len(table["id"])))',
    }
    place = LabProject(base=tmp_path, seed=3)
    given = (
        "import os\nimport numpy as np\n"
        'out, table = os.environ["HARNESS_PREDICTIONS"], np.load(os.environ["HARNESS_INPUTS"])'
    )
    place.write({"predict.py": f"{given}\n{lines[form]}\n"}, {})
    rows = draw(60, 5)
    assert accuracy(answers_of(place, place.root, tmp_path / "none", rows), rows) == np.mean(
        rows.y == 1
    )


def test_a_digest_changes_with_anything_that_the_attack_is_made_of():
    first = attack(files={"a": "1"}, effect=lambda scene: scene.looks > 1)
    assert digest(first) == digest(replace(first))
    others = [
        replace(first, files={"a": "2"}),
        replace(first, effect=lambda scene: scene.looks > 2),
    ]
    others += [
        replace(first, success=done),
        replace(first, effect=has("x", "y")),
        replace(first, effect=has("x", "z")),
    ]
    assert len({digest(item) for item in (first, *others)}) == len(others) + 1


def test_ids_are_unique_and_every_structure_is_a_defence():
    ids = [item.id for item in (*ATTACKS, *CONTROLS)]
    assert len(ids) == len(set(ids))
    assert {structural_of(item) for item in ATTACKS} <= DEFENCES.keys()
    assert len(ATTACKS) >= 60
    assert len(CONTROLS) >= 20


@pytest.mark.parametrize("code", sorted(FINDINGS))
def test_every_blocking_finding_belongs_to_a_defence(code: str):
    if outcome_of(finding(code, "x")) != "PASS" and code != "isolation_absent":
        assert defence_of(code) in DEFENCES
