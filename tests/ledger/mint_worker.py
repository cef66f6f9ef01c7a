"""One process of the concurrency tests: opens experiments and prints each id once it is
acknowledged.

python mint_worker.py FOLDER COUNT [FOLDERS]
"""

import contextlib
import sys
from pathlib import Path

from harness.clock import SystemClock
from harness.ledger import Ledger


def main() -> None:
    folder, count = Path(sys.argv[1]), int(sys.argv[2])
    folders = Path(sys.argv[3]) if len(sys.argv) > 3 else None

    def reserve(name: str) -> bool:
        with contextlib.suppress(FileExistsError):
            (folders / name).mkdir()
            return True
        return False

    with Ledger.open(
        folder / "ledger.db", anchors=folder / "anchors", clock=SystemClock(), busy_seconds=120
    ) as ledger:
        for _ in range(count):
            opened = ledger.open_experiment(
                hypothesis="h", parent=None, by="worker", reserve=reserve if folders else None
            )
            sys.stdout.write(f"{opened.id}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
