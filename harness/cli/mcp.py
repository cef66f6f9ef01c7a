"""`harness mcp`: serve the agents' tools to `claude` and plugins over stdio."""

from pathlib import Path

import click

from harness.cli.changing import changing
from harness.cli.isolation import isolation, isolation_options
from harness.cli.output import environment, json_option, project_option, sandbox_for
from harness.cli.person import caller_of, session_of
from harness.driver.mcp_server import serve


@click.command("mcp")
@isolation_options
@project_option
@json_option
def command(sandbox: str, reason: str, project: Path, as_json: bool) -> None:
    """Serve the agents' tools on stdin and stdout until they close; `claude` starts this.

    --json changes nothing: MCP is JSON. If the project cannot be opened, each call answers with
    that error.
    """
    if sandbox != "auto":
        with changing(project) as opened:
            isolation(opened, sandbox, reason, verb="mcp")
    serve(
        project,
        environment(),
        lambda: sandbox_for(sandbox).kind,
        session_of(environment()),
        lambda state: caller_of(environment(), state),
    )
