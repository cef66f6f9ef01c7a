"""A real project with an approved plan and experiments that were trained as `harness train` leaves
them."""

import csv
import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.artifacts.code_snapshot import take_snapshot, write_snapshot
from harness.artifacts.content import hash_path
from harness.clock import ManualClock
from harness.decisions.experiments import decide, open_experiment, record_result
from harness.domain.grade import PERSON
from harness.domain.records import Experiment, Run
from harness.domain.sandbox import Completed, Confinement
from harness.domain.statuses import RunStatus, SandboxKind
from harness.domain.variables import CHECKPOINT, INPUTS, PREDICTIONS
from harness.files import sha256_bytes, sha256_file
from harness.ledger.facts import CheckpointRecorded, RunEnded, RunStarted, local_job
from harness.ledger.project import Project, open_project
from harness.plans.approval import approve_plan
from harness.plans.approved import data_paths, seeds_for
from harness.run_logger import RunLogger
from harness.runs.experiment_config import keep_config
from harness.settings import create_config
from tests.plan_text import plan_text

PLAN = plan_text(
    "signs",
    "Tell the sign of x",
    tiers="must: 0.80, should: 0.90",
    budget="experiments: 6, run_minutes: 1, total_minutes: 10",
    queries=3,
    table="csv",
    row="row",
)
PREDICT = """import csv, json, os
cut = json.load(open(os.environ["HARNESS_CHECKPOINT"]))["cut"]
with open(os.environ["HARNESS_INPUTS"], newline="") as rows, open(os.environ["HARNESS_PREDICTIONS"], "w") as out:
    out.write("id,prediction\\n")
    for row in csv.DictReader(rows):
        out.write(f"{row['id']},{'up' if float(row['x']) > cut else 'down'}\\n")
"""
GOOD = (0.02, -0.03, 0.04)
"""Cuts, one a seed: near enough to 0 for the tier `should`."""
POOR = (0.7, 0.72, 0.74)


def make_root(tmp_path: Path, plan: str = PLAN) -> Path:
    root = tmp_path / "project"
    root.mkdir(parents=True)
    create_config(root, name="signs", token="cafe")
    (root / "data").mkdir()
    for seed, (name, rows) in enumerate((("train", 60), ("validation", 200), ("held_out", 200))):
        _table(root / "data" / f"{name}.csv", rows, seed)
    (root / "plan.md").write_text(plan)
    (root / "predict.py").write_text(PREDICT)
    (root / "train.py").write_text("print('train')\n")
    return root


def _table(path: Path, rows: int, seed: int) -> None:
    draw = random.Random(seed)
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(("row", "x", "y"))
        for row in range(rows):
            x = draw.uniform(-1, 1)
            writer.writerow((f"{path.stem}-{row}", repr(x), "up" if x > 0 else "down"))


class InProcess:
    """A Sandbox that predicts as PREDICT does, without starting a process for it."""

    kind = SandboxKind.NONE

    def command(self, argv: Sequence[str], confinement: Confinement, **_: Any) -> list[str]:
        return list(argv)

    def run(self, argv: Sequence[str], *, environment: Mapping[str, str], **_: Any) -> Completed:
        cut = json.loads(Path(environment[CHECKPOINT]).read_text())["cut"]
        with Path(environment[INPUTS]).open(newline="") as stream:
            lines = [
                f"{row['id']},{'up' if float(row['x']) > cut else 'down'}"
                for row in csv.DictReader(stream)
            ]
        Path(environment[PREDICTIONS]).write_text("\n".join(["id,prediction", *lines, ""]))
        return Completed(exit_code=0, stdout=b"", stderr=b"", timed_out=False, seconds=0.0)


