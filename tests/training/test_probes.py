"""Faults that no loss shows: what probes log of them, and what the detectors say of those rows."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harness.artifacts.metrics_file import rows_in
from harness.clock import ManualClock
from harness.detectors.watch import RunWatch
from harness.run_logger import RunLogger

torch = pytest.importorskip("torch")
from harness.training.probes import Probes  # noqa: E402
from tests.training.supervised import TORCH, Place  # noqa: E402

EPOCHS, BATCH = 5, 32


@dataclass
class Loop:
    """A healthy loop; a test spoils one part of it."""

    probed: bool = True
    given: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        torch.manual_seed(3)
        self.x = torch.randn(256, 6)
        self.later = torch.randn(96, 6)
        self.model = torch.nn.Sequential(
            torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(16, 2)
        )
        self.optimizer = torch.optim.Adam(self.model.parameters(), 1e-2)
        self.order = torch.Generator().manual_seed(1)

    def batches(self, epoch: int) -> Any:
        return self.x[torch.randperm(len(self.x), generator=self.order)].split(BATCH)

    def evaluate(self) -> float:
        self.model.eval()
        with torch.no_grad():
            return float(self.criterion(self.later))

    def criterion(self, x: Any) -> Any:
        labels = (x[:, 0] > 0).long()
        return torch.nn.functional.cross_entropy(self.model(x), labels)

    def run(self, log: RunLogger) -> None:
        probes = Probes(self.model, self.optimizer, **self.given) if self.probed else None
        for epoch in range(EPOCHS):
            self.model.train()
            for x in self.batches(epoch):
                self.optimizer.zero_grad()
                loss = self.criterion(x)
                loss.backward()
                self.optimizer.step()
            metrics = {"train_loss": loss.item(), "val_loss": self.evaluate()}
            log.epoch(epoch, metrics | ({} if probes is None else probes.values()))


def rows_of(folder: Path, loop: Loop) -> list[dict[str, Any]]:
    with RunLogger(run_dir=folder, experiment="e", run="r", token="t", seed=0) as log:
        log.start(EPOCHS)
        loop.run(log)
    return [*rows_in(folder / "metrics.jsonl")]


def said(rows: list[dict[str, Any]]) -> dict[str, str]:
    """Code of each standing alarm or note of a probe -> its severity."""
    watch = RunWatch()
    found = [alarm for row in rows for alarm in watch.feed(row)]
    notes = {a.code: a.severity.value for a in found if a.metric.startswith("probe/")}
    return notes | {a.code: a.severity.value for a in watch.open if a.code in notes}


def test_a_healthy_loop_is_measured_and_left_alone(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, Loop())
    assert said(rows) == {}
    last = [row for row in rows if row["event"] == "epoch"][-1]["metrics"]
    probes = {key for key in last if key.startswith("probe/")}
    assert probes == {
        f"probe/{name}"
        for name in (
            "frozen",
            "left_out",
            "unused",
            "still",
            "dead_units",
            "update_ratio",
            "training_in_eval_mode",
            "evaluation_in_train_mode",
            "overlap",
            "distinct",
            "same_order",
        )
    }
    assert 1e-4 < last["probe/update_ratio"] < 0.1
    assert last["probe/overlap"] == last["probe/left_out"] == last["probe/still"] == 0
    assert last["probe/distinct"] == 1


def test_probes_change_nothing(tmp_path: Path) -> None:
    ends = []
    for probed in (True, False):
        loop = Loop(probed=probed)
        rows_of(tmp_path / str(probed), loop)
        ends.append({**loop.model.state_dict(), "random": torch.random.get_rng_state()})
    assert all(torch.equal(ends[0][name], ends[1][name]) for name in ends[1])


def _foreign(loop: Loop) -> None:
    loop.optimizer = torch.optim.Adam(Loop().model.parameters(), 1e-2)


def _head_only(loop: Loop) -> None:
    loop.optimizer = torch.optim.Adam([loop.model[-1].bias], 1e-2)


def _frozen(loop: Loop) -> None:
    loop.model[0].requires_grad_(False)


def _unused(loop: Loop) -> None:
    loop.model.register_module("other", torch.nn.Linear(6, 16))
    head = [*loop.model][-2:]
    body = torch.nn.Sequential(*loop.model[:4])
    loop.optimizer = torch.optim.Adam(loop.model.parameters(), 1e-2)
    loop.model.forward = lambda x: body(x) + 0 * len(head)


def _lost_updates(loop: Loop) -> None:
    loop.model[0].to(torch.float32)
    loop.optimizer = torch.optim.SGD(
        [
            {"params": loop.model[0].parameters(), "lr": 1e-14},
            {"params": loop.model[3].parameters(), "lr": 0.1},
        ]
    )


def _dead(loop: Loop) -> None:
    with torch.no_grad():
        loop.model[0].bias.fill_(-60.0)


def _large_steps(loop: Loop) -> None:
    loop.optimizer = torch.optim.SGD(loop.model.parameters(), 100.0)


def _evaluated_with_dropout(loop: Loop) -> None:
    def evaluate() -> float:
        with torch.no_grad():
            return float(loop.criterion(loop.later))

    loop.evaluate = evaluate  # type: ignore[method-assign]


def _trained_in_eval_mode(loop: Loop) -> None:
    loop.model.train = lambda mode=True: torch.nn.Module.train(loop.model, False)


def _shared_rows(loop: Loop) -> None:
    loop.later = torch.cat([loop.later, loop.x[:20]])


def _one_batch(loop: Loop) -> None:
    loop.batches = lambda epoch: [loop.x[:16]] * 16  # type: ignore[method-assign]


def _unshuffled(loop: Loop) -> None:
    loop.batches = lambda epoch: loop.x.split(BATCH)  # type: ignore[method-assign]


@pytest.mark.parametrize(
    ("spoil", "code", "severity"),
    [
        (_foreign, "unmoved_parameters", "warning"),
        (_head_only, "unmoved_parameters", "warning"),
        (_unused, "unmoved_parameters", "warning"),
        (_lost_updates, "unmoved_parameters", "warning"),
        (_frozen, "unmoved_parameters", "note"),
        (_dead, "dead_units", "warning"),
        (_large_steps, "update_size", "warning"),
        (_evaluated_with_dropout, "wrong_mode", "warning"),
        (_trained_in_eval_mode, "wrong_mode", "note"),
        (_shared_rows, "batch_overlap", "warning"),
        (_one_batch, "data_order", "warning"),
        (_unshuffled, "data_order", "note"),
    ],
)
def test_a_fault_that_no_loss_shows_is_told(
    tmp_path: Path, spoil: Callable[[Loop], None], code: str, severity: str
) -> None:
    loop = Loop()
    spoil(loop)
    assert said(rows_of(tmp_path, loop)).get(code) == severity


def test_an_evaluation_on_training_rows_can_be_left_out() -> None:
    loop = Loop()
    probes = Probes(loop.model, loop.optimizer)
    loop.criterion(loop.x[:64]).backward()
    loop.model.eval()
    with torch.no_grad():
        with probes.off():
            loop.model(loop.x[:64])
        loop.model(loop.later)
    assert probes.values()["probe/overlap"] == 0


def test_looks_stop_once_their_share_of_the_time_is_spent(tmp_path: Path) -> None:
    class Slow(ManualClock):
        """Each look at the clock takes a tenth of a second."""

        asked = 0

        def monotonic(self) -> float:
            self.asked += 1
            self.sleep(0.1)
            return super().monotonic()

    clock = Slow()
    loop = Loop(given={"clock": clock, "every": 1})
    rows = [row for row in rows_of(tmp_path, loop) if row["event"] == "epoch"]
    assert "probe/distinct" in rows[0]["metrics"]
    assert "probe/update_ratio" not in rows[-1]["metrics"]
    assert "probe/overlap" not in rows[-1]["metrics"]
    assert rows[-1]["metrics"]["probe/evaluation_in_train_mode"] == 0


@pytest.mark.slow
def test_under_harness_train_the_alarm_is_of_the_run(tmp_path: Path) -> None:
    program = (
        TORCH.replace("EPOCHS, PAUSE = 5, 0.02", "EPOCHS, PAUSE = 4, 0")
        .replace("from harness.training.loader", "from harness.training.probes import Probes\n"
                 "from harness.training.loader")
        .replace("    keeper = Check", "    probes = Probes(model, optimizer)\n    keeper = Check")
        .replace("        model.eval()\n", "")
        .replace('"accuracy": accuracy}', '"accuracy": accuracy, **probes.values()}')
    )  # fmt: skip
    place = Place.make(tmp_path, program)
    experiment = place.open()
    code, told = place.train(experiment)
    assert code == 0, told
    lines = (place.folder(experiment) / "alarms.jsonl").read_text("utf-8").splitlines()
    (alarm,) = [a for a in map(json.loads, lines) if a["code"] == "wrong_mode"]
    assert alarm["severity"] == "warning"
    assert alarm["message"] == (
        "probe/evaluation_in_train_mode: 100% of the evaluations in training mode"
    )
