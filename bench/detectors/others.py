"""Real logs of other people's programs: what is read of each, and what the watch says of it.

    python -m bench.detectors.others FOLDER [--show] [--record]

`others.tsv` names each log by repository, commit and path, with its hash and its label. The labels
were made by eye before the first run. The logs are not ours: FOLDER holds them as ID/NAME, where
`--get` puts them from the web. One half was there to mend the reader by, the other was not.
`--record` writes docs/evidence/others.json and the figures in docs/logs.md. Exit 1 when a log is
missing or has another hash.
"""

import argparse
import csv
import hashlib
import os
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench._record import record
from bench.detectors.outcomes import wilson
from harness.clock import SystemClock
from harness.errors import HarnessError
from harness.views.follow_logs import LogFollower
from harness.views.watching import read_all

TABLE = Path(__file__).with_name("others.tsv")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "logs.md"
_BEGIN, _END = "<!-- others: begin -->", "<!-- others: end -->"
_OLD = 1_700_000_000


@dataclass(frozen=True, kw_only=True)
class Label:
    """A line of the table; `*` is anything."""

    id: str
    half: str
    """mend or unseen."""
    repository: str
    commit: str
    path: str
    licence: str
    sha256: str
    kind: str
    """training, ledger or unreadable."""
    positions: str
    """unit:number, or several that are right."""
    rows: str
    """At least."""
    values: str
    """Of the last rows: each between `;`, one of those between `,`."""
    states: str
    health: str
    """healthy, the codes of alarms that name the fault, or -: not to be told by the log."""

    @property
    def name(self) -> str:
        return Path(self.path).name

    @property
    def url(self) -> str:
        path = urllib.parse.quote(self.path)
        return f"https://raw.githubusercontent.com/{self.repository}/{self.commit}/{path}"


@dataclass(kw_only=True)
class Reading:
    wrong: str
    """What is not as the label says; empty when all is."""
    standing: tuple[str, ...]
    """Codes of the warnings and fatal alarms that stand at the end."""


def labels() -> list[Label]:
    with TABLE.open(encoding="utf-8", newline="") as file:
        return [Label(**line) for line in csv.DictReader(file, delimiter="\t")]


def read(label: Label, folder: Path) -> Reading:
    path = folder / label.id / label.name
    os.utime(path, (_OLD, _OLD))
    follower = LogFollower([path], SystemClock())
    read_all(follower)
    try:
        runs = follower.document()["runs"]
    except HarnessError:
        runs = []
    said = [alarm for view in follower.views() for alarm in view.picture.alarms]
    return Reading(
        wrong=wrong(label, runs),
        standing=tuple(dict.fromkeys(alarm.code for alarm in said if alarm.open)),
    )


def wrong(label: Label, runs: list[Mapping[str, Any]]) -> str:
    """What `harness watch --json` says of a log that the label does not."""
    run = runs[-1] if runs else None
    if label.kind == "unreadable":
        return f"{run['rows']} rows were read" if run is not None and run["rows"] else ""
    if run is None or not run["rows"]:
        return "nothing was read"
    if label.kind == "ledger" or run["status"] == "ledger":
        same = run["status"] == label.kind
        return "" if same else f"it is {label.kind}, not {run['status']}"
    found = []
    place = run.get("epoch" if run["unit"] == "epoch" else "step")
    place = run.get("step", run.get("epoch")) if place is None else place
    if label.positions != "*" and not _is_at(label.positions, run["unit"], place):
        found.append(f"{run['unit']} {place}, not {label.positions}")
    rows = sum(each["rows"] for each in runs)
    if rows < int(label.rows):
        found.append(f"{rows} rows of {label.rows}")
    values = [v for v in run["metrics"].values() if v is not None]
    missing = [each for each in _each(label.values) if not _has(each, values)]
    if missing:
        found.append(f"no {' or '.join(missing)}")
    if label.states != "*" and run["status"] not in label.states.split(","):
        found.append(f"{run['status']}, not {label.states}")
    return "; ".join(found)


