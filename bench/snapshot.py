"""What a snapshot of a large project costs: ratios to git and to `cp -r`, measured in this run.

    python bench/snapshot.py [FILES]   # by default 50,000 files of about 1 KB in 500 folders

- nothing new: a second snapshot, over `git status`; at most MOST.
- first: all files hashed, stored and synced, over `cp -r` of the project followed by `sync`.
- workspace: the code laid out for one run, over `cp -r`.

Exit 1 when a snapshot that finds nothing new costs more than MOST times `git status`.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from harness.artifacts.code_snapshot import materialise, take_snapshot

MOST = 3.0
FOLDERS = 500
REPEATS = 5


def seconds(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)


def make(root: Path, count: int) -> None:
    for number in range(count):
        path = root / f"part{number % FOLDERS:03d}" / f"module_{number:05d}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"VALUE = {number}\n" + "# a line of a file of ordinary size\n" * 28)
    run("git", "init", "-q", str(root))
    run("git", "-C", str(root), "config", "gc.auto", "0")  # it would move files while cp reads
    run("git", "-C", str(root), "add", ".")
    run("git", "-C", str(root), "-c", "user.email=a@b", "-c", "user.name=a", "commit", "-qm", "x")


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    with tempfile.TemporaryDirectory(prefix="harness-bench-") as name:
        base = Path(name)
        root, objects, index = base / "project", base / "objects", base / "index.json"
        make(root, count)
        time.sleep(3)  # files of the last two seconds are read again, as git does
        copy = seconds(lambda: run("cp", "-r", str(root), str(base / "copy")))
        copy_synced = copy + seconds(lambda: run("sync", "-f", str(base)))
        first = seconds(lambda: take_snapshot(root, objects, index=index))
        run("git", "-C", str(root), "status")
        status, again = [], []
        for _ in range(REPEATS):
            status.append(seconds(lambda: run("git", "-C", str(root), "status")))
            again.append(seconds(lambda: take_snapshot(root, objects, index=index)))
        snapshot = take_snapshot(root, objects, index=index)
        laid_out = seconds(lambda: materialise(snapshot, objects, base / "workspace"))
        ratio = statistics.median(again) / statistics.median(status)
        figures = {
            "files": count,
            "git status, seconds": round(statistics.median(status), 3),
            "cp -r, seconds": round(copy, 3),
            "nothing new over git status": round(ratio, 2),
            "first over cp -r and sync": round(first / copy_synced, 2),
            "workspace over cp -r": round(laid_out / copy, 2),
        }
        print(json.dumps(figures, indent=2), flush=True)  # removing all this may take long
    return 0 if ratio <= MOST else 1


if __name__ == "__main__":
    sys.exit(main())
