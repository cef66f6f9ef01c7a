"""The one declaration of the agents' roles. Prompts, policy snapshot and driver derive from it.

The files that a role owns stand in `contract.artifacts` only.
"""

from dataclasses import dataclass

from harness.contract.artifacts import ARTIFACTS, BY_NAME, EXPERIMENTS, RUNS, Artifact, Scope

MCP_SERVER = "harness"
"""The name of both tool servers, the driver's in-process one and `harness mcp`."""
TOOL_PREFIX = f"mcp__{MCP_SERVER}__"
"""Before a tool's name it makes the full one, as the Claude Code CLI calls it."""

MOST_REMINDERS = 1
"""Of the tools that a role owes, for each turn; a session has one turn."""

HUMAN_VERBS: tuple[tuple[str, ...], ...] = (
    ("init",),
    ("doctor", "--notify"),
    ("claude",),
    ("data", "split"),
    ("plan", "approve"),
    ("gate", "approve"),
    ("gate", "reject"),
    ("gates", "set"),
    ("keep",),
    ("phase", "next"),
    ("phase", "reopen"),
    ("experiment", "show", "--exact"),
    ("report", "--out"),
    ("scenario", "new"),
    ("scenario", "record"),
    ("ledger", "import"),
    ("artifacts", "push"),
    ("artifacts", "pull"),
    ("ledger", "merge"),
    ("ledger", "migrate"),
    ("audit", "--accept"),
    ("priors", "activate"),
    ("priors", "add"),
    ("priors", "export"),
    ("priors", "import"),
    ("priors", "refused"),
    ("priors", "retire"),
    ("posttrain", "approve"),
    ("posttrain", "import"),
    ("posttrain", "promote"),
    ("posttrain", "reject"),
    ("posttrain", "rollback"),
)
"""Commands for people only: `harness` refuses them below an agent, the policy to every role."""

ASKED_VERBS: tuple[tuple[str, ...], ...] = (
    ("plan", "approve"),
    ("gate", "approve"),
    ("gate", "reject"),
    ("keep",),
    ("audit", "--accept"),
    ("posttrain", "promote"),
    ("posttrain", "reject"),
    ("posttrain", "rollback"),
)
"""Those of them that a session of `harness claude` may ask for: its judge puts them to the person
on the person's own terminal. The others make a project, say what is measured, bring in what was
made elsewhere or show what is secret: nobody needs them in the middle of a session's work."""
HOW_TO_DECIDE = (
    "In a session of `harness claude` run the line, and the person is asked on their terminal;"
    " elsewhere give the person the line."
)
"""What whoever works for the person does with the line of an asked verb."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """One kind of agent. `step` is the loop's step that starts its session; None: no step yet."""

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
    """Whether it may change the project's ordinary files besides its own artifacts."""
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
        return self.tools + tuple(f"{TOOL_PREFIX}{tool}" for tool in self.mcp_tools)


# Repeated in every prompt; policy, sandbox and commands enforce them.
OFF_LIMITS_FOR_ALL: tuple[str, ...] = (
    (
        "The state directory outside the project: ledger, vault, held-out rows. You can neither"
        " read nor write it."
    ),
    (
        "`.claude/`; `.harness/`, except your own artifacts of the open experiment; the approved"
        " plan, its scorer and data."
    ),
    (
        "The human's commands: create a project, approve plans, approve, override or reject at a"
        " gate, import a ledger, add priors, accept audit findings."
    ),
    (
        "Claims as evidence. A number counts only if the harness recomputed it from a checkpoint;"
        " report what you saw and no more."
    ),
)

ROLES: tuple[Role, ...] = (
    Role(
        name="research-scout",
        title="Research scout",
        step="scout",
        purpose="Answers a diagnosis with published methods and baselines, each with its source.",
        tools=("Read", "Grep", "Glob", "WebSearch", "WebFetch"),
        mcp_tools=("record_methods", "record_phase"),
        writes_code=False,
        off_limits=("Code and data: you read and report.",),
        consumes=("plan", "checklist", "priors", "diagnosis", "hypothesis", "config"),
        checklist=(
            "Each method answers an alarm of the diagnosis, and says so.",
            "Every method names its source and the conditions under which its number was measured.",
            "Sources that you could not open are listed as not read.",
        ),
    ),
    Role(
        name="data-engineer",
        title="Data engineer",
        step="data",
        purpose="Says what the data is (rows, labels, duplicates, gaps), and what could leak.",
        tools=("Bash", "Read", "Edit", "Write"),
        mcp_tools=("record_phase",),
        writes_code=True,
        off_limits=(
            (
                "Data of an approved plan: a changed split needs a new plan version that a person"
                " approves."
            ),
        ),
        consumes=("plan", "checklist"),
        checklist=(
            (
                "Row counts, label balance, duplicates between splits and missing values are"
                " reported from the data."
            ),
            "No row is in two splits.",
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
                "start_run was called, and run_status shows a completed run for each seed, or you"
                " say why not."
            ),
            "Each finding of a failed gate in your first message is fixed or answered.",
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
            "Each recommendation names the value to change and its expected effect.",
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
            ("The most important shortfall comes first: it is the one that the checklist shows."),
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
            "Every number that you report comes from training_lineage or evaluate_model.",
            "training_status shows how each run ended; refused results are reported with problems.",
        ),
    ),
    Role(
        name="code-reviewer",
        title="Code reviewer",
        step="design",
        purpose=(
            "Reads the code before it trains, for leaks, wrong splits, ignored seeds and"
            " hard-coded results."
        ),
        tools=("Read", "Grep", "Glob"),
        mcp_tools=("record_phase",),
        writes_code=False,
        off_limits=("Code: you report, with file and line; the model-builder changes.",),
        consumes=("plan", "checklist"),
        checklist=(
            "Each finding names file, line and what would show it at run time.",
            "Files that you did not read are listed as not read.",
        ),
    ),
    Role(
        name="analyst",
        title="Analyst",
        step="analyse",
        purpose="Says why what is kept is better, where it fails, and what is not known.",
        tools=("Read", "Grep", "Glob"),
        mcp_tools=("record_phase",),
        writes_code=False,
        off_limits=("Code, configuration and runs: you read and explain.",),
        consumes=("plan", "checklist", "hypothesis", "config", "score", "result", "diagnosis"),
        checklist=(
            "Every number is one of score.json or CHECKLIST.md, with its spread and its seeds.",
            "What the evidence does not show is said as such.",
        ),
    ),
    Role(
        name="software-engineer",
        title="Software engineer",
        step="package",
        purpose="Makes what is kept usable, and says what it needs and how to call it.",
        tools=("Bash", "Read", "Edit", "Write"),
        mcp_tools=("record_phase",),
        writes_code=True,
        off_limits=("What was trained and scored: a change of the model is a new experiment.",),
        consumes=("plan", "checklist", "config", "score", "result"),
        checklist=(
            "The plan's predict command runs as the page says, with the packages that it names.",
            "What was not tried is said as such.",
        ),
    ),
)

ROLE_BY_NAME: dict[str, Role] = {role.name: role for role in ROLES}


def project_path(
    artifact: Artifact, *, experiment: str = "<experiment>", run: str = "<run>"
) -> str:
    """The artifact's path relative to the project, with `experiment` and `run` where its scope
    needs them."""
    if artifact.scope is Scope.PROJECT:
        return artifact.path
    folder = f"{EXPERIMENTS}/{experiment}"
    return (
        f"{folder}/{RUNS}/{run}/{artifact.path}"
        if artifact.scope is Scope.RUN
        else f"{folder}/{artifact.path}"
    )
