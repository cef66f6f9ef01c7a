"""Where every file is. No other module, template or program names an artifact's path."""

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from harness.contract.artifacts import BY_NAME, EXPERIMENTS, RUNS, Scope
from harness.domain.ids import experiment_number, no_experiment, run_number
from harness.domain.records import Experiment, Run
from harness.domain.statuses import ExperimentStatus, RunStatus
from harness.domain.team_ledger import Place, TeamLedger, schema_of
from harness.errors import NotFoundError
from harness.files import sha256_bytes
from harness.settings import Settings, main_root


class Layout:
    """The paths of one project. Making one touches no disk."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.root: Path = settings.root
        self.state: Path = settings.state
        self._memory = Path(os.path.normpath(settings.root / settings.memory_dir))
        self.experiments = self.root / EXPERIMENTS
        self.ledger_db = self.state / "ledger.db"
        self.approved_config = self.state / "approved-config.toml"
        """config.toml as it was when the plan was approved."""
        self.accepted = self.state / "accepted.json"
        """The control files as a person accepted them last; see harness.guard.accepted."""
        self.accepted_next = self.state / "accepted.next.json"
        """What an acceptance puts in place of `accepted` once its fact is stored."""
        self.judge_seen = self.state / "judge-seen.json"
        """Sizes and times of the judge's files as one digest, and the digest of their contents."""
        self.judge_approved = self.state / "judge-approved.json"
        """The judge's files as they were when the plan was approved."""
        self.trees = self.state / "trees.json"
        """The working trees of this machine that opened experiments; see artifacts.trees."""
        self.anchors = self.state / "anchors"
        self.vault = self.state / "vault"
        self.objects = self.vault / "objects"
        """Frozen files, each named by its SHA-256."""
        self.scorers = self.vault / "scorers"
        """Environments of scripts that score, one for each list of packages; see
        plans.scorer_packages."""
        self.held_out = self.vault / "held_out"
        """Held-out tables, each `<keyed hash>.<extension>`."""
        self.sealed = self.vault / "sealed"
        """Exact evaluations on labels that nobody may read, each named by its keyed hash."""
        self.validation = self.vault / "validation"
        """The harness's own copies of validation tables, each `<sha256>.<extension>`."""
        self.originals = self.vault / "originals"
        """Tables that `harness data split` split, each `<sha256>.<extension>`."""
        self.spending = self.state / "spending.jsonl"
        """What requests to the model service cost, a line each; see harness.ledger.spending."""
        self.code_index = self.state / "code-index.json"
        """What the project's files were when they were hashed last."""
        # Linked worktrees share the state directory; each has an environment of its own.
        tree = sha256_bytes(os.fsencode(self.root))[:12]
        self.libraries_seen = self.state / f"libraries-seen-{tree}.json"
        """What the files of the project's own Python environment were when they were read last."""
        self.looked = self.state / f"looked-{tree}.json"
        """What files were, and held, when they were read to be shown; see artifacts.looked."""
        self.byte_code = self.state / f"byte-code-{tree}"
        """A folder for each state of that environment: what its sources compile to."""
        self.workspaces = self.state / "workspaces"
        """The copies of the code in which runs train, while they do; and of the checkpoints that an
        experiment takes, under its name."""
        self.ends = self.state / "ends"
        """For each open run whose supervisor saw the end; see harness.runs.checkpoint_watch."""
        self.sessions = self.state / "sessions"
        """Home, configuration and temporary folders of agents' sessions."""
        self.decision_log = self._memory / "DECISION_LOG.md"
        self.state_md = self._memory / "STATE.md"
        self.briefing = self._memory / "BRIEFING.md"
        self.hand_offs = self._memory / "sessions"
        """A file for each hand-off to the next session."""
        self.facts_dir = self._memory / "facts"
        """The ledger's text form, one file a writer; committed to git."""

    @property
    def renamed(self) -> Path:
        """The last merge whose new ids the folders of this tree have; see artifacts.moved."""
        return self.looked.with_name(self.looked.name.replace("looked", "renamed", 1))

    @property
    def ledger(self) -> Place:
        """A file, or where a server keeps it."""
        url = self.settings.ledger
        if url is None:
            return self.ledger_db
        return TeamLedger(url, schema_of(self.settings.project_id), self.state)

    def project(self, name: str) -> Path:
        """The project-wide artifact `name` of the contract. Raises KeyError for an unknown name."""
        if name == "memory":
            return self._memory
        # PRIORS.md stands beside the memory folder: people read both, and move both together.
        if name == "priors":
            return self._memory.parent / Path(_path(name, Scope.PROJECT)).name
        return self.root / _path(name, Scope.PROJECT)

    def shared(self, name: str) -> Path:
        """As `project`, in the main worktree: hooks of all linked ones keep and read it there."""
        return main_root(self.root) / _path(name, Scope.PROJECT)

    def experiment(self, experiment: str, name: str | None = None) -> Path:
        """An experiment's folder or artifact. Raises NotFoundError when `experiment` is no id."""
        try:
            experiment_number(experiment)
        except ValueError as error:
            raise no_experiment(experiment) from error
        folder = self.root / EXPERIMENTS / experiment
        return folder if name is None else folder / _path(name, Scope.EXPERIMENT)

    def run(self, experiment: str, run: str, name: str | None = None) -> Path:
        """A run's folder or artifact. Raises NotFoundError when either is no id."""
        try:
            run_number(run)
        except ValueError as error:
            raise NotFoundError(
                f"{run!r} is not a run; expected an id such as run-01.",
                hint=f"List them with `harness experiment show {experiment}`.",
            ) from error
        folder = self.experiment(experiment) / RUNS / run
        return folder if name is None else folder / _path(name, Scope.RUN)

    def hand_off(self, at: str, digest: str) -> Path:
        """The page of one hand-off, by the time and the hash of its fact."""
        return self.hand_offs / hand_off_name(at, digest)

    def checklist_page(self, first: int, last: int) -> Path:
        """The page of CHECKLIST.md that holds the experiments number `first` to `last`."""
        checklist = self.project("checklist")
        return checklist.with_name(f"{checklist.stem}-{first:04d}-{last:04d}{checklist.suffix}")

    def relative(self, path: Path) -> str:
        """`path` from the root, with forward slashes. Raises ValueError when it is outside."""
        return path.relative_to(self.root).as_posix()

    def shown(self, path: Path) -> str:
        """`path` from the root; whole when it is outside."""
        return self.relative(path) if path.is_relative_to(self.root) else str(path)


def hand_off_name(at: str, digest: str) -> str:
    """A name of time and hash, so that two clones never write the same file."""
    return f"{at[:19].replace(':', '')}Z-{digest[:8]}.md"


def _path(name: str, scope: Scope) -> str:
    artifact = BY_NAME[name]
    if artifact.scope is not scope:
        raise KeyError(f"{name} belongs to a {artifact.scope}, not to a {scope}")
    return artifact.path


def active_experiment(
    experiments: Iterable[tuple[Experiment, Sequence[Run]]], alive: Callable[[Run], bool]
) -> str | None:
    """The newest experiment with a living run (`alive`), else the newest with a completed one.

    Discarded experiments are left out.
    """
    standing = (pair for pair in experiments if pair[0].status is not ExperimentStatus.DISCARDED)
    newest_first = sorted(standing, key=lambda pair: pair[0].number, reverse=True)
    for experiment, runs in newest_first:
        if any(run.status is RunStatus.RUNNING and alive(run) for run in runs):
            return experiment.id
    for experiment, runs in newest_first:
        if any(run.status is RunStatus.COMPLETED for run in runs):
            return experiment.id
    return None
