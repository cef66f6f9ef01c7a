"""What the tools of training programs do. A trainer is started as a process of its own that
outlives the caller."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio

from harness.domain.commands import for_ourselves
from harness.domain.statuses import SandboxKind
from harness.driver.session import Pulse
from harness.driver.supervisors import Supervisor, is_going
from harness.errors import HarnessError, RunError, UsageError
from harness.ledger.project import Project
from harness.posttrain.export import export_rows
from harness.posttrain.judge import program_spec
from harness.posttrain.lineage import lineage, overview
from harness.posttrain.program import TrainingProgram
from harness.posttrain.registry import known_models
from harness.posttrain.spec import Request
from harness.posttrain.vocabulary import EvaluationMode
from harness.sandbox.select import choose

LONGEST_WAIT_S = 600.0
_REGISTER_SECONDS = 60.0
_PACKAGE = Path(__file__).resolve().parents[1]


def has_programs(project: Project) -> bool:
    """Whether the project trains programs: it has one, or weights of a base model for one."""
    try:
        added = any(model.path for model in known_models(project.layout).values())
    except HarnessError:  # a damaged model.json is told where it is used
        added = False
    return added or bool(project.ledger.programs())


class ProgramToolContext:
    """The part of a context that is about training programs. They are not of the plan, so a session
    may name any."""

    project: Project
    sandbox: SandboxKind
    by: str
    pulse: Pulse

    async def specify_training(self, arguments: dict[str, Any]) -> dict[str, Any]:
        given = {name: value for name, value in arguments.items() if name != "trainer"}
        request = Request(command=arguments.get("trainer"), **given)
        made = TrainingProgram(
            self.project, sandbox=choose(SandboxKind.NONE, required=False)
        ).create(request, by=self.by)
        return {
            "experiment_id": made.experiment,
            "specification": made.spec,
            "warnings": list(made.warnings),
            "next": "Call run_training.",
        }

    async def run_training(self, arguments: dict[str, Any]) -> dict[str, Any]:
        experiment, resume = arguments["experiment_id"], bool(arguments.get("resume"))
        program_spec(self.project, experiment)
        if not is_going(self.project, experiment):
            before = self._attempts(experiment)
            words = ("posttrain", "run", *(("--resume",) if resume else ()))
            supervisor = Supervisor.start(
                self.project, experiment, None, sandbox=self.sandbox, session=None, verb=words
            )
            await self._wait(
                lambda: supervisor.ended() or self._attempts(experiment) > before, _REGISTER_SECONDS
            )
            problem = supervisor.problem() if self._attempts(experiment) == before else None
            if problem is not None:
                raise UsageError(problem["message"], hint=problem["hint"], code=problem["code"])
        return {
            **self._of(experiment),
            "next": "Call training_status with wait_seconds until no run is running.",
        }

    async def training_status(self, arguments: dict[str, Any]) -> dict[str, Any]:
        experiment = arguments.get("experiment_id")
        if experiment is None:
            return overview(self.project)
        program_spec(self.project, experiment)
        wait = min(float(arguments.get("wait_seconds", 0)), LONGEST_WAIT_S)
        await self._wait(lambda: not is_going(self.project, experiment), wait)
        return self._of(experiment)

    async def training_lineage(self, arguments: dict[str, Any]) -> dict[str, Any]:
        return lineage(self.project, arguments["name"])

    async def evaluate_model(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """By `harness posttrain evaluate`, as a process of its own: two starts of an evaluator take
        minutes."""
        model = self.project.ledger.model(arguments["model"])
        mode = arguments.get("mode", EvaluationMode.REDUCED_PROMPT.value)
        words = [
            "posttrain",
            "evaluate",
            model.id,
            "--mode",
            mode,
            "--sandbox",
            self.sandbox.value,
            "--json",
        ]
        words += ["--against", arguments["against"]] if arguments.get("against") else []
        with self.pulse.working():
            done = await anyio.run_process(
                [
                    sys.executable,
                    "-m",
                    "harness",
                    *words,
                    "--project",
                    str(self.project.layout.root),
                ],
                cwd=self.project.layout.root,
                env={
                    **for_ourselves(os.environ),
                    "PYTHONPATH": str(_PACKAGE.parent),
                    "PYTHONSAFEPATH": "1",
                },
                check=False,
            )
        try:
            answer: dict[str, Any] = json.loads(done.stdout)
        except ValueError as error:
            last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
            raise RunError(
                "The evaluation ended without an answer:"
                f" {' '.join(last) or f'exit code {done.returncode}'}.",
                hint=(
                    "Call evaluate_model again; if it happens twice, a person has to look at the"
                    " harness."
                ),
                code="evaluation_failed",
            ) from error
        if isinstance(said := answer.get("error"), dict):
            raise UsageError(str(said["message"]), hint=str(said["hint"]), code=str(said["code"]))
        return answer

    async def export_preferences(self, arguments: dict[str, Any]) -> dict[str, Any]:
        source, target = self._inside(arguments["source"]), self._inside(arguments["target"])
        if target.suffix != ".jsonl":
            raise UsageError(
                f"{arguments['target']} is no .jsonl file.",
                hint="Name a new file that ends in .jsonl.",
            )
        return export_rows(source, target)

    def _inside(self, name: str) -> Path:
        """Raises UsageError for what is not an ordinary path of the project."""
        root = self.project.layout.root.resolve()
        path = (root / name).resolve()
        if not path.is_relative_to(root) or any(
            part.startswith(".") for part in path.relative_to(root).parts
        ):
            raise UsageError(
                f"{name} is outside the project, or in a folder of tools.",
                hint="Name a file of the project.",
                code="outside_project",
            )
        return path

    def _of(self, experiment: str) -> dict[str, Any]:
        whole = overview(self.project)
        (program,) = [item for item in whole["programs"] if item["experiment"] == experiment]
        models = [item for item in whole["models"] if item["experiment"] == experiment]
        return {
            **program,
            "models": models,
            "state": "running" if is_going(self.project, experiment) else "ended",
        }

    def _attempts(self, experiment: str) -> int:
        """How often a run of it was started or taken up again."""
        runs = self.project.ledger.runs(experiment)
        return len(runs) + sum(run.attempt for run in runs)

    async def _wait(self, condition: Callable[[], bool], seconds: float) -> None:
        with self.pulse.working(), anyio.move_on_after(seconds):
            while not condition():
                await anyio.sleep(0.1)
