"""What `harness try` says at its end: one table, and the one next step."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.cli.answer import Answer
from harness.domain.findings import Finding
from harness.domain.plain_text import one_line
from harness.domain.records import Experiment
from harness.domain.statuses import RunStatus, Split, Verdict
from harness.evaluation.outcome import TRIVIAL
from harness.evaluation.scores import counted_runs
from harness.gates.findings import outcome_of
from harness.ledger.project import Project
from harness.plans.approved import plan_seeds
from harness.rendering.standing import NextStep, go_on, next_step
from harness.views.snapshot import split_score
from harness.views.tables import number, pairs_table, score_text, tier_text


@dataclass(kw_only=True)
class Attempt:
    """One experiment on its way."""

    start: Path
    quiet: bool
    experiment: str = ""
    answers: dict[str, Answer] = field(default_factory=dict)
    """Of the steps that were gone: new, train, evaluate, result, gate."""
    stopped: dict[str, Any] | None = None
    """{step, error {code, message, hint}} where a step did not do what it should."""
    interrupted: bool = False

    @property
    def gate(self) -> Mapping[str, Any] | None:
        answer = self.answers.get("gate")
        return None if answer is None else answer.document


def shown(project: Project, attempt: Attempt) -> tuple[dict[str, Any], list[str]]:
    """(document, lines)"""
    record = project.ledger.experiment(attempt.experiment)
    step = _next(project, record, attempt)
    gate = attempt.gate
    document = {
        "experiment": record.id,
        "hypothesis": record.hypothesis,
        "parent": record.parent,
        "steps": {name: answer.document for name, answer in attempt.answers.items()},
        "stopped": attempt.stopped,
        "verdict": None if gate is None else gate["verdict"],
        "next": {"why": step.words, "command": step.command},
    }
    rows = [
        ("experiment", f"{record.id}  {record.hypothesis}"),
        ("builds on", record.parent or "-"),
        *_scores(project, record, gate),
        *_noted(attempt),
        *(_stopped(project, record, attempt.stopped) if attempt.stopped else ()),
        *(_judged(gate) if gate is not None else ()),
    ]
    return document, [pairs_table(rows), step.line]


def _scores(
    project: Project, record: Experiment, gate: Mapping[str, Any] | None
) -> Iterator[tuple[str, str]]:
    total = split_score(project, record, Split.VALIDATION)
    yield "score", f"{total['metric']} {score_text(total)}" if total["metric"] else "-"
    against = ((gate or {}).get("comparison") or {}).get("against") or record.parent
    if against == TRIVIAL:
        trivial = ((gate or {}).get("score") or {}).get("baseline")
        yield "reference", TRIVIAL if trivial is None else f"{TRIVIAL}  {number(trivial)}"
    elif against is not None:
        other = split_score(project, project.ledger.experiment(against), Split.VALIDATION)
        yield "reference", f"{against}  {score_text(other)}"


def _noted(attempt: Attempt) -> Iterator[tuple[str, str]]:
    """What opening and training found that stops nothing."""
    answers = [attempt.answers.get(name) for name in ("new", "train")]
    for found in (one for answer in answers if answer for one in answer.document["findings"]):
        if outcome_of(Finding.from_plain(found)) is Verdict.PASS:
            said = f"{one_line(found['message'])} {one_line(found['hint'])}"
            yield "noticed", f"[{found['code']}] {said}"


def _stopped(
    project: Project, record: Experiment, stopped: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    error = stopped["error"]
    said = f"[{error['code']}] {one_line(error['message'])} {one_line(error['hint'])}".rstrip()
    yield "stopped", f"at {stopped['step']}: {said}"
    wanted = len(plan_seeds(project.plan(), record))
    runs = counted_runs(project.ledger.runs(record.id))
    done = sum(run.status is RunStatus.COMPLETED for run in runs)
    scored = split_score(project, record, Split.VALIDATION)["n_seeds"] or 0
    yield "there is", f"{record.id} with {done} of {wanted} seeds trained and {scored} scored"


def _judged(gate: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for text in gate["compared"]:
        yield "comparison", text.strip()
    tier = tier_text(gate["tier"], (gate["score"] or {}).get("released"))
    yield "verdict", f"{gate['verdict']} ({tier})" if gate["tier"] else gate["verdict"]
    for found in gate["findings"]:
        said = f"{one_line(found['message'])} {one_line(found['hint'])}"
        yield "finding", f"[{found['code']}] {said}"
    for note in gate["notes"]:
        yield "noticed", one_line(note)


def _next(project: Project, record: Experiment, attempt: Attempt) -> NextStep:
    gate, line = attempt.gate, go_on(project, record.id)
    if attempt.interrupted:
        line = f"harness try {record.id} --continue"
        return NextStep("go on, completed seeds are not repeated", line)
    if attempt.stopped is not None or gate is None:
        return NextStep("mend it, then go on", line)
    step = next_step(project, record.id)
    if gate["verdict"] == Verdict.PASS or step.command != line:
        return step
    found = [Finding.from_plain(one) for one in gate["findings"]]
    wrong = [one for one in found if outcome_of(one) is not Verdict.PASS]
    return NextStep(f"mend it ({wrong[0].code}), then go on" if wrong else "go on", line)
