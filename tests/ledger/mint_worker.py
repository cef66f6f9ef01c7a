"""One process of the concurrency tests: opens experiments and prints each id once it is
acknowledged.

python mint_worker.py FOLDER COUNT [FOLDERS]

With MINT_URL in its environment the ledger is on that server. A server that goes away is told on
stderr and tried again.
"""

import contextlib
import os
import sys
from pathlib import Path

from harness.clock import SystemClock
from harness.domain.team_ledger import TeamLedger, schema_of
from harness.errors import LedgerError
from harness.ledger import Ledger

AWAY = {"ledger_connection_lost", "ledger_unreachable", "ledger_commit_unknown"}


def main() -> None:
    folder, count = Path(sys.argv[1]), int(sys.argv[2])
    folders = Path(sys.argv[3]) if len(sys.argv) > 3 else None

    def reserve(name: str) -> bool:
        with contextlib.suppress(FileExistsError):
            (folders / name).mkdir()
            return True
        return False

    url = os.environ.get("MINT_URL")
    place = TeamLedger(url, schema_of(f"{folder}"), folder) if url else folder / "ledger.db"
    with Ledger.open(
        place, anchors=folder / "anchors", clock=SystemClock(), busy_seconds=120
    ) as ledger:
        left = count
        while left:
            try:
                opened = ledger.open_experiment(
                    hypothesis="h", parent=None, by="worker", reserve=reserve if folders else None
                )
            except LedgerError as error:
                if error.code not in AWAY:
                    raise
                sys.stderr.write(f"{error.code}\n")
                continue
            left -= 1
            sys.stdout.write(f"{opened.id}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
