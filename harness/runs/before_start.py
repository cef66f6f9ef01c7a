"""Asked before a run is registered: can the command start at all, and was it run before?

A mistyped name is no try, and no launch of a seed. The same code, command, configuration and data
with the same seeds give no new answer.
"""

import os
import re
import shlex
import shutil
from collections.abc import (
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path, PurePath, PurePosixPath
from typing import Any

from harness.artifacts.code_snapshot import Snapshot
from harness.domain.commands import passed_on
from harness.domain.findings import Finding
from harness.domain.launch_options import LOCAL
from harness.domain.statuses import RunStatus
from harness.errors import RefusedError
from harness.gates.findings import finding
from harness.ledger.project import Project
from harness.plans.approved import data_hashes, plan_of
from harness.plans.review import script_of
from harness.runs.experiment_config import keep_config, values_of
from harness.runs.launchers.launcher import beside
from harness.runs.train_job import TrainJob, code_now

_RUNNERS = re.compile(r"(python|pypy)[\d.]*\Z|torchrun\Z|accelerate\Z|(ba|da)?sh\Z")
"""Programs whose first word with the ending of a script is the script that they run."""
_PYTHON = re.compile(r"(python|pypy)[\d.]*\Z")


@dataclass(frozen=True, kw_only=True)
class Startable:
    """What is asked of a command.

    `code` is what training gets; `again` is the call before its `--`.
    """

    project: Project
    argv: Sequence[str]
    program: str
    inherited: Mapping[str, str]
    code: Callable[[], Snapshot]
    again: str

    def require(self) -> None:
        """Raises RefusedError (command_not_found) when the program, or the script or module of the
        project that it runs, is surely not there. What can be known only inside the sandbox is left
        to the run."""
        self._program()
        name = PurePath(self.argv[0]).name
        script = script_of(self.argv) if _RUNNERS.match(name) else None
        if script is not None:
            self._script(script)
        elif _PYTHON.match(name) and self.argv[1:2] == ["-m"] and len(self.argv) > 2:
            self._module(self.argv[2])

    def _program(self) -> None:
        settings, path = self.project.settings, self._path()
        if beside(settings) != LOCAL:
            return
        if os.sep in self.program:
            if os.path.lexists(self.project.layout.root / self.program):
                return
        elif shutil.which(self.program, path=path) is not None:
            return
        word = self.argv[0]
        if os.sep in word:
            folder = PurePath(word).parent
            there = _programs([self.project.layout.root / folder])
            names = [str(folder / one) for one in there]
            raise self._refused(word, "is no program of the project", names)
        what = "is no program on the PATH that training gets"
        if word.endswith(".py"):
            raise self._refused(word, f"{what}: Python runs it", (), self._with_python(word))
        folders = list(map(Path, path.split(os.pathsep)))
        if settings.interpreter is not None:
            folders.append(Path(settings.interpreter).parent)
        raise self._refused(word, what, _programs(folders))

    def _with_python(self, word: str) -> str:
        near = get_close_matches(word, sorted(self.code().files), n=1)
        words = ["python", *(near or [word]), *self.argv[1:]]
        return f"Did you mean `{self.again} -- {' '.join(words)}`?"

    def _path(self) -> str:
        return passed_on(self.inherited).get("PATH", os.defpath)

    def _script(self, script: str) -> None:
        name, root = os.path.normpath(script), self.project.layout.root
        if not os.path.lexists(root / script):
            raise self._refused(script, "is not in the project", self.code().files)
        if os.path.isabs(name) or name.startswith(os.pardir):
            return
        code = self.code()
        # Whatever else keeps it out, the run says.
        other = (*code.unreadable, *code.too_large)
        if name in (*code.files, *other):
            return
        parts = set(_with_parents(name))
        shown = self.project.settings.readable
        linked = parts & set(code.links)
        given = {str(root / one) for one in parts} & set(shown)
        if linked or given or not os.path.isfile(root / name):
            return
        what = "is no part of the code that training gets: git ignores it"
        way = "Take it out of .gitignore, or commit it."
        raise self._refused(script, what, (), way)

    def _module(self, module: str) -> None:
        """One of a package of the project: what else an environment holds is not asked."""
        top, *rest = module.split(".")
        code = self.code()
        own = [name for name in code.files if name.startswith(f"{top}/") and name.endswith(".py")]
        linked = any(name.partition("/")[0] == top for name in code.links)
        # Without it a package of the environment with this name comes before the folder.
        if not rest or linked or f"{top}/__init__.py" not in own:
            return
        path = module.replace(".", "/")
        if {f"{path}.py", f"{path}/__main__.py"} & set(own):
            return
        named = []
        for name in own:
            stem = name.removesuffix(".py")
            stem = stem.removesuffix("/__main__")
            if not stem.endswith("__init__"):
                named.append(stem.replace("/", "."))
        what = f"is no module of the project's {top}"
        raise self._refused(module, what, named)

    def _refused(self, name: str, what: str, known: Iterable[str], hint: str = "") -> RefusedError:
        known = sorted(known)
        near = get_close_matches(name, known, n=1)
        if near:
            words = [near[0] if word == name else word for word in self.argv]
            hint = f"Did you mean `{self.again} -- {' '.join(words)}`?"
        elif not hint:
            hint = (
                "Correct the words after `--`;"
                f" `{self.again}` alone runs the plan's"
                " training.entry."
            )
        return RefusedError(
            f"{name} {what}, so the command cannot start."
            " No run was registered,"
            " and no seed is used up by it.",
            hint=hint,
            code="command_not_found",
        )


def _with_parents(name: str) -> Iterator[str]:
    path = PurePosixPath(name)
    yield from map(str, (path, *path.parents))


def _programs(folders: Iterable[Path]) -> set[str]:
    """Names of what can be started."""
    names = set()
    for folder in folders:
        try:
            names |= {one.name for one in os.scandir(folder) if os.access(one.path, os.X_OK)}
        except OSError:  # PATH names folders that are not there
            continue
    return names


def tried_before(job: TrainJob, on_event: Callable[[dict[str, Any]], None]) -> list[Finding]:
    """Of a training that is about to begin; it is told at once."""
    found = configuration_tried_before(
        job.project,
        job.experiment,
        code=job.snapshot.hash,
        argv=job.argv,
        config=job.config,
        data=job.data,
    )
    for one in found:
        on_event({"kind": one.code, "text": f"{job.experiment}: {one.message} {one.hint}"})
    return found


def would_repeat(project: Project, experiment: str, words: Sequence[str] | None) -> list[Finding]:
    """The same of a training that was not asked for yet, with the files as they are now; nothing
    where the experiment trained this already, for its seeds go on."""
    approved = plan_of(project, project.ledger.experiment(experiment))
    argv = list(words or shlex.split(approved.content["training"]["entry"]))
    code = code_now(project, approved).hash
    config, _ = keep_config(project, experiment, argv, {})
    own = project.ledger.runs(experiment)[-1:]
    if own and (own[0].code, list(own[0].argv), own[0].config) == (code, argv, config):
        return []
    return configuration_tried_before(
        project, experiment, code=code, argv=argv, config=config, data=data_hashes(approved)
    )


def configuration_tried_before(
    project: Project,
    experiment: str,
    *,
    code: str,
    argv: Sequence[str],
    config: str | None,
    data: Mapping[str, str],
) -> list[Finding]:
    """A note of the newest earlier experiment whose completed runs had all of these; a
    config.yaml counts by its values, not by its comments."""
    number = project.ledger.experiment(experiment).number
    wanted = values_of(project, config)
    for one in reversed(project.ledger.experiments()):
        if one.number >= number:
            continue
        for run in project.ledger.runs(one.id):
            if (
                run.status is RunStatus.COMPLETED
                and (run.code, list(run.argv), run.data) == (code, list(argv), dict(data))
                and values_of(project, run.config) == wanted
            ):
                return [_told(project, one.id, one.status)]
    return []


def _told(project: Project, earlier: str, status: str) -> Finding:
    decided = project.ledger.decisions(earlier)[-1:]
    why = f" ({decided[0].kind}: {decided[0].reason})" if decided else ""
    return finding(
        "configuration_tried_before",
        f"{earlier} trained the same code, command, configuration and data; it is {status}{why}.",
        experiment=earlier,
    )
