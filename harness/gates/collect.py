"""Gathers the evidence of a gate. Nothing is changed and nothing is recorded."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.artifacts.code_snapshot import read_snapshot
from harness.artifacts.content import read_text
from harness.artifacts.experiment_files import (
    Diagnosis,
    ResultFile,
    read_diagnosis,
    read_hypothesis,
    read_result,
)
from harness.artifacts.front_matter import read_yaml
from harness.audit.attribution import NOBODY, Suspect
from harness.audit.changes import Change
from harness.audit.protected import changed_while_open
from harness.contract.artifacts import Scope, required
from harness.detectors.alarm import Alarm
from harness.domain.findings import Finding
from harness.domain.records import Experiment, Run
from harness.domain.statuses import GateName, Split
from harness.errors import ConfigError
from harness.evaluation.predict_sources import OwnLibraries
from harness.evaluation.released import released_score, told_now
from harness.evaluation.scores import counted_runs, recorded_evaluations, seed_findings
from harness.evaluation.tries import comparison_inputs
from harness.files import canonical_json, sha256_bytes
from harness.gates import scores
from harness.gates.alarms import open_by_run
from harness.gates.config_changes import config_changes
from harness.gates.evidence import FileEvidence, GateEvidence, RunEvidence, ValidationReference
from harness.gates.findings import finding
from harness.gates.prior_rules import taught
from harness.gates.prose import prose
from harness.gates.run_evidence import next_idea, read_evidence, run_evidence
from harness.ledger.facts import ApprovedPlan, Evaluation, RecordedVerdict, TamperingNoticed
from harness.ledger.project import Project
from harness.plans.approved import (
    checkpoint_cadence,
    deterministic,
    frozen_changes,
    objective_of,
    plan_of,
    secret,
    seeds_of,
)
from harness.plans.changes import changed_since

_PARSERS: dict[str, Any] = {
    "hypothesis": read_hypothesis,
    "config": lambda path: read_yaml(read_text(path), where=path.name),
    "code": read_snapshot,
    "score": read_text,
    "result": read_result,
}
_VIEWS = frozenset({"score", "evaluation"})
"""Files that show what the ledger says: they must be there, but their bytes are no evidence."""
_MOST_NAMED = 3
"""Sessions named beside a changed control file."""


def collect(
    project: Project, experiment: str, gate: GateName, transcripts: Sequence[Path] = ()
) -> GateEvidence:
    """The evidence for `gate` without the comparison, with the hashes of all that was read.

    `transcripts`: folders to look in for the session that changed a control file. Raises
    NotFoundError for an unknown experiment and RefusedError without a plan; what is wrong with a
    file is a finding in the evidence.
    """
    with project.ledger.snapshot():
        return _collect(project, experiment, gate, transcripts)


def _collect(
    project: Project, experiment: str, gate: GateName, transcripts: Sequence[Path]
) -> GateEvidence:
    record = project.ledger.experiment(experiment)
    approved = plan_of(project, record)
    launched = project.ledger.runs(experiment)
    counted = counted_runs(launched)
    scored = recorded_evaluations(project, experiment, approved, Split(gate.value), counted)
    files, result = _files(project, experiment, gate)
    tampering = _tampering(project.ledger.tampering(), experiment)
    alarms = open_by_run(project, experiment)
    diagnosis_file, diagnosis = _diagnosis(project, experiment) if alarms else (None, None)
    evidence = GateEvidence(
        gate=gate,
        **_of_plan(project, approved, gate, experiment),
        claims={} if result is None else result.claims,
        prose=prose(project, experiment, result),
        shortfall=next(iter(result.shortfalls), None) if result is not None else None,
        experiment=record,
        files=files,
        alarms=alarms,
        diagnosis=diagnosis,
        diagnosis_file=diagnosis_file,
        next_planned=next_idea(project.layout.root, project.layout.experiment(experiment, "next")),
        runs=tuple(run_evidence(project, run, counted) for run in counted),
        launched=tuple(launched),
        evaluations=tuple(scored),
        libraries=OwnLibraries(project, approved).findings(scored),
        ignored_seeds=tuple(seed_findings(scored, deterministic=deterministic(approved))),
        frozen_changes=tuple(frozen_changes(project, project.plan())),
        approved_since=tuple(_approved_since(project, record, approved)),
        tampering=tampering,
        config_changes=tuple(config_changes(project, experiment, counted)),
        taught=tuple(taught(project, experiment)),
        control_changes=_control_findings(
            project, record, {fact.data["path"] for fact in tampering}, transcripts
        ),
        score=_score(project, experiment, approved, Split(gate.value)),
        compared=comparison_inputs(project, record, approved),
        validation=_reference(project, record) if gate is GateName.HELD_OUT else None,
    )
    return replace(evidence, hashes=_hashes(evidence, approved))


def _approved_since(
    project: Project, experiment: Experiment, approved: ApprovedPlan
) -> Iterable[Finding]:
    for plan, words in changed_since(project, approved.name, experiment.plan_version):
        bits = all(one.startswith("oracle.bits: ") for one in words.split("; "))
        yield finding(
            "approved_anew",
            f"Since {experiment.id} was opened {plan.by} approved version {plan.version} with"
            f" {'other bits' if bits else 'another judge'}: {words}.",
            version=plan.version,
        )


def _of_plan(
    project: Project, approved: ApprovedPlan, gate: GateName, experiment: str
) -> dict[str, Any]:
    """What the plan asks for and froze."""
    record = project.ledger.experiment(experiment)
    return {
        "objective": objective_of(approved),
        "checkpoint_every": checkpoint_cadence(approved),
        "isolation_required": approved.content.get("sandbox") == "required",
        "plan_seeds": seeds_of(project, record),
        "in_train": approved.splits[gate.value].get("in_train"),
    }


def _hashes(evidence: GateEvidence, approved: ApprovedPlan) -> dict[str, str]:
    return {
        "plan": _digest(_judging(evidence, approved)),
        "frozen": _digest(_identities((*evidence.frozen_changes, *evidence.tampering))),
        **_control_hash(evidence.control_changes),
        **_prose_hash(evidence.prose),
        **_alarm_hashes(evidence.alarms, evidence.diagnosis_file),
        "comparison": _digest(evidence.compared),
        **_told_hash(evidence.score),
        **_file_hashes(evidence.files),
        **_run_hashes(evidence.runs),
        **_launches_hash(evidence.launched, [one.run for one in evidence.runs]),
        **{f"{one.run}/evaluation": _digest(_plain(one)) for one in evidence.evaluations},
        **_library_hashes(evidence.libraries),
        **_reference_hash(evidence.validation),
    }


def _score(
    project: Project, experiment: str, approved: ApprovedPlan, split: Split
) -> dict[str, Any] | None:
    """What is told of the score, in codes: its grade's words are made where it is shown."""
    if secret(approved, split.value) and not told_now(project, experiment, approved, split):
        return None
    score = released_score(project, experiment, approved, split)
    return score and {name: value for name, value in score.items() if name != "evidence"}


