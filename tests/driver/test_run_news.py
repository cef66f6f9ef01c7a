"""What is told of runs while they go."""

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from harness.driver.run_news import last_metrics
from harness.run_logger import RunLogger


@dataclass
class Files:
    """A layout that knows one run, and which of its files were asked for."""

    folder: Path
    asked: list[str] = field(default_factory=list)

    def run(self, experiment: str, run: str, name: str) -> Path:
        self.asked.append(name)
        return self.folder / {"metrics": "metrics.jsonl", "status": "training_status.json"}[name]


def told(files: Files) -> dict[str, Any] | None:
    return last_metrics(
        SimpleNamespace(layout=files),
        SimpleNamespace(experiment="exp-0001", id="run-01"),  # type: ignore[arg-type]
    )


def test_the_newest_epoch_comes_from_the_status_file_never_from_all_metrics(
    tmp_path: Path,
) -> None:
    files = Files(tmp_path)
    assert told(files) is None
    with RunLogger(
        run_dir=tmp_path, experiment="exp-0001", run="run-01", token="t", seed=1
    ) as log:
        log.start()
        for epoch in range(3):
            log.epoch(epoch, {"loss": 1 / (epoch + 1)})
    assert told(files) == {"epoch": 2, "loss": 1 / 3, "evidence": "logged"}
    assert set(files.asked) == {"status"}


def test_a_damaged_status_tells_nothing(tmp_path: Path) -> None:
    (tmp_path / "training_status.json").write_text("{")
    assert told(Files(tmp_path)) is None
