"""Figures from outcomes, the last line, and the table in docs/detectors.md."""

import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.detectors import measured_runs
from bench.detectors.faults import KINDS
from bench.detectors.measured_runs import Job, read
from bench.detectors.outcomes import Outcome, alarms, onset, wilson

RECALL, FALSE, DELAY = 0.95, 0.02, 3
PAGE = Path(__file__).resolve().parents[2] / "docs" / "detectors.md"
_BEGIN, _END = "<!-- measured: begin -->", "<!-- measured: end -->"
_GUESS = 0.15
"""A run whose last accuracy on other rows is below this did not learn: it is no healthy run."""


@dataclass(kw_only=True)
class Kind:
    """What was measured of one kind of fault, on the seeds that no threshold was set on."""

    runs: int = 0
    hits: int = 0
    noted: int = 0
    """Of the hits, those by a note."""
    no_onset: int = 0
    delays: list[int] = field(default_factory=list)
    first: Counter[str] = field(default_factory=Counter)
    """First code of each run: the confusion."""


@dataclass(kw_only=True)
class Healthy:
    runs: Counter[str] = field(default_factory=Counter)
    """By group: trained, other (trained too), synthetic."""
    false: Counter[str] = field(default_factory=Counter)
    """First code of each run with a warning or a fatal alarm."""
    where: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def faulty(folder: Path, jobs: list[Job]) -> dict[str, Kind]:
    twins: dict[tuple[str, int], list[Any]] = defaultdict(list)
    for job in jobs:
        if job.group == "clean" and job.held_out:
            twins[job.task, job.seed].append(read(folder, job))
    found: dict[str, Kind] = defaultdict(Kind)
    for job in jobs:
        if job.group != "faulty" or not job.held_out:
            continue
        rows, kind, told = read(folder, job), found[job.name], KINDS[job.name]
        outcome = Outcome(onset=onset(rows, twins[job.task, job.seed]), said=alarms(rows))
        hit = outcome.hit(told.codes, told.fault(job.seed).row)
        if hit is None and told.noted:
            noted = Outcome(onset=outcome.onset, said=alarms(rows, notes=True))
            hit = noted.hit(told.codes, told.fault(job.seed).row)
            kind.noted += hit is not None
        kind.runs += 1
        kind.hits += hit is not None
        kind.no_onset += outcome.onset is None
        kind.first[outcome.said[0][0] if outcome.said else "nothing"] += 1
        if hit is not None and outcome.onset is not None:
            kind.delays.append(max(0, hit - outcome.onset))
    return dict(found)


def healthy(folder: Path, jobs: list[Job]) -> Healthy:
    """Held-out healthy runs, and the clean twins of held-out seeds under their own name."""
    found = Healthy()
    for job in jobs:
        if job.group == "faulty" or not job.held_out:
            continue
        rows = read(folder, job)
        accuracy = [
            r["metrics"]["val_accuracy"] for r in rows if "val_accuracy" in r.get("metrics", {})
        ]
        if accuracy and accuracy[-1] < _GUESS:
            found.left_out.append(job.file)
            continue
        said = alarms(rows)
        found.runs[job.group] += 1
        if said:
            found.false["clean: " * (job.group == "clean") + said[0][0]] += 1
            found.where.append(f"{job.file}: {said[0][0]} at report {said[0][1]}")
    return found


def figures(
    kinds: Mapping[str, Kind], quiet: Healthy, real: Mapping[str, tuple[str, str]]
) -> dict[str, float | str]:
    seen = [kind for name, kind in kinds.items() if KINDS[name].visible]
    runs, hits = sum(kind.runs for kind in seen), sum(kind.hits for kind in seen)
    delays = [delay for kind in seen for delay in kind.delays]
    count = sum(number for group, number in quiet.runs.items() if group != "clean")
    false = sum(number for code, number in quiet.false.items() if not code.startswith("clean"))
    low, high = wilson(false, count)
    return {
        "visible_kinds": len(seen),
        "visible_runs": runs,
        "recall": round(hits / max(runs, 1), 4),
        "least_kind_recall": round(min((kind.hits / kind.runs for kind in seen), default=0.0), 4),
        "healthy_runs": count,
        "healthy_synthetic": quiet.runs["synthetic"],
        "false_alarm_runs": false,
        "false_alarm_share": round(false / max(count, 1), 4),
        "false_alarm_low": round(low, 4),
        "false_alarm_high": round(high, 4),
        "clean_twins": quiet.runs["clean"],
        "clean_twins_with_alarm": sum(
            n for code, n in quiet.false.items() if code.startswith("clean")
        ),
        "median_reports_from_onset": statistics.median(delays) if delays else float("inf"),
        **{f"recall_{name}": f"{kind.hits} of {kind.runs}" for name, kind in kinds.items()},
        **{
            f"false_{code}": f"{n} of {count}"
            for code, n in quiet.false.items()
            if not code.startswith("clean")
        },
        "real_logs": len(real),
        "real_logs_right": sum(given == got for given, got in real.values()),
    }


