"""What a run uses of its machine: seen from outside, kept beside its rows, judged by nobody."""

import json
import os
import sys
import types
from itertools import pairwise
from pathlib import Path

import psutil
import pytest
from runs_support import GOOD, Trainer

from harness.artifacts.resources import Usage, figure, in_words, merged
from harness.clock import ManualClock
from harness.domain.statuses import RunStatus
from harness.ledger.project import Project
from harness.runs.resources import LONGEST_S, Nvidia, ResourceLog, folder_bytes

BUSY = """
import subprocess, sys, time
held = bytearray(60_000_000)
child = subprocess.Popen([sys.executable, "-c", "while True: pass"])
end = time.time() + 1.3
while time.time() < end:
    pass
child.kill()
child.wait()
""" + GOOD.replace(
    "write_text(str(log.seed))", "write_bytes(bytes(2_000_000) + bytes([log.seed % 251]))"
)


TWICE = """
import os, time
first = os.environ["HARNESS_ATTEMPT"] == "1"
held = bytearray(80_000_000 if first else 1)
time.sleep(0.5)
"""


class NoDevices:
    def used(self, pids: object) -> dict[str, float]:
        return {}


def lines_of(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_run_is_looked_at_with_all_that_it_starts(
    project: Project, run_training: Trainer
) -> None:
    run = run_training(code=BUSY, seeds=[1]).runs[0]
    assert run.status is RunStatus.COMPLETED
    path = project.layout.run("exp-0001", run.id, "resources")
    lines = lines_of(path)
    assert len(lines) >= 3
    assert max(line.get("processes", 0) for line in lines) == 2
    assert run.resources["memory_bytes"]["peak"] > 60e6
    assert run.resources["cpu"]["peak"] > 0.05
    assert run.resources["disk_bytes"]["peak"] > 2e6
    assert run.resources["disk_bytes"]["mean"] < run.resources["disk_bytes"]["peak"]
    # Beside the rows, not among them: neither the count of rows nor a hash that a gate asks for.
    assert (run.rows, "resources" in run.files) == (6, False)


def test_a_resumed_run_keeps_what_it_used_before(project: Project, run_training: Trainer) -> None:
    code = TWICE + GOOD.replace(
        "    weights =", "    if first: raise SystemExit(3)\n    weights ="
    )
    first = run_training(code=code, seeds=[1]).runs[0]
    assert first.status is RunStatus.FAILED
    run = run_training(code=code, seeds=[1], resume=True).runs[0]
    assert (run.id, run.status) == (first.id, RunStatus.COMPLETED)
    assert run.resources["memory_bytes"]["peak"] == first.resources["memory_bytes"]["peak"]
    assert run.resources["memory_bytes"]["mean"] < first.resources["memory_bytes"]["mean"]
    lines = lines_of(project.layout.run("exp-0001", run.id, "resources"))
    assert [line["seconds"] for line in lines] != sorted(line["seconds"] for line in lines)


@pytest.mark.parametrize("planted", ["link", "pipe", "folder"])
def test_what_a_run_puts_in_the_place_of_the_file_is_not_written_through(
    project: Project, run_training: Trainer, tmp_path: Path, planted: str
) -> None:
    target = tmp_path / "elsewhere.txt"
    target.write_text("mine")
    make = {
        "link": f"os.symlink({str(target)!r}, place)",
        "pipe": "os.mkfifo(place)",
        "folder": "os.mkdir(place)",
    }[planted]
    code = f"""
import os, time
place = os.path.join(os.environ["HARNESS_RUN_DIR"], "resources.jsonl")
if os.path.lexists(place):  # a look came first, where Python starts slowly
    os.remove(place)
{make}
time.sleep(0.4)
"""
    run = run_training(code=code + GOOD, seeds=[1]).runs[0]
    assert run.status is RunStatus.COMPLETED
    assert target.read_text() == "mine"
    assert run.resources["disk_bytes"]["peak"] > 0


def test_looks_come_sooner_at_first_and_never_often(tmp_path: Path) -> None:
    clock, looks = ManualClock(), []
    log = ResourceLog(tmp_path / "resources.jsonl", clock, NoDevices())

    def here() -> list[psutil.Process]:
        looks.append(clock.monotonic())
        return [psutil.Process()]

    for _ in range(1000):
        clock.sleep(0.1)
        log.look(here)
    gaps = [after - before for before, after in pairwise(looks)]
    assert looks[0] < 0.5
    assert len(looks) < 30
    assert max(gaps) == pytest.approx(LONGEST_S, abs=0.2)
    assert len(lines_of(tmp_path / "resources.jsonl")) == len(looks)


def test_a_process_that_is_gone_counts_for_nothing(tmp_path: Path) -> None:
    clock = ManualClock()
    log = ResourceLog(tmp_path / "resources.jsonl", clock, NoDevices())
    gone = psutil.Process(os.spawnv(os.P_NOWAIT, sys.executable, ["python", "-c", ""]))
    gone.wait()
    clock.sleep(1.0)
    log.look(lambda: [gone])
    assert log.end()["cpu"] == {"peak": 0.0, "mean": 0.0}


class FakeNvml(types.ModuleType):
    """Two devices; the run's process is on the second one."""

    class NVMLError(Exception):
        pass

    broken = False

    def nvmlInit(self) -> None:
        if self.broken:
            raise self.NVMLError

    def nvmlDeviceGetCount(self) -> int:
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetComputeRunningProcesses(self, device: int) -> list[types.SimpleNamespace]:
        pid = [77, 4242][device]
        return [types.SimpleNamespace(pid=pid, usedGpuMemory=3_000_000_000)]

    def nvmlDeviceGetUtilizationRates(self, device: int) -> types.SimpleNamespace:
        return types.SimpleNamespace(gpu=[99, 40][device], memory=0)


def test_devices_that_the_run_is_on_count_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml("pynvml"))
    devices = Nvidia()
    assert devices.used([4242]) == {"gpu": 0.4, "gpu_memory_bytes": 3_000_000_000}
    assert devices.used([1]) == {}


