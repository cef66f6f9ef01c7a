"""The result of a trainer that ran elsewhere is copied in, then judged like every other."""

import secrets
import shutil
from pathlib import Path

from harness.artifacts.content import hash_file
from harness.domain.ids import run_id
from harness.domain.statuses import SandboxKind
from harness.errors import UsageError
from harness.files import (
    atomic_write,
    irregular_file,
    pretty_json,
    sha256_bytes,
)
from harness.ledger.facts import (
    RunStarted,
    local_job,
)
from harness.ledger.project import Project
from harness.plans.judge import require_judge
from harness.posttrain.training_judgement import (
    ProgramReport,
    hashes_now,
    judge_result,
    make_folder,
    output_folder,
    program_spec,
    require_not_completed,
    write_spec,
)
from harness.posttrain.validation import (
    Observed,
    read_result,
)
from harness.process import identity
from harness.runs.closing import close_abandoned
from harness.runs.lock import supervising


def write_spec_elsewhere(project: Project, experiment: str, target: Path) -> dict[str, str]:
    """Write the specification as the trainer of the next run gets it: {run, path, sha256}.
    `import_result` expects a result that names this run and these bytes.

    Raises RefusedError (already_completed), UsageError for a target that exists or lies in the
    project.
    """
    spec, root = program_spec(project, experiment), project.layout.root
    require_not_completed(project, experiment)
    if target.exists() or target.is_symlink() or target.resolve().is_relative_to(root.resolve()):
        raise UsageError(
            f"{target} exists, or lies in the project; expected a new file outside of it.",
            hint="Name another file: nothing is overwritten, and the source tree stays as it is.",
        )
    run = run_id(len(project.ledger.runs(experiment)) + 1)
    data = pretty_json(spec.for_trainer(root, experiment=experiment, run=run)).encode()
    atomic_write(target, data)
    return {"run": run, "path": str(target), "sha256": sha256_bytes(data)}


def import_result(project: Project, experiment: str, output: Path) -> ProgramReport:
    """Judge a trainer's output folder, which holds result.json. The run is recorded with the
    command `import` and the sandbox `none`: nobody here saw it train.

    Raises RefusedError (already_completed, judge_changed), or UsageError for a folder with links or
    pipes.
    """
    # Before anything is recorded: a link could bring files of this machine into the run.
    if not output.is_dir() or (odd := irregular_file(output)) is not None:
        why = f"{odd} is not one" if output.is_dir() else "it is not a folder"
        raise UsageError(
            f"{output} is not a folder of plain files: {why}.",
            hint="Give the trainer's output folder, with copies in the place of links.",
        )
    require_judge(project)
    with supervising(project.layout, experiment):
        spec = program_spec(project, experiment)
        project.require_here(experiment)
        close_abandoned(project, experiment)
        require_not_completed(project, experiment)
        run = project.ledger.register_run(
            experiment=experiment,
            seed=spec.seed,
            argv=["import"],
            code=spec.code_hash,
            data={"train": spec.dataset["sha256"]},
            environment={"imported": True},
            sandbox=SandboxKind.NONE.value,
            token=sha256_bytes(secrets.token_bytes(16)),
            session=None,
            caller=str(project.caller_for(experiment)),
        )
        # Copied first, then hashed and judged here: the trainer's folder may change meanwhile.
        make_folder(project, run)
        target = output_folder(project, run)
        shutil.copytree(output, target, dirs_exist_ok=True)
        project.ledger.append(
            RunStarted(
                experiment=experiment, run=run.id, supervisor=identity(), job=local_job(identity())
            )
        )
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
            loss=None,
            before=now,
            after=now,
        )
        stdout = project.layout.run(experiment, run.id, "stdout")
        reported = read_result(stdout, target / "result.json")
        return judge_result(project, run, spec, reported, seen, seconds=0.0)
