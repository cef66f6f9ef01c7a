import json
import os
from dataclasses import dataclass

import anyio

from harness.domain.commands import for_supervisors
from harness.driver.tool_context import ToolContext
from harness.driver.tools.definition import Answer, agent_tool, argument
from harness.errors import RunError, UsageError
from harness.judge.identity import handed_on
from harness.posttrain.vocabulary import EvaluationMode
from harness.process import harness_command


@dataclass(frozen=True, kw_only=True)
class EvaluateModelArguments:
    model: str
    mode: EvaluationMode = argument(default=EvaluationMode.REDUCED_PROMPT)
    against: str | None = argument(
        "A model as the baseline; default: the base model.", default=None
    )


@agent_tool(
    "Score baseline and model on the same held-out rows, by the harness. A FAIL revokes what"
    " the model had earned."
)
async def evaluate_model(context: ToolContext, arguments: EvaluateModelArguments) -> Answer:
    # In a process of its own: it takes minutes, and this one must answer others meanwhile.
    project = context.project
    model = project.ledger.model(arguments.model)
    words = ["posttrain", "evaluate", model.id, "--mode", arguments.mode.value]
    words += ["--sandbox", context.sandbox.value, "--json"]
    words += ["--project", str(project.layout.root)]
    words += ["--against", arguments.against] if arguments.against else []
    known, descriptors = handed_on(os.environ)
    project.ledger.require_session()
    with context.pulse.working():
        process = await anyio.run_process(
            harness_command(*words),
            cwd=project.layout.root,
            env={**for_supervisors(os.environ), **known},
            pass_fds=descriptors,
            check=False,
        )
    try:
        answer: Answer = json.loads(process.stdout)
    except ValueError as error:
        last = process.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise RunError(
            "The evaluation ended without an answer:"
            f" {' '.join(last) or f'exit code {process.returncode}'}.",
            hint="Call evaluate_model again; if it fails twice, a person must check the harness.",
            code="evaluation_failed",
        ) from error
    if isinstance(problem := answer.get("error"), dict):
        raise UsageError(
            str(problem["message"]), hint=str(problem["hint"]), code=str(problem["code"])
        )
    # Also where the process took itself for a person's, who is told an evaluator's own words.
    evaluations = project.ledger.model_history(model.id).evaluations
    recorded = next(one for one in evaluations if one.id == answer["id"])
    return answer | {"reason": recorded.reason, "problems": list(recorded.problems)}
