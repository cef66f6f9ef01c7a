"""`harness claims audit`: check every number that a text claims against recorded evidence."""

import sys
from pathlib import Path
from typing import Any

import click

from harness.artifacts.content import read_text
from harness.artifacts.experiment_files import parse_result
from harness.claims.judge import JudgedClaim, front_matter_claims, judged
from harness.claims.known_facts import HOLDS, KnownFacts
from harness.claims.sentences import sentences
from harness.cli.output import CommandGroup, emit, json_option, project_option
from harness.cli.reading import reading
from harness.errors import NotFoundError, UsageError
from harness.gates.claim_facts import (
    commit_messages,
    experiment_of_path,
    known_facts,
    text_sentences,
)
from harness.ledger.project import Project

_NEXT = (
    "Correct the number, or name the evidence that supports it (docs/claims.md). A sentence without"
    " a number claims nothing."
)


@click.group("claims", cls=CommandGroup)
def command() -> None:
    """Check the numbers in texts against evidence."""


@command.command("audit")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--git", "git", is_flag=True, help="Also read commit messages.")
@click.option(
    "--since", metavar="EXP", default=None, help="With --git: only commits since EXP was opened."
)
@project_option
@json_option
def audit(
    files: tuple[Path, ...], git: bool, since: str | None, project: Path, as_json: bool
) -> None:
    """Check every claim in FILES: recomputed, logged, contradicted or unsupported.

    Of a folder, its .md files are read. Changes nothing. Exit 1 when a claim is contradicted or
    unsupported.
    """
    if (not files and not git) or (since and not git):
        problem = "--since needs --git" if files else "There is nothing to read"
        raise UsageError(
            f"{problem}; expected FILES, --git, or both.",
            hint="E.g. `harness claims audit README.md`.",
        )
    with reading(project) as opened:
        known = known_facts(opened)
        claims = [claim for path in _texts(files) for claim in _of_file(opened, path, known)]
        for commit, message in commit_messages(opened, since) if git else []:
            claims += judged(sentences(message), known, file=f"commit {commit}")
    unsupported = [claim for claim in claims if claim.kind not in HOLDS]
    emit(
        {"claims": [_plain(claim) for claim in claims]},
        *_lines(claims, unsupported),
        as_json=as_json,
    )
    sys.exit(1 if unsupported else 0)


def _texts(files: tuple[Path, ...]) -> list[Path]:
    paths: list[Path] = []
    for path in files:
        if not path.exists():
            raise NotFoundError(
                f"{path} does not exist.", hint="Name Markdown files, or folders of them."
            )
        paths += sorted(path.rglob("*.md")) if path.is_dir() else [path]
    return paths


def _of_file(project: Project, path: Path, known: KnownFacts) -> list[JudgedClaim]:
    text = read_text(path)
    about = experiment_of_path(project.layout, path)
    body = judged(text_sentences(project, path, text), known, file=str(path))
    if about is not None and path.name == "result.md":
        claims = parse_result(text, where=path.name).claims
        front = front_matter_claims(text, claims, known, experiment=about, file=str(path))
        return front + body
    return body


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


def _lines(claims: list[JudgedClaim], unsupported: list[JudgedClaim]) -> list[str]:
    lines = [
        f"{claim.file}:{claim.line}: {claim.metric} {claim.value} is {claim.kind}: {claim.evidence}"
        for claim in unsupported
    ]
    lines.append(f"{len(claims)} claims, {len(unsupported)} of them not supported")
    return [*lines, _NEXT] if unsupported else lines
