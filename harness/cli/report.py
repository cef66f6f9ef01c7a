"""`harness report`: the plan's experiments and their results as a page for people."""

from pathlib import Path

import click

from harness.cli.output import emit, environment, json_option, project_option
from harness.cli.person import require_person
from harness.cli.reading import reading
from harness.errors import UsageError
from harness.files import atomic_write
from harness.views.report import page, report


@click.command("report")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default=None,
    metavar="FILE",
    help="Write it to FILE. Must be run by a person.",
)
@project_option
@json_option
def command(out: Path | None, project: Path, as_json: bool) -> None:
    """Show the plan in force, what is kept, every experiment with validation and held-out, what
    was not isolated, looks and budget: a page of Markdown."""
    if out is not None:
        require_person("report --out", environment(), needs_terminal=False)
        if not out.parent.is_dir():
            raise UsageError(
                f"--out is {str(out)!r}, and {out.parent} is no folder.",
                hint="Name a file in a folder that is there.",
            )
    with reading(project) as opened:
        document = report(opened)
    text = page(document)
    if out is None:
        emit(document, text, as_json=as_json)
        return
    atomic_write(out, text)
    emit({**document, "written": str(out)}, f"wrote {out}", as_json=as_json)
