"""The ledger over its two stores, a file of SQLite and a PostgreSQL server on the same disk, beside
each other: how long one experiment's minting takes with N experiments there, and how many facts a
second are added by one process and by four at once.

    python bench/ledger_stores.py [--sizes 100,1000] [--mints 40] [--folder DIR] [--record]

The server is started for the run from this machine's programs, on a Unix socket, and syncs as it
does by itself. Latencies are medians; the stores alternate. One line of JSON ends the output. With
--record it writes docs/evidence/ledger_stores.json: ratios of the server's to the file's, and of
each store's at the largest N to its own at the smallest.
"""

import argparse
import json
import multiprocessing
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]

from _record import record, wants_record  # noqa: E402  they need the line above
from mint import write_facts  # noqa: E402

from harness.clock import SystemClock  # noqa: E402
from harness.domain.team_ledger import Place, TeamLedger, schema_of  # noqa: E402
from harness.ledger import Ledger  # noqa: E402
from harness.ledger.exchange import import_facts  # noqa: E402
from harness.ledger.facts import ExperimentMoved  # noqa: E402
from tests.postgres import Postgres, programs  # noqa: E402

STORES = ("file", "server")
WRITERS = 4


def place_of(store: str, folder: Path, url: str) -> Place:
    if store == "file":
        return folder / "ledger.db"
    return TeamLedger(url, schema_of(f"{folder.name}"), folder)


def opened(place: Place, folder: Path) -> Ledger:
    return Ledger.open(
        place, anchors=folder / "anchors", clock=SystemClock(), writer="bench", busy_seconds=120
    )


def mint(ledger: Ledger) -> float:
    """Seconds for one experiment; then it is closed, outside the measured time."""
    start = time.perf_counter()
    one = ledger.open_experiment(hypothesis="one more idea", parent=None, by="model-builder")
    seconds = time.perf_counter() - start
    ledger.append(ExperimentMoved(experiment=one.id, status="discarded", why="measured"))
    return seconds


def work(place: Place, folder: Path, count: int, begin: float) -> None:
    """One of several writers; they begin together."""
    with opened(place, folder) as ledger:
        time.sleep(max(0.0, begin - time.time()))
        for _ in range(count):
            ledger.open_experiment(hypothesis="one more idea", parent=None, by="model-builder")


def facts_a_second(place: Place, folder: Path, count: int, writers: int) -> float:
    spawn = multiprocessing.get_context("spawn")
    begin = time.time() + 3.0 + writers
    processes = [
        spawn.Process(target=work, args=(place, folder, count // writers, begin))
        for _ in range(writers)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        if process.exitcode:
            raise SystemExit(f"a writer ended with {process.exitcode}")
    return count / (time.time() - begin)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="100,1000")
    parser.add_argument("--mints", type=int, default=40)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    sizes = [int(word) for word in options.sizes.split(",")]
    bin_ = programs()
    if bin_ is None:
        print("no PostgreSQL server is installed here (initdb, postgres)")
        return 2
    with tempfile.TemporaryDirectory(dir=options.folder, ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)
        server = Postgres(Path(name) / "pg", bin_)
        server.start()
        try:
            figures = measure(Path(name), server.url(), sizes, options.mints)
        finally:
            server.stop()
    if wants_record():
        record("ledger_stores", "python bench/ledger_stores.py --record", figures)
    print(json.dumps({"bench": "ledger_stores", **figures}))
    return 0


def measure(folder: Path, url: str, sizes: list[int], mints: int) -> dict[str, float]:
    median: dict[tuple[str, int], float] = {}
    rate: dict[tuple[str, int], float] = {}
    for size in sizes:
        write_facts(folder / f"facts-{size}", size)
        ledgers = {}
        for store in STORES:
            own = folder / f"{store}-{size}"
            own.mkdir()
            ledgers[store] = opened(place_of(store, own, url), own)
            import_facts(ledgers[store], folder / f"facts-{size}")
        times: dict[str, list[float]] = {store: [] for store in STORES}
        for _ in range(mints):
            for store in STORES:
                times[store].append(mint(ledgers[store]))
        for store in STORES:
            ledgers[store].close()
            median[store, size] = statistics.median(times[store])
            print(f"N={size}, {store}: {median[store, size] * 1000:.2f} ms a mint", flush=True)
    for writers in (1, WRITERS):
        for store in STORES:
            own = folder / f"{store}-{sizes[0]}"
            place = place_of(store, own, url)
            rate[store, writers] = facts_a_second(place, own, mints * WRITERS, writers)
            print(f"{store}, {writers} writers: {rate[store, writers]:.0f} facts/s", flush=True)
    figures = {
        f"mint_server_over_file_at_{size}": median["server", size] / median["file", size]
        for size in sizes
    }
    for store in STORES:
        grown = median[store, sizes[-1]] / median[store, sizes[0]]
        figures[f"mint_{store}_at_{sizes[-1]}_over_{sizes[0]}"] = grown
        together = rate[store, WRITERS] / rate[store, 1]
        figures[f"facts_{store}_{WRITERS}_writers_over_1"] = together
    figures["facts_server_over_file"] = rate["server", 1] / rate["file", 1]
    return {name: round(value, 2) for name, value in figures.items()}


if __name__ == "__main__":
    sys.exit(main())
