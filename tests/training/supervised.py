"""Training under `harness train` in a project of its own: killed -9 together with its supervisor,
then resumed."""

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch

from harness.decisions.experiments import open_experiment
from harness.domain.records import Run
from harness.domain.statuses import RunStatus
from harness.ledger.project import Project, open_project
from harness.plans.approval import approve_plan
from harness.plans.tables import write_table
from harness.settings import create_config
from tests.blobs import own_environment
from tests.plan_text import plan_text
from tests.training.kills import shown
from tests.vault_key import give_key

PLAN = plan_text(
    "blobs",
    "Tell three blobs apart",
    tiers="must: 0.80, should: 0.90",
    budget="experiments: 90, run_minutes: 5, total_minutes: 600",
).replace("{entry: python train.py}", "{entry: python train.py, checkpoint_every: 2}")
PLAN = PLAN.replace("classical-ml", "deep-learning")

TORCH = """\
import random
import time

import numpy as np
import torch

from harness.run_logger import RunLogger
from harness.training.checkpointer import Checkpointer
from harness.training.loader import ResumableLoader

EPOCHS, PAUSE = 5, 0.02


class Rows(torch.utils.data.Dataset):
    def __init__(self, path):
        table = np.load(path)
        self.x, self.y = torch.tensor(table["x"]), torch.tensor(table["y"])

    def __len__(self):
        return len(self.y)

    def __getitem__(self, row):
        return self.x[row] + 0.1 * random.gauss(0, 1) + 0.1 * float(np.random.standard_normal()), self.y[row]


with RunLogger.from_environment() as log:
    torch.set_num_threads(1)
    random.seed(log.seed)
    np.random.seed(log.seed % 2**32)
    torch.manual_seed(log.seed)
    rows, later = Rows("data/train.npz"), Rows("data/validation.npz")
    model = torch.nn.Sequential(
        torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(16, 3)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 100)
    loader = ResumableLoader(rows, batch_size=40, seed=log.seed)
    keeper = Checkpointer(log, model=model, optimizer=optimizer, scheduler=scheduler, loader=loader)
    at = keeper.resume()
    log.start(EPOCHS, {"lr": 2e-2}, resumed_at=at.epoch if at.resumed else None)
    total = at.extra.get("total", 0.0)
    for epoch in range(at.epoch, EPOCHS):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            scheduler.step()
            total += loss.item()
            keeper.step += 1
            print("step", keeper.step, flush=True)
            time.sleep(PAUSE)
            if keeper.step % 3 == 0:
                keeper.save(epoch, done=False, extra={"total": total})
        model.eval()
        with torch.no_grad():
            accuracy = (model(later.x).argmax(1) == later.y).float().mean().item()
        log.epoch(epoch, {"loss": total, "accuracy": accuracy}, step=keeper.step)
        keeper.after_epoch(epoch, EPOCHS, value=accuracy)
        total = 0.0
    keeper.finish()
"""

TRAINER = """\
import os

os.environ.update(HF_HUB_OFFLINE="1", HF_HUB_DISABLE_TELEMETRY="1")

import numpy as np
import torch
import transformers

from harness.run_logger import RunLogger
from harness.training.transformers_callback import TransformersCallback
from harness.training.transformers_callback import whole_checkpoint


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.3), torch.nn.Linear(8, 3))

    def forward(self, x, labels):
        made = self.layers(x)
        return {"loss": torch.nn.functional.cross_entropy(made, labels), "logits": made}


with RunLogger.from_environment() as log:
    torch.set_num_threads(1)
    seed = log.seed % 2**32
    torch.manual_seed(seed)
    table = np.load("data/train.npz")
    rows = [{"x": torch.tensor(x), "labels": torch.tensor(y)} for x, y in zip(table["x"], table["y"])]
    arguments = transformers.TrainingArguments(
        output_dir=str(log.checkpoint_dir), num_train_epochs=3, per_device_train_batch_size=40, logging_steps=1,
        learning_rate=1e-2, warmup_steps=3, save_steps=2, report_to="none", disable_tqdm=True, use_cpu=True, seed=seed,
        dataloader_pin_memory=False,
    )
    trainer = transformers.Trainer(
        model=Small(), args=arguments, train_dataset=rows, callbacks=[TransformersCallback(log)]
    )
    trainer.train(resume_from_checkpoint=whole_checkpoint(log.checkpoint_dir))
"""

