"""`harness mcp`: the agents' tools for `claude` and for plugins, over stdio."""

from pathlib import Path

import click

from harness.cli.output import environment, json_option, project_option, sandbox_for, sandbox_option
from harness.cli.person import session_of
from harness.driver.mcp_server import serve


@click.command("mcp")
@sandbox_option
@project_option
@json_option
def command(sandbox: str, project: Path, as_json: bool) -> None:
    """Serve the agents' tools on stdin and stdout until they are closed; a client such as `claude`
    starts it.

    --json is how it speaks anyway. A project that cannot be opened is the answer of each call.
    """
    serve(project, environment(), lambda: sandbox_for(sandbox).kind, session_of(environment()))
