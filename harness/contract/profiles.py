"""What a loop's sessions are given, by profile: the one table of what costs tokens.

`harness run --profile NAME`, else the plan's `agents.profile`, chooses a row. Nothing that a gate
asks for is in it: a weaker model or a shorter briefing changes what an agent knows, never what
counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from harness.contract.roles import Role

BRIEFING_CHARACTERS = 6000


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One row; each field is a knob."""

    model: str | None = None
    """A model with a price; None: the role's, else the CLI's own."""
    effort: str | None = None
    """How long it thinks: low, medium, high; None: the CLI's own."""
    without_tools: frozenset[str] = frozenset()
    """Claude Code's tools that no role gets."""
    briefing: int = BRIEFING_CHARACTERS
    """Characters, at most."""
    cache_1h: bool = False
    """Whether the prompt's cache lasts an hour: it outlives a training, and costs more to write."""
    without_roles: frozenset[str] = frozenset()
    """Roles whose steps are left out, where the loop can do without."""
    experiments: int | None = None
    """At most so many, whatever the plan's budget has."""
    max_turns: int = 60
    """Of one session."""

    def of(self, role: Role) -> Role:
        """The role as its sessions get it."""
        kept = tuple(tool for tool in role.tools if tool not in self.without_tools)
        model = role.model if self.model is None or role.model != "inherit" else self.model
        return replace(role, tools=kept, model=model)


DEFAULT, LOW_TOKEN = "default", "low-token"
PROFILES: Mapping[str, Profile] = {
    DEFAULT: Profile(),
    LOW_TOKEN: Profile(
        model="claude-sonnet-5-5",
        effort="low",
        # Bash searches, and Write replaces a whole file: each tool's schema is in every request.
        without_tools=frozenset({"Edit", "Grep", "Glob", "WebSearch", "WebFetch"}),
        briefing=3000,
        cache_1h=True,
        without_roles=frozenset({"research-scout"}),
        experiments=4,
        max_turns=40,
    ),
}


def profile_of(plan: Mapping[str, Any]) -> str:
    """The name of the profile that an approved plan's content asks for."""
    name: str = plan.get("agents", {}).get("profile", DEFAULT)
    return name
