"""How long the demo takes from start to end, how much processor time beside that of its training
processes, what the virtual environment takes on disk, and what the demo shows.

python bench/demo.py [--record]

With --record it writes docs/evidence/demo.json, docs/pictures/demo.txt (the demo's table) and
docs/pictures/watch.svg (what `harness watch` drew of the experiment that was kept and of the one
that an alarm stopped). `docs/scorecard.py` puts the table into README.md.
"""

import io
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
from _record import record, wants_record
from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

from harness.ledger.project import open_project
from harness.views.dashboard import draw
from harness.views.follow_experiment import ExperimentFollower
from harness.views.watching import read_all

PICTURES = Path(__file__).resolve().parents[1] / "docs" / "pictures"
COLUMNS = 120
"""Three runs of one experiment stand in two columns."""


PROGRAM = ["train.py"]
"""How the words of a training process end."""
LOOK_S = 0.1


class Trained(threading.Thread):
    """Processor seconds of the training processes below this one: what they had at the last look.
    What they need between it and their end is missing, so the ratio is a little too large."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._ended = threading.Event()
        self._seconds: dict[tuple[int, float], float] = {}

    def run(self) -> None:
        me = psutil.Process()
        while not self._ended.wait(LOOK_S):
            for process in me.children(recursive=True):
                try:
                    words = process.cmdline()
                    if words[-1:] == PROGRAM and os.path.basename(words[0]) == "python":
                        times = process.cpu_times()
                        key = (process.pid, process.create_time())
                        self._seconds[key] = times.user + times.system
                except psutil.Error:
                    continue

    def stop(self) -> float:
        self._ended.set()
        self.join()
        return sum(self._seconds.values())


def spent() -> float:
    """Processor seconds of all processes that ended below this one."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def size_of(folder: Path) -> int:
    """Bytes of all regular files below `folder`."""
    return sum(
        path.lstat().st_size
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    )


def experiments_table(text: str) -> str:
    """The report's table: its lines up to the first empty one."""
    return text.partition("\n\n")[0]


def drawn(project: Path, experiments: list[str], environment: Mapping[str, str]) -> list[Text]:
    """The dashboards of `experiments`, one below the other."""
    lines: list[Text] = []
    with open_project(project, environment, read_only=True) as opened:
        for experiment in experiments:
            follower = ExperimentFollower(opened, experiment)
            read_all(follower)
            lines += [Text(f"$ harness watch {experiment}", style="dim"), Text("")]
            lines += [*draw(follower, width=COLUMNS), Text("")]
    return lines[:-1]


def save_picture(lines: list[Text], path: Path) -> None:
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    for line in lines:
        console.print(line)
    svg = console.export_svg(title="harness watch", theme=DIMMED_MONOKAI, unique_id="watch")
    path.write_text(svg, "utf-8")


def save_pictures(summary: Mapping[str, Any], environment: Mapping[str, str]) -> None:
    rows = summary["experiments"]
    stopped = [row["experiment"] for row in rows if row["alarms"]]
    kept = [row["experiment"] for row in rows if row["decision"] == "KEEP"]
    PICTURES.mkdir(exist_ok=True)
    table = experiments_table(summary["text"])
    (PICTURES / "demo.txt").write_text(f"{table}\n", "utf-8")
    lines = drawn(Path(summary["project"]), [*stopped, *kept], environment)
    save_picture(lines, PICTURES / "watch.svg")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": folder,
            "XDG_STATE_HOME": f"{folder}/state",
        }
        start, before, training = time.perf_counter(), spent(), Trained()
        training.start()
        demo = [sys.executable, "-m", "harness", "demo", f"{folder}/demo", "--json"]
        ended = subprocess.run(
            demo, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
        )
        minutes = (time.perf_counter() - start) / 60
        trained = training.stop()
        ratio = (spent() - before) / trained
        if wants_record():
            save_pictures(json.loads(ended.stdout), environment)
    gigabytes = size_of(Path(sys.prefix)) / 1e9
    print(f"harness demo  {minutes:5.1f} minutes")
    print(f"{ratio:5.2f} of the processor time of its training processes ({trained:.0f} s)")
    print(f"{Path(sys.prefix).name}         {gigabytes:5.1f} GB")
    if wants_record():
        figures = {
            "demo_minutes": round(minutes, 1),
            "cpu_over_training": round(ratio, 2),
            "environment_gigabytes": round(gigabytes, 1),
        }
        record("demo", "python bench/demo.py --record", figures)


if __name__ == "__main__":
    main()
