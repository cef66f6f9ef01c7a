"""Slash commands, from their table in the contract and their templates."""

from harness.contract.slash_commands import SlashCommand
from harness.rendering.sources import fill

BANNER = (
    "<!-- Rendered by `harness render` from the contract and templates/commands/; an edit here is"
    " overwritten. -->"
)


def command_file(command: SlashCommand) -> str:
    """The command as Claude Code reads it: front matter that allows its verbs only, banner,
    prompt."""
    return fill(
        "commands/command.md.j2",
        command=command,
        rules=[f"Bash(harness {verb}:*)" for verb in command.verbs],
        banner=BANNER,
        body=fill(f"commands/{command.name}.md.j2").rstrip(),
    )
