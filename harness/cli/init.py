"""`harness init`: make a repository a project."""

from pathlib import Path

import click

from harness.cli.changing import changing
from harness.cli.output import emit, environment, json_option
from harness.cli.person import require_person
from harness.project.scaffold import scaffold


@click.command("init")
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path), default=".")
@json_option
def command(directory: Path, as_json: bool) -> None:
    """Write .harness/config.toml and a plan.md to fill in; what exists already is left as it is. A person's verb."""
    require_person("init", environment(), needs_terminal=False)  # it approves nothing
    written = scaffold(directory)
    with changing(directory):
        pass  # makes the ledger, so that looking works from now on
    document = {"project": str(directory.resolve()), "written": [str(path) for path in written]}
    lines = [f"wrote {path}" for path in written] or ["nothing to do: the project is there already"]
    lines.append("next: fill in plan.md, then `harness plan check plan.md` and `harness plan approve plan.md`")
    emit(document, as_json=as_json, text=lambda: "\n".join(lines))
