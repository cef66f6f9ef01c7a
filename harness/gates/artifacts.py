"""Checks of the files that an experiment and its runs must leave."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

from harness.artifacts.metrics_notes import SLACK_S
from harness.clock import iso, parse_iso
from harness.contract.artifacts import BY_NAME
from harness.domain.findings import BYPASSED as BYPASSED
from harness.domain.findings import CLOCK_SET, Finding
from harness.domain.statuses import FINAL_RUNS, RunStatus
from harness.evaluation.predict_sources import lineage
from harness.evaluation.scores import started
from harness.gates.evidence import FileEvidence, GateEvidence, RunEvidence
from harness.gates.findings import finding

OF_A_RUN = ("metrics", "status", "checkpoints", "evaluation")


def bypass(evidence: GateEvidence) -> Iterator[Finding]:
    """No run is without rows of the run logger."""
    for of_run in trained(evidence):
        yield from (finding for finding in of_run.run.findings if finding.code == BYPASSED)


def supervisor_findings(evidence: GateEvidence) -> Iterator[Finding]:
    """What else the supervisor found."""
    for of_run in _accountable(evidence):
        yield from (finding for finding in of_run.run.findings if finding.code != BYPASSED)


def files(evidence: GateEvidence) -> Iterator[Finding]:
    """The experiment's own files are there, regular, not empty, readable."""
    for file in evidence.files:
        # Without bits there is no look to make it: that is said once, with the way out.
        if evidence.way_out is None or file.name not in _BY_EVALUATE or file.sha256 is not None:
            yield from _file(file)


def configuration(evidence: GateEvidence) -> Iterator[Finding]:
    """config.yaml says what it said when the runs were registered; else the change is shown."""
    yield from evidence.config_changes


def seeds(evidence: GateEvidence) -> Iterator[Finding]:
    """Every seed of the plan or baseline, and each that was started, has a completed run; no other
    seed has one."""
    wanted = max(evidence.objective.seeds, evidence.experiment.seeds or 0)
    runs = [of_run.run for of_run in evidence.runs]
    completed = [run for run in runs if run.status is RunStatus.COMPLETED]
    if not runs:
        yield finding(
            "runs_missing",
            f"{evidence.experiment.id} has no registered run; expected {wanted} seeds.",
        )
        for name in OF_A_RUN:
            yield _missing(name, f"no run of {evidence.experiment.id} was registered")
        return
    for run in runs:
        if run.status not in FINAL_RUNS:
            yield finding(
                "run_open", f"{run.experiment}/{run.id} (seed {run.seed}) is {run.status}."
            )
    if foreign := sorted(run.seed for run in runs if run.seed not in evidence.plan_seeds):
        yield finding(
            "seeds_not_of_the_plan",
            f"{evidence.experiment.id} has runs of the seeds {', '.join(map(str, foreign))};"
            " expected only the seeds that the harness chose for the plan:"
            f" {', '.join(map(str, sorted(evidence.plan_seeds)))}.",
            seeds=foreign,
        )
    ended = [
        run for run in runs if run.status in FINAL_RUNS and run.status is not RunStatus.COMPLETED
    ]
    if ended or len(runs) < wanted:
        stopped = "".join(
            f" {run.id} (seed {run.seed}) {run.status}: {run.reason}" for run in ended
        )
        yield finding(
            "seeds_outstanding",
            f"{len(completed)} of {max(wanted, len(runs))} seeds have a completed run of the newest"
            f" code and command.{stopped}",
            completed=len(completed),
            wanted=wanted,
        )


def run_files(evidence: GateEvidence) -> Iterator[Finding]:
    """metrics.jsonl and training_status.json are the run's own, and as they were at its end."""
    for of_run in _accountable(evidence):
        yield from _metrics(of_run)
        yield from _status(of_run)


def cadence(evidence: GateEvidence) -> Iterator[Finding]:
    """A completed run saved a checkpoint at least every `checkpoint_every` epochs."""
    every = evidence.checkpoint_every
    for of_run in trained(evidence):
        gap = of_run.without_checkpoint
        if (
            every is None
            or gap is None
            or of_run.run.status is not RunStatus.COMPLETED
            or gap[1] - gap[0] < every
        ):
            continue
        yield finding(
            "checkpoint_cadence",
            f"{of_run.name} saved no checkpoint from epoch {gap[0]:g} to {gap[1]:g}; the plan's "
            f"training.checkpoint_every is {every}.",
            run=of_run.name,
            first=gap[0],
            last=gap[1],
            every=every,
        )


