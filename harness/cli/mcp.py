"""`harness mcp`: serve the agents' tools to `claude` and plugins over stdio."""

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
    """Serve the agents' tools on stdin and stdout until they close; `claude` starts this.

    --json changes nothing: MCP is JSON. If the project cannot be opened, each call answers with
    that error.
    """
    serve(project, environment(), lambda: sandbox_for(sandbox).kind, session_of(environment()))
