"""How a trainer is started: its words, its environment, its sandbox."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.domain import variables
from harness.domain.commands import with_interpreter
from harness.domain.records import Run
from harness.domain.sandbox import Confinement, Sandbox, machine_share
from harness.domain.statuses import SandboxKind
from harness.errors import MissingExtraError
from harness.ledger.project import Project
from harness.posttrain.specification import Specification
from harness.posttrain.training_judgement import output_folder
from harness.posttrain.vocabulary import Backend, HardwareTier
from harness.runs.environment import child_environment, prepare_private, run_variables
from harness.runs.launch import Launched, launch
from harness.runs.private import make_private

PACKAGE = Path(__file__).resolve().parents[1]
OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
}


@dataclass(frozen=True, kw_only=True)
class Job:
    project: Project
    experiment: str
    spec: Specification
    command: list[str]
    python: dict[str, Any]
    sandbox: Sandbox
    inherited: Mapping[str, str]
    grace: float
    on_event: Callable[[dict[str, Any]], None]


def words_of(spec: Specification, interpreter: str) -> list[str]:
    """The trainer's command without its two options."""
    if spec.backend is Backend.COMMAND:
        return with_interpreter(list(spec.command or ()), interpreter)
    return [interpreter, "-m", spec.backend.module]


def require_packages(job: Job) -> None:
    """Raises MissingExtraError with the command that installs what the project's interpreter
    lacks."""
    have = {name.lower() for name in job.python["packages"]}
    missing = [name for name in job.spec.backend.packages if name not in have]
    if missing:
        raise MissingExtraError(
            f"{job.spec.backend} needs {', '.join(missing)}, which the project's interpreter does"
            " not have.",
            hint=(
                f"Install it there: `pip install {' '.join(missing)}`, or `pip install"
                " 'experiment-harness[train]'`."
            ),
        )


def launch_trainer(
    job: Job, run: Run, token: str, spec_file: Path, *, spent_tokens: float
) -> Launched:
    """`spent_tokens` is what earlier attempts of the run put through the model. Raises OSError,
    HarnessError."""
    layout, private = job.project.layout, make_private(run.token)
    folder, output = layout.run(run.experiment, run.id), output_folder(job.project, run)
    given = run_variables(
        project=layout.root,
        experiment=run.experiment,
        run=run.id,
        run_dir=folder,
        token=token,
        seed=run.seed,
    )
    given |= {**OFFLINE, "PYTHONHASHSEED": str(run.seed), variables.ATTEMPT: str(run.attempt)}
    given |= {
        variables.SPENT_SECONDS: str(run.seconds or 0.0),
        variables.SPENT_TOKENS: str(int(spent_tokens)),
    }
    if job.spec.hardware_tier is HardwareTier.CPU:
        given["CUDA_VISIBLE_DEVICES"] = ""
    given |= prepare_private(private, python=job.python)
    words = [*job.command, "--spec", str(spec_file), "--output-dir", str(output)]
    return launch(
        job.sandbox.command(
            words, _confinement(job, folder, private), memory_bytes=_memory(job.spec)
        ),
        cwd=layout.root,
        environment=child_environment(job.inherited, private, given),
        stdout=layout.run(run.experiment, run.id, "stdout"),
        stderr=layout.run(run.experiment, run.id, "stderr"),
        further=layout.run(run.experiment, run.id, "stderr").exists(),
    )


def _memory(spec: Specification) -> int | None:
    """A GPU's driver maps more address space than any machine has memory: no limit there."""
    return machine_share() if spec.hardware_tier is HardwareTier.CPU else None


def _confinement(job: Job, folder: Path, private: Path) -> Confinement:
    """It may read the project, the dataset, the base model and the packages, and write in the run's
    folder only. The control folder is hidden, unless the base model lies in it: then only that is
    listed. The benchmark is hidden by bwrap alone."""
    layout, spec = job.project.layout, job.spec
    model = [] if spec.model["path"] is None else [spec.model["path"]]
    readable = [
        layout.root,
        layout.root / spec.dataset["path"],
        *model,
        *job.project.settings.readable,
    ]
    benchmark = (layout.root / spec.benchmark["path"]).resolve()
    can_hide = (
        job.sandbox.kind is SandboxKind.BWRAP
    )  # Landlock takes nothing away below what it grants
    hidden = [benchmark] if can_hide and benchmark.is_relative_to(layout.root) else []
    if not any(Path(path).is_relative_to(layout.state) for path in model):
        hidden.append(layout.state)
    return Confinement(
        writable=(folder, private),
        read_only=tuple(
            path
            for path in map(Path, [*readable, *job.python["prefixes"], PACKAGE])
            if path.exists()
        ),
        hidden=tuple(hidden),
    )
