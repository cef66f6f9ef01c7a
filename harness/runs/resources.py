"""What a run uses of its machine, looked at from outside while it goes on.

Each look is one line of resources.jsonl. No detector reads it and nothing is judged by it.
"""

import contextlib
import importlib
import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, Protocol

import psutil

from harness.artifacts.resources import Summary, Usage
from harness.clock import Clock, iso
from harness.files import canonical_json

FIRST_S = 0.2
LONGEST_S = 5.0
"""Between two looks; the first ones come sooner, so that a short run has some too."""
MOST_FILES = 10_000
"""In the run's folder, that one look measures."""

Processes = Callable[[], list[psutil.Process]]


class Devices(Protocol):
    def used(self, pids: Collection[int]) -> dict[str, float]:
        """`gpu` and `gpu_memory_bytes` of the devices that these processes use; else empty."""
        ...


class ResourceLog:
    """Looks at a run's processes now and then; what it cannot see it leaves out."""

    def __init__(
        self,
        path: Path,
        clock: Clock,
        devices: Devices | None = None,
    ) -> None:
        self._path, self._clock = path, clock
        self._devices = devices or Nvidia()
        self._usage = Usage()
        self._start = clock.monotonic()
        self._last = self._start
        self._due, self._wait = FIRST_S, FIRST_S
        self._cpu: dict[int, float] = {}

    def look(self, processes: Processes) -> None:
        """Write a line when one is due."""
        now = self._clock.monotonic()
        if now - self._start < self._due:
            return
        self._wait = min(LONGEST_S, 2 * self._wait)
        self._due = now - self._start + self._wait
        line = self._line(processes(), now)
        self._write(line)

    def end(self) -> Summary:
        """One more look, at the folder alone: the processes have ended."""
        self._write(self._line([], self._clock.monotonic()))
        return self._usage.summary()

    def _line(self, processes: list[psutil.Process], now: float) -> dict[str, Any]:
        seconds = round(now - self._start, 3)
        line: dict[str, Any] = {
            "t": iso(self._clock.now()),
            "seconds": seconds,
            "disk_bytes": folder_bytes(self._path.parent),
        }
        if not processes:
            return line
        line["processes"] = len(processes)
        line["cpu"] = self._cores(processes, now)
        line["memory_bytes"] = sum(map(_memory, processes))
        pids = [process.pid for process in processes]
        return line | self._devices.used(pids)

    def _cores(self, processes: list[psutil.Process], now: float) -> float:
        """How many cores were busy for them since the look before."""
        passed = max(now - self._last, 1e-3)
        self._last = now
        spent, seen = 0.0, {}
        for process in processes:
            seconds = _cpu(process)
            before = self._cpu.get(process.pid, 0.0)
            spent += max(0.0, seconds - before)
            seen[process.pid] = seconds
        self._cpu = seen
        return round(spent / passed, 2)

    def _write(self, line: dict[str, Any]) -> None:
        self._usage.add(line)
        # The run may write into its own folder: no link of it is followed, and a full disk or a
        # folder in the file's place ends no training.
        with contextlib.suppress(OSError):
            how = os.O_WRONLY | os.O_APPEND | os.O_CREAT
            how |= os.O_NOFOLLOW | os.O_NONBLOCK
            descriptor = os.open(self._path, how, 0o644)
            try:
                data = canonical_json(line) + b"\n"
                os.write(descriptor, data)
            finally:
                os.close(descriptor)


class Nvidia:
    """The devices of this machine as NVML tells; none without nvidia-ml-py or a driver."""

    def __init__(self) -> None:
        self._nvml: Any = None
        self._asked = False

    def used(self, pids: Collection[int]) -> dict[str, float]:
        nvml = self._opened()
        if nvml is None:
            return {}
        busy, memory, found = 0.0, 0.0, False
        try:
            for index in range(nvml.nvmlDeviceGetCount()):
                device = nvml.nvmlDeviceGetHandleByIndex(index)
                own = _own(nvml, device, pids)
                if not own:
                    continue
                found = True
                memory += sum(own)
                rates = nvml.nvmlDeviceGetUtilizationRates(device)
                busy += rates.gpu / 100
        except nvml.NVMLError:
            return {}
        if not found:
            return {}
        return {
            "gpu": round(busy, 2),
            "gpu_memory_bytes": int(memory),
        }

    def _opened(self) -> Any:
        """Asked once: without a driver each question takes as long as the first."""
        if self._asked:
            return self._nvml
        self._asked = True
        try:
            nvml = importlib.import_module("pynvml")
        except ImportError:
            return None
        with contextlib.suppress(nvml.NVMLError):
            nvml.nvmlInit()
            self._nvml = nvml
        return self._nvml


def _own(nvml: Any, device: Any, pids: Collection[int]) -> list[float]:
    """The memory that each of the processes uses there; 0 where the driver does not tell."""
    there = nvml.nvmlDeviceGetComputeRunningProcesses(device)
    return [float(one.usedGpuMemory or 0) for one in there if one.pid in pids]


def _cpu(process: psutil.Process) -> float:
    with contextlib.suppress(psutil.Error):
        times = process.cpu_times()
        return float(times.user + times.system)
    return 0.0


def _memory(process: psutil.Process) -> float:
    """Its share: what it shares with others counts for each in part, where the system tells."""
    with contextlib.suppress(psutil.Error, OSError):
        full = process.memory_full_info()
        return float(getattr(full, "pss", full.rss))
    with contextlib.suppress(psutil.Error):
        return float(process.memory_info().rss)
    return 0.0


def folder_bytes(folder: Path) -> int:
    """Of the regular files below it, at most MOST_FILES; links are not followed."""
    total, left = 0, MOST_FILES
    waiting = [os.fspath(folder)]
    while waiting and left > 0:
        # What goes away meanwhile is left out.
        with (
            contextlib.suppress(OSError),
            os.scandir(waiting.pop()) as entries,
        ):
            for entry in entries:
                left -= 1
                if left < 0:
                    break
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    status = entry.stat(follow_symlinks=False)
                    total += status.st_size
    return total
