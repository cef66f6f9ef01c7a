"""One filter for foreign text, and no way to a terminal past it."""

import ast

from source_tree import Module, modules

MAY_WRITE = {
    "harness.cli.output": "the way to a terminal",
    "harness.judge.client": "runs inside the sandbox alone, and passes on what the judge wrote",
    "harness.run_logger.logger": "runs in a person's own process, outside the harness; filtered",
    "harness.sandbox.as_granted": "starts a program; its output is that program's log",
    "harness.sandbox.gateway_listen": "starts a program; its output is that program's log",
    "harness.sandbox.landlock_exec": "starts a program; its output is that program's log",
    "harness.sandbox.probe": "is read by the harness",
}
FILTER, CONSOLE = "harness.domain.plain_text", "harness.views.console"


def calls(module: Module) -> list[tuple[str, int]]:
    """Each call as it is written, e.g. "sys.stdout.write", with its line."""
    return [
        (ast.unparse(node.func), node.lineno)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call)
    ]


def test_nothing_is_written_to_a_terminal_elsewhere() -> None:
    writes = {"sys.stdout.write", "sys.stderr.write", "click.echo", "click.secho", "print"}
    found = {
        f"{module.shown}:{line}"
        for module in modules()
        if module.room not in ("training", "evaluation") and module.name not in MAY_WRITE
        for name, line in calls(module)
        if name in writes
    }
    assert found == set()
    assert set(MAY_WRITE) <= {
        module.name
        for module in modules()
        if any(
            name.endswith(("out.write", "err.write", "stream.write")) for name, _ in calls(module)
        )
    }


def test_consoles_are_plain() -> None:
    assert [
        f"{module.shown}:{line}"
        for module in modules()
        if module.name != CONSOLE
        for name, line in calls(module)
        if name in ("Console", "rich.console.Console")
    ] == []


def test_there_is_no_other_filter() -> None:
    assert [
        f"{module.shown}:{line}"
        for module in modules()
        if module.name != FILTER
        for name, line in calls(module)
        if name.endswith((".isprintable", "unicodedata.bidirectional"))
        and module.name != "harness.guard.hooks.frame"  # asks whether the filter is needed
    ] == []
