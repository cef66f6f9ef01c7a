"""One opened project: its settings, paths, ledger and clock."""

import os
import platform
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from harness.artifacts.locate import Layout
from harness.artifacts.trees import (
    is_known,
    own_trees,
    place_of,
)
from harness.clock import Clock, SystemClock
from harness.domain.grade import (
    OPEN,
    UNKNOWN,
    Caller,
)
from harness.domain.late import Late, dataclass
from harness.domain.plain_text import one_line
from harness.domain.records import Experiment
from harness.domain.statuses import CLOSED_EXPERIMENTS, ExperimentStatus
from harness.errors import ConfigError, RefusedError
from harness.files import atomic_write, private_folder
from harness.ledger.facts import ApprovedPlan
from harness.ledger.ledger import Ledger
from harness.settings import Settings, load_settings

_LONGEST_NAME = 64


@dataclass(frozen=True, kw_only=True)
class Project(Late):
    """A context manager; leaving it closes the ledger."""

    settings: Settings
    layout: Layout
    ledger: Ledger
    clock: Clock
    caller: Caller = UNKNOWN
    """Where the command that opened it came from."""
    who: str = ""
    """Whose process this is, e.g. "ada@desk"."""

    def called_by(self, caller: Caller) -> "Project":
        """This one for what `caller` asks; facts say so."""
        self.ledger.acts_as(f"{self.who} {caller}")
        return replace(self, caller=caller)

    def of_session(self, session: str) -> "Project":
        """This one for the tools of an agents' session: it records nothing after its end."""
        return replace(self, ledger=self.ledger.of_session(session)) if session else self

    def caller_for(self, experiment: str) -> Caller:
        """What facts about the experiment's runs and evaluations carry: `open` once a plain session
        was seen while it was open, whoever typed the command. What runs was in its hands."""
        return OPEN if self.ledger.sessions_seen(experiment) else self.caller

    def plan(self) -> ApprovedPlan:
        """The plan that was approved last. Raises RefusedError when there is none."""
        approved = self.ledger.plan()
        if approved is None:
            raise RefusedError(
                "No plan is approved in this project.",
                hint="A person approves one with `harness plan approve plan.md`.",
                code="no_plan",
            )
        return approved

    def here(self, experiments: Iterable[Experiment]) -> list[Experiment]:
        """Those that this tree opened, so that their files are there; and those of which nobody
        noted the tree."""
        own = own_trees(self.layout)
        return [one for one in experiments if one.tree is None or one.tree.id in own]

    def is_here(self, experiment: Experiment) -> bool:
        """As `here`, of one."""
        return bool(self.here([experiment]))

    def at(self, root: Path) -> "Project":
        """This one with its files where another working tree has them."""
        layout = Layout(replace(self.settings, root=root))
        return replace(self, settings=layout.settings, layout=layout)

    def undecided(self) -> list[Experiment]:
        """The experiments of this tree that are neither kept nor discarded, by number."""
        statuses = [status for status in ExperimentStatus if status not in CLOSED_EXPERIMENTS]
        return self.here(self.ledger.experiments(statuses=statuses))

    def require_here(self, experiment: str) -> Experiment:
        """Raises RefusedError (other_tree) for an experiment whose files are in another tree, and
        NotFoundError."""
        record = self.ledger.experiment(experiment)
        if record.tree is None or self.is_here(record):
            return record
        where, way = self._elsewhere(record)
        raise RefusedError(
            f"{record.id} was opened in {record.tree.words}, {where}: its files are not here.",
            hint=way,
            code="other_tree",
        )

    def _elsewhere(self, record: Experiment) -> tuple[str, str]:
        """Where the experiment is, and what leads on."""
        assert record.tree is not None  # it would be here
        place = place_of(self.layout, record.tree.id)
        if place is not None:
            way = f"`cd {shlex.quote(str(place))}` and do it there"
            return f"in {place}", f"{way}; `git worktree list` names the trees of a repository."
        anew = (
            f"a person discards it with `harness gate reject {record.id} --reason TEXT`, and"
            f" `harness experiment new --parent {record.id} --hypothesis TEXT` opens it anew here."
        )
        if is_known(self.layout, record.tree.id):
            return "a folder that is gone", f"{anew[0].upper()}{anew[1:]}"
        commit = record.tree.commit[:12]
        at = f"at commit {commit} of another clone" if commit else "of another clone"
        return at, f"Go on in the clone that opened it; or {anew}"

    def close(self) -> None:
        self.ledger.close()

    def __enter__(self) -> "Project":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def open_project(
    start: Path,
    environment: Mapping[str, str],
    *,
    clock: Clock | None = None,
    read_only: bool = False,
    restore: bool = False,
    new_config: bool = False,
    caller: Caller = UNKNOWN,
) -> Project:
    """The project that contains `start`. Raises NotFoundError, ConfigError or a LedgerError.

    `read_only` and `restore` are those of `Ledger.open`. For writing, config.toml must be as it was
    when the plan was approved, unless `new_config`: it says what sandboxed processes may read and
    which Python runs them.
    """
    settings = load_settings(start, environment)
    layout = Layout(settings)
    if layout.state.is_dir():
        private_folder(layout.state)
    if not (read_only or new_config):
        _require_approved_config(layout)
    used = clock or SystemClock()
    ledger = Ledger.open(
        layout.ledger,
        anchors=layout.anchors,
        clock=used,
        read_only=read_only,
        restore=restore,
        text=layout.facts_dir,
    )
    who = _who(environment)
    opened = Project(settings=settings, layout=layout, ledger=ledger, clock=used, who=who)
    return opened.called_by(caller)


def _who(environment: Mapping[str, str]) -> str:
    """User and host, e.g. "ada@desk"."""
    user = environment.get("USER") or environment.get("LOGNAME") or f"uid{os.getuid()}"
    words = (one_line(word, _LONGEST_NAME) for word in (user, platform.node() or "unknown"))
    return "@".join(words)


def approve_config(layout: Layout, config: bytes) -> None:
    """Remember config.toml as a person saw it; another one is refused from then on."""
    atomic_write(layout.approved_config, config)


def _require_approved_config(layout: Layout) -> None:
    approved, now = layout.approved_config, layout.project("config_toml")
    if approved.is_file() and approved.read_bytes() != now.read_bytes():
        raise ConfigError(
            f"{now} is not what it was when the plan was approved; that one is kept at {approved}.",
            hint="Restore it, or let a person approve it with `harness plan approve`.",
            code="config_changed",
        )


def open_layout(start: Path, environment: Mapping[str, str]) -> Layout:
    """The paths of the project that contains `start`, without opening its ledger: `ledger verify`
    must also work on one that cannot be opened. Raises NotFoundError or ConfigError."""
    return Layout(load_settings(start, environment))
