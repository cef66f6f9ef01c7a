"""The product with everything on; the attack happens between its steps.

Training and evaluation are started as a person starts them, in processes of their own; gates, audit
and ledger through the functions behind the commands. An agent's programs run in the loop's sandbox.
"""

import json
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

from harness.cheats.agent_acts import act, beside, sandbox_of
from harness.cheats.attack import Attack, AttackOutcome, Control, Moment, TrueScores
from harness.cheats.lab import LONGEST_S, LabProject, filled
from harness.cheats.programs import other_stream
from harness.cheats.recorded import (
    BY,
    CANDIDATE,
    PARENT,
    Trail,
    audited,
    checkpoints_of,
    ending_codes,
    looks_of,
    opened,
    seconds_of,
    status_of,
)
from harness.cheats.truth import EffectScene, copy_code, effect, true_score
from harness.decisions.experiments import open_experiment, record_result
from harness.decisions.person import approve
from harness.domain.findings import Finding
from harness.domain.grade import Grade
from harness.domain.statuses import ExperimentStatus, GateName, SandboxKind, Split, Verdict
from harness.errors import HarnessError, PlanError, RefusedError
from harness.evaluation.scorer_probes import prober
from harness.evaluation.scores import counted_evaluations
from harness.gates.check import check_gate
from harness.gates.findings import outcome_of
from harness.ledger.facts import Evaluation, RecordedVerdict
from harness.plans.approval import approve_plan
from harness.plans.approved import plan_of
from harness.rendering.derived import write_derived
from harness.sandbox.select import choose

NOT_BETTER = "not_better_than_the_parent"
"""The comparison with the parent, by which the loop keeps or discards; no finding of a gate."""
_FAULTS = ("harness_failed",)
"""Errors that the product did not expect: neither a defence nor an attack."""
_VERB_S = 3 * LONGEST_S


@dataclass(frozen=True, kw_only=True)
class Parent:
    true: float
    recomputed: Mapping[str, float]
    """Split -> mean."""


NOTHING: dict[str, Any] = dict.fromkeys(("id", "area", "mechanism", "source"), "") | {
    "kind": "training"
}


def values_of(place: LabProject) -> dict[str, str]:
    state = place.state
    held_out = next(iter(sorted((state / "vault" / "held_out").glob("*.npz"))), state / "none")
    return {
        "ROOT": str(place.root),
        "STATE": str(state),
        "HELD_OUT": str(held_out),
        "LABELS": str(held_out),
        "MARK": place.mark,
        "PYTHON": sys.executable,
        "PATH": os.environ["PATH"],
        "LAST": "run-03",
    }


