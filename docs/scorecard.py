"""Renders docs/SCORECARD.md and the README's "Not shown yet" from docs/scorecard.yaml and
docs/evidence/*.json, and the README's table of the demo from docs/pictures/demo.txt.

`python docs/scorecard.py` writes all of it; with `--check` it writes nothing and exits 1 when one
would change. A claim without a test that exists, or without a figure that a program measured, is
refused (exit 2).
"""

import ast
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

DOCS = Path(__file__).resolve().parent
LEVELS = {
    "unit": "a test of the code by itself",
    "real CLI": "the real Claude Code CLI, a script in the model's place",
    "real model on CPU": "a real model was trained or run on a CPU",
    "GPU": "on a graphics card, named with the figure",
    "third-party data": "on logs, transcripts or data that others made",
    "live model": "a live Claude model took part",
}
BEGIN, END = "<!-- not shown: begin -->", "<!-- not shown: end -->"
DEMO_BEGIN, DEMO_END = "<!-- demo: begin -->", "<!-- demo: end -->"
_CLAIM = {"claim", "level", "command", "test", "evidence", "figures"}


class ScorecardError(Exception):
    """What is wrong in the sources, which entry, and what was expected."""


def render(docs: Path) -> tuple[str, str]:
    """The scorecard, and the README's list. Raises ScorecardError."""
    source = yaml.safe_load((docs / "scorecard.yaml").read_text("utf-8"))
    rows, missing = [], []
    for area in source["areas"]:
        rows.append(f"\n## {area['area']}\n")
        if area.get("claims"):
            rows += [
                "| claim | level | shown by | figure | seed | date |",
                "|---|---|---|---|---|---|",
            ]
            rows += [_row(docs, area["area"], claim) for claim in area["claims"]]
        for line in area.get("not_shown", []):
            rows.append(f"\nNot shown: {line}")
            missing.append(line)
    missing = [*source.get("not_shown_first", []), *missing]
    levels = "\n".join(f"- **{name}**: {meaning}." for name, meaning in LEVELS.items())
    page = (
        "<!-- Rendered by docs/scorecard.py from docs/scorecard.yaml and docs/evidence/; edit"
        " those. -->\n# Scorecard\n\nWhat is claimed, how it was shown, and what was not. Figures"
        f" come from the program's last recorded run.\n\n{levels}\n" + "\n".join(rows) + "\n"
    )
    return page, "\n".join(
        [BEGIN, *(f"- {line}" for line in source.get("not_shown_first", [])), END]
    )


def _row(docs: Path, area: str, claim: Mapping[str, Any]) -> str:
    text = claim.get("claim", "?")
    if unknown := set(claim) - _CLAIM:
        raise ScorecardError(
            f"{area}: {text!r} has the unknown key {min(unknown)!r}; expected of {sorted(_CLAIM)}."
        )
    if claim.get("level") not in LEVELS:
        raise ScorecardError(
            f"{area}: {text!r} has the level {claim.get('level')!r}; expected one of"
            f" {list(LEVELS)}."
        )
    shown = [f"`{claim['command']}`"] if "command" in claim else []
    figure = seed = date = ""
    if "evidence" in claim:
        record = _evidence(docs, area, claim["evidence"])
        shown = [*(shown or [f"`{record['command']}`"]), f"docs/evidence/{claim['evidence']}.json"]
        figure = "; ".join(
            _figure(area, claim, record, name) for name in claim.get("figures", record["figures"])
        )
        seed, date = str("" if record.get("seed") is None else record["seed"]), str(record["date"])
    if "test" in claim:
        names = claim["test"] if isinstance(claim["test"], list) else [claim["test"]]
        for name in names:
            _require_test(docs.parent, area, name)
        shown += [f"`{name}`" for name in names]
    if not {"test", "evidence"} & set(claim):
        raise ScorecardError(f"{area}: {text!r} names neither a test nor a file of evidence.")
    return f"| {text} | {claim['level']} | {', '.join(shown)} | {figure} | {seed} | {date} |"


def _evidence(docs: Path, area: str, name: str) -> dict[str, Any]:
    path = docs / "evidence" / f"{name}.json"
    try:
        record: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ScorecardError(
            f"{area}: no readable docs/evidence/{name}.json ({error}); record it."
        ) from error
    if absent := {"command", "date", "figures"} - set(record):
        raise ScorecardError(f"docs/evidence/{name}.json lacks {sorted(absent)}.")
    return record


def _figure(area: str, claim: Mapping[str, Any], record: Mapping[str, Any], name: str) -> str:
    if name not in record["figures"]:
        raise ScorecardError(
            f"{area}: {claim['claim']!r} wants the figure {name!r}; "
            f"{claim['evidence']}.json has {sorted(record['figures'])}."
        )
    value = record["figures"][name]
    return (
        f"{name.replace('_', ' ')} {value:g}"
        if isinstance(value, float)
        else f"{name.replace('_', ' ')} {value}"
    )


def _require_test(root: Path, area: str, name: str) -> None:
    """`tests/x`, `tests/x.py` or `tests/x.py::test_y`."""
    path, _, function = name.partition("::")
    if not (root / path).exists():
        raise ScorecardError(f"{area}: {path} does not exist.")
    if function:
        tree = ast.parse((root / path).read_text("utf-8"))
        names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        if function not in names:
            raise ScorecardError(f"{area}: {path} has no {function}.")


def main(arguments: list[str]) -> int:
    readme = DOCS.parent / "README.md"
    try:
        page, listed = render(DOCS)
    except ScorecardError as error:
        print(error, file=sys.stderr)
        return 2
    before = readme.read_text("utf-8")
    table = (DOCS / "pictures" / "demo.txt").read_text("utf-8")
    shown = f"{DEMO_BEGIN}\n```\n{table}```\n{DEMO_END}"
    for mark in (BEGIN, DEMO_BEGIN):
        if mark not in before:
            print(f"README.md has no {mark}", file=sys.stderr)
            return 2
    after = re.sub(f"{BEGIN}.*?{END}", lambda _: listed, before, flags=re.DOTALL)
    after = re.sub(f"{DEMO_BEGIN}.*?{DEMO_END}", lambda _: shown, after, flags=re.DOTALL)
    card = DOCS / "SCORECARD.md"
    if "--check" in arguments:
        stale = [
            path.name for path, text in ((card, page), (readme, after)) if _text(path) != text
        ]
        if stale:
            print(
                f"{', '.join(stale)}: not what docs/scorecard.yaml and docs/evidence/ say; run"
                " `make scorecard`."
            )
        return 1 if stale else 0
    card.write_text(page, "utf-8")
    readme.write_text(after, "utf-8")
    return 0


def _text(path: Path) -> str | None:
    return path.read_text("utf-8") if path.exists() else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