def _is_at(positions: str, unit: str, place: float | None) -> bool:
    right = [each.split(":") for each in positions.split(",")]
    return place is not None and any(u == unit and abs(float(n) - place) < 0.01 for u, n in right)


def _each(values: str) -> list[str]:
    return [] if values == "*" else values.split(";")


def _has(which: str, values: Iterable[float]) -> bool:
    wanted = [float(each) for each in which.split(",")]
    return any(abs(v - w) <= 1e-6 * max(1.0, abs(w)) for v in values for w in wanted)


def verdict(label: Label, got: Reading) -> str:
    """named, missed, quiet or false; empty where the log does not tell."""
    if label.health == "-":
        return ""
    if label.health == "healthy":
        return "false" if got.standing else "quiet"
    return "named" if set(label.health.split(",")) & set(got.standing) else "missed"


def get(label: Label, folder: Path) -> None:
    path = folder / label.id / label.name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with urllib.request.urlopen(label.url, timeout=60) as answer:
            path.write_bytes(answer.read())


def lacks(label: Label, folder: Path) -> str:
    path = folder / label.id / label.name
    if not path.exists():
        return "it is not there: get it with --get"
    same = hashlib.sha256(path.read_bytes()).hexdigest() == label.sha256
    return "" if same else "its SHA-256 is another one than in others.tsv"


def figures(found: Mapping[str, tuple[Label, Reading]]) -> dict[str, float | str]:
    told: dict[str, float | str] = {}
    for half in ("mend", "unseen"):
        some = [each for each in found.values() if each[0].half == half]
        verdicts = [verdict(*each) for each in some]
        counts = {
            "read_right": (sum(not got.wrong for _, got in some), len(some)),
            "named": (verdicts.count("named"), sum(v in ("named", "missed") for v in verdicts)),
            "false": (verdicts.count("false"), sum(v in ("false", "quiet") for v in verdicts)),
        }
        for name, (hits, runs) in counts.items():
            low, high = wilson(hits, runs)
            told[f"{half}_{name}"] = f"{hits} of {runs}"
            told[f"{half}_{name}_low"] = round(low, 4)
            told[f"{half}_{name}_high"] = round(high, 4)
    return told


def page(f: Mapping[str, float | str]) -> str:
    """Lines for docs/logs.md."""
    told = {
        "read_right": "read right",
        "false": "healthy ones with an alarm that stands at the end",
        "named": "faults named by one",
    }
    lines = []
    for name, what in told.items():
        parts = [
            f"{f[f'{half}_{name}']} of the {which} half (95% interval"
            f" {f[f'{half}_{name}_low']:.1%} to {f[f'{half}_{name}_high']:.1%})"
            for half, which in (("unseen", "unseen"), ("mend", "mending"))
            if not str(f[f"{half}_{name}"]).endswith(" of 0")
        ]
        if parts:
            lines.append(f"- {what}: {', '.join(parts)}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--get", action="store_true")
    parser.add_argument("--half", choices=("mend", "unseen"))
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    if given.record and given.half:
        parser.error("--record is of both halves")
    found = {}
    for label in labels():
        if given.half not in (None, label.half):
            continue
        if given.get:
            get(label, given.folder)
        if lack := lacks(label, given.folder):
            print(f"{label.id}: {lack}")
            return 1
        began = time.monotonic()
        got = read(label, given.folder)
        found[label.id] = label, got
        if given.show:
            told = f"{label.half} {label.id}: {got.wrong or 'right'}; {verdict(label, got)}"
            print(
                f"{told} {','.join(got.standing)} ({time.monotonic() - began:.1f} s)", flush=True
            )
    told_figures = figures(found)
    for name, value in told_figures.items():
        print(f"{name}: {value}")
    if given.record:
        record("others", "python -m bench.detectors.others FOLDER --record", told_figures)
        before, rest = PAGE.read_text("utf-8").split(_BEGIN)
        after = rest.split(_END)[1]
        PAGE.write_text(f"{before}{_BEGIN}\n{page(told_figures)}\n{_END}{after}", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