def defended(
    place: LabProject, work: Attack | Control, sandbox: str, parent: "Parent"
) -> tuple[AttackOutcome, TrueScores]:
    """Let it happen at `place`, a copy of the project with its kept `parent`."""
    attack = work if isinstance(work, Attack) else _as_attack(work)
    values, seen = values_of(place), Trail()
    if not _prepare(place, attack, values, seen):
        # No approval, so no line of experiments begins with these data.
        return AttackOutcome(codes=tuple(seen.codes)), TrueScores(
            score=parent.true, parent=parent.true
        )
    place.write(attack.files, values)
    _act(place, attack, sandbox, values, seen, Moment.BEFORE)
    code = copy_code(place, place.base / "code")
    first = None if attack.prepares else PARENT
    if open_one(place, f"Candidate {attack.id}", first, attack.claims, attack.summary, seen):
        verdict = judged(place, attack, sandbox, values, seen, CANDIDATE)
    else:
        verdict = None
    named = list(audited(place, seen))
    truth = TrueScores(
        score=true_score(place, code, checkpoints_of(place, CANDIDATE)), parent=parent.true
    )
    told = {} if verdict is None or verdict.score is None else verdict.score
    looks, seconds = looks_of(place, CANDIDATE), seconds_of(place, CANDIDATE)
    scene = EffectScene(
        place=place,
        values=values,
        log=seen.log,
        seconds=seconds,
        looks=looks,
        broken=seen.broken,
    )
    outcome = AttackOutcome(
        believed=(
            seen.recomputed.get(verdict.gate)
            if told and verdict and verdict.verdict is Verdict.PASS
            else None
        ),
        kept=status_of(place, CANDIDATE) is ExperimentStatus.KEPT,
        recomputed=dict(seen.recomputed),
        codes=tuple(dict.fromkeys(seen.codes)),
        named=tuple(named),
        grade=Grade.read(told["not_isolated"]).words if told else "",
        evidence={
            "done": effect(attack, scene),
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
    place: LabProject,
    hypothesis: str,
    parent: str | None,
    claims: Mapping[str, str],
    summary: str,
    seen: Trail,
) -> bool:
    try:
        with opened(place) as project:
            record = open_experiment(
                project, hypothesis=hypothesis, rationale="", parent=parent, by="agent"
            )
            folder = project.layout.experiment(record.id)
            (folder / "config.yaml").write_text("model: centroids\n", "utf-8")
            record_result(
                project, record.id, claims=claims, summary=summary, shortfalls=(), by="agent"
            )
            write_derived(project)
    except HarnessError as error:
        seen.refused(error)
        return False
    return True


@dataclass(frozen=True, kw_only=True)
class Caller:
    """Who types the commands: a person, or the agent of `attack` in its own shell, in a session of
    `harness claude` where there is a sandbox, else in a plain one."""

    place: LabProject
    attack: Attack
    sandbox: str
    values: Mapping[str, str]
    seen: Trail

    def verb(self, *words: str) -> None:
        """Run `harness WORDS`; a refusal is a code. Raises HarnessError when it broke, which is no
        defence, unless that is the attack's aim."""
        ended = self._typed(words)
        try:
            document = json.loads(ended.stdout)
        except ValueError:
            document = None
        self.seen.log += ended.stderr
        code = None if document is None else document.get("error", {}).get("code")
        if document is None or code in _FAULTS:
            self._broke(words, ended)
        elif code is not None:
            self.seen.codes.append(str(code))

    def _typed(self, words: Sequence[str]) -> "CompletedProcess[str]":
        shell = self.attack.shell
        if shell is None:
            # What happens beside it looks for its command line, and runs in another thread.
            anew = Moment.DURING in self.attack.acts
            return self.place.harness(*words, timeout_s=_VERB_S, anew=anew)
        python = str(self.place.root / shell.python) if shell.python else sys.executable
        values = self.values
        command = [python, "-m", "harness", *words]
        given = {"CLAUDECODE": "1"}
        if (kind := sandbox_of(self.sandbox).kind) is not SandboxKind.NONE:
            values = {**values, "PATH": "$PATH"}
            said = "".join(f'export {name}="{text}"; ' for name, text in shell.variables.items())
            script = filled(said, values) + shlex.join(["harness", *words])
            session = ["harness", "claude", "--json", "--sandbox", kind, "--", "-c", script]
            command = [python, "-P", "-m", *session]
            given = {"PATH": f"{self._programs()}:{os.environ['PATH']}"}
        else:
            given |= {name: filled(text, values) for name, text in shell.variables.items()}
        return self.place.run(
            command, environment=self.place.environment(**given), timeout_s=_VERB_S
        )

    def _programs(self) -> Path:
        """A folder in which `claude` is a shell: it does what an agent would have it do."""
        folder = self.place.home / "programs"
        folder.mkdir(exist_ok=True)
        # The first two words are the settings that the session gives to the CLI.
        (folder / "claude").write_text('#!/bin/bash\nshift 2\nexec /bin/bash "$@"\n')
        (folder / "claude").chmod(0o755)
        return folder

    def _broke(self, words: Sequence[str], ended: "CompletedProcess[str]") -> None:
        self.seen.broken = True
        killed = Moment.DURING in self.attack.acts and ended.returncode < 0
        if self.attack.breaks_judge or killed:
            return
        raise HarnessError(
            f"`harness {' '.join(words[:2])}` gave no answer:"
            f" {ended.stdout[-300:]}{ended.stderr[-300:]}",
            hint="Fix what broke, then run the row again.",
        )


def judged(
    place: LabProject,
    attack: Attack,
    sandbox: str,
    values: Mapping[str, str],
    seen: Trail,
    experiment: str,
    *,
    decide: bool = True,
) -> RecordedVerdict | None:
    """Train, evaluate and judge on both splits; a person keeps what passed and is better. Returns
    the last verdict."""
    _act(place, attack, sandbox, values, seen, Moment.OPENED)
    by = Caller(place=place, attack=attack, sandbox=sandbox, values=values, seen=seen)
    # An agent may not lower the isolation, so it leaves that to the command.
    within = [] if attack.shell else ["--sandbox", sandbox, "--reason", "The lab compares them."]
    words = [*(attack.shell.train_words if attack.shell else ()), "--json"]
    words += ["--", *attack.command] if attack.command else []
    moment = Moment.DURING
    meanwhile = partial(_act, place, attack, sandbox, values, seen, moment)
    with beside(meanwhile if moment in attack.acts else None):
        for _ in range(1 + attack.retries):
            by.verb("train", experiment, *within, *words)
    seen.codes += ending_codes(place, experiment)
    _act(place, attack, sandbox, values, seen, Moment.TRAINED)
    for _ in range(1 + attack.asks):
        by.verb("evaluate", experiment, *within, "--json")
    _act(place, attack, sandbox, values, seen, Moment.EVALUATED)
    verdict = gate(place, experiment, GateName.VALIDATION, seen)
    if verdict is None or verdict.verdict is not Verdict.PASS:
        return verdict
    _act(place, attack, sandbox, values, seen, Moment.PASSED)
    by.verb("evaluate", experiment, "--split", "held-out", *within, "--json")
    for number in range(1, attack.looks):
        _look_again(by, within, experiment, number)
    verdict = gate(place, experiment, GateName.HELD_OUT, seen)
    if Moment.CLOSED in attack.acts:
        _act(place, attack, sandbox, values, seen, Moment.CLOSED)
        # As it stands when a person decides.
        verdict = gate(place, experiment, GateName.HELD_OUT, seen)
    if decide and verdict is not None and verdict.verdict is Verdict.PASS:
        _decide(place, experiment, verdict, seen)
    return verdict


def _look_again(by: Caller, within: Sequence[str], experiment: str, number: int) -> None:
    """A new look at held-out needs another program, its runs, their scores and a PASS."""
    train = by.place.root / "train.py"
    train.write_text(other_stream(train.read_text("utf-8"), number), "utf-8")
    by.verb("train", experiment, *within, "--json")
    by.verb("evaluate", experiment, *within, "--json")
    gate(by.place, experiment, GateName.VALIDATION, by.seen)
    by.verb("evaluate", experiment, "--split", "held-out", *within, "--json")


def _decide(place: LabProject, experiment: str, verdict: RecordedVerdict, seen: Trail) -> None:
    """As the loop does: keep only what is better beyond the noise floor."""
    if not (verdict.comparison or {}).get("better"):
        seen.codes.append(NOT_BETTER)
        return
    try:
        with opened(place) as project:
            approve(project, experiment, by=BY, reason="It passed and is better.")
            write_derived(project)
    except HarnessError as error:
        seen.refused(error)


def gate(
    place: LabProject, experiment: str, gate: GateName, seen: Trail
) -> RecordedVerdict | None:
    try:
        with opened(place) as project:
            verdict = check_gate(project, experiment, gate, transcripts=[place.home / "config"])
            seen.codes += [finding.code for finding in _blocking(verdict)]
            split = Split(gate.value)
            approved = plan_of(project, project.ledger.experiment(experiment))
            # The lab's own look, as a person's: nothing of it lands where the agent reads.
            exact = counted_evaluations(project, experiment, approved, split)
            seen.recomputed |= _mean(split, exact)
            write_derived(project)
            return verdict
    except HarnessError as error:
        seen.refused(error)
        return None


def _blocking(verdict: RecordedVerdict) -> list[Finding]:
    return [finding for finding in verdict.findings if outcome_of(finding) is not Verdict.PASS]


def _mean(split: Split, evaluations: Sequence[Evaluation]) -> dict[str, float]:
    """Split -> mean of what was recomputed on it, whatever the gate found; {} without a value."""
    newest = {one.run: one.value for one in evaluations}
    scored = [value for value in newest.values() if value is not None]
    return {split.value: sum(scored) / len(scored)} if scored else {}


def _prepare(place: LabProject, attack: Attack, values: Mapping[str, str], seen: Trail) -> bool:
    """Data or an environment are prepared while all data lie in the project; then a person
    approves, with the Python that judges. Returns whether the approval was not refused."""
    if not attack.prepares:
        return True
    place.run([sys.executable, "-c", filled(attack.prepares, values)])
    if attack.shell is not None and attack.shell.python:
        python = str(place.root / attack.shell.python)
        place.run_in_terminal([python, "-P", "-m", "harness", "plan", "approve"])
        return True
    try:
        with opened(place, new_config=True) as project:
            probe = prober(choose(None, required=False))
            approve_plan(project, place.root / "plan.md", by=BY, probe=probe)
            write_derived(project)
    except (RefusedError, PlanError) as error:
        seen.refused(error)
        return False
    return True


def _act(
    place: LabProject,
    attack: Attack,
    sandbox: str,
    values: Mapping[str, str],
    seen: Trail,
    moment: Moment,
) -> None:
    """Run a program of the agent in the sandbox of its session."""
    if moment in attack.acts:
        seen.log += act(place, filled(attack.acts[moment], values), sandbox)
