"""The dashboard: lines that fit any width, whatever was logged, and what a person wants to know on
them."""

import json
import os
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from harness.clock import ManualClock, iso
from harness.detectors.alarm import Severity
from harness.detectors.watch import RunWatch
from harness.errors import UsageError
from harness.ledger.facts import TrainingSpecified
from harness.views.dashboard import draw
from harness.views.follow import Follower, News, trimmed
from harness.views.follow_experiment import ExperimentFollower
from harness.views.follow_logs import LogFollower
from harness.views.tables import count, duration, number
from harness.views.watching import in_lines, lines_of, read_all
from tests.views.test_progress import ended, log, run_of
from tests.world import PLAN, World

WIDTHS = (0, 1, 2, 7, 23, 24, 40, 55, 56, 80, 103, 104, 200, 500)


def text_of(follower: Follower, width: int = 100, **more: Any) -> str:
    return "\n".join(line.plain for line in draw(follower, width=width, **more))


def written(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def training(
    clock: ManualClock, epochs: int, *, total: int = 20, **more: Any
) -> list[dict[str, Any]]:
    head = {"run": "exp-0001/run-01"}
    rows: list[dict[str, Any]] = [
        {"t": iso(clock.now()), "event": "start", "total_epochs": total, **head}
    ]
    for epoch in range(epochs):
        at = iso(clock.now() + timedelta(seconds=3 * (epoch + 1)))
        metrics = {"loss": 2 / (epoch + 1), "accuracy": epoch / total, "gpu_memory_mb": 512} | more
        rows.append(
            {
                "t": at,
                "event": "epoch",
                "epoch": epoch,
                "metrics": metrics,
                "learning_rate": 1e-3,
                **head,
            }
        )
    return rows


def test_progress_eta_best_and_costs(tmp_path: Path) -> None:
    clock = ManualClock()
    rows = training(clock, 10)
    rows.append({"event": "checkpoint", "run": "exp-0001/run-01", "path": "a", "epoch": 7})
    path = written(tmp_path / "metrics.jsonl", rows)
    os.utime(path, (clock.now().timestamp(),) * 2)
    follower = LogFollower([path], clock)
    follower.poll(seconds=1)
    text = text_of(follower, 120)
    for words in (
        "50%",
        "epoch 9 of 19",
        "30 s left",
        "after 30 s",
        "lr 0.001",
        "gpu_memory_mb 512",
        "1 checkpoint",
    ):
        assert words in text
    assert "loss           0.2 best       0.2 at 9" in text
    assert "accuracy      0.45 best      0.45 at 9" in text


@pytest.mark.parametrize("width", WIDTHS)
def test_no_line_is_wider_than_the_screen(tmp_path: Path, width: int) -> None:
    clock = ManualClock()
    hostile = {
        "n" * 300: 1.0,
        "漢字の損失": 2.0,
        "loss\x1b[2J": float("nan"),
        "up": 1e308,
        "flat": 0.0,
    }
    paths = [
        written(tmp_path / f"{name}.jsonl", training(clock, 5, **hostile))
        for name in ("a", "b", "c")
    ]
    follower = LogFollower(paths, clock)
    follower.poll(seconds=1)
    for height in (None, 1, 5, 24):
        for ascii_only in (False, True):
            lines = draw(follower, width=width, height=height, ascii_only=ascii_only)
            assert max(cell_len(line.plain) for line in lines) <= max(1, width)
            assert height is None or len(lines) <= height
            assert not any(ord(character) < 32 for line in lines for character in line.plain)


def test_runs_stand_side_by_side_where_there_is_room(tmp_path: Path) -> None:
    clock = ManualClock()
    paths = [
        written(tmp_path / f"{name}.jsonl", training(clock, 5)) for name in ("first", "second")
    ]
    follower = LogFollower(paths, clock)
    follower.poll(seconds=1)
    assert any(
        "first.jsonl" in line and "second.jsonl" in line
        for line in text_of(follower, 120).splitlines()[1:]
    )
    assert not any(
        "first.jsonl" in line and "second.jsonl" in line
        for line in text_of(follower, 90).splitlines()[1:]
    )


def test_a_fatal_alarm_is_on_the_screen(tmp_path: Path) -> None:
    clock = ManualClock()
    rows = training(clock, 4) + [
        {**row, "epoch": 4 + index} for index, row in enumerate(training(clock, 5, loss="NaN")[1:])
    ]
    follower = LogFollower([written(tmp_path / "m.jsonl", rows)], clock)
    follower.poll(seconds=1)
    text = text_of(follower, 80)
    assert "!! non_finite  loss: " in text
    assert "loss           NaN best       0.5 " in text
    assert "!!!!!" in text
    assert "5 values are not finite" in text


def test_a_log_that_stops_is_lost_with_its_age_and_clocks_may_jump(tmp_path: Path) -> None:
    clock = ManualClock()
    path = written(tmp_path / "m.jsonl", training(clock, 3))
    os.utime(
        path, (clock.now().timestamp() + 5_000_000,) * 2
    )  # the other machine's clock is ahead
    follower = LogFollower([path], clock)
    follower.poll(seconds=0)
    assert (follower.views()[0].status, follower.over()) == ("running", False)
    clock.sleep(40)
    follower.poll(seconds=0)
    assert "quiet, no change for 40 s" in text_of(follower)
    clock.sleep(700)
    follower.poll(seconds=0)
    assert "lost, no change for 12 m 20 s" in text_of(follower)
    assert (follower.over(), follower.succeeded()) == (True, False)


def test_rows_whose_times_go_back_keep_the_pace(tmp_path: Path) -> None:
    clock = ManualClock()
    rows = training(clock, 12)
    rows[6]["t"], rows[9]["t"] = "1999-01-01T00:00:00.000Z", "2199-01-01T00:00:00.000Z"
    follower = LogFollower([written(tmp_path / "m.jsonl", rows)], clock)
    follower.poll(seconds=1)
    picture = follower.views()[0].picture
    assert picture.seconds_each == pytest.approx(3.0)
    assert picture.eta_s == pytest.approx(24.0)


def test_what_is_not_there_yet_is_awaited_by_its_whole_path(tmp_path: Path) -> None:
    clock, path = ManualClock(), tmp_path / "runs" / "metrics.jsonl"
    follower = LogFollower([path], clock)
    follower.poll(seconds=1)
    assert f"waiting for the first row at {path}" in text_of(follower, 30).replace("\n", "")
    assert not follower.over()
    path.parent.mkdir()
    written(
        path,
        [*training(clock, 2), {"event": "end", "status": "completed", "run": "exp-0001/run-01"}],
    )
    follower.poll(seconds=1)
    assert (follower.over(), follower.succeeded(), follower.views()[0].status) == (
        True,
        True,
        "completed",
    )


def test_several_runs_in_one_file_are_several_pictures(tmp_path: Path) -> None:
    rows = [{"step": step, "loss": run + 1 - step / 100} for run in range(2) for step in range(5)]
    follower = LogFollower([written(tmp_path / "m.jsonl", rows)], ManualClock())
    read_all(follower)
    assert [(view.picture.title, view.picture.rows) for view in follower.views()] == [
        ("m.jsonl", 5),
        ("m.jsonl · run 2", 6),
    ]
    unreadable = LogFollower([tmp_path], ManualClock())
    read_all(unreadable)
    with pytest.raises(UsageError, match="regular file"):
        unreadable.document()


def test_a_look_at_a_long_log_holds_few_rows(tmp_path: Path) -> None:
    rows = [{"step": step, "loss": 1.0 + step % 3, "note": "x" * 200} for step in range(12_000)]
    follower = LogFollower([written(tmp_path / "m.jsonl", rows)], ManualClock())
    news = follower.poll(seconds=float("inf"))
    assert len(news) < 12_000 / 2
    first, *_, last = lines_of(news)
    assert (first, last.split("  ")[1]) == ("m.jsonl  11990 rows before", "step 11,999")


def test_lines_are_one_a_row_and_bounded(tmp_path: Path) -> None:
    clock = ManualClock()
    path = written(tmp_path / "m.jsonl", training(clock, 40, total=40))
    with path.open("a") as stream:
        stream.write('{"event": "end", "status": "failed", "run": "exp-0001/run-01"}\n')
    said: list[str] = []
    follower = LogFollower([path], clock)
    in_lines(follower, clock, said.append)
    assert said[0] == "m.jsonl · exp-0001/run-01  30 rows before"
    last = (
        "m.jsonl · exp-0001/run-01  epoch 39  loss 0.05  accuracy 0.975"
        "  gpu_memory_mb 512  120.0 s"
    )
    assert said[-1] == last
    assert len(said) == 11
    assert not follower.succeeded()


def test_of_alarms_before_the_first_look_notes_are_counted_and_what_is_over_is_said(
    tmp_path: Path,
) -> None:
    """Fifty spikes that recovered at once, one of three rows, and one that stands; then a note
    while we look."""
    clock, spikes = (
        ManualClock(),
        {20 * i for i in range(1, 51)} | {1101, 1102, 1103, 1201, 1202, 1203},
    )
    rows = [
        {"epoch": i, "loss": 90.0 if i in spikes else 2 - i / 1e3 + i % 2 / 50}
        for i in range(1204)
    ]
    path = written(tmp_path / "m.jsonl", rows)
    os.utime(path, (clock.now().timestamp(),) * 2)
    said: list[str] = []

    class Looks(ManualClock):
        def sleep(self, seconds: float) -> None:
            if clock.monotonic():
                raise KeyboardInterrupt
            clock.sleep(1)
            with path.open("a") as stream:
                stream.write('{"epoch": 1204, "loss": 0.8}\n')

    with pytest.raises(KeyboardInterrupt):
        in_lines(LogFollower([path], clock), Looks(), said.append)
    watch = RunWatch()
    notes = [alarm for row in rows for alarm in watch.feed(row) if alarm.severity is Severity.NOTE]
    assert len(notes) > 50
    assert said[0] == f"m.jsonl  1194 rows and {len(notes)} notes before"
    alarms = [line.split("  ", 3) for line in said if "alarm" in line and "loss_spike" in line]
    assert [len(item[3].rpartition("  (recovered)")[1]) > 0 for item in alarms] == [True, False]
    assert [line for line in said if "spike_recovered" in line] == said[-2:-1]


def test_what_a_look_at_a_long_log_leaves_out_is_counted() -> None:
    watch, news = RunWatch(), []
    for i in range(3000):
        row = {
            "epoch": i,
            "loss": 90.0 if i % 20 == 19 or 30 <= i < 34 else 2 - i / 1e4 + i % 2 / 50,
        }
        news += [News(run="r", alarm=alarm) for alarm in watch.feed(row)]
        news.append(News(run="r", row={"epoch": i, "metrics": {"loss": row["loss"]}}))
    notes = sum(item.alarm is not None and item.alarm.severity is Severity.NOTE for item in news)
    held = trimmed(news)
    assert len(held) < len(news) / 2
    assert next(lines_of(held, earlier=True)) == f"r  2990 rows and {notes} notes before"
    assert [
        item
        for item in trimmed(news)
        if item.alarm is not None and item.alarm.code == "loss_spike"
    ] != []


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World.make(tmp_path)


def test_an_experiment_shows_targets_seeds_and_the_supervisors_alarms(world: World) -> None:
    project = world.project
    experiment = project.ledger.open_experiment(hypothesis="h", parent=None, by="me").id
    first, second = run_of(project, experiment), run_of(project, experiment, seed=8, alive=False)
    rows = [
        {key: value for key, value in row.items() if key != "run"}
        for row in training(ManualClock(), 9)
    ]
    for run in (first, second):
        log(project, run, *rows)
    follower = ExperimentFollower(project, experiment)
    read_all(follower)
    text = text_of(follower, 120)
    assert "must 0.8" in text
    assert "run-01  seed 7  running" in text
    assert "run-02  seed 8  lost, no change for" in text
    assert "alarm" not in text
    alarm = {
        "code": "stall",
        "severity": "warning",
        "metric": "loss",
        "row": 4,
        "place": 3,
        "message": "loss: exactly 1",
    }
    alarm |= {"evidence": [], "threshold": "stall.rows", "limit": 3, "try": [], "recovered": False}
    for count_of_lines in (1, 2):  # replaced whole at each alarm
        lines = [json.dumps({**alarm, "row": row}) + "\n" for row in range(count_of_lines)]
        place = project.layout.run(experiment, first.id, "alarms")
        place.with_suffix(".new").write_text("{}\nno json\n" + "".join(lines))
        os.replace(place.with_suffix(".new"), place)
        assert [item.run for item in follower.poll(seconds=1) if item.alarm is not None] == [
            "run-01"
        ]
    assert "! stall  loss: exactly 1" in text_of(follower, 120)
    assert follower.document()["runs"][0]["alarms"][0]["code"] == "stall"
    ended(project, first)
    ended(project, second)
    follower.poll(seconds=1)
    assert (follower.over(), follower.succeeded()) == (True, True)


def test_a_training_program_is_not_of_the_plan(tmp_path: Path) -> None:
    # Only here a plan asks for checkpoints on the way: classical-ml saves one at the end.
    plan = PLAN.replace("workflow: classical-ml", "workflow: deep-learning")
    assert plan != PLAN
    project = World.make(tmp_path, plan).project
    experiments = [
        project.ledger.open_experiment(hypothesis="h", parent=None, by="me").id for _ in range(2)
    ]
    project.ledger.append(
        TrainingSpecified(experiment=experiments[1], spec={}, sha256="0" * 64, by="me")
    )
    shown = []
    for experiment in experiments:
        log(project, run_of(project, experiment), *training(ManualClock(), 90, total=90))
        place = project.layout.run(experiment, "run-01", "metrics")
        place.write_text(place.read_text().replace("exp-0001/", f"{experiment}/"))
        follower = ExperimentFollower(project, experiment)
        read_all(follower)
        codes = [alarm["code"] for alarm in follower.document()["runs"][0]["alarms"]]
        shown.append((codes, [target.name for target in follower.targets]))
    assert shown == [(["no_checkpoint"], ["must", "should"]), ([], [])]


def test_a_second_spike_is_on_the_screen_though_the_first_one_recovered(tmp_path: Path) -> None:
    values = [
        *(1 + i % 2 / 50 for i in range(20)),
        9,
        9,
        9,
        *(1 + i % 2 / 50 for i in range(20)),
        9,
        9,
        9,
    ]
    path = written(
        tmp_path / "m.jsonl", [{"epoch": i, "loss": value} for i, value in enumerate(values)]
    )
    follower = LogFollower([path], ManualClock())
    news = follower.poll(seconds=1)
    codes = [item.alarm.code for item in news if item.alarm and "spike" in item.alarm.code]
    assert codes == ["loss_spike", "spike_recovered", "loss_spike"]
    assert "! loss_spike" in text_of(follower)


def test_rows_of_another_run_and_links_are_not_believed(world: World) -> None:
    project = world.project
    experiment = project.ledger.open_experiment(hypothesis="h", parent=None, by="me").id
    run = run_of(project, experiment)
    place = project.layout.run(experiment, run.id, "metrics")
    written(place, training(ManualClock(), 3))
    text = place.read_text().replace("exp-0001/run-01", "exp-0009/run-01")
    place.write_text(text)
    follower = ExperimentFollower(project, experiment)
    assert follower.poll(seconds=1) == []
    place.rename(place.with_name("elsewhere"))
    place.symlink_to("elsewhere")
    other = ExperimentFollower(project, experiment)
    assert other.poll(seconds=1) == []


def test_words() -> None:
    assert [duration(x) for x in (None, -1, 0, 3.21, 59, 200, 7500, 280_000, float("nan"))] == [
        "?",
        "?",
        "0 s",
        "3.2 s",
        "59 s",
        "3 m 20 s",
        "2 h 05 m",
        "3 d 5 h",
        "?",
    ]
    assert [number(x) for x in (None, 3, 0.12345, 1e-9, 123456.7, float("-inf"))] == [
        "-",
        "3",
        "0.1235",
        "1e-09",
        "1.23e+05",
        "-Inf",
    ]
    assert [count(x) for x in (None, 1200, 0.75)] == ["?", "1,200", "0.75"]


def test_a_resume_that_is_not_exact_is_on_the_screen(tmp_path: Path) -> None:
    clock = ManualClock()
    rows = training(clock, 3)
    head = {"t": rows[-1]["t"], "run": "exp-0001/run-01"}
    rows += [
        {"event": "attempt", **head},
        {"event": "resume", "exact": False, "missing": ["optimizer"], **head},
    ]
    follower = LogFollower([written(tmp_path / "metrics.jsonl", rows)], clock)
    follower.poll(seconds=1)
    assert "note: the resume was not exact: optimizer not restored" in text_of(follower)


def test_what_a_detector_notes_is_on_the_screen_of_a_log_that_ended(tmp_path: Path) -> None:
    history = [
        {"step": 10 * i, "loss": 4 / i if i < 8 else 0.6 + i % 3 / 50} for i in range(1, 81)
    ]
    log = tmp_path / "trainer_state.json"
    log.write_text(json.dumps({"global_step": 800, "max_steps": 800, "log_history": history}))
    follower = LogFollower([log], ManualClock())
    read_all(follower)
    (run,) = follower.document()["runs"]
    assert (run["alarms"], run["notes"]) == (
        [],
        ["plateau: loss: no better than 0.5714 since row 8"],
    )
    assert "note: plateau: loss: no better than 0.5714 since row 8" in text_of(follower)
