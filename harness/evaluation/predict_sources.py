"""What predict ran by, the registered code and the libraries that it imported, and what became of
them since.

Code: whoever mends a file after the run is told that it was not used, and how to have the mended
code judged with the same weights.

Libraries: of a Python environment below the project alone: an agent may write there. Which packages
predict imports can be hidden in its code, so each that was there counts, whether it changed or went
away. One that came counts when something takes it: what was registered names it, a library that it
reaches imports it at some time, or Python and packages look for it by themselves. An installer that
changes is a note: where the sandbox can hide it, predict does not see it.
"""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path

import orjson

from harness.artifacts.code_snapshot import load_snapshot, on_disk
from harness.artifacts.libraries import Libraries, environments, read_libraries
from harness.artifacts.objects import ObjectDamagedError, load_object, store_bytes
from harness.artifacts.training_code import imported_by, run_by
from harness.domain.commands import found, with_interpreter
from harness.domain.findings import Finding
from harness.domain.late import Late, dataclass
from harness.domain.records import Run
from harness.domain.statuses import CLOSED_EXPERIMENTS, RunStatus
from harness.errors import ConfigError
from harness.evaluation import problems
from harness.evaluation.outcome import OF_PREDICT
from harness.evaluation.scores import counted_runs
from harness.files import canonical_json, sha256_bytes
from harness.ledger.facts import ApprovedPlan, Evaluation
from harness.ledger.project import Project
from harness.plans.approved import plan_of
from harness.settings import require_interpreter

_MOST_NAMED = 3
_DIGITS = 9
GONE = "gone"
_INSTALLERS = frozenset({"pip", "uv", "wheel"})
"""No program runs them to predict, unless it says so."""
_MEANWHILE = "what changed while predict ran"
"""Stands among the names of an environment that did not hold still."""
_PARTS = ("standard library", "lib/", "lib64/", "pyvenv.cfg")
"""An environment has them from its start, or something is put before what it has."""


def changed_predict(project: Project, experiment: str) -> list[str]:
    """The files that predict runs, as far as their text says, which are no longer as they were
    registered with the experiment's runs."""
    record = project.ledger.experiment(experiment)
    runs = counted_runs(project.ledger.runs(experiment))
    if not runs or record.status in CLOSED_EXPERIMENTS:
        return []
    words = shlex.split(plan_of(project, record).content["oracle"]["predict"])
    layout = project.layout
    try:
        snapshot = load_snapshot(layout.objects, runs[-1].code)
        names = run_by(snapshot, words, layout.objects)
    except ObjectDamagedError:
        return []  # the evaluation says it
    changed = []
    for name in sorted(names):
        path = layout.root / on_disk(name)
        now = sha256_bytes(path.read_bytes()) if path.is_file() else None
        if now != snapshot.files[name]:
            changed.append(name)
    return changed


def way_with_predict(project: Project, experiment: str, codes: Iterable[str]) -> str | None:
    """What to do when predict failed, or was changed since; None when neither is so. `codes`: of
    the evaluation's findings."""
    changed = changed_predict(project, experiment)
    failed = any(code.startswith(OF_PREDICT) for code in codes)
    if not changed and not failed:
        return None
    named = ", ".join(changed[:_MOST_NAMED]) + (", ..." if len(changed) > _MOST_NAMED else "")
    since = f"{named} has changed since, and was not used. " if changed else ""
    if not all(
        run.status is RunStatus.COMPLETED for run in counted_runs(project.ledger.runs(experiment))
    ):
        way = f"Train again: `harness train {experiment}`."
    else:
        way = (
            f"{'When predict is mended' if failed and not changed else 'For the code as it is now'}"
            f", with the same weights: `harness evaluate {experiment} --predict-from .`."
        )
    return f"predict runs by the code that is registered with the run. {since}{way}"


def whose(project: Project, experiment: str) -> str | None:
    """Of the experiment's newest run that counts, as `lineage`."""
    ledger = project.ledger
    runs = counted_runs(ledger.runs(experiment))
    if not runs:
        return None
    names = runs[-1].taken_from
    return lineage(runs[-1], [ledger.run(*name.split("/")) for name in names])


def lineage(run: Run, trained: Sequence[Run]) -> str | None:
    """Whose predict and whose training make a run's score; None where one code is both. `trained`:
    the runs whose weights it took."""
    if not trained:
        return None
    codes = ", ".join(dict.fromkeys(map(_code, trained)))
    return f"predict of {_code(run)}, training of {codes}"


def _code(run: Run) -> str:
    """Of a commit that predict was taken from, the commit; else its hash, and what was checked out
    then."""
    if commit := run.handle.get("commit"):
        return f"commit {commit[:_DIGITS]}"
    head = run.environment.get("commit")
    at = f" at commit {head[:_DIGITS]}" if head else ""
    return f"code {run.code[:_DIGITS]}{at}"