def passed(f: Mapping[str, Any]) -> bool:
    return bool(
        f["recall"] >= RECALL
        and f["healthy_runs"] >= 300
        and f["false_alarm_share"] <= FALSE
        and f["median_reports_from_onset"] <= DELAY
        and f["real_logs_right"] == f["real_logs"]
        and f["known_recall_share"] >= RECALL
    )


def last_line(f: Mapping[str, Any]) -> str:
    return (
        f"{'PASS' if passed(f) else 'FAIL'}: recall {f['recall']:.1%} of {f['visible_runs']} runs"
        f" of {f['visible_kinds']} stream-visible kinds (bar {RECALL:.0%}); false alarms in"
        f" {f['false_alarm_runs']} of {f['healthy_runs']} healthy runs ="
        f" {f['false_alarm_share']:.1%}, 95% interval {f['false_alarm_low']:.1%} to"
        f" {f['false_alarm_high']:.1%} (bar {FALSE:.0%}); median {f['median_reports_from_onset']:g}"
        f" reports from onset (bar {DELAY}); real logs {f['real_logs_right']} of {f['real_logs']};"
        f" made faults {f['known_recall']} (bar {RECALL:.0%}), unseen ones {f['unseen_recall']}"
    )


def table(kinds: Mapping[str, Kind], quiet: Healthy, f: Mapping[str, Any]) -> str:
    lines = [
        (
            "| fault | stream | recall | no onset | reports from onset: median, most | first alarm"
            " of each run |"
        ),
        "|---|---|---|---|---|---|",
    ]
    for name, kind in kinds.items():
        told = "visible" if KINDS[name].visible else "probe"
        late = f"{statistics.median(kind.delays):g}, {max(kind.delays)}" if kind.delays else "-"
        first = ", ".join(f"{code} {number}" for code, number in kind.first.most_common())
        first += f"; {kind.noted} named by a note" if kind.noted else ""
        lines.append(
            f"| {name} | {told} | {kind.hits} of {kind.runs} | {kind.no_onset} | {late} | {first} |"
        )
    lines += ["", "The last line printed:", "```", last_line(f), "```", ""]
    lines.append(
        f"Healthy: {quiet.runs['trained']} trainings of {len({*_shapes()})} shapes,"
        f" {quiet.runs['other']} of a GAN, GRPO, DPO and scikit-learn, {quiet.runs['synthetic']}"
        f" synthetic. {len(quiet.left_out)} more had not learned by their last row and are left"
        f" out. Clean twins: {f['clean_twins']}, of which {f['clean_twins_with_alarm']} had an"
        " alarm."
    )
    lines += [f"- {where}" for where in quiet.where]
    lines += [
        "",
        "| false alarm (first of a run) | healthy runs | 95% interval of a run |",
        "|---|---|---|",
    ]
    for code in sorted(code for code in quiet.false if not code.startswith("clean")):
        low, high = wilson(quiet.false[code], f["healthy_runs"])
        lines.append(
            f"| {code} | {quiet.false[code]} of {f['healthy_runs']} | {low:.1%} to {high:.1%} |"
        )
    return "\n".join(lines)


def write_page(text: str) -> None:
    page = PAGE.read_text("utf-8")
    before, rest = page.split(_BEGIN)
    PAGE.write_text(f"{before}{_BEGIN}\n{text}\n{_END}{rest.split(_END)[1]}", "utf-8")


def _shapes() -> list[str]:
    return [job.name for job in measured_runs.jobs() if job.group == "trained"]