@pytest.mark.parametrize("installed", [True, False])
def test_without_a_driver_or_the_library_there_are_no_devices(
    monkeypatch: pytest.MonkeyPatch, installed: bool
) -> None:
    nvml = FakeNvml("pynvml")
    nvml.broken = True
    monkeypatch.setitem(sys.modules, "pynvml", nvml if installed else None)
    assert Nvidia().used([4242]) == {}


def test_peak_and_mean_over_time() -> None:
    usage = Usage()
    usage.add({"seconds": 1.0, "cpu": 2.0})
    usage.add({"seconds": 4.0, "cpu": 1.0, "memory_bytes": True})
    usage.add({"seconds": "late", "cpu": 9.0})
    usage.add({"seconds": 5.0, "cpu": float("nan"), "disk_bytes": -1})
    assert usage.summary() == {"cpu": {"peak": 2.0, "mean": 1.25}}
    one, two = {"cpu": {"peak": 2.0, "mean": 1.0}}, {"cpu": {"peak": 1.0, "mean": 0.5}}
    assert merged([(one, 10.0), (two, 30.0), ({}, 5.0)]) == {"cpu": {"peak": 2.0, "mean": 0.62}}
    assert in_words(one) == ["CPU 2.0 cores, mean 1.0"]
    assert [figure("memory_bytes", value) for value in (0, 999, 1_000, 12_400_000, 2e12)] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "12.4 MB",
        "2.0 TB",
    ]


def test_a_folder_is_measured_without_its_links(tmp_path: Path) -> None:
    (tmp_path / "deep/er").mkdir(parents=True)
    (tmp_path / "deep/er/weights").write_bytes(bytes(1000))
    (tmp_path / "again").symlink_to(tmp_path / "deep/er/weights")
    (tmp_path / "loop").symlink_to(tmp_path)
    assert folder_bytes(tmp_path) == 1000