@dataclass(frozen=True, kw_only=True)
class LibraryChanges(Late):
    counted: Mapping[str, str]
    """Name -> its digest now, or GONE."""
    noted: tuple[str, ...] = ()


class OwnLibraries:
    """Of the environment below the project that the plan's predict starts in, if it is there."""

    def __init__(self, project: Project, approved: ApprovedPlan) -> None:
        self._project, self._approved = project, approved
        self._compared: dict[tuple[str, str], LibraryChanges] = {}

    @cached_property
    def program(self) -> Path | None:
        """What the command's first word starts."""
        words = shlex.split(self._approved.content["oracle"]["predict"])
        try:
            interpreter = require_interpreter(self._project.settings)
        except ConfigError:  # a clone, or its folder is gone: then nothing of it is there
            interpreter = str(self._project.settings.interpreter)
        program = next(iter(with_interpreter(words, interpreter)), "")
        path = Path(found(program) or program)
        return path if path.is_absolute() else None

    @cached_property
    def _prefixes(self) -> list[Path]:
        root = self._project.layout.root
        return [] if self.program is None else environments(root, self.program)

    def read(self) -> Libraries | None:
        """As they are now; None where predict starts elsewhere."""
        layout = self._project.layout
        return (
            read_libraries(layout.root, self._prefixes, layout.libraries_seen)
            if self._prefixes
            else None
        )

    def installers(self, code: str) -> tuple[Path, ...]:
        """The packages of installers that the registered code does not name: predict needs none of
        them, and a change of one decides nothing."""
        named = _top_levels(self._project.layout.objects, code)
        return tuple(
            folder
            for prefix in self._prefixes
            for site in sorted(prefix.glob("lib/python*/site-packages"))
            for name in sorted(_INSTALLERS - named)
            if (folder := site / name).is_dir() and not folder.is_symlink()
        )

    def keep(self, before: Libraries | None, after: Libraries | None) -> str | None:
        """Store what predict ran with, and return its hash: the environment as it was before and
        after."""
        if before is None:
            return None
        names = dict(before.digests)
        if after is None or after.signature != before.signature:
            names[_MEANWHILE] = ""
        return store_bytes(canonical_json(names), self._project.layout.objects)

    def since(self, evaluation: Evaluation) -> LibraryChanges:
        """What changed since the evaluation; nothing where that is not known."""
        kept = evaluation.libraries
        if kept is None:
            return LibraryChanges(counted={})
        key = (kept, evaluation.code)
        if key not in self._compared:
            self._compared[key] = self._compare(*key)
        return self._compared[key]

    def findings(self, evaluations: Sequence[Evaluation]) -> tuple[Finding, ...]:
        """`libraries_changed` and the note `libraries_added`, for all of them together."""
        changes = [(one, self.since(one)) for one in evaluations]
        counted = {name: now for _, change in changes for name, now in change.counted.items()}
        noted = {name for _, change in changes for name in change.noted} - counted.keys()
        found = [problems.libraries_added(sorted(noted))] if noted else []
        if counted:
            one = evaluations[0]
            found.insert(0, problems.libraries_changed(one.experiment, one.split, counted))
        return tuple(found)

    @cached_property
    def _now(self) -> Libraries | None:
        return self.read()

    def _compare(self, kept: str, code: str) -> LibraryChanges:
        objects = self._project.layout.objects
        try:
            then: dict[str, str] = orjson.loads(load_object(objects, kept))
        except ObjectDamagedError:  # not on this machine
            return LibraryChanges(counted={})
        if self._now is None or self._now.digests == then:
            return LibraryChanges(counted={})
        now = self._now.digests
        other = {name: now.get(name, GONE) for name in then if now.get(name) != then[name]}
        new = now.keys() - then.keys()
        named = _top_levels(objects, code)
        taken = named | self._now.wanted
        late = taken | self._now.reached(named)
        counted = {
            **{name: to for name, to in other.items() if name in taken or not _installs(name)},
            **{name: now[name] for name in new if name in late or name.startswith(_PARTS)},
        }
        # A script comes with a package, which is told by its name.
        told = {*other, *new} - counted.keys()
        noted = sorted(name for name in told if "/" not in name and not name.startswith("."))
        return LibraryChanges(counted=counted, noted=tuple(noted))


def _top_levels(objects: Path, code: str) -> frozenset[str]:
    return frozenset(module.partition(".")[0] for module in modules_of(objects, code))


def _installs(name: str) -> bool:
    return name.removeprefix("bin/").rstrip(".0123456789") in _INSTALLERS


@lru_cache(maxsize=64)
def modules_of(objects: Path, code: str) -> frozenset[str]:
    """Dotted names that the registered code imports."""
    try:
        return frozenset(imported_by(load_snapshot(objects, code), objects))
    except ObjectDamagedError:  # said elsewhere
        return frozenset()