def checkpoints(evidence: GateEvidence) -> Iterator[Finding]:
    """Each run has a final checkpoint of its own, and the file still has the recorded hash."""
    takers = [of_run for of_run in evidence.runs if of_run.origins]
    for of_run in (*_accountable(evidence), *takers):
        final = of_run.final
        if final is None:
            yield finding(
                "checkpoint_missing",
                f"{of_run.name} has no final checkpoint that the harness recorded.",
                run=of_run.name,
            )
        elif final.removed is not None:
            yield finding(
                "checkpoint_removed",
                f"{final.checkpoint.path} of {of_run.name} ({final.checkpoint.id[:12]}) was removed"
                f" by `harness gc` at {final.removed}.",
                path=final.checkpoint.path,
                expected=final.checkpoint.id,
            )
        elif final.actual != final.checkpoint.id:
            now = "is not there" if final.actual is None else f"has the hash {final.actual[:12]}"
            yield finding(
                "checkpoint_changed",
                f"{final.checkpoint.path} of {of_run.name} {now}; expected"
                f" {final.checkpoint.id[:12]}.",
                path=final.checkpoint.path,
                expected=final.checkpoint.id,
                actual=final.actual or "",
            )
        elif final.earlier is not None:
            yield finding(
                "checkpoint_copied",
                f"The final checkpoint of {of_run.name} has the bytes that {final.earlier} left"
                " earlier.",
                run=of_run.name,
                earlier=final.earlier,
            )


def bypassed(of_run: RunEvidence) -> bool:
    return any(finding.code == BYPASSED for finding in of_run.run.findings)


def _accountable(evidence: GateEvidence) -> list[RunEvidence]:
    """Runs that must have left everything."""
    # One that failed or was killed cannot: its seed is outstanding, which is no breach. One that
    # bypassed the run logger is told all that is missing, however it ended.
    return [
        of_run
        for of_run in trained(evidence)
        if of_run.run.status is RunStatus.COMPLETED or bypassed(of_run)
    ]


def trained(evidence: GateEvidence) -> list[RunEvidence]:
    """The runs that count, in place of one that took its weights those that trained them."""
    return [one for of_run in evidence.runs for one in of_run.origins or (of_run,)]


def _file(file: FileEvidence, run: str | None = None) -> Iterator[Finding]:
    yield from file.problems
    if file.sha256 is None and not file.problems:
        yield _missing(file.name, f"{file.path} is not there", run)


def _missing(name: str, why: str, run: str | None = None) -> Finding:
    artifact = BY_NAME[name]
    code = "evaluation_missing" if name in _BY_EVALUATE else "artifact_missing"
    data = {"artifact": name} if run is None else {"artifact": name, "run": run}
    message = f"{artifact.path} ({artifact.purpose}) is missing: {why}."
    return finding(code, message, _HINTS.get(name), **data)


_BY_EVALUATE = {"evaluation", "score"}
_HINTS = {
    "hypothesis": (
        "Restore hypothesis.md in the experiment's folder; `harness experiment new` writes it"
        " first."
    ),
    "config": "Write the experiment's configuration to config.yaml in its folder.",
    "result": (
        "Write result.md: `harness experiment result EXP --claim METRIC=VALUE --summary TEXT`,"
        " claiming only the recomputed number, or none; an oracle calls `record_result` for it."
    ),
    "metrics": "Train through `harness train` and let the run logger write it.",
    "status": "Train through `harness train` and let the run logger write it.",
    "checkpoints": (
        "Save into `log.checkpoint_dir` and call `log.checkpoint_saved(path, final=True)`."
    ),
    "code": "Train through `harness train`: it keeps the code snapshot.",
    "evaluation": "Train first, then run `harness evaluate EXP`.",
    "score": "Train first, then run `harness evaluate EXP`.",
}


def _metrics(of_run: RunEvidence) -> Iterator[Finding]:
    yield from _file(of_run.metrics, of_run.name)
    if of_run.metrics.sha256 is None or of_run.metrics.problems:
        return
    if not of_run.epochs:
        yield finding(
            "metrics_without_epochs", f"{of_run.metrics.path} of {of_run.name} holds no epoch row."
        )
    if foreign := sorted(of_run.row_runs - {of_run.name}):
        yield finding(
            "metrics_of_another_run",
            f"{of_run.metrics.path} has rows of {', '.join(map(repr, foreign))}; expected only"
            f" {of_run.name}.",
        )
    elif of_run.row_tokens != {of_run.run.token}:
        why = (
            "carries another run's token"
            if of_run.row_tokens
            else "has no start row with the run's token"
        )
        yield finding(
            "metrics_of_another_run",
            f"{of_run.metrics.path} {why}; expected the one given to {of_run.name}.",
        )
    yield from _changed("metrics_changed", of_run, of_run.metrics)


