"""`harness try IDEA [-- COMMAND]`: a whole experiment, from its opening to the gate's verdict.

Each step is what its own verb does; between two of them the project is closed, so what stands is
what these verbs would have left.
"""

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from harness.artifacts.content import read_text
from harness.artifacts.experiment_files import parse_result, render_result
from harness.artifacts.front_matter import read_front_matter
from harness.cli.answer import Answer
from harness.cli.ask_first import ask_of_values, ask_to_go_on
from harness.cli.changing import changing
from harness.cli.chosen import chosen
from harness.cli.evaluate import evaluate_answer
from harness.cli.experiment import new_answer, result_answer
from harness.cli.gate import check_answer
from harness.cli.output import (
    emit,
    environment,
    json_option,
    project_option,
    sandbox_for,
    tell,
)
from harness.cli.person import open_at_once
from harness.cli.train import set_option, train_answer
from harness.cli.tried import Attempt, shown
from harness.decisions.experiments import require_room
from harness.domain.findings import Finding
from harness.domain.ids import names_experiment
from harness.domain.plain_text import one_line
from harness.domain.sandbox import Sandbox
from harness.domain.statuses import Split, Verdict
from harness.errors import HarnessError, Interrupted, UsageError
from harness.evaluation.scores import counted_runs
from harness.evaluation.tries import Standings
from harness.gates.findings import outcome_of
from harness.ledger.project import Project
from harness.runs.before_start import Startable
from harness.runs.continued import Due, command_of, due
from harness.runs.experiment_config import keep_config, read_values
from harness.runs.train_job import admitted, code_now, require_no_program
from harness.views.snapshot import split_score

NO_PARENT = "none"
GO_ON = "`harness try --continue`"
_AS_MEASURED = "As measured by the harness."
_QUOTED = "Quote it, and put the training command after `--`:"


