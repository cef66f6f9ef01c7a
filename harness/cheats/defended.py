"""The product, with everything on: the attack happens between its steps, and it says what it says.

Training and evaluation are started as a person starts them, in processes of their own; gates, audit and ledger are
asked through the functions that the verbs call. An agent's own programs run in the cage that the loop gives an agent.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.audit.check import check_gate
from harness.audit.person import approve
from harness.audit.protected import audit_protected
from harness.cheats.agent_acts import act
from harness.cheats.attack import Attack, Control, Moment, Outcome, Truth
from harness.cheats.effects import Scene, effect
from harness.cheats.place import LONGEST_S, Place, filled
from harness.cheats.truth import copy_code, true_score
from harness.domain.findings import Finding
from harness.domain.records import Evaluation, RecordedVerdict
from harness.domain.statuses import ExperimentStatus, GateName, RunStatus, Split, Verdict
from harness.errors import HarnessError
from harness.gates.findings import outcome_of
from harness.ledger.verify import verify
from harness.project.context import Project, open_layout, open_project
from harness.project.experiments import open_experiment, record_result
from harness.project.plans import approve_plan
from harness.rendering.derived import write_derived
from harness.rendering.snapshot import policy_snapshot

BY = "human:lab"
PARENT, CANDIDATE = "exp-0001", "exp-0002"
NOT_BETTER = "not_better_than_the_parent"
"""Not a finding of a gate: the comparison with the parent, by which the loop keeps or discards."""


@dataclass
class Seen:
    """What was said on the way."""

    codes: list[str] = field(default_factory=list)
    log: str = ""
    recomputed: float | None = None

    def refused(self, error: HarnessError) -> None:
        self.codes.append(error.code)


def opened(place: Place) -> Project:
    return open_project(place.root, place.environment())


@dataclass(frozen=True, kw_only=True)
class Parent:
    true: float
    recomputed: float | None


NOTHING: dict[str, Any] = dict.fromkeys(("id", "area", "mechanism", "source"), "") | {"kind": "training"}


def values_of(place: Place) -> dict[str, str]:
    state = place.state
    held_out = next(iter(sorted((state / "vault" / "held_out").glob("*.npz"))), state / "none")
    return {
        "ROOT": str(place.root),
        "STATE": str(state),
        "HELD_OUT": str(held_out),
        "LABELS": str(held_out),
        "MARK": place.mark,
        "PYTHON": sys.executable,
    }


def defended(place: Place, work: Attack | Control, cage: str, parent: "Parent") -> tuple[Outcome, Truth]:
    """Let it happen at `place`, a copy of the project with its kept `parent`; `cage` as in `--cage`."""
    attack = work if isinstance(work, Attack) else _as_attack(work)
    values, seen = values_of(place), Seen()
    _prepare(place, attack, values)
    place.write(attack.files, values)
    _act(place, attack, cage, values, seen, Moment.BEFORE)
    code = copy_code(place, place.base / "code")
    first = None if attack.prepares else PARENT
    if open_one(place, f"Candidate {attack.id}", first, attack.claims, attack.summary, seen):
        verdict = judged(place, attack, cage, values, seen, CANDIDATE)
    else:
        verdict = None
    named = list(audited(place, seen))
    truth = Truth(score=true_score(place, code, checkpoints_of(place, CANDIDATE)), parent=parent.true)
    score = None if verdict is None or verdict.score is None else float(verdict.score["mean"])
    outcome = Outcome(
        believed=score if verdict is not None and verdict.verdict is Verdict.PASS else None,
        kept=_status(place) is ExperimentStatus.KEPT,
        recomputed=seen.recomputed,
        codes=tuple(dict.fromkeys(seen.codes)),
        named=tuple(named),
        evidence={
            "done": effect(attack, Scene(place=place, values=values, log=seen.log, seconds=_seconds(place))),
            "parent_recomputed": parent.recomputed,
        },
    )
    return outcome, truth


def _as_attack(control: Control) -> Attack:
    return Attack(
        **{**NOTHING, "id": control.id},
        files=control.files,
        acts=control.acts,
        claims=control.claims,
        summary=control.summary,
        retries=control.retries,
    )


def open_one(
    place: Place, hypothesis: str, parent: str | None, claims: Mapping[str, str], summary: str, seen: Seen
) -> bool:
    try:
        with opened(place) as project:
            found = open_experiment(project, hypothesis=hypothesis, rationale="", parent=parent, by="agent")
            folder = project.layout.experiment(found.id)
            (folder / "config.yaml").write_text("model: centroids\n", "utf-8")
            record_result(project, found.id, claims=claims, summary=summary, shortfalls=(), by="agent")
            write_derived(project)
    except HarnessError as error:
        seen.refused(error)
        return False
    return True


def judged(
    place: Place,
    attack: Attack,
    cage: str,
    values: Mapping[str, str],
    seen: Seen,
    experiment: str,
    *,
    decide: bool = True,
) -> RecordedVerdict | None:
    """Train, evaluate and judge on both splits; a person keeps what passed and is better. The last verdict."""
    _act(place, attack, cage, values, seen, Moment.OPENED)
    words = ["--", *attack.command] if attack.command else []
    for _ in range(1 + attack.retries):
        _verb(place, seen, "train", experiment, "--cage", cage, "--json", *words)
    _act(place, attack, cage, values, seen, Moment.TRAINED)
    _verb(place, seen, "evaluate", experiment, "--cage", cage, "--json")
    _act(place, attack, cage, values, seen, Moment.EVALUATED)
    verdict = gate(place, experiment, GateName.VALIDATION, seen)
    if verdict is None or verdict.verdict is not Verdict.PASS:
        return verdict
    _act(place, attack, cage, values, seen, Moment.PASSED)
    _verb(place, seen, "evaluate", experiment, "--split", "held-out", "--cage", cage, "--json")
    gate(place, experiment, GateName.HELD_OUT, seen)
    _act(place, attack, cage, values, seen, Moment.CLOSED)
    verdict = gate(place, experiment, GateName.HELD_OUT, seen)  # as it stands when a person decides
    if decide and verdict is not None and verdict.verdict is Verdict.PASS:
        _decide(place, experiment, verdict, seen)
    return verdict


def _decide(place: Place, experiment: str, verdict: RecordedVerdict, seen: Seen) -> None:
    """As the loop does: what is not better beyond the noise floor is not kept."""
    if not (verdict.comparison or {}).get("better"):
        seen.codes.append(NOT_BETTER)
        return
    try:
        with opened(place) as project:
            approve(project, experiment, by=BY, reason="It passed and is better.")
            write_derived(project)
    except HarnessError as error:
        seen.refused(error)


def _verb(place: Place, seen: Seen, *words: str) -> None:
    """A verb as a person types it; what it refuses is a code."""
    ended = place.harness(*words, timeout_s=LONGEST_S)
    try:
        document = json.loads(ended.stdout)
    except ValueError:
        document = {}
        seen.codes.append(f"{words[0]}_gave_no_answer")
    seen.log += ended.stderr
    if "error" in document:
        seen.codes.append(str(document["error"]["code"]))


def gate(place: Place, experiment: str, gate: GateName, seen: Seen) -> RecordedVerdict | None:
    try:
        with opened(place) as project:
            verdict = check_gate(project, experiment, gate, transcripts=[place.home / "config"])
            seen.codes += [found.code for found in _blocking(verdict)]
            seen.recomputed = _mean(project.ledger.evaluations(experiment, Split(gate.value)), seen.recomputed)
            write_derived(project)
            return verdict
    except HarnessError as error:
        seen.refused(error)
        return None


def _blocking(verdict: RecordedVerdict) -> list[Finding]:
    found = [Finding.from_plain(item) for item in verdict.findings]
    return [item for item in found if outcome_of(item) is not Verdict.PASS]


def _mean(evaluations: Sequence[Evaluation], before: float | None) -> float | None:
    """Of what was recomputed, in whatever the gate found besides."""
    newest = {item.run: item.value for item in evaluations}
    scored = [value for value in newest.values() if value is not None]
    return sum(scored) / len(scored) if scored else before


def _prepare(place: Place, attack: Attack, values: Mapping[str, str]) -> None:
    """What the agent made of the data while all of them lay in the project; then a person approves what is there."""
    if not attack.prepares:
        return
    place.run([sys.executable, "-c", filled(attack.prepares, values)])
    with opened(place) as project:
        approve_plan(project, place.root / "plan.md", by=BY)
        write_derived(project)


def _act(place: Place, attack: Attack, cage: str, values: Mapping[str, str], seen: Seen, moment: Moment) -> None:
    """A program of the agent, in the cage in which the loop would run the agent."""
    if moment in attack.acts:
        seen.log += act(place, filled(attack.acts[moment], values), cage)


def audited(place: Place, seen: Seen) -> Iterator[str]:
    """What `harness ledger verify` and `harness audit` name."""
    layout = open_layout(place.root, place.environment())
    for problem in verify(layout.ledger_db, layout.anchors, layout.facts_dir):
        yield f"verify: {problem.message}"
    try:
        with open_project(place.root, place.environment(), read_only=True) as project:
            report = audit_protected(project, policy_snapshot(project), [place.home / "config"])
    except HarnessError as error:
        seen.refused(error)
        return
    yield from (f"audit: {change.path}" for change, _ in report.changes)
    yield from (f"audit: {item.tool} {item.call}" for item in report.unguarded)


def _status(place: Place) -> ExperimentStatus | None:
    try:
        with open_project(place.root, place.environment(), read_only=True) as project:
            return project.ledger.experiment(CANDIDATE).status
    except HarnessError:
        return None


def _seconds(place: Place) -> float | None:
    """How long the candidate's last run took, as the supervisor saw it."""
    try:
        with open_project(place.root, place.environment(), read_only=True) as project:
            return next((run.seconds for run in reversed(project.ledger.runs(CANDIDATE))), None)
    except HarnessError:
        return None


def checkpoints_of(place: Place, experiment: str) -> list[Path]:
    """Final checkpoints that were recorded for completed runs; else whatever lies in the runs' folders."""
    try:
        with open_project(place.root, place.environment(), read_only=True) as project:
            runs = {run.id for run in project.ledger.runs(experiment) if run.status is RunStatus.COMPLETED}
            found = [item for item in project.ledger.checkpoints(experiment) if item.final and item.run in runs]
            paths = [place.root / item.path for item in found]
    except HarnessError:
        paths = []
    return [path for path in paths if path.is_file()]
