"""The table of slash commands, called /harness:<name>; their texts are in templates/commands/."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SlashCommand:
    name: str
    description: str
    """One sentence, shown beside the name."""
    verbs: tuple[str, ...]
    """The only `harness` commands that it may run: words after `harness`, with any arguments."""
    arguments: str = ""
    """What may follow the name."""
    shows: bool = True
    """Whether the person is to see what the harness printed, and not the model's words alone."""


SLASH_COMMANDS: tuple[SlashCommand, ...] = (
    SlashCommand(
        name="status",
        description=("Show the project's plan, open runs and newest experiments."),
        verbs=("status",),
    ),
    SlashCommand(
        name="prime",
        description="Resume the work with the project's state and lessons.",
        verbs=("status", "priors list"),
    ),
    SlashCommand(
        name="plan",
        description="Draft the plan from a description and the data; a person approves it.",
        verbs=("status", "plan check"),
        arguments="[what to predict, from which data]",
    ),
    SlashCommand(
        name="try",
        description="Try one idea in a whole experiment, from its opening to the gate.",
        verbs=("status", "try", "watch"),
        arguments="IDEA",
    ),
    SlashCommand(
        name="experiment",
        description="Open, list, show or compare experiments.",
        verbs=("experiment",),
        arguments="[list | show EXP | new --hypothesis TEXT | compare A B]",
    ),
    SlashCommand(
        name="train",
        description="Train an experiment through the harness, once per seed of the plan.",
        verbs=("train", "watch"),
        arguments="[EXP] [-- COMMAND]",
    ),
    SlashCommand(
        name="watch",
        description="Show the progress of the current runs.",
        verbs=("watch",),
        arguments="[EXP]",
    ),
    SlashCommand(
        name="evaluate",
        description="Recompute an experiment's score from its checkpoints.",
        verbs=("evaluate",),
        arguments="[EXP] [--split held-out]",
    ),
    SlashCommand(
        name="report",
        description="Show what is kept and what was tried; write the open experiment's result.",
        verbs=("report", "experiment show", "experiment result", "gate check"),
        arguments="[EXP]",
    ),
    SlashCommand(
        name="gate",
        description="Ask the gate for its verdict; a person decides.",
        verbs=("gate check",),
        arguments="[EXP]",
    ),
    SlashCommand(
        name="decisions",
        description="List who decided what, and why.",
        verbs=("decisions",),
        arguments="[EXP]",
    ),
    SlashCommand(
        name="doctor",
        description="Check that every guard of this project works.",
        verbs=("doctor",),
    ),
    SlashCommand(
        name="handoff",
        description="Leave a note for the next session.",
        verbs=("handoff",),
        arguments="[what to mention]",
        shows=False,
    ),
)

UNASKED_VERBS: tuple[str, ...] = (
    "status",
    "report",
    "doctor",
    "watch",
    "decisions",
    "audit",
    "plan check",
    "gate check",
    "experiment list",
    "experiment show",
    "experiment compare",
    "priors list",
    "claims audit",
    "posttrain status",
    "posttrain lineage",
    "ledger verify",
)
"""The verbs that read, or have the gate judge, and decide nothing: what `harness init --allow` lets
run without a prompt. A person's part of one (`audit --accept`, `experiment show --exact`) is
refused below an agent all the same."""
