"""The first message of each session: what is known, what failed before and what to do now."""

import re
from collections.abc import Sequence

from harness.artifacts.locate import Layout
from harness.contract.phases import EVIDENCE
from harness.contract.profiles import BRIEFING_CHARACTERS
from harness.detectors.alarm import Alarm
from harness.domain.findings import as_markdown
from harness.domain.plain_text import code, inline
from harness.domain.statuses import Direction
from harness.gates.alarms import as_news
from harness.ledger.facts import ApprovedPlan
from harness.ledger.phases import PhaseView
from harness.loop.steps import Build, Diagnose, JudgeResult, Scout
from harness.plans.approved import data_told, objective_of
from harness.projections.text import BANNER

MOST_ALARMS = 20
_VERDICT = re.compile(r"^## Last verdict\n.*?(?=^## )", re.MULTILINE | re.DOTALL)
_BESIDE = (
    "once: others train beside it, so do not wait for its end. The files may hold the idea of an"
    " experiment that trains now; each run keeps the code that it was started with"
)


def build_message(
    step: Build,
    plan: ApprovedPlan,
    briefing: str,
    hypothesis: str | None = None,
    *,
    beside: bool = False,
    branch: str = "",
) -> str:
    """For a model-builder. `hypothesis` is that of the step's experiment, if it is already open;
    `beside`: other experiments may train meanwhile; `branch`: where the code is that it builds
    on, when it is not here."""
    head = _head(f"Experiment {step.index}, attempt {step.attempt}", plan)
    parts = [f"{head}\nWorkflow: {inline(plan.content['workflow'])}."]
    if briefing:
        parts.append(f"## Briefing\n\n{briefing}")
    if step.findings:
        parts.append(
            "## The gate did not pass the last experiment\n\nIts findings, word for word. Fix or"
            " answer each.\n\n" + as_markdown(step.findings)
        )
    if step.candidates:
        parts.append(_candidates(step))
    begin = (
        f"{step.experiment} is already open: call open_experiment with its hypothesis, which is:"
        f" {inline(hypothesis or '')}"
        if step.experiment
        else "Call open_experiment with one hypothesis."
    )
    parts.append(
        f"## What to do\n\n{begin} Write its code and your files, call start_run, then run_status"
        f" {_BESIDE if beside else 'until it has ended'}. Training runs through start_run only; its"
        " entry is"
        f" {code(plan.content['training']['entry'])}, predictions come from"
        f" {code(plan.content['oracle']['predict'])}. It is compared with"
        f" {step.parent or 'the trivial predictor'}.{f' {branch}' if branch else ''}"
    )
    return "\n\n".join(parts)


def _candidates(step: Build) -> str:
    lines = [
        f"{place}. {inline(idea.text)}"
        + (f" (answers {idea.answers}, confidence {idea.confidence})" if idea.answers else "")
        for place, idea in enumerate(step.candidates, start=1)
    ]
    what = (
        "Fix what the diagnosis names; start with the first one that fits your hypothesis."
        if step.experiment
        else "The first is the next hypothesis. If the evidence speaks against it, say so."
    )
    head = f"## Candidates, ranked\n\nFrom next.md and diagnosis.md of the last experiment. {what}"
    return "\n".join([head, "", *lines])


def diagnose_message(
    step: Diagnose, plan: ApprovedPlan, alarms: Sequence[Alarm], memory: str = ""
) -> str:
    """For a training-checker; `memory`: what is known of such alarms."""
    news = "\n".join(
        f"- {as_news(f'{step.experiment}/{step.run}', alarm)}" for alarm in alarms[:MOST_ALARMS]
    )
    return _joined(
        (
            _head(f"Why {step.experiment}/{step.run} went wrong", plan),
            f"## Its open alarms\n\n{news}",
            memory,
            (
                f"## What to do\n\nYou are {step.name}. Read the run's metrics.jsonl around the"
                " rows that are named, its stderr.log, config.yaml and the training code. Then"
                " call record_diagnosis once for this run, naming every open alarm with rows that"
                " show it, and what to try next."
            ),
        )
    )


def scout_message(step: Scout, plan: ApprovedPlan, codes: Sequence[str], memory: str = "") -> str:
    """For a research-scout; `memory` as above."""
    references = "\n".join(f"- {inline(path)}" for path in plan.content["references"])
    return _joined(
        (
            _head(f"Methods that answer the diagnosis of {step.experiment}", plan),
            f"## What to read\n\nPapers and baselines that the plan gives you:\n{references}",
            memory,
            (
                "## What to do\n\nRead the experiment's diagnosis.md"
                f" ({', '.join(dict.fromkeys(codes))}), then the files. Call record_methods once,"
                " the best first: methods that answer it, each with its source."
            ),
        )
    )


def judge_message(step: JudgeResult, plan: ApprovedPlan) -> str:
    """For an oracle."""
    return "\n\n".join(
        (
            _head(f"The result of {step.experiment}", plan),
            (
                "## What to do\n\nCall evaluation_report, read what you need of the experiment's"
                " folder, then call record_result once: the recomputed number as the only claim, or"
                " none when there is no score, and the shortfalls, the most important first."
            ),
        )
    )


def phase_message(view: PhaseView, plan: ApprovedPlan, briefing: str, memory: str = "") -> str:
    """For the role of a phase."""
    wanted = "\n".join(f"- {EVIDENCE[name]}" for name in view.missing)
    again = (
        f"\n\nIt was opened again at {view.since}: say what is other now." if view.since else ""
    )
    if len(briefing) + len(memory) > BRIEFING_CHARACTERS:
        memory = ""
    return _joined(
        (
            _head(f"Phase {view.name}", plan),
            f"## Briefing\n\n{briefing}" if briefing else "",
            memory,
            (
                f"## What to do\n\n{view.phase.purpose}{again}\n\nMissing:\n{wanted}\n\nCall"
                " record_phase once, with what you found and what you read. If an earlier phase"
                " has to be done again, say which in `reopen`, and why."
            ),
        )
    )


def _joined(parts: Sequence[str]) -> str:
    return "\n\n".join(filter(None, parts))


def read_briefing(layout: Layout, most: int = BRIEFING_CHARACTERS, *, verdict: bool = True) -> str:
    """BRIEFING.md, cut at a line end if it is longer than `most`; empty if there is none yet.
    Without `verdict` the last one is left out: its findings are told beside it."""
    if not layout.briefing.is_file():
        return ""
    text = layout.briefing.read_text("utf-8").strip().removeprefix(f"{BANNER}\n\n# Briefing\n\n")
    if not verdict:
        text = _VERDICT.sub("", text)
    if len(text) <= most:
        return text
    note = "\n(cut here)"
    return text[: most - len(note)].rsplit("\n", 1)[0] + note


def _head(title: str, plan: ApprovedPlan) -> str:
    objective = objective_of(plan)
    better = "higher" if objective.direction is Direction.MAXIMIZE else "lower"
    tiers = ", ".join(f"{tier} {value:g}" for tier, value in objective.tiers.items())
    return (
        f"# {title}\n\nObjective: {inline(plan.content['objective'])}\n"
        f"Metric: {inline(objective.metric)}, {better} is better; tiers: {tiers}; "
        f"the mean over {objective.seeds} seeds counts.\n"
        f"Data: {inline(data_told(plan))}."
    )
