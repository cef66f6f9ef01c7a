"""The one declaration of the agents' roles: what each is for, which tools it has, what it may
write.

The rendered `agents/*.md` (a role's system prompt), the policy snapshot (tools and writable paths)
and the driver (tools offered) are all derived from `ROLES`. What a role owns is read from
`contract.artifacts`, never said twice.
"""

from dataclasses import dataclass

from harness.contract.artifacts import ARTIFACTS, BY_NAME, EXPERIMENTS, RUNS, Artifact, Scope

MCP_SERVER = "harness"
"""Name of both tool servers, the driver's in-process one and `harness mcp`; tools are
`mcp__harness__<tool>`."""

HUMAN_VERBS: tuple[tuple[str, ...], ...] = (
    ("init",),
    ("plan", "approve"),
    ("gate", "approve"),
    ("gate", "reject"),
    ("ledger", "import"),
    ("audit", "--accept"),
    ("priors", "add"),
    ("posttrain", "import"),
    ("posttrain", "promote"),
    ("posttrain", "reject"),
    ("posttrain", "rollback"),
)
"""Verbs of the `harness` command that only a person uses: the command itself refuses them below an
agent's process, and the policy refuses them to every role, through every tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """One kind of agent. `step` is the loop's step that starts a session of it; None: no step does
    yet."""

    name: str
    title: str
    step: str | None
    purpose: str
    """One sentence; also the front matter's description."""
    tools: tuple[str, ...]
    """Claude Code's own tools."""
    mcp_tools: tuple[str, ...]
    """The harness's tools, by their short names."""
    writes_code: bool
    """May change the project's ordinary files, beside the artifacts that it owns."""
    off_limits: tuple[str, ...]
    """Limits beyond those that hold for every role."""
    consumes: tuple[str, ...]
    """Names in the artifact table."""
    checklist: tuple[str, ...]
    """What must be true before it ends its turn."""
    model: str = "inherit"

    @property
    def owns(self) -> tuple[Artifact, ...]:
        """The artifacts that this role alone writes."""
        return tuple(artifact for artifact in ARTIFACTS if artifact.writer == self.name)

    @property
    def reads(self) -> tuple[Artifact, ...]:
        return tuple(BY_NAME[name] for name in self.consumes)

    @property
    def allowed_tools(self) -> tuple[str, ...]:
        """All tools by their full names, as the Claude Code CLI calls them."""
        return self.tools + tuple(f"mcp__{MCP_SERVER}__{tool}" for tool in self.mcp_tools)


OFF_LIMITS_FOR_ALL: tuple[str, ...] = (
    (
        "The state directory outside the project: ledger, vault, held-out rows. You can neither"
        " read nor write it."
    ),
    (
        "`.claude/`, `.harness/` but for your own artifacts of the open experiment; `plan.md`, its"
        " scorer and data."
    ),
    (
        "The human's verbs: making a project, approving plans, approving, overriding, rejecting at"
        " a gate, ledger import, adding priors, accepting what the audit found."
    ),
    (
        "Claims as evidence. A number counts when the harness recomputed it from a checkpoint; say"
        " what you saw, not more."
    ),
)

