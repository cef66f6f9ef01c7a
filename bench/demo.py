"""How long the demo takes from start to end, and what the virtual environment takes on disk.

python bench/demo.py [--record]     # with --record it writes docs/evidence/demo.json
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _record import record, wants_record


def size_of(folder: Path) -> int:
    """Bytes of all regular files below `folder`."""
    return sum(
        path.lstat().st_size
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": folder,
            "XDG_STATE_HOME": f"{folder}/state",
        }
        start = time.perf_counter()
        demo = [sys.executable, "-m", "harness", "demo", f"{folder}/demo"]
        subprocess.run(demo, check=True, capture_output=True, env=environment)
        minutes = (time.perf_counter() - start) / 60
    gigabytes = size_of(Path(sys.prefix)) / 1e9
    print(f"harness demo  {minutes:5.1f} minutes")
    print(f"{Path(sys.prefix).name}         {gigabytes:5.1f} GB")
    if wants_record():
        figures = {"demo_minutes": round(minutes, 1), "environment_gigabytes": round(gigabytes, 1)}
        record("demo", "python bench/demo.py --record", figures)


if __name__ == "__main__":
    main()
