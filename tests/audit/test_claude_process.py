"""One answer for all who ask whether a process is Claude Code."""

import pytest

from harness.audit.claude_process import is_claude_code

INSTALLED = "/home/ada/.local/share/claude/versions/2.1.332"
PACKAGE = "/usr/lib/node_modules/@anthropic-ai/claude-code/cli.js"


@pytest.mark.parametrize(
    ("name", "argv", "program"),
    [
        ("claude", ["claude"], "/opt/claude"),
        ("claude", [], ""),
        ("MainThread", ["/usr/local/bin/claude", "--resume"], ""),
        ("2.1.332", [INSTALLED], INSTALLED),
        ("2.1.332", [INSTALLED], ""),
        ("2.1.332", [], INSTALLED),
        ("node", ["node", "/opt/bin/claude", "--resume"], "/usr/bin/node"),
        ("node", ["/usr/bin/node", PACKAGE], "/usr/bin/node"),
        ("node", ["node", "--max-old-space-size=4096", PACKAGE, "-p"], "/usr/bin/node"),
        ("bun", ["bun", PACKAGE], "/usr/bin/bun"),
        ("sh", ["/bin/sh", "/home/ada/bin/claude", "--bare"], "/usr/bin/dash"),
    ],
)
def test_claude_code_is_known_by_its_name_its_start_or_its_place(
    name: str, argv: list[str], program: str
) -> None:
    assert is_claude_code(name, argv, program)


@pytest.mark.parametrize(
    ("name", "argv", "program"),
    [
        ("init", [], ""),
        ("bash", ["bash"], "/usr/bin/bash"),
        ("bash", ["bash", "/src/claude-code/build.sh"], "/usr/bin/bash"),
        ("su", ["su", "claude"], "/usr/bin/su"),
        ("vim", ["vim", "claude"], "/home/claude/bin/vim"),
        ("vim", ["vim", PACKAGE], "/usr/bin/vim"),
        ("ls", ["ls", INSTALLED], "/usr/bin/ls"),
        ("node", ["node", "/src/app/cli.js", "claude"], "/usr/bin/node"),
        ("claude-notes", ["claude-notes"], "/opt/claude-notes"),
    ],
)
def test_what_only_names_it_is_not_claude_code(name: str, argv: list[str], program: str) -> None:
    assert not is_claude_code(name, argv, program)
