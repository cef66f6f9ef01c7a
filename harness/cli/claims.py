"""`harness claims audit`: every number that a text claims, against what was recomputed, logged or
measured."""

import sys
from pathlib import Path
from typing import Any

import click

from harness.artifacts.content import read_text
from harness.artifacts.experiment_files import parse_result
from harness.claims.judge import JudgedClaim, front_matter_claims, judged
from harness.claims.known_facts import HOLDS, KnownFacts
from harness.claims.sentences import sentences
from harness.cli.output import VerbGroup, emit, environment, json_option, project_option
from harness.errors import NotFoundError, UsageError
from harness.gates.claim_facts import (
    commit_messages,
    experiment_of_path,
    known_facts,
    text_sentences,
)
from harness.ledger.project import Project, open_project

_NEXT = (
    "Write the number that is known, or what shows it: docs/claims.md; a sentence without a number"
    " claims nothing."
)


@click.group("claims", cls=VerbGroup)
def command() -> None:
    """Numbers in prose, and what they rest on."""


@command.command("audit")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--git", "git", is_flag=True, help="Commit messages too.")
@click.option(
    "--since", metavar="EXP", default=None, help="Of commits only those since EXP was opened."
)
@project_option
@json_option
def audit(
    files: tuple[Path, ...], git: bool, since: str | None, project: Path, as_json: bool
) -> None:
    """Name every claim in FILES (of a folder: its .md files) and whether it is recomputed, logged,
    contradicted or unsupported. Changes nothing; exit 1 when any is contradicted or unsupported."""
    if (not files and not git) or (since and not git):
        wrong = "--since is about commits" if files else "There is nothing to read"
        raise UsageError(
            f"{wrong}; expected FILES, --git, or both.",
            hint="E.g. `harness claims audit README.md`.",
        )
    with open_project(project, environment(), read_only=True) as opened:
        known = known_facts(opened)
        claims = [claim for path in _texts(files) for claim in _of_file(opened, path, known)]
        for commit, message in commit_messages(opened, since) if git else []:
            claims += judged(sentences(message), known, file=f"commit {commit}")
    wrong_ones = [claim for claim in claims if claim.kind not in HOLDS]
    emit(
        {"claims": [_plain(claim) for claim in claims]},
        as_json=as_json,
        text=lambda: _shown(claims, wrong_ones),
    )
    sys.exit(1 if wrong_ones else 0)


def _texts(files: tuple[Path, ...]) -> list[Path]:
    found: list[Path] = []
    for path in files:
        if not path.exists():
            raise NotFoundError(
                f"{path} is not there.", hint="Name files or folders with Markdown."
            )
        found += sorted(path.rglob("*.md")) if path.is_dir() else [path]
    return found


def _of_file(project: Project, path: Path, known: KnownFacts) -> list[JudgedClaim]:
    text = read_text(path)
    about = experiment_of_path(project.layout, path)
    found = judged(text_sentences(project, path, text), known, file=str(path))
    if about is not None and path.name == "result.md":
        claims = parse_result(text, where=path.name).claims
        found = front_matter_claims(text, claims, known, experiment=about, file=str(path)) + found
    return found


def _plain(claim: JudgedClaim) -> dict[str, Any]:
    return {
        "file": claim.file,
        "line": claim.line,
        "text": claim.text,
        "metric": claim.metric,
        "value": claim.value,
        "kind": claim.kind.value,
        "evidence": claim.evidence,
    }


def _shown(claims: list[JudgedClaim], wrong: list[JudgedClaim]) -> str:
    lines = [
        f"{item.file}:{item.line}: {item.metric} {item.value} is {item.kind}: {item.evidence}"
        for item in wrong
    ]
    return "\n".join(
        [
            *lines,
            f"{len(claims)} claims, {len(wrong)} of them without support",
            *([_NEXT] if wrong else []),
        ]
    )