@dataclass
class World:
    root: Path
    environment: dict[str, str]
    project: Project
    described: dict[str, Any] = field(default_factory=dict)
    """The environment that a run is registered with."""

    @classmethod
    def make(cls, tmp_path: Path, plan: str = PLAN) -> "World":
        root = make_root(tmp_path, plan)
        environment = {"XDG_STATE_HOME": str(tmp_path / "state"), "HOME": str(tmp_path / "home")}
        world = cls(root, environment, cls.opened(root, environment))
        approve_plan(world.project, root / "plan.md", by="a person")
        return world

    @staticmethod
    def opened(root: Path, environment: dict[str, str]) -> Project:
        return open_project(root, environment, clock=ManualClock(), caller=PERSON)

    def path(self, experiment: str, name: str) -> Path:
        return self.project.layout.experiment(experiment, name)

    def run_path(self, experiment: str, name: str, run: str = "run-01") -> Path:
        return self.project.layout.run(experiment, run, name)

    def open(self, hypothesis: str = "A cut at 0", parent: str | None = None) -> Experiment:
        opened = open_experiment(
            self.project,
            hypothesis=hypothesis,
            rationale="It is the sign.",
            parent=parent,
            by="model-builder",
        )
        self.path(opened.id, "config").write_text("cut: 0.0\n")
        return opened

    def open_another(self, before: str, parent: str | None = None) -> str:
        """Cancel `before` and open the next experiment."""
        words = dict.fromkeys(("context", "choice", "alternatives", "reason"), "a test")
        decide(
            self.project,
            kind="CANCEL",
            experiment=before,
            by="a person",
            confidence="high",
            **words,
        )
        return self.open("Another cut", parent).id

    def seed(self, number: int) -> int:
        """The plan's seed of a number, from 1."""
        return seeds_for(self.project.plan().basis, number)[-1]

    def train(
        self,
        experiment: str,
        cuts: Sequence[float] = GOOD,
        *,
        statuses: Sequence[RunStatus] = (),
        log: Callable[[RunLogger, Path, float], None] | None = None,
        findings: Sequence[dict[str, Any]] = (),
    ) -> list[Run]:
        """One run a cut, of the plan's seeds, as the supervisor leaves them; `log` is the
        training's own part."""
        runs = []
        for place, cut in enumerate(cuts):
            status = statuses[place] if place < len(statuses) else RunStatus.COMPLETED
            runs.append(
                self.train_one(experiment, self.seed(place + 1), cut, status, log, findings)
            )
        return runs

    def train_one(
        self,
        experiment: str,
        seed: int,
        cut: float,
        status: RunStatus = RunStatus.COMPLETED,
        log: Callable[[RunLogger, Path, float], None] | None = None,
        findings: Sequence[dict[str, Any]] = (),
    ) -> Run:
        ledger, layout = self.project.ledger, self.project.layout
        snapshot = take_snapshot(
            self.root, layout.objects, exclude=data_paths(self.project.plan())
        )
        write_snapshot(snapshot, self.path(experiment, "code"))
        config, _ = keep_config(self.project, experiment, ["python", "train.py"], {})
        token = f"token-{experiment}-{seed}-{len(ledger.runs(experiment))}"
        run = ledger.register_run(
            experiment=experiment,
            seed=seed,
            argv=["python", "train.py"],
            code=snapshot.hash,
            data={},
            environment=self.described,
            sandbox="none",
            token=sha256_bytes(token.encode()),
            session=None,
            caller=str(PERSON),
            config=config,
        )
        folder = layout.run(experiment, run.id)
        folder.mkdir(parents=True)
        me = {"pid": 1, "boot": "b", "started": 1.0}
        ledger.append(
            RunStarted(experiment=experiment, run=run.id, supervisor=me, job=local_job(me))
        )
        logger = RunLogger(
            run_dir=folder,
            experiment=experiment,
            run=run.id,
            token=token,
            seed=seed,
            clock=self.project.clock,
        )
        (log or train_well)(logger, folder, cut)
        self._collect(run, folder, status, findings)
        return ledger.run(experiment, run.id)

    def _collect(
        self, run: Run, folder: Path, status: RunStatus, findings: Sequence[dict[str, Any]]
    ) -> None:
        ledger = self.project.ledger
        for path in (
            sorted((folder / "checkpoints").glob("*")) if status is RunStatus.COMPLETED else []
        ):
            ledger.append(
                CheckpointRecorded(
                    experiment=run.experiment,
                    run=run.id,
                    checkpoint=hash_path(path),
                    path=self.project.layout.relative(path),
                    bytes=path.stat().st_size,
                    epoch=1,
                    final=True,
                )
            )
        names = {"metrics": "metrics.jsonl", "status": "training_status.json"}
        files = {
            name: sha256_file(folder / file)
            for name, file in names.items()
            if (folder / file).exists()
        }
        ended = RunEnded(
            experiment=run.experiment,
            run=run.id,
            status=status.value,
            exit_code=0,
            reason="ended",
            seconds=1.0,
            rows=3,
            files=files,
            findings=list(findings),
        )
        ledger.append(ended)

    def result(self, experiment: str, **claims: float | str) -> None:
        record_result(
            self.project,
            experiment,
            claims=claims,
            summary="See above.",
            shortfalls=[],
            by="oracle",
        )


def train_well(log: RunLogger, folder: Path, cut: float) -> None:
    with log:
        log.start(total_epochs=2)
        for epoch in range(2):
            log.epoch(epoch, {"loss": 1.0 / (epoch + 1)})
        path = log.checkpoint_dir / "last.json"
        path.write_text(json.dumps({"cut": cut, "seed": log.seed}))
        log.checkpoint_saved(path, epoch=1, final=True)


def train_past_the_logger(log: RunLogger, folder: Path, cut: float) -> None:
    (folder / "results.json").write_text(json.dumps({"accuracy": 0.999}))