def _told_hash(score: Mapping[str, Any] | None) -> dict[str, str]:
    """Of what was told of a sealed split: the verdict rests on it."""
    if score is None or "released" not in score:
        return {}
    # The tiers may be others since: `_judging` has what is left of them.
    told = {key: one for key, one in score["released"].items() if key not in ("tier", "or_more")}
    return {"told": _digest({**score, "released": told})}


def changed(project: Project, verdict: RecordedVerdict) -> tuple[str, ...]:
    """Sorted names of the evidence that changed since the verdict; one with any is STALE."""
    now = collect(project, verdict.experiment, GateName(verdict.gate)).hashes
    return difference(verdict.evidence, now)


def difference(before: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(sorted(name for name in {*before, *now} if before.get(name) != now.get(name)))


def _reference(project: Project, experiment: Experiment) -> ValidationReference:
    verdict = project.ledger.latest_verdict(experiment.id, GateName.VALIDATION)
    return ValidationReference(
        verdict=verdict, changed=() if verdict is None else changed(project, verdict)
    )


def _reference_hash(reference: ValidationReference | None) -> dict[str, str]:
    if reference is None or reference.verdict is None:
        return {}
    return {"validation": _digest([reference.verdict.id, list(reference.changed)])}


def _files(
    project: Project, experiment: str, gate: GateName
) -> tuple[tuple[FileEvidence, ...], ResultFile | None]:
    files, result = [], None
    for artifact in required(gate):
        if artifact.scope is not Scope.EXPERIMENT:
            continue
        path = project.layout.experiment(experiment, artifact.name)
        file, parsed = read_evidence(project.layout, artifact.name, path, _PARSERS[artifact.name])
        files.append(file)
        if artifact.name == "result" and parsed is not None:
            result = parsed
    return tuple(files), result


def _tampering(facts: Sequence[TamperingNoticed], experiment: str) -> tuple[Finding, ...]:
    """What was noticed during this experiment; what the audit finds by itself names none."""
    return tuple(
        finding(
            "tampering_noticed",
            f"{fact.what}: {fact.path} had {fact.actual[:12] or 'nothing'}; expected"
            f" {fact.expected[:12]}.",
            path=fact.path,
            what=fact.what,
            expected=fact.expected,
            actual=fact.actual,
        )
        for fact in facts
        if fact.experiment == experiment
    )


def _control_findings(
    project: Project, experiment: Experiment, noticed: Set[str], transcripts: Sequence[Path]
) -> tuple[Finding, ...]:
    """One finding for each control file that changed while the experiment was open."""
    try:
        changes = changed_while_open(project, experiment, noticed, transcripts)
    except ConfigError as error:
        damaged = {
            "path": str(project.layout.accepted),
            "keys": [],
            "expected": "",
            "actual": error.message,
            "sessions": [],
        }
        return (finding("protected_path_changed", error.message, error.hint, **damaged),)
    return tuple(_control_finding(change, suspects) for change, suspects in changes)


def _control_finding(change: Change, suspects: Sequence[Suspect]) -> Finding:
    named = [f"session {one.session}, {one.words()}" for one in suspects[:_MOST_NAMED]]
    return finding(
        "protected_path_changed",
        f"{change.words()}: {'; '.join(named) or NOBODY}.",
        path=change.path,
        keys=[part for part, _, _ in change.parts if part],
        expected=change.expected,
        actual=change.actual,
        sessions=[one.session for one in suspects],
    )


def _control_hash(control: Sequence[Finding]) -> dict[str, str]:
    """Of the changes; the sessions named beside them are no evidence."""
    changes = [[one.data["path"], one.data["expected"], one.data["actual"]] for one in control]
    return {"control": _digest(changes)} if changes else {}


def _diagnosis(project: Project, experiment: str) -> tuple[FileEvidence, Diagnosis | None]:
    path = project.layout.experiment(experiment, "diagnosis")
    return read_evidence(project.layout, "diagnosis", path, read_diagnosis)


def _alarm_hashes(
    alarms: Mapping[str, Sequence[Alarm]], file: FileEvidence | None
) -> dict[str, str]:
    if not alarms:
        return {}
    raised = {
        run: [[one.code, one.severity, one.metric, one.row, one.recovered] for one in of_run]
        for run, of_run in alarms.items()
    }
    diagnosis = {} if file is None or file.sha256 is None else {"diagnosis": file.sha256}
    return {"alarms": _digest(raised), **diagnosis}


def _prose_hash(prose: Sequence[Finding]) -> dict[str, str]:
    """Of the claims that do not hold: another experiment's score may have changed since."""
    return {"prose": _digest(_identities(prose))} if prose else {}


def _file_hashes(files: Sequence[FileEvidence]) -> dict[str, str]:
    return {
        file.name: file.sha256
        for file in files
        if file.sha256 is not None and file.name not in _VIEWS
    }


def _library_hashes(found: Sequence[Finding]) -> dict[str, str]:
    """Of the packages that changed; nothing while they are as they were."""
    changes = [one.data["packages"] for one in found if one.code == "libraries_changed"]
    return {f"libraries/{name}": to for change in changes for name, to in change.items()}


def _run_hashes(runs: Sequence[RunEvidence]) -> dict[str, str]:
    hashes = {}
    of_runs = [(of_run.run.id, of_run) for of_run in runs]
    of_runs += [(origin.name, origin) for of_run in runs for origin in of_run.origins]
    for name, of_run in of_runs:
        run = of_run.run
        hashes[name] = _digest(
            [
                run.seed,
                run.status,
                run.code,
                run.sandbox,
                run.token,
                run.files,
                *_known(run.caller),
                *_identities(run.findings),
            ]
        )
        for file in (of_run.metrics, of_run.status):
            if file.sha256 is not None:
                hashes[f"{name}/{file.name}"] = file.sha256
        if of_run.final is not None and of_run.final.actual is not None:
            hashes[f"{name}/checkpoint"] = of_run.final.actual
    return hashes


def _judging(evidence: GateEvidence, approved: ApprovedPlan) -> list[Any]:
    """What of the plan decides the verdict. Of the tiers it is whether the score reaches the least
    one; budget, loop, alarms and gate mode decide nothing here."""
    return [
        approved.basis,
        approved.splits,
        evidence.checkpoint_every,
        evidence.isolation_required,
        deterministic(approved),
        [one.code for one in scores.tier(evidence)],
    ]


def _launches_hash(launched: Sequence[Run], counted: Sequence[Run]) -> dict[str, str]:
    """Of the launches, where that says more than the runs that count."""
    return (
        {"launches": _digest([[run.id, run.status] for run in launched])}
        if len(launched) > len(counted)
        else {}
    )


def _plain(one: Evaluation) -> list[Any]:
    # The order is part of the hash: a change of it makes every verdict stale.
    return [
        one.seed,
        one.split,
        one.metric,
        one.sealed or one.value,
        one.n,
        one.checkpoint,
        one.code,
        one.inputs,
        one.labels,
        one.scorer,
        one.predictions,
        one.sandbox,
        one.plan_version,
        *_known(one.caller),
        *_identities(one.findings),
    ]


def _known(caller: str | None) -> list[str]:
    return [] if caller is None else [caller]


def _identities(findings: Iterable[Finding]) -> list[Any]:
    """Findings without their sentences: a reworded message must make no verdict stale."""
    return [[one.code, dict(one.data)] for one in findings]


def _digest(value: Any) -> str:
    return sha256_bytes(canonical_json(value))