PREDICT = """\
import os

import numpy as np
import torch

model = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(16, 3))
model.load_state_dict(torch.load(os.environ["HARNESS_CHECKPOINT"], weights_only=True))
table = np.load(os.environ["HARNESS_INPUTS"])
with torch.no_grad():
    best = model.eval()(torch.tensor(table["x"])).argmax(1).numpy()
np.savez(os.environ["HARNESS_PREDICTIONS"], id=table["id"], prediction=best)
"""
COMMAND = ("--", "python", "train.py")
_SECONDS = 300


def table(rows: int, seed: int) -> dict[str, np.ndarray]:
    """x (rows, 4) float32 around one of three corners, y int64 in 0..2."""
    drawn = np.random.default_rng(seed)
    y = drawn.integers(0, 3, rows)
    x = drawn.normal(size=(rows, 4)).astype("float32")
    x[np.arange(rows), y] += 3
    return {"x": x, "y": y, "id": np.arange(rows) + seed * 100_000}


@dataclass
class Place:
    """An approved project that trains `program`. Seeds are drawn of the plan and of the secret
    tables' hashes, keyed by the vault: with one key they are the same in every place."""

    root: Path
    home: Path
    seconds: float = 0.0
    """Of the unbroken training."""
    lines: int = 0
    """That it printed."""
    environment: dict[str, str] = field(default_factory=dict)

    @classmethod
    def make(cls, folder: Path, program: str, *, seeds: int = 1) -> "Place":
        root = folder / "my project"
        create_config(root, name="blobs", token="cafe")
        for seed, (name, rows) in enumerate(
            [("train", 200), ("validation", 100), ("held_out", 100)]
        ):
            write_table(root / f"data/{name}.npz", table(rows, seed))
        plan = PLAN.replace("seeds: 3", f"seeds: {seeds}")
        for name, text in (("plan.md", plan), ("train.py", program), ("predict.py", PREDICT)):
            (root / name).write_text(text, "utf-8")
        given = own_environment(folder) | {
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "OMP_NUM_THREADS": "1",
        }
        place = cls(root=root, home=folder / "home", environment=given)
        place.home.mkdir()
        with place.project() as project:
            give_key(project.layout.vault)
            approve_plan(project, root / "plan.md", by="tester")
        return place

    @contextmanager
    def project(self) -> Iterator[Project]:
        with open_project(self.root, self.environment) as opened:
            yield opened

    def open(self) -> str:
        """The first one as a person opens it; the others, which no gate is asked about, beside
        it."""
        with self.project() as project:
            if not project.ledger.experiments():
                why = {"hypothesis": "they differ", "rationale": "by their corners"}
                return open_experiment(project, **why, parent=None, by="tester").id
            return project.ledger.open_experiment(
                hypothesis="they differ", parent=None, by="tester"
            ).id

    def folder(self, experiment: str, run: str = "run-01") -> Path:
        return self.root / ".harness/experiments" / experiment / "runs" / run

    def harness(self, *words: str) -> tuple[int, dict[str, Any]]:
        command = [sys.executable, "-m", "harness", *words]
        done = subprocess.run(
            command,
            cwd=self.root,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
        )
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)

    def train(self, experiment: str, *words: str) -> tuple[int, dict[str, Any]]:
        return self.harness("train", experiment, "--json", *words, *COMMAND)

    def drawn_moments(self, drawn: random.Random, many: int) -> list[tuple[int, float]]:
        """Of ten, nine after a line that it printed, with saves and rows in between; one before it
        printed anything."""
        if drawn.random() < 0.1:
            return [(0, drawn.uniform(0.0, self.seconds / 3))] * many
        return [
            (drawn.randrange(1, 5 if number else self.lines), drawn.uniform(0.0, 0.05))
            for number in range(many)
        ]

    def unbroken(self) -> "End":
        experiment = self.open()
        begun = time.monotonic()
        code, told = self.train(experiment)
        assert code == 0, told
        self.seconds, self.lines = time.monotonic() - begun, _lines(self.folder(experiment))
        return self.end(experiment)

    def broken(
        self, experiment: str, moments: list[tuple[int, float]], drawn: random.Random
    ) -> int:
        """Train; at each moment (lines printed since it was launched, seconds after them) kill
        supervisor and trainer, in an order that is drawn, and resume. Returns how many kills met a
        run that was going on."""
        kills = 0
        for number, (lines, seconds) in enumerate(moments):
            words = ["train", experiment, *(["--resume"] if number else []), *COMMAND]
            before = _lines(self.folder(experiment))
            process = subprocess.Popen(
                [sys.executable, "-m", "harness", *words],
                cwd=self.root,
                env=self.environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            while process.poll() is None and _lines(self.folder(experiment)) < before + lines:
                time.sleep(0.005)
            time.sleep(seconds)
            kills += _kill_all(process, drawn)
        code, told = self.train(experiment, "--resume")
        if code == 2:
            assert told["error"]["code"] == "nothing_to_resume", told
            code, told = self.train(experiment)
        assert code == 0, told
        return kills

    def result(self, experiment: str) -> None:
        """What a gate asks for besides the runs and their configuration: the evaluation, and a
        result without claims."""
        folder = self.root / ".harness/experiments" / experiment
        (folder / "result.md").write_text(
            "---\nclaims: {}\n---\n# Result\n\nIt learned.\n", "utf-8"
        )
        code, told = self.harness("evaluate", experiment, "--json")
        assert code == 0, told

    def end(self, experiment: str) -> "End":
        with self.project() as project:
            runs = [
                run for run in project.ledger.runs(experiment) if run.status is RunStatus.COMPLETED
            ]
            finals = {
                item.run: item for item in project.ledger.checkpoints(experiment) if item.final
            }
            return End(
                seeds=[run.seed for run in runs],
                rows=[shown(self.folder(experiment, run.id)) for run in runs],
                states=[_states(self.folder(experiment, run.id)) for run in runs],
                scored=[_weights(self.root / finals[run.id].path) for run in runs],
                findings=[_codes(run) for run in runs],
            )


@dataclass(frozen=True)
class End:
    """How an experiment's completed runs ended, times and paths aside."""

    seeds: list[int]
    rows: list[Any]
    states: list[Any]
    """Of each run everything in its newest checkpoint: weights, optimizer, scheduler, data order,
    random numbers."""
    scored: list[Any]
    """The weights that are scored."""
    findings: list[Any]
    """The codes of what the supervisor found."""


def prove_supervised(program: str, folder: Path, *, moments: int, seed: int) -> int:
    """As `kills.prove`, for a program that `harness train` supervises, in an experiment a
    moment."""
    drawn, place = random.Random(seed), Place.make(folder, program)
    expected, kills = place.unbroken(), 0
    for moment in range(moments):
        killed_at = place.drawn_moments(drawn, 1 + moment % 5 // 4)
        experiment = place.open()
        kills += place.broken(experiment, killed_at, drawn)
        assert place.end(experiment) == expected, (
            f"moment {moment}: {killed_at} of {place.lines} lines"
        )
    return kills


def _codes(run: Run) -> list[str]:
    return sorted(found.code for found in run.findings if found.code != "clock_set")


def _states(folder: Path) -> Any:
    root = folder / "checkpoints"
    if (root / "latest").exists():
        newest = root / (root / "latest").read_text().strip()
        return [
            fingerprint(torch.load(newest / name, weights_only=True))
            for name in ("model.pt", "training.pt")
        ]
    newest = max(root.glob("checkpoint-*"), key=lambda path: int(path.name.partition("-")[2]))
    names = ("optimizer.pt", "scheduler.pt")
    return [
        _weights(newest),
        *(fingerprint(torch.load(newest / name, weights_only=True)) for name in names),
    ]


def _weights(path: Path) -> str:
    if path.is_dir():
        path = path / "model.safetensors"
    return hashlib.sha256(path.read_bytes()).hexdigest()


def fingerprint(value: Any) -> Any:
    """`value` with a digest in place of each tensor."""
    if isinstance(value, torch.Tensor):
        return (
            str(value.dtype),
            tuple(value.shape),
            hashlib.sha256(value.contiguous().numpy().tobytes()).hexdigest(),
        )
    if isinstance(value, dict):
        return {key: fingerprint(item) for key, item in value.items()}
    return [fingerprint(item) for item in value] if isinstance(value, list | tuple) else value


def _lines(folder: Path) -> int:
    """What the training printed: a line a step."""
    path = folder / "stdout.log"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def _kill_all(process: "subprocess.Popen[bytes]", drawn: random.Random) -> bool:
    """Kill -9 the supervisor and all below it; whether it was still going."""
    try:
        supervisor = psutil.Process(process.pid)
        family = [supervisor, *supervisor.children(recursive=True)]
    except psutil.NoSuchProcess:
        family = []
    going = process.poll() is None
    drawn.shuffle(family)
    for member in family:
        try:
            member.send_signal(signal.SIGKILL)
        except psutil.NoSuchProcess:
            continue
    process.wait()
    psutil.wait_procs(family, timeout=30)
    return going