class _Command(click.Command):
    """What stands after `--` is the training command, whatever it is."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        at = args.index("--") if "--" in args else len(args)
        rest = super().parse_args(context, args[:at])
        context.params["training_command"] = tuple(args[at + 1 :])
        return rest


@click.command("try", cls=_Command)
@click.argument("idea", nargs=-1, metavar="[IDEA] [-- COMMAND]")
@click.option(
    "--parent",
    default=None,
    metavar="EXP",
    help="What it builds on; default: the best that is kept. `none`: nothing.",
)
@click.option("--rationale", default="", help="Why it should help.")
@set_option
@click.option("--continue", "goes_on", is_flag=True, help="Go on with the open experiment.")
@project_option
@json_option
def command(
    idea: tuple[str, ...],
    training_command: tuple[str, ...],
    parent: str | None,
    rationale: str,
    values: tuple[str, ...],
    goes_on: bool,
    project: Path,
    as_json: bool,
) -> None:
    """Try IDEA: open an experiment, train it, evaluate it on validation, write its result as it
    was measured, and ask the gate.

    E.g. `harness try "a wider MLP" --set width=256 -- python train.py`; the default command is the
    plan's training.entry. With --continue it goes on with the open experiment from where it
    stopped: what is done is not done again, and weights stay when only predict was mended; of
    several open ones, name one: `harness try exp-0002 --continue`. Without IDEA it does the same;
    on a terminal it says what that is, and asks. Exit 0 for PASS, 1 otherwise, 2 when nothing was
    begun.
    """
    given = read_values(values)
    line = _line(idea, goes_on=goes_on, parent=parent, rationale=rationale)
    attempt = Attempt(start=project, quiet=as_json)
    words = list(training_command) or None
    with _naming(attempt), changing(project) as opened:
        sandbox = sandbox_for("auto")
        if line is None:
            attempt.experiment = _open_one(opened, idea[0] if idea else None)
            words = words or command_of(opened, attempt.experiment)
        require_command(opened, words, sandbox, _again(line))
        if line is None and not goes_on and not as_json:
            ask_to_go_on(opened, attempt.experiment, words, sandbox)
        if line is not None:
            if given and not as_json:
                ask_of_values(opened, words, given, sandbox)
            parent = _parent(opened, parent)
            require_room(opened, opened.plan(), open_at_once(environment()))
            attempt.answers["new"] = answer = new_answer(
                opened, hypothesis=line, rationale=rationale, parent=parent
            )
            attempt.experiment = answer.document["experiment"]
            say_opened(opened, attempt, parent)
    go(attempt, words, given, sandbox)
    with _naming(attempt), changing(project, again=True) as opened:
        document, lines = shown(opened, attempt)
    emit(document, *lines, as_json=as_json)
    passed = document["verdict"] == Verdict.PASS and not attempt.stopped
    sys.exit(Interrupted.exit_code if attempt.interrupted else 0 if passed else 1)


@contextmanager
def _naming(attempt: Attempt) -> Iterator[None]:
    """Raises Interrupted, which names the experiment, where Ctrl-C comes between its steps."""
    try:
        yield
    except KeyboardInterrupt as stop:
        if not attempt.experiment:
            raise
        again = f"`harness try {attempt.experiment} --continue`"
        raise Interrupted(
            f"Interrupted; {attempt.experiment} is open.",
            hint=f"Go on with {again}; completed seeds are not repeated.",
        ) from stop


def _line(idea: Sequence[str], *, goes_on: bool, parent: str | None, rationale: str) -> str | None:
    """The idea; None for the open experiment. Raises UsageError."""
    if len(idea) > 1 and all("=" in word for word in idea[1:]):
        values = " ".join(f"--set {shlex.quote(word)}" for word in idea[1:])
        raise UsageError(
            f"The idea is one argument, and these are {len(idea)}: {' '.join(idea)}.",
            hint=f"Values go along as `harness try {shlex.quote(idea[0])} {values}`.",
        )
    if len(idea) > 1:
        whole = shlex.quote(" ".join(idea))
        raise UsageError(
            f"The idea is one argument, and these are {len(idea)}: {' '.join(idea)}.",
            hint=f"{_QUOTED} `harness try {whole} -- python train.py`.",
        )
    if idea and goes_on and names_experiment(idea[0]):
        return None
    if idea and names_experiment(idea[0]):
        raise UsageError(
            f"{idea[0]} is the id of an experiment, and no idea in words.",
            hint=(
                f"{GO_ON} goes on with the open one, `harness try {idea[0]} --continue` with this;"
                f" `harness train {idea[0]}` trains it."
            ),
        )
    if idea and goes_on:
        raise UsageError(
            "--continue goes on with the open experiment, and an idea begins another one.",
            hint=f"{GO_ON}, or `harness try {shlex.quote(idea[0])}`.",
        )
    if not idea and (parent is not None or rationale):
        option = "--parent EXP" if parent is not None else "--rationale TEXT"
        raise UsageError(
            f"{option.split()[0]} belongs to a new experiment, and no idea was given.",
            hint=f'Say the idea: `harness try "a wider MLP" {option}`.',
        )
    return idea[0] if idea else None


def _open_one(project: Project, named: str | None) -> str:
    """The experiment to go on with. Raises UsageError (no_experiment), RefusedError."""
    if not project.undecided():
        raise UsageError(
            "`harness try` without an idea goes on with the open experiment, and none is open.",
            hint='Say what you try: `harness try "a wider MLP"`.',
            code="no_experiment",
        )
    experiment = chosen(project, named, "harness try --continue")
    require_no_program(project, experiment)
    return experiment


def _again(line: str | None) -> str:
    return "harness try --continue" if line is None else f"harness try {shlex.quote(line)}"


def _parent(project: Project, named: str | None) -> str | None:
    """The experiment that it builds on. Raises NotFoundError."""
    if named == NO_PARENT:
        return None
    if named is not None:
        return project.ledger.experiment(named).id
    return Standings(project, project.plan()).best_kept()


def require_command(
    project: Project, words: Sequence[str] | None, sandbox: Sandbox, again: str
) -> None:
    """Raises what training would, before anything is opened for it: no plan, another judge, changed
    data, a command that cannot start."""
    approved = project.plan()
    asked = admitted(project, approved, words, sandbox=sandbox)
    Startable(
        project=project,
        argv=asked.argv,
        program=asked.command[0],
        inherited=os.environ,
        code=lambda: code_now(project, approved),
        again=again,
    ).require()


def say_opened(project: Project, attempt: Attempt, parent: str | None) -> None:
    if attempt.quiet:
        return
    folder = project.layout.relative(project.layout.experiment(attempt.experiment))
    builds = f"it builds on {parent} (--parent names another)" if parent else "it builds on none"
    tell(f"{attempt.experiment}  opened in {folder}; {builds}")
    for found in attempt.answers["new"].document["findings"]:
        tell(f"{attempt.experiment}  {found['message']} {found['hint']}")


Step = Callable[[Project], Answer]


def go(
    attempt: Attempt, words: Sequence[str] | None, values: Mapping[str, str], sandbox: Sandbox
) -> None:
    """Step after step, until one does not do what it should."""
    for name, step in _steps(attempt, words, values, sandbox):
        try:
            with changing(attempt.start, again=True) as opened:
                answer = step(opened)
        except HarnessError as error:
            known = {"code": error.code, "message": error.message, "hint": error.hint}
            attempt.stopped = {"step": name, "error": known}
            return
        except KeyboardInterrupt:
            known = {"code": "interrupted", "message": "Interrupted.", "hint": ""}
            attempt.stopped, attempt.interrupted = {"step": name, "error": known}, True
            return
        attempt.answers[name] = answer
        if not answer.ok and name != "gate":
            attempt.stopped = {"step": name, "error": _first_finding(answer)}
            return


def _steps(
    attempt: Attempt, words: Sequence[str] | None, values: Mapping[str, str], sandbox: Sandbox
) -> Iterator[tuple[str, Step]]:
    experiment = attempt.experiment

    def training(project: Project) -> Answer:
        argv = admitted(project, project.plan(), words, sandbox=sandbox).argv
        still = due(project, experiment, argv)
        if still is Due.NOTHING:
            keep_config(project, experiment, argv, values)
            return _trained_before(project, experiment)
        sources = [experiment] if still is Due.TAKE else None
        return train_answer(
            project,
            experiment,
            argv,
            sandbox=sandbox,
            values=values,
            sources=sources,
            quiet=attempt.quiet,
        )

    def evaluating(project: Project) -> Answer:
        if not attempt.quiet:
            tell(f"{experiment}  scoring its checkpoints on validation")
        return evaluate_answer(project, experiment, Split.VALIDATION, sandbox)

    yield "train", training
    yield "evaluate", evaluating
    yield "result", lambda project: measured_result(project, experiment)
    yield "gate", lambda project: check_answer(project, experiment)


def _trained_before(project: Project, experiment: str) -> Answer:
    runs = counted_runs(project.ledger.runs(experiment))
    document = {
        "experiment": experiment,
        "ok": True,
        "runs": [
            {"run": run.id, "seed": run.seed, "status": run.status, "rows": run.rows}
            for run in runs
        ],
        "findings": [],
    }
    return Answer(document=document, lines=[])


def measured_result(project: Project, experiment: str) -> Answer:
    """result.md that claims the recomputed number and no more. What somebody else wrote there
    stays."""
    path = project.layout.experiment(experiment, "result")
    if os.path.lexists(path) and not _as_measured(path, experiment):
        return Answer(document={"experiment": experiment, "written": None}, lines=[])
    record = project.ledger.experiment(experiment)
    total = split_score(project, record, Split.VALIDATION)
    claims = {}
    # Of hidden labels the answer is what was told, on its grid: nothing is claimed beside it.
    if total["score"] is not None and total["released"] is None:
        claims[total["metric"]] = f"{total['score']:.4g}"
    return result_answer(
        project,
        experiment,
        claims=claims,
        summary=_AS_MEASURED,
    )


def _as_measured(path: Path, experiment: str) -> bool:
    """Whether it is such a file as `measured_result` writes, to the last character."""
    if path.is_symlink() or not path.is_file():
        return False
    try:
        text = read_text(path)
        found = parse_result(text, where=path.name)
        by = read_front_matter(text, where=path.name).data.get("by")
        return text == render_result(
            experiment=experiment,
            claims={name: claim.text for name, claim in found.claims.items()},
            summary=_AS_MEASURED,
            by=str(by),
        )
    except HarnessError:
        return False


def _first_finding(answer: Answer) -> dict[str, str]:
    document = answer.document
    found = list(document.get("findings", ()))
    for evaluation in document.get("evaluations", ()):
        found += evaluation["findings"]
    if not found:
        message = "; ".join(one_line(line) for line in answer.lines) or "It answered no."
        return {"code": "failed", "message": message, "hint": ""}
    grave = [one for one in found if outcome_of(Finding.from_plain(one)) is not Verdict.PASS]
    first = (grave or found)[0]
    return {name: first[name] for name in ("code", "message", "hint")}