def _status(of_run: RunEvidence) -> Iterator[Finding]:
    yield from _file(of_run.status, of_run.name)
    if of_run.status.sha256 is None or of_run.status.problems:
        return
    if of_run.status_run != of_run.name:
        yield finding(
            "status_of_another_run",
            f"{of_run.status.path} is of {of_run.status_run!r}; expected {of_run.name}.",
        )
    elif of_run.run.status is RunStatus.COMPLETED and of_run.status_state != RunStatus.COMPLETED:
        yield finding(
            "status_of_another_run",
            f"{of_run.status.path} says {of_run.status_state!r}; expected 'completed'.",
        )
    yield from _changed("status_changed", of_run, of_run.status)


def _changed(code: str, of_run: RunEvidence, file: FileEvidence) -> Iterator[Finding]:
    """By the supervisor's hash at the run's end."""
    recorded = of_run.run.files.get(file.name)
    if recorded != file.sha256:
        was = (
            f"it was {recorded[:12]} when {of_run.name} ended"
            if recorded
            else f"{of_run.name} ended without it"
        )
        yield finding(
            code,
            f"{file.path} is {str(file.sha256)[:12]}; {was}.",
            path=file.path,
            expected=recorded or "",
            actual=file.sha256 or "",
        )


_SLACK = timedelta(seconds=SLACK_S)


def row_times(evidence: GateEvidence) -> Iterator[Finding]:
    """Each row has a time between the run's registration and its end, and none goes back."""
    # Where the supervisor saw the clock jump the times mean nothing; where it reported such rows
    # itself they are not reported twice.
    for of_run in trained(evidence):
        reported = any(
            finding.code in (CLOCK_SET, "metrics_out_of_time") for finding in of_run.run.findings
        )
        if of_run.run.status is RunStatus.COMPLETED and of_run.times is not None and not reported:
            yield from _times(of_run)


def launches(evidence: GateEvidence) -> Iterator[Finding]:
    """Restarts and runs that do not count are reported, a best of N shows its N; so are runs that
    trained nothing."""
    if taken := sorted({name for of_run in evidence.runs for name in of_run.run.taken_from}):
        last = evidence.runs[-1]
        codes = lineage(last.run, [origin.run for origin in last.origins])
        yield finding(
            "checkpoints_taken",
            f"{evidence.experiment.id} has the weights of {', '.join(taken)}: it changes predict"
            f" alone, and trained nothing. It is scored by the {codes}.",
            runs=taken,
        )
    for of_run in evidence.runs:
        if of_run.starts > 1:
            yield finding(
                "run_restarted",
                f"The training of {of_run.name} was started {of_run.starts} times inside the run.",
                run=of_run.name,
                starts=of_run.starts,
            )
    counted = {of_run.run.id for of_run in evidence.runs}
    others = [run for run in evidence.launched if run.id not in counted]
    if others:
        never = sum(run.never_started for run in others)
        newest = started(evidence.launched)[-1]
        tried = [run for run in others if not run.never_started]
        of_now = sum((run.code, run.argv) == (newest.code, newest.argv) for run in tried)
        how = ", ".join(
            f"{count} {status}"
            for status, count in sorted(Counter(str(run.status) for run in others).items())
        )
        yield finding(
            "launches_beyond_seeds",
            f"{evidence.experiment.id} was launched {len(evidence.launched)} times; {len(counted)}"
            f" runs count. Of the others ({how}) {len(tried) - of_now} used other code or"
            f" another command, {of_now} the same"
            + (f", and {never} never started." if never else "."),
            launches=len(evidence.launched),
            counted=len(counted),
        )


def _times(of_run: RunEvidence) -> Iterator[Finding]:
    times = of_run.times
    assert times is not None
    path = of_run.metrics.path
    if times.without:
        yield _out(of_run, f"{times.without} rows of {path} have no time.")
    begun = parse_iso(of_run.run.registered_at)
    if times.first is not None and times.first < begun - _SLACK:
        yield _out(
            of_run,
            f"A row of {path} is of {iso(times.first)}; {of_run.name} was registered at"
            f" {iso(begun)}.",
        )
    ended = None if of_run.run.ended_at is None else parse_iso(of_run.run.ended_at)
    if times.last is not None and ended is not None and times.last > ended + _SLACK:
        yield _out(
            of_run,
            f"A row of {path} is of {iso(times.last)}; {of_run.name} ended at {iso(ended)}.",
        )
    if times.back_s > SLACK_S:
        yield _out(
            of_run,
            f"From one row of {path} to the next the time goes back by {times.back_s:.0f} s.",
        )


def _out(of_run: RunEvidence, message: str) -> Finding:
    return finding("metrics_out_of_time", message, run=of_run.name)
