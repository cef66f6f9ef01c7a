"""`harness cheats run | render`: the cheats benchmark."""

import json
import sys
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click

from harness.cheats.bench import known_ids, run_bench
from harness.cheats.report import figures, leave_one_out, merged, page, problems, through
from harness.cli.output import CommandGroup, WholeNumber, emit, json_option, tell
from harness.clock import SystemClock, iso
from harness.errors import UsageError
from harness.files import atomic_write, pretty_json


@click.group("cheats", cls=CommandGroup)
def command() -> None:
    """Run known cheats and honest controls with all defences off, then on."""


@command.command("run")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option(
    "--jobs", type=WholeNumber(1, 64), default=2, help="How many run in parallel; default: 2."
)
@click.option(
    "--evidence",
    multiple=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write the document to this file, one for each --sandbox; with ID, its rows of other"
    " cheats are kept.",
)
@click.option(
    "--sandbox",
    "sandboxes",
    multiple=True,
    type=click.Choice(["auto", "bwrap", "landlock", "none"]),
    default=("auto",),
    help="Isolation of agent code; auto picks the strongest that works here. Given again, each"
    " attack is tried in each, and once without defences.",
)
@json_option
def run(
    ids: tuple[str, ...],
    jobs: int,
    evidence: tuple[Path, ...],
    sandboxes: tuple[str, ...],
    as_json: bool,
) -> None:
    """Run each attack undefended and defended, and each control defended; without ID, all of them.

    Everything runs in temporary folders. Exit 1 when an attack did not succeed undefended, an
    attack that is not listed as known gets through, an attack is caught by no named defence, fewer
    than 95% are caught in a sandbox, a control is refused, or the benchmark itself failed.
    """
    if unknown := sorted(set(ids) - set(known_ids())):
        raise UsageError(
            f"No such attack or control: {', '.join(unknown)}.",
            hint=f"Known: {', '.join(known_ids())}.",
            code="unknown_cheat",
        )
    if evidence and len(evidence) != len(sandboxes):
        raise UsageError(
            f"{len(evidence)} --evidence and {len(sandboxes)} --sandbox.",
            hint="Give a file for each sandbox, in the same order.",
        )
    documents = run_bench(ids, sandboxes, jobs, tell=tell, seconds=_seconds(evidence))
    files: Sequence[Path | None] = evidence or [None] * len(sandboxes)
    told = [
        _told(ids, document, sandbox, file)
        for document, sandbox, file in zip(documents, sandboxes, files, strict=True)
    ]
    whole = told[0] if len(told) == 1 else {"documents": told}
    emit(whole, *(line for one in told for line in _lines(one, one["problems"])), as_json=as_json)
    sys.exit(1 if any(one["problems"] for one in told) else 0)


def _seconds(evidence: Sequence[Path]) -> dict[str, float]:
    """Id -> how long it took in the runs before, all sandboxes together."""
    found: Counter[str] = Counter()
    for file in evidence:
        before = json.loads(file.read_text("utf-8")) if file.is_file() else {}
        for row in (*before.get("attacks", ()), *before.get("controls", ())):
            found[row["id"]] += row.get("seconds", 0.0)
    return dict(found)


def _told(
    ids: Sequence[str], document: dict[str, Any], sandbox: str, evidence: Path | None
) -> dict[str, Any]:
    """The whole document of one sandbox, which is written where `evidence` says."""
    if ids and evidence is not None and evidence.is_file():
        document = merged(document, json.loads(evidence.read_text("utf-8")), known_ids())
    whole = _evidence(document, sandbox, problems(document))
    if evidence is not None:
        evidence.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(evidence, pretty_json(whole))
    return whole


@command.command("render")
@click.argument(
    "evidence",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)
@click.option(
    "--out",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="The Markdown file to write.",
)
@json_option
def render(evidence: tuple[Path, ...], out: Path, as_json: bool) -> None:
    """Write the tables of one or more EVIDENCE files, as `cheats run --evidence` wrote them."""
    atomic_write(out, page([json.loads(path.read_text("utf-8")) for path in evidence]))
    emit({"written": str(out)}, f"wrote {out}", as_json=as_json)


def _evidence(document: dict[str, Any], sandbox: str, faults: list[str]) -> dict[str, Any]:
    return {
        "name": f"cheats, sandbox {document['sandbox']}",
        "command": f"harness cheats run --sandbox {sandbox}",
        "date": iso(SystemClock().now())[:10],
        "version": version("experiment-harness"),
        "machine": document["machine"],
        "seed": document["seed"],
        "figures": figures(document),
        "sandbox": document["sandbox"],
        "problems": faults,
        "attacks": document["attacks"],
        "controls": document["controls"],
        **({"kept": document["kept"]} if "kept" in document else {}),
        "defences": leave_one_out(document),
    }


def _lines(document: dict[str, Any], faults: list[str]) -> list[str]:
    counts = document["figures"]
    lines = [
        (
            f"{counts['caught']} of {counts['succeeded_undefended']} attacks that succeed"
            f" undefended are caught ({counts['caught_share']:.1%}), sandbox {document['sandbox']}"
        ),
        f"{counts['controls_refused']} of {counts['controls']} controls are refused",
    ]
    for row in document["attacks"]:
        if "fault" in row or row["caught"]:
            continue
        how = f"gets through: {row['reason']}" if through(row) else f"graded: {row['graded']}"
        lines.append(f"  {row['id']}: {how}")
    idle = [row["defence"] for row in document["defences"] if not row["sole"]]
    if idle:
        lines.append(f"  defences that are the only stop of no attack: {', '.join(idle)}")
    return [*lines, *(f"  problem: {line}" for line in faults)]
