"""Hostile training programs that forge rows or hand in weights they did not make, and honest ones
that look alike.

Each is trained by `train` and judged by the gate, as a person would.
"""

import itertools
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from runs_support import GOOD, PLAN, Trainer

from harness.artifacts.metrics_file import Row
from harness.domain.statuses import RunStatus, Verdict
from harness.gates.check import check_gate, standing
from harness.gates.findings import FINDINGS
from harness.ledger.project import Project
from harness.runs.checkpoint_watch import CheckpointWatch
from harness.views.snapshot import experiment_row
from harness.views.tables import score_text
from tests.blobs import make_root

HEAD = """
import json, os, shutil, time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from harness.run_logger import RunLogger

folder = Path(os.environ["HARNESS_RUN_DIR"])
top = folder.parents[4]  # in reach, for these runs have no sandbox
rows = folder / "metrics.jsonl"
log = RunLogger.from_environment()
weights = log.checkpoint_dir / "weights.bin"

def stamp(seconds):
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat(timespec="milliseconds").replace("+00:00", "Z")

def forged(epoch, seconds):
    return json.dumps({"t": stamp(seconds), "event": "epoch", "run": os.environ["HARNESS_EXPERIMENT"] + "/"
        + os.environ["HARNESS_RUN"], "attempt": 1, "epoch": epoch, "metrics": {"loss": 1 / (1 + epoch)}}) + "\\n"

def seen(rows):  # until the supervisor has looked at so many
    while not (top / f"../seen-{rows}").exists():
        time.sleep(0.01)

def save(content=None):
    weights.write_text(content or f"weights of the seed {log.seed}, " * 5)
    log.checkpoint_saved(weights, epoch=0, final=True)
"""

