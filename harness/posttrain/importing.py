"""The result of a trainer that ran elsewhere: copied in, then judged like every other."""

import secrets
import shutil
from pathlib import Path

from harness.artifacts.hashes import hash_file
from harness.domain.facts import RunStarted
from harness.domain.statuses import CageKind
from harness.errors import UsageError
from harness.files import sha256_bytes, walk_files
from harness.posttrain.judge import (
    ProgramReport,
    hashes_now,
    judge_result,
    make_folder,
    output_folder,
    program_spec,
    require_not_completed,
    write_spec,
)
from harness.posttrain.result import Observed, read_result
from harness.project.context import Project
from harness.runs.lock import supervising
from harness.runs.processes import identity
from harness.runs.recover import close_abandoned


def import_result(project: Project, experiment: str, output: Path) -> ProgramReport:
    """`output` is the trainer's output folder, with result.json. The run is recorded with the command `import` and the
    cage `none`: nobody here saw it train.

    Raises RefusedError (already_completed), UsageError for a folder that holds links.
    """
    if not output.is_dir() or any(path.is_symlink() for path in walk_files(output)):
        raise UsageError(f"{output} is no folder of plain files.", mend="Give the trainer's output folder.")
    with supervising(project.layout, experiment):
        spec = program_spec(project, experiment)
        close_abandoned(project, experiment)
        require_not_completed(project, experiment)
        run = project.ledger.register_run(
            experiment=experiment,
            seed=spec.seed,
            argv=["import"],
            code=spec.code_hash,
            data={"train": spec.dataset["sha256"]},
            environment={"imported": True},
            cage=CageKind.NONE.value,
            token=sha256_bytes(secrets.token_bytes(16)),
            session=None,
        )
        make_folder(project.layout.run(experiment, run.id))
        target = output_folder(project, run)
        shutil.copytree(output, target, dirs_exist_ok=True)
        project.ledger.append(RunStarted(experiment=experiment, run=run.id, supervisor=identity(), **identity()))
        run = project.ledger.run(experiment, run.id)
        path, _ = write_spec(project, run, spec)
        now = hashes_now(project, spec)
        seen = Observed(
            experiment=experiment,
            run=run.id,
            spec_sha256=hash_file(path),
            exit_code=None,
            output=target,
            minutes=float(spec.budget["minutes"]),
            tokens=None,
            rows=None,
            before=now,
            after=now,
        )
        read = read_result(project.layout.run(experiment, run.id, "stdout"), target / "result.json")
        return judge_result(project, run, spec, read, seen, seconds=0.0)
