"""A training program, from its specification to its models."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.artifacts.trees import this_tree
from harness.decisions.experiments import ensure_hypothesis
from harness.domain.sandbox import Sandbox
from harness.ledger.facts import (
    ModelEvaluation,
    Program,
    TrainingSpecified,
)
from harness.ledger.project import Project
from harness.posttrain.base_models import family_warnings
from harness.posttrain.benchmark_approval import approval_warnings
from harness.posttrain.contamination import (
    Contamination,
    said,
)
from harness.posttrain.field_problems import (
    FieldProblem,
    field_problem,
)
from harness.posttrain.importing import import_result
from harness.posttrain.lineage import lineage
from harness.posttrain.model_evaluation import evaluate_model
from harness.posttrain.run import run_program
from harness.posttrain.specification import Request
from harness.posttrain.specification_checks import check_request
from harness.posttrain.training_judgement import ProgramReport
from harness.posttrain.vocabulary import EvaluationMode
from harness.runs.run_tail import Event


class TrainingProgram:
    """The training programs of one project. A wrong specification raises SpecificationError; what a
    trainer or an evaluator does wrong is a value."""

    def __init__(
        self,
        project: Project,
        *,
        sandbox: Sandbox,
        inherited: Mapping[str, str] | None = None,
        grace_s: float = 10.0,
    ) -> None:
        self._project, self._sandbox = project, sandbox
        self._inherited, self._grace = inherited, grace_s

    def create(self, request: Request, *, by: str) -> Program:
        """Check and record a specification. It gets an experiment of its own, which names it."""
        checked = check_request(self._project, request)
        spec = checked.spec
        line = (
            f"{spec.mode} of {spec.model['id']} on {spec.dataset['rows']} rows, seed {spec.seed}"
        )
        ledger, layout = self._project.ledger, self._project.layout
        with ledger.transaction() as writer:
            experiment = ledger.open_experiment(
                hypothesis=line,
                parent=None,
                by=by,
                of_plan=False,
                tree=this_tree(layout),
                reserve=lambda name: _make(layout.experiment(name)),
            )
            warnings = [
                *family_warnings(self._project, spec, checked.rows),
                *approval_warnings(self._project, spec),
                *_told(checked.contamination),
                *_converted(checked.layouts),
            ]
            writer.append(
                TrainingSpecified(
                    experiment=experiment.id,
                    spec=spec.plain(),
                    sha256=spec.sha256,
                    by=by,
                    warnings=[warning.plain() for warning in warnings],
                    contamination=checked.contamination.plain(),
                )
            )
        ensure_hypothesis(
            self._project, experiment, "A training program: see its specification in the ledger."
        )
        program = ledger.program(experiment.id)
        assert program is not None
        return program

    def execute(
        self,
        experiment: str,
        *,
        resume: bool = False,
        launcher: str | None = None,
        on_event: Event = lambda event: None,
    ) -> ProgramReport:
        """Start the trainer, judge its result, record both. `resume`: the newest run goes on;
        `launcher`: torchrun starts several processes."""
        return run_program(
            self._project,
            experiment,
            sandbox=self._sandbox,
            inherited=self._inherited,
            grace_s=self._grace,
            resume=resume,
            launcher=launcher,
            on_event=on_event,
        )

    def process(self, experiment: str, output: Path) -> ProgramReport:
        """Judge the output folder of a trainer that was started elsewhere."""
        return import_result(self._project, experiment, output)

    def attach_evaluation(
        self,
        model: str,
        mode: EvaluationMode = EvaluationMode.REDUCED_PROMPT,
        *,
        against: str | None = None,
    ) -> ModelEvaluation:
        """Run the benchmark's evaluator on baseline and model."""
        return evaluate_model(
            self._project,
            model,
            mode,
            against=against,
            sandbox=self._sandbox,
            inherited=self._inherited,
        )

    def lineage(self, name: str) -> dict[str, Any]:
        """See docs/training-programs.md."""
        return lineage(self._project, name)


def _converted(layouts: Mapping[str, int]) -> Iterator[FieldProblem]:
    """What was read as another layout than text: a look at one row shows whether rightly."""
    for layout, rows in sorted(layouts.items()):
        if layout != "text":
            yield field_problem(
                "dataset",
                "rows of texts",
                f"{rows} rows in the layout {layout!r}",
                "they are converted when they are read; the file stays as it is",
            )


def _told(found: Contamination) -> list[FieldProblem]:
    if not found.found:
        return []
    then = "nothing can PASS" if found.blocks else "these rows are left out of the score"
    expected = "rows that the benchmark does not hold"
    return [field_problem("dataset", expected, said(found.plain()), then)]


def _make(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        return False
    return True
