"""`harness baseline`: the starting code with several seeds, and how many seeds a gain needs."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from harness.cli.changing import changing
from harness.cli.experiment import new_answer
from harness.cli.output import (
    WholeNumber,
    emit,
    environment,
    json_option,
    project_option,
    sandbox_for,
    tell,
)
from harness.cli.person import AGENT, caller, open_at_once, stdin_is_terminal
from harness.cli.tried import Attempt, shown
from harness.cli.try_ import go, require_command, say_opened
from harness.decisions.experiments import require_room
from harness.domain.records import LEAST_SEEDS, Experiment
from harness.domain.statuses import CLOSED_EXPERIMENTS, Split
from harness.errors import UsageError
from harness.evaluation.power import MOST_SEEDS
from harness.evaluation.seed_noise import SeedNoise, seed_noise
from harness.ledger.facts import ApprovedPlan
from harness.ledger.project import Project
from harness.plans.approved import secret
from harness.plans.seeds_draft import draft_with_seeds
from harness.runs.continued import command_of

HYPOTHESIS = "The starting code, as it is"
_RATIONALE = "What seeds alone do to its score is the noise that a gain must be told from."
_AGAIN = "harness baseline"
_HIDDEN = (
    "the labels of validation are hidden: one answer about its score is told, and counted in bits;"
    " how far its seeds lie apart stays sealed"
)


@click.command("baseline")
@click.option(
    "--seeds",
    type=WholeNumber(LEAST_SEEDS, MOST_SEEDS),
    default=None,
    help="How many; default: as many as the plan says, at least 3.",
)
@click.option(
    "--gain",
    type=click.FloatRange(min=0, min_open=True),
    default=None,
    help="The gain to be found, in the metric's unit; default: a relevant one.",
)
@click.option(
    "--write", is_flag=True, help="Write the seeds that it takes as a draft of the plan."
)
@project_option
@json_option
def command(
    seeds: int | None,
    gain: float | None,
    write: bool,
    project: Path,
    as_json: bool,
) -> None:
    """Train the code as it is with several seeds, evaluate it, and show how far apart they score.

    Then say how many seeds find a gain (--gain 0.01) in 80% of cases, by the tests that the gate
    uses. Called again it trains nothing that is done. It is an experiment without a parent, and
    counts as one. --write puts the seeds into a draft of the plan, which a person approves; on a
    terminal it is asked for. Of a hidden validation no spread is told. Exit 1 when it was stopped.
    """
    attempt = Attempt(start=project, quiet=as_json)
    with changing(project) as opened:
        approved = opened.plan()
        wanted = _seeds(approved, seeds)
        before = _before(opened, approved)
        _require_as_opened(before, seeds)
        decided = before is not None and before.status in CLOSED_EXPERIMENTS
        if before is not None:
            attempt.experiment = before.id
        if not decided:
            words = None if before is None else command_of(opened, before.id)
            _prepare(opened, attempt, words, wanted)
    if not decided:
        go(attempt, words, {}, sandbox_for("auto"))
    with changing(project, again=True) as opened:
        _answer(opened, attempt, gain, write=write, as_json=as_json)


def _seeds(approved: ApprovedPlan, asked: int | None) -> int:
    """Raises UsageError for fewer than the plan's: what follows is compared with all of them."""
    planned = int(approved.content["oracle"]["seeds"])
    if asked is None:
        return max(planned, LEAST_SEEDS)
    if asked < planned:
        raise UsageError(
            f"--seeds {asked}: the plan trains {planned} of each experiment (oracle.seeds).",
            hint=f"Leave --seeds out, or name at least {planned}.",
        )
    return asked


def _before(project: Project, approved: ApprovedPlan) -> Experiment | None:
    """The newest one here, under this plan. Only this verb opens one with a number of seeds."""
    known = [
        one
        for one in project.here(project.ledger.experiments())
        if one.plan == approved.name
        and one.parent is None
        and one.seeds is not None
        and one.plan_version >= approved.comparison
    ]
    return max(known, key=lambda one: one.number, default=None)


