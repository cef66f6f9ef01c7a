"""The one declaration of an experiment's files: writer, form, and which each gate requires.

Prompts, policy snapshot, gates and `artifacts.locate` derive from it; no other code or template
names these paths.
"""

from dataclasses import dataclass
from enum import StrEnum

from harness.domain.statuses import GateName

HARNESS = "harness"
HUMAN = "human"


class Scope(StrEnum):
    PROJECT = "project"
    EXPERIMENT = "experiment"
    RUN = "run"


class Form(StrEnum):
    MARKDOWN = "markdown"
    YAML = "yaml"
    JSON = "json"
    JSONL = "jsonl"
    LOG = "log"
    TOML = "toml"
    FOLDER = "folder"


@dataclass(frozen=True, slots=True)
class Artifact:
    name: str
    """Its name in code and messages; never changes."""
    path: str
    """Relative to its scope's folder: the project, `.harness/experiments/<exp>/` or
    `.../runs/<run>/`."""
    scope: Scope
    writer: str
    """A role's name, HARNESS or HUMAN; nobody else may change the file."""
    form: Form
    purpose: str


EXPERIMENTS = ".harness/experiments"
RUNS = "runs"

ARTIFACTS: tuple[Artifact, ...] = (
    Artifact(
        "plan",
        "plan.md",
        Scope.PROJECT,
        HUMAN,
        Form.MARKDOWN,
        "objective, oracle, budgets, data, gates",
    ),
    Artifact("plans", "plans", Scope.PROJECT, HUMAN, Form.FOLDER, "further plans, one file each"),
    Artifact(
        "config_toml",
        ".harness/config.toml",
        Scope.PROJECT,
        HUMAN,
        Form.TOML,
        "the project's id and settings",
    ),
    Artifact(
        "policy",
        ".harness/policy.json",
        Scope.PROJECT,
        HARNESS,
        Form.JSON,
        "the snapshot that hooks read",
    ),
    Artifact(
        "receipts",
        ".harness/receipts",
        Scope.PROJECT,
        HARNESS,
        Form.FOLDER,
        "every permission, one per line",
    ),
    Artifact(
        "checklist",
        f"{EXPERIMENTS}/CHECKLIST.md",
        Scope.PROJECT,
        HARNESS,
        Form.MARKDOWN,
        "all experiments",
    ),
    Artifact(
        "memory",
        ".harness/memory",
        Scope.PROJECT,
        HARNESS,
        Form.FOLDER,
        "state, decisions, briefing, facts",
    ),
    Artifact(
        "priors",
        ".harness/PRIORS.md",
        Scope.PROJECT,
        HARNESS,
        Form.MARKDOWN,
        "lessons with their evidence",
    ),
    Artifact(
        "hypothesis",
        "hypothesis.md",
        Scope.EXPERIMENT,
        "model-builder",
        Form.MARKDOWN,
        "what is tried and why",
    ),
    Artifact(
        "config",
        "config.yaml",
        Scope.EXPERIMENT,
        "model-builder",
        Form.YAML,
        "the experiment's configuration",
    ),
    Artifact(
        "next",
        "next.md",
        Scope.EXPERIMENT,
        "model-builder",
        Form.MARKDOWN,
        "what to try next, best first",
    ),
    Artifact(
        "result",
        "result.md",
        Scope.EXPERIMENT,
        "oracle",
        Form.MARKDOWN,
        "what the evaluation shows",
    ),
    Artifact(
        "diagnosis",
        "diagnosis.md",
        Scope.EXPERIMENT,
        "training-checker",
        Form.MARKDOWN,
        "why a run went wrong",
    ),
    Artifact(
        "methods",
        "methods.md",
        Scope.EXPERIMENT,
        "research-scout",
        Form.MARKDOWN,
        "methods that answer it",
    ),
    Artifact(
        "code",
        "code.json",
        Scope.EXPERIMENT,
        HARNESS,
        Form.JSON,
        "the code snapshot: path to hash",
    ),
    Artifact(
        "score",
        "score.json",
        Scope.EXPERIMENT,
        HARNESS,
        Form.JSON,
        "the mean over seeds, with the spread",
    ),
    Artifact("run", "run.json", Scope.RUN, HARNESS, Form.JSON, "what was launched, where and how"),
    Artifact(
        "spec",
        "spec.json",
        Scope.RUN,
        HARNESS,
        Form.JSON,
        "what the trainer of a training program gets",
    ),
    Artifact(
        "metrics",
        "metrics.jsonl",
        Scope.RUN,
        HARNESS,
        Form.JSONL,
        "one row per epoch, by the run logger",
    ),
    Artifact(
        "status", "training_status.json", Scope.RUN, HARNESS, Form.JSON, "where the run is now"
    ),
    Artifact(
        "stdout", "stdout.log", Scope.RUN, HARNESS, Form.LOG, "what the training command printed"
    ),
    Artifact("stderr", "stderr.log", Scope.RUN, HARNESS, Form.LOG, "what it printed as errors"),
    Artifact(
        "alarms",
        "alarms.jsonl",
        Scope.RUN,
        HARNESS,
        Form.JSONL,
        "the detectors' alarms about its rows",
    ),
    Artifact(
        "resources",
        "resources.jsonl",
        Scope.RUN,
        HARNESS,
        Form.JSONL,
        "CPU, memory, disk and GPU that it used",
    ),
    Artifact(
        "checkpoints", "checkpoints", Scope.RUN, HARNESS, Form.FOLDER, "weights, by the run logger"
    ),
    Artifact(
        "evaluation",
        "evaluation.json",
        Scope.RUN,
        HARNESS,
        Form.JSON,
        "the scored checkpoint, per split",
    ),
)

BY_NAME: dict[str, Artifact] = {artifact.name: artifact for artifact in ARTIFACTS}

_EXPERIMENT = (
    "hypothesis",
    "config",
    "code",
    "metrics",
    "status",
    "checkpoints",
    "evaluation",
    "score",
    "result",
)

REQUIRED: dict[GateName, tuple[str, ...]] = {
    GateName.VALIDATION: _EXPERIMENT,
    GateName.HELD_OUT: _EXPERIMENT,
}
"""Artifacts that a gate needs; it reads runs, evaluations and lineage from the ledger."""

PLANS = ("plan", "plans")
"""Artifacts that anybody may draft until a plan is approved; a person alone changes it then."""
INNER_PLAN = ".harness/plan.md"
"""Where `init --hooks plugin` puts the form of a plan: it writes nothing outside `.harness/`."""
DRAFT = ".draft.md"
"""plans/NAME.draft.md is the next version of the plan NAME; an approval takes it over."""
GIT_COMMON_DIR = ".git/commondir"
"""Names another folder whose config git takes; no repository of its own has one."""
PROTECTED: tuple[str, ...] = (
    ".claude",
    ".mcp.json",
    ".harness/hooks",
    ".git/hooks",
    GIT_COMMON_DIR,
    ".git/config",
)
"""Further paths that only a person changes: they decide what is enforced."""
PLUGIN_MANIFEST = ".claude-plugin/plugin.json"
PLUGIN_PROTECTED: tuple[str, ...] = (
    ".claude-plugin",
    "hooks",
    "harness/guard/policy",
    "harness/guard/hooks",
    "harness/domain/plain_text.py",
)
"""The same in a project that is a Claude Code plugin: its hooks and what they import."""


def required(gate: GateName) -> tuple[Artifact, ...]:
    """The artifacts that `gate` requires, in the order in which missing ones are named."""
    return tuple(BY_NAME[name] for name in REQUIRED[gate])
