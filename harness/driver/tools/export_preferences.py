from dataclasses import dataclass
from pathlib import Path

from harness.driver.tool_context import ToolContext
from harness.driver.tools.definition import Answer, agent_tool
from harness.errors import UsageError
from harness.posttrain.dataset_export import export_rows


@dataclass(frozen=True, kw_only=True)
class ExportPreferencesArguments:
    source: str
    target: str


@agent_tool(
    "Write the preference rows that have a licence and consent to a new .jsonl file of the"
    " project, each with its hash; rows left out are counted."
)
async def export_preferences(
    context: ToolContext, arguments: ExportPreferencesArguments
) -> Answer:
    root = context.project.layout.root.resolve()
    source, target = _inside(root, arguments.source), _inside(root, arguments.target)
    if target.suffix != ".jsonl":
        raise UsageError(
            f"{arguments.target} is not a .jsonl file.",
            hint="Name a new file that ends in .jsonl.",
        )
    context.project.ledger.require_session()
    return export_rows(source, target)


def _inside(root: Path, name: str) -> Path:
    """The path of an ordinary file of the project. Raises UsageError for any other."""
    path = (root / name).resolve()
    # Folders that start with a dot hold settings, hooks and git: what decides what is enforced.
    if not path.is_relative_to(root) or any(
        part.startswith(".") for part in path.relative_to(root).parts
    ):
        raise UsageError(
            f"{name} is outside the project or in a hidden folder.",
            hint="Name an ordinary file of the project.",
            code="outside_project",
        )
    return path