HOSTILE: dict[str, tuple[str, str]] = {
    "rows of an hour that was never trained": (
        (
            "log.start(); save(); log.end(); rows.open('a').write(''.join(forged(i, i * 60 - 3600)"
            " for i in range(60)))"
        ),
        "metrics_out_of_time",
    ),
    "rows of a time to come": (
        (
            "log.start(); save(); log.end(); rows.open('a').write(''.join(forged(i, i * 60) for i"
            " in range(60)))"
        ),
        "metrics_out_of_time",
    ),
    "a bad loss rewritten in place": (
        (
            "log.start(); log.epoch(0, {'loss': 912345.5}); seen(2); save(); log.end();"
            "text = rows.read_text().replace('912345.5', '0.5'); rows.write_text(text)"
        ),
        "metrics_rewritten",
    ),
    "rows put in place of others": (
        (
            # A number that no time of a row can contain.
            "log.start(); log.epoch(0, {'loss': 912345.5}); seen(2); save(); log.end();"
            "(folder / 'new').write_text(rows.read_text().replace('912345.5', '0.5'));"
            "os.replace(folder / 'new', rows)"
        ),
        "metrics_rewritten",
    ),
    "weights copied from the project": (
        (
            "log.start(); log.epoch(0, {'loss': 1}); shutil.copy('weights/base.bin', weights);"
            "log.checkpoint_saved(weights, final=True); log.end()"
        ),
        "checkpoint_known",
    ),
    "weights copied and the original removed": (
        (
            "log.start(); log.epoch(0, {'loss': 1}); shutil.move(top / 'hidden/base.bin', weights);"
            "log.checkpoint_saved(weights, final=True); log.end()"
        ),
        "checkpoint_out_of_window",
    ),
    "weights linked from elsewhere": (
        (
            "log.start(); log.epoch(0, {'loss': 1}); os.link(top / '../outside.bin', weights);"
            "log.checkpoint_saved(weights, final=True); log.end()"
        ),
        "checkpoint_out_of_window",
    ),
    "weights moved in with a new time": (
        (
            "log.start(); log.epoch(0, {'loss': 1}); shutil.move(top / 'hidden/base.bin', weights);"
            "os.utime(weights); log.checkpoint_saved(weights, final=True); log.end()"
        ),
        "checkpoint_out_of_window",
    ),
    "an older file put beside new ones in a folder": (
        (
            "log.start(); log.epoch(0, {'loss': 1});"
            " model = log.checkpoint_dir / 'model'; model.mkdir();"
            " shutil.move(top / 'hidden/base.bin', model / 'base.bin');"
            " (model / 'config').write_text('x');"
            " log.checkpoint_saved(model, final=True); log.end()"
        ),
        "checkpoint_out_of_window",
    ),
    "weights that are written after they were told of": (
        (
            "log.start(); log.epoch(0, {'loss': 1}); save(); seen(3);"
            " weights.write_text('better weights than these there are none'); log.end()"
        ),
        "checkpoint_changed",
    ),
    "weights put in place of those that were told of": (
        (
            "log.start(); log.epoch(0, {'loss': 1}); save(); other = folder / 'other';"
            " other.write_text('better weights than these there are none');"
            " seen(3); os.utime(other, ns=(weights.stat().st_mtime_ns,) * 2);"
            " os.replace(other, weights); log.end()"
        ),
        "checkpoint_changed",
    ),
    "a folder of weights that others made": (
        (
            "log.start(); log.epoch(0, {'loss': 1});"
            " shutil.copytree(top / 'hidden', log.checkpoint_dir / 'model');"
            "log.checkpoint_saved(log.checkpoint_dir / 'model', final=True); log.end()"
        ),
        "checkpoint_known",
    ),
    "weights that a person named as known": (
        (
            "log.start(); log.epoch(0, {'loss': 1});"
            " weights.write_bytes((top / '../known.bin').read_bytes());"
            "log.checkpoint_saved(weights, final=True); log.end()"
        ),
        "checkpoint_known",
    ),
    "an optimizer that takes no step": (
        (
            "log.start(); (log.checkpoint_dir / 'begin.bin').write_text('w' *"
            " 50);log.checkpoint_saved(log.checkpoint_dir / 'begin.bin', initial=True);"
            " log.epoch(0, {'loss': 1});save('w' * 50); log.end()"
        ),
        "checkpoint_untrained",
    ),
    "weights that never change": (
        (
            "log.start()\nfor i in range(3):\n    log.epoch(i, {'loss': 1}); path ="
            " log.checkpoint_dir / f'{i}.bin'; path.write_text('w' * 50)\n   "
            " log.checkpoint_saved(path, epoch=i, final=i == 2)\nlog.end()"
        ),
        "weights_unchanged",
    ),
    "best of three in one run": (
        (
            "log.start(); log.epoch(0, {'loss': 1})\n"
            "for attempt in range(2):\n"
            "    log = RunLogger.from_environment(); log.start(); log.epoch(0, {'loss': 1})\n"
            "save(); log.end()"
        ),
        "run_restarted",
    ),
}
HONEST: dict[str, str] = {
    "milliseconds of training": "log.start(); log.epoch(0, {'loss': 1}); save(); log.end()",
    "many rows": (
        "log.start()\nfor i in range(50_000):\n    log.epoch(i, {'loss': 1.0})\nsave(); log.end()"
    ),
    "one checkpoint, before the only row": (
        "log.start(); save(); log.epoch(0, {'loss': 1}); log.end()"
    ),
    "base weights that are tuned": (
        "log.start(); log.epoch(0, {'loss': 1});"
        "save(Path('weights/base.bin').read_text() + str(log.seed)); log.end()"
    ),
    "a frozen base beside an adapter": (
        "log.start(); log.epoch(0, {'loss': 1})\n"
        "model = log.checkpoint_dir / 'model'; shutil.copytree(top / 'hidden', model)\n"
        "(model / 'adapter.bin').write_text(f'adapter {log.seed}' * 9)\n"
        "log.checkpoint_saved(model, final=True); log.end()"
    ),
    "saved where temporary files are, then moved in": (
        "import tempfile\nlog.start(); log.epoch(0, {'loss': 1})\n"
        "new = Path(tempfile.mkdtemp()) / 'new'; new.write_text(f'weights {log.seed}' * 9)\n"
        "shutil.move(new, weights); log.checkpoint_saved(weights, final=True); log.end()"
    ),
    "one file for all epochs, told of each time": (
        "log.start()\n"
        "for i in range(60):\n"
        "    log.epoch(i, {'loss': 1}); weights.write_bytes(bytes([i, log.seed]) * 500_000)\n"
        "    log.checkpoint_saved(weights, epoch=i); time.sleep(0.01)\n"
        "log.end()"
    ),
    "only the newest one kept": (
        "log.start()\n"
        "for i in range(4):\n"
        "    path = log.checkpoint_dir / f'{i}.bin'; path.write_text(f'{i} {log.seed}' * 30)\n"
        "    log.epoch(i, {'loss': 1}); log.checkpoint_saved(path, epoch=i); time.sleep(0.2)\n"
        "    i and (log.checkpoint_dir / f'{i - 1}.bin').unlink()\n"
        "log.end()"
    ),
    "linked and made read-only after it was told of": (
        "log.start(); log.epoch(0, {'loss': 1}); save(); os.link(weights, folder / 'best');"
        " weights.chmod(0o444); log.end()"
    ),
    "saved by a child process": (
        "import subprocess, sys\nlog.start(); log.epoch(0, {'loss': 1})\ncode ="
        ' f\'open({str(weights)!r}, "w").write("w{log.seed}" *'
        " 20)'\nsubprocess.run([sys.executable, '-c', code], check=True);"
        " log.checkpoint_saved(weights, final=True); log.end()"
    ),
    "the best of several epochs, kept with its time": (
        "log.start()\n"
        "for i in range(3):\n"
        "    path = log.checkpoint_dir / f'{i}.bin'; path.write_text(f'{i} {log.seed}' * 30)\n"
        "    log.checkpoint_saved(path, epoch=i); log.epoch(i, {'loss': 1})\n"
        "shutil.copy2(log.checkpoint_dir / '0.bin', weights)\n"
        "log.checkpoint_saved(weights, epoch=0, final=True); log.end()"
    ),
    "its result copied into the project": (
        "log.start(); log.epoch(0, {'loss': 1}); save(); log.end()\n"
        "(top / 'out').mkdir(exist_ok=True); shutil.copy2(weights, top / 'out/model.bin')"
    ),
}
NEW = {code for _, code in HOSTILE.values()} | {
    "clock_set",
    "checkpoint_overwritten",
    "weights_unchanged",
    "launches_beyond_seeds",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The project of conftest.py as a git repository with base weights: in it, in it but ignored,
    beside it, and beside it under a name in config.toml."""
    root = make_root(tmp_path / "my project", plan=PLAN, train=GOOD)
    subprocess.run(["git", "init", "-q", root], check=True)
    (root / ".gitignore").write_text("hidden/\nout/\n")
    for name in ("weights/base.bin", "hidden/base.bin", "../outside.bin", "../known.bin"):
        path = root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"base weights that somebody else trained, a long time ago: {name}")
        os.utime(path, (1e9, 1e9))
    config = root / ".harness/config.toml"
    config.write_text(config.read_text() + 'known_checkpoints = ["../known.bin"]\n')
    return root


@pytest.fixture(autouse=True)
def looks(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tell training what the supervisor has looked at, as no training is told."""
    take, numbers = CheckpointWatch.take, itertools.count(1)

    def told(watch: CheckpointWatch, rows: Sequence[Row]) -> None:
        take(watch, rows)
        for _ in rows:
            (root.parent / f"seen-{next(numbers)}").touch()

    monkeypatch.setattr(CheckpointWatch, "take", told)


def judged(project: Project) -> set[str]:
    return {found.code for found in check_gate(project, "exp-0001").findings} & NEW


@pytest.mark.parametrize("case", HOSTILE)
def test_what_was_forged_is_found(case: str, project: Project, run_training: Trainer) -> None:
    program, code = HOSTILE[case]
    report = run_training(HEAD + program, seeds=[1])
    assert report.runs[0].status is RunStatus.COMPLETED, report.runs[0].reason
    assert judged(project) == {code}
    assert FINDINGS[code].hint


@pytest.mark.parametrize("case", HONEST)
def test_what_is_honest_is_not_accused(case: str, project: Project, run_training: Trainer) -> None:
    report = run_training(HEAD + HONEST[case], seeds=[1] if case == "many rows" else [1, 2])
    assert {run.status for run in report.runs} == {RunStatus.COMPLETED}, report.runs[0].reason
    assert judged(project) == set()


def test_a_crash_and_a_retry_that_ends_with_the_same_weights(
    project: Project, run_training: Trainer
) -> None:
    """The second run finds its work done: it hands in what the first one saved, with its time."""
    crash = (
        "log.start(); log.epoch(0, {'loss': 1}); save(); shutil.copy2(weights, top / 'last.bin');"
        " os._exit(1)"
    )
    resume = (
        "log.start(); log.epoch(0, {'loss': 1}); shutil.copy2(top / 'last.bin', weights);"
        " time.sleep(0.01)\n"
    )
    resume += "log.checkpoint_saved(weights, final=True); log.end()"
    code = f"{HEAD}if not (top / 'last.bin').exists():\n    {crash}\n{resume}"
    assert run_training(code, seeds=[1]).runs[0].status is RunStatus.FAILED
    assert run_training(code, seeds=[1]).runs[0].status is RunStatus.COMPLETED
    assert judged(project) == {"launches_beyond_seeds"}  # a note
    assert FINDINGS["launches_beyond_seeds"].outcome is Verdict.PASS


def test_a_launch_more_makes_a_verdict_stale(project: Project, run_training: Trainer) -> None:
    """Best of N: other code is tried until one pleases, and every try shows."""
    code = HEAD + "log.start(); log.epoch(0, {'loss': 1}); save(); log.end()"
    run_training(code, seeds=[1])
    first = check_gate(project, "exp-0001")
    run_training(code + "# again", seeds=[1])
    assert standing(project, first) is Verdict.STALE
    (told,) = [
        found
        for found in check_gate(project, "exp-0001").findings
        if found.code == "launches_beyond_seeds"
    ]
    assert "launched 2 times; 1 runs count" in told.message
    row = experiment_row(project, project.ledger.experiment("exp-0001"))
    assert (row["launches"], row["verdict"]) == (2, Verdict.FAIL)
    assert "1 seed of 2 launches" in score_text(
        {**row, "score": 0.5, "n_seeds": 1, "split": "validation"}
    )


def test_weights_of_a_seed_that_does_not_count_any_more_are_no_other_seeds(
    project: Project, run_training: Trainer
) -> None:
    run_training(HEAD + "log.start(); log.epoch(0, {'loss': 1}); save(); log.end()", seeds=[1])
    copied = "shutil.copyfile(folder.parent / 'run-01/checkpoints/weights.bin', weights)"
    program = (
        f"log.start(); log.epoch(0, {{'loss': 1}}); {copied}; log.checkpoint_saved(weights,"
        " final=True); log.end()"
    )
    run_training(HEAD + program, seeds=[2])
    assert "checkpoint_copied" in {
        found.code for found in check_gate(project, "exp-0001").findings
    }