ROLES: tuple[Role, ...] = (
    Role(
        name="research-scout",
        title="Research scout",
        step="scout",
        purpose="Answers a diagnosis with published methods and baselines, each with its source.",
        tools=("Read", "Grep", "Glob", "WebSearch", "WebFetch"),
        mcp_tools=("record_methods",),
        writes_code=False,
        off_limits=("Code and data: you read and report.",),
        consumes=("plan", "checklist", "priors", "diagnosis", "hypothesis", "config"),
        checklist=(
            "Each method answers an alarm of the diagnosis, and says so.",
            "Every method names its source and the conditions under which its number was measured.",
            "What you could not open is listed as not read.",
        ),
    ),
    Role(
        name="data-engineer",
        title="Data engineer",
        step=None,
        purpose="Prepares and checks training and validation tables before a plan is approved.",
        tools=("Bash", "Read", "Edit", "Write"),
        mcp_tools=(),
        writes_code=True,
        off_limits=(
            (
                "Data of an approved plan: a changed split needs a new version of the plan,"
                " approved by a person."
            ),
        ),
        consumes=("plan", "checklist"),
        checklist=(
            (
                "Row counts, label balance, duplicates between splits and missing values are"
                " reported from the data."
            ),
            "No row of one split stands in another.",
        ),
    ),
    Role(
        name="model-builder",
        title="Model builder",
        step="build",
        purpose=(
            "Proposes one hypothesis, writes its code and starts its training through the harness."
        ),
        tools=("Bash", "Read", "Edit", "Write"),
        mcp_tools=("open_experiment", "start_run", "run_status", "hand_off"),
        writes_code=True,
        off_limits=(
            (
                "Training outside the harness: never run the training command yourself; call"
                " start_run."
            ),
            "Held-out rows and validation labels at prediction time: predict gets inputs only.",
            "`result.md` and every score: the oracle and the harness write those.",
        ),
        consumes=(
            "plan",
            "checklist",
            "memory",
            "metrics",
            "status",
            "stderr",
            "score",
            "result",
            "diagnosis",
        ),
        checklist=(
            "The experiment is open, with one hypothesis that the result can refute.",
            "`hypothesis.md`, `config.yaml` and `next.md` say what this code does.",
            (
                "Training code uses the run logger, takes its seed from it and saves a final"
                " checkpoint."
            ),
            "The plan's predict command loads that checkpoint and answers every id once.",
            (
                "start_run was called, and run_status shows a completed run a seed, or you say why"
                " not."
            ),
            "Findings of a failed gate that you were handed are each fixed or answered.",
        ),
    ),
    Role(
        name="training-checker",
        title="Training checker",
        step="diagnose",
        purpose=(
            "Explains from a run's rows and logs why training went wrong, and recommends what to"
            " change."
        ),
        tools=("Read", "Grep", "Glob", "Write"),
        mcp_tools=("run_status", "record_diagnosis"),
        writes_code=False,
        off_limits=(
            "Code, configuration and runs: you explain and recommend; the model-builder changes.",
        ),
        consumes=("hypothesis", "config", "alarms", "metrics", "status", "stdout", "stderr"),
        checklist=(
            (
                "Every open alarm of the run is named, with rows that show it; record_diagnosis"
                " answered without an error."
            ),
            "Each cause quotes the row or the log line that shows it.",
            "Each recommendation names the value to change and what should be seen then.",
        ),
    ),
    Role(
        name="oracle",
        title="Oracle",
        step="judge",
        purpose=(
            "Writes what the harness's own evaluation says about an experiment, and where it falls"
            " short."
        ),
        tools=("Read",),
        mcp_tools=("evaluation_report", "record_result"),
        writes_code=False,
        off_limits=(
            "Training, code and configuration: you never run or change anything.",
            "Numbers that evaluation_report does not give.",
        ),
        consumes=("plan", "hypothesis", "config", "score", "evaluation", "metrics", "status"),
        checklist=(
            "Every claim is the number that evaluation_report gives for it, digit for digit.",
            (
                "Shortfalls come first where they matter most: the first one is shown in the"
                " checklist."
            ),
            "record_result was called once and answered without an error.",
        ),
    ),
    Role(
        name="post-trainer",
        title="Post-trainer",
        step=None,
        purpose="Specifies, runs and evaluates training programs, whose models a person promotes.",
        tools=("Read", "Grep", "Glob"),
        mcp_tools=(
            "specify_training",
            "run_training",
            "training_status",
            "training_lineage",
            "evaluate_model",
            "export_preferences",
        ),
        writes_code=False,
        off_limits=(
            "Promotion, rejection, rollback and import of models: a person decides what is served.",
            "Trainers started outside the harness: call run_training.",
            "Rows of the benchmark: nothing is chosen by looking at them.",
        ),
        consumes=("metrics", "status", "stderr"),
        checklist=(
            "Every number that you say is one of training_lineage or evaluate_model.",
            "training_status shows how each run ended; a refused result is told with its problems.",
        ),
    ),
    Role(
        name="code-reviewer",
        title="Code reviewer",
        step=None,
        purpose=(
            "Reads an experiment's code for leaks, wrong splits, ignored seeds and hard-coded"
            " results."
        ),
        tools=("Read", "Grep", "Glob"),
        mcp_tools=(),
        writes_code=False,
        off_limits=("Code: you report, with file and line; the model-builder changes.",),
        consumes=("plan", "hypothesis", "config", "code"),
        checklist=(
            "Each finding names file, line and what would show it at run time.",
            "What you did not read is listed as not read.",
        ),
    ),
)

ROLE_BY_NAME: dict[str, Role] = {role.name: role for role in ROLES}


def project_path(
    artifact: Artifact, *, experiment: str = "<experiment>", run: str = "<run>"
) -> str:
    """The artifact's path relative to the project, with `experiment` and `run` put in where its
    scope needs them."""
    if artifact.scope is Scope.PROJECT:
        return artifact.path
    folder = f"{EXPERIMENTS}/{experiment}"
    return (
        f"{folder}/{RUNS}/{run}/{artifact.path}"
        if artifact.scope is Scope.RUN
        else f"{folder}/{artifact.path}"
    )
