"""Groups of verbs that name the nearest one for a word that is none."""

from difflib import get_close_matches

import click


class VerbGroup(click.Group):
    def resolve_command(
        self, context: click.Context, words: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does. Raises UsageError that names the nearest verbs for a word that is no
        verb."""
        known = self.list_commands(context)
        if words and words[0] not in known and not words[0].startswith("-"):
            near = get_close_matches(words[0], known, n=2)
            said = (
                f" Did you mean {' or '.join(f'`{context.command_path} {name}`' for name in near)}?"
                if near
                else ""
            )
            context.fail(f"There is no verb {words[0]!r}.{said}")
        return super().resolve_command(context, words)
