"""The one table of slash commands: the purpose of each, and the only `harness` commands that it may
run.

Their text is in templates/commands/. Each is called /harness:<name>, so that none replaces a
built-in command.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SlashCommand:
    name: str
    description: str
    """One sentence, shown beside the name."""
    verbs: tuple[str, ...]
    """As typed after `harness`, with any further words; allowed for that turn without asking."""
    arguments: str = ""
    """What may follow the name."""


SLASH_COMMANDS: tuple[SlashCommand, ...] = (
    SlashCommand(
        name="status",
        description=(
            "Where the project stands, with its plan, what runs and the newest experiments."
        ),
        verbs=("status",),
    ),
    SlashCommand(
        name="prime",
        description="Take up the work, knowing where things stand and what was learned.",
        verbs=("status", "priors list"),
    ),
    SlashCommand(
        name="experiment",
        description="Open, list, show or compare experiments.",
        verbs=("experiment",),
        arguments="[list | show EXP | new --hypothesis TEXT | compare A B]",
    ),
    SlashCommand(
        name="train",
        description="Train an experiment through the harness, once for each seed of the plan.",
        verbs=("train", "watch"),
        arguments="EXP",
    ),
    SlashCommand(
        name="watch",
        description="How far the runs are that train now.",
        verbs=("watch",),
        arguments="[EXP]",
    ),
    SlashCommand(
        name="gate",
        description="What the gate says of an experiment; a person decides in their own terminal.",
        verbs=("gate check",),
        arguments="EXP",
    ),
    SlashCommand(
        name="decisions",
        description="Who decided what, and why.",
        verbs=("decisions",),
        arguments="[EXP]",
    ),
    SlashCommand(
        name="doctor",
        description="Whether every guard of this project works, and how to fix one that does not.",
        verbs=("doctor",),
    ),
    SlashCommand(
        name="handoff",
        description="Tell the next session what it has to know.",
        verbs=("handoff",),
        arguments="[what to mention]",
    ),
)