def _require_as_opened(before: Experiment | None, asked: int | None) -> None:
    """Raises UsageError for another number of seeds: it would be chosen by what the first ones
    show, in their logs already."""
    if before is None or asked in (None, before.seeds):
        return
    raise UsageError(
        f"--seeds {asked}: {before.id} was opened with {before.seeds} seeds, and another number"
        " would be chosen by what these show.",
        hint="Leave --seeds out. A plan with more seeds begins a comparison with a new baseline.",
    )


def _prepare(project: Project, attempt: Attempt, words: list[str] | None, seeds: int) -> None:
    """Open it, where it is not open; whatever can be refused is refused before."""
    require_command(project, words, sandbox_for("auto"), _AGAIN)
    if attempt.experiment:
        return
    require_room(project, project.plan(), open_at_once(environment()))
    attempt.answers["new"] = answer = new_answer(
        project,
        hypothesis=HYPOTHESIS,
        rationale=_RATIONALE,
        parent=None,
        seeds=seeds,
    )
    attempt.experiment = answer.document["experiment"]
    say_opened(project, attempt, None)
    if secret(project.plan(), Split.VALIDATION.value) and not attempt.quiet:
        tell(f"{attempt.experiment}  {_HIDDEN}")


def _answer(
    project: Project, attempt: Attempt, gain: float | None, *, write: bool, as_json: bool
) -> None:
    document, lines = shown(project, attempt)
    approved = project.plan()
    noise = seed_noise(project, approved, attempt.experiment, gain)
    document["noise"] = asdict(noise)
    table, *then = lines
    told = [f"noise: {noise.words}", *_power_lines(noise), *_sealed(noise, attempt.experiment)]
    planned = int(approved.content["oracle"]["seeds"])
    wanted = None if noise.power is None else noise.power.seeds_wanted
    document["draft"] = None
    more = wanted is not None and wanted > planned and not attempt.stopped
    if more and (write or _wants(told, wanted, planned, as_json=as_json)):
        draft = draft_with_seeds(project, approved, wanted or planned)
        document["draft"] = str(draft)
        then = [
            f"wrote {draft}: oracle.seeds {planned} -> {wanted}. It begins a new comparison:"
            " scores of other seeds do not count in it",
            f"next: a person approves it: `harness plan approve {draft}`",
        ]
    elif more:
        again = _line(gain)
        then.append(f"or write {wanted} seeds into a draft of the plan: `{again} --write`")
    emit(document, table, *told, *then, as_json=as_json)
    sys.exit(_code(attempt))


def _code(attempt: Attempt) -> int:
    if attempt.interrupted:
        return 130
    return 1 if attempt.stopped else 0


def _power_lines(noise: SeedNoise) -> list[str]:
    if noise.power is not None:
        return [noise.power.words]
    return ["power: nothing is known of its noise, so nobody can say how many seeds find a gain"]


def _sealed(noise: SeedNoise, experiment: str) -> list[str]:
    if not noise.sealed:
        return []
    return [
        "sealed: the power is what was assumed, and nothing measured is in it. A person sees each"
        f" seed's score on a terminal: `harness experiment show {experiment} --exact`"
    ]


def _line(gain: float | None) -> str:
    return _AGAIN if gain is None else f"{_AGAIN} --gain {gain:g}"


def _wants(told: list[str], wanted: int | None, planned: int, *, as_json: bool) -> bool:
    """Asked of a person on a terminal; nobody else is."""
    asked: Any = not as_json and caller(environment()) != AGENT and stdin_is_terminal()
    if not asked or not sys.stdout.isatty():
        return False
    tell("\n".join(told))
    tell(
        f"Write {wanted} seeds instead of {planned} into a draft of the plan? Type yes and press"
        " Enter; anything else leaves it."
    )
    return sys.stdin.readline().strip().lower() == "yes"
