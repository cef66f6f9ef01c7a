"""`harness report`: the plan's experiments and their results for people: a page of Markdown, HTML
or PDF with figures, a card in the form of Hugging Face."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from harness.artifacts.content import read_text
from harness.claims.judge import judged, unread
from harness.claims.known_facts import HOLDS
from harness.claims.sentences import sentences
from harness.cli.chosen import require_id
from harness.cli.output import (
    NewFile,
    emit,
    environment,
    json_option,
    project_option,
    tell,
    write_new,
)
from harness.cli.person import require_person
from harness.cli.reading import reading
from harness.domain.plain_text import inline, plain, prose
from harness.domain.statuses import Evidence
from harness.errors import RefusedError, UsageError
from harness.gates.claim_facts import known_facts
from harness.ledger.project import Project
from harness.runs.train_job import counts_as_code
from harness.views.cards import dataset_card, model_card
from harness.views.report import page, report, series
from harness.views.report_blocks import analyst, blocks
from harness.views.report_html import html
from harness.views.report_pdf import pdf

_FIGURES = (".html", ".htm", ".pdf")
_PAGES = (".md", ".markdown", ".txt", "")
_CODE = (
    "{out} lies in the project and counts as its code: the next `harness try` would train again."
    " Move it below .harness/, outside of the project, or into .gitignore."
)


@click.command("report")
@click.argument("experiments", nargs=-1, metavar="[EXP...]")
@click.option(
    "--out",
    type=NewFile(),
    default=None,
    metavar="FILE",
    help="Write it to FILE: .html or .pdf with figures, else Markdown. Must be run by a person.",
)
@click.option(
    "--prose",
    type=click.Path(dir_okay=False, path_type=Path),
    default=None,
    metavar="FILE",
    help="Add an analyst's words; refused while the claims audit finds a claim without support.",
)
@click.option(
    "--card",
    type=click.Choice(["model", "dataset"]),
    default=None,
    help="A card in the form of Hugging Face instead: of one kept EXP, or of the plan's data.",
)
@project_option
@json_option
def command(
    experiments: Sequence[str],
    out: Path | None,
    prose: Path | None,
    card: str | None,
    project: Path,
    as_json: bool,
) -> None:
    """Show the plan in force, what is kept, every experiment (or EXP...) with validation and
    held-out, what was not isolated, looks and budget."""
    for name in experiments:
        _require_experiment(name)
    if card is not None and (prose is not None or len(experiments) != (card == "model")):
        wanted = "exactly one EXP" if card == "model" else "no EXP"
        raise UsageError(
            f"--card {card} takes {wanted} and no --prose.",
            hint="`harness report EXP --card model`, or `harness report --card dataset`.",
        )
    if out is not None:
        require_person("report --out", environment(), needs_terminal=False)
        _require_form(out, card)
    with reading(project) as opened:
        if card is not None:
            text = model_card(opened, experiments[0]) if card == "model" else dataset_card(opened)
            document: dict[str, Any] = {"card": text}
            made = text.encode()
        else:
            document = report(opened, experiments)
            words = None if prose is None else _checked(opened, prose)
            text, made = _made(opened, document, words, out)
        if out is not None:
            write_new(out, made)
        as_code = out is not None and counts_as_code(opened, out)
    if out is None:
        emit(document, text, as_json=as_json)
        return
    if as_code:
        tell(_CODE.format(out=out))
    emit({**document, "written": str(out)}, f"wrote {out}", as_json=as_json)


def _require_form(out: Path, card: str | None) -> None:
    forms = _PAGES if card else (*_PAGES, *_FIGURES)
    if out.suffix.lower() not in forms:
        what = "a card" if card else "a report"
        raise UsageError(
            f"--out is {str(out)!r}; expected a name for {what} that ends with"
            f" {', '.join(filter(None, forms))} or nothing.",
            hint=f"E.g. `--out {out.with_suffix('.md')}`.",
        )


def _require_experiment(name: str) -> None:
    if re.fullmatch(r"\S+\.\w+", name):
        raise UsageError(
            f"`harness report` takes ids of experiments, and {name!r} is a file.",
            hint=f"You may mean `harness report --out {name}`.",
        )
    require_id(name, "harness report")


def _made(
    project: Project,
    document: dict[str, Any],
    words: tuple[str, list[dict[str, Any]]] | None,
    out: Path | None,
) -> tuple[str, bytes]:
    """(the page for a terminal, the file's bytes)."""
    text = page(document)
    if words is not None:
        document["claims"] = words[1]
        text += "\n" + _as_markdown(*words)
    suffix = "" if out is None else out.suffix.lower()
    if suffix not in _FIGURES:
        return text, text.encode()
    shown = {**document, "series": series(project, document)}
    parts = list(blocks(shown, analyst(*words) if words else ()))
    title = f"Report: {document['plan']['name']}"
    if suffix == ".pdf":
        return text, pdf(title, parts, project.clock.now())
    return text, html(title, parts).encode()


def _checked(project: Project, path: Path) -> tuple[str, list[dict[str, Any]]]:
    """(the words, their claims with what each is worth). Raises RefusedError (prose_unsupported)
    when one is contradicted or unsupported."""
    text = read_text(path)
    known, read = known_facts(project), sentences(_all_shown(text), report=True, quotes=True)
    claims = judged(read, known, file=str(path))
    bad = [one for one in claims if one.kind not in HOLDS]
    if bad:
        told = "; ".join(
            f"line {one.line}: {one.metric} {one.value} is {one.kind} ({one.evidence})"
            for one in bad[:5]
        )
        raise RefusedError(
            f"{path} has claims that do not hold, {len(bad)} in all: {told}.",
            hint="Correct them; code, quotations and comments are read, too. Nothing was written.",
            code="prose_unsupported",
        )
    return text, [
        {
            "text": one.text,
            "metric": one.metric,
            "value": one.value,
            "kind": one.kind.value,
            "evidence": one.evidence,
        }
        for one in claims
    ] + [
        {
            "text": " ".join(sentence.text.split())[:300],
            "metric": "other number",
            "value": value,
            "kind": Evidence.CLAIMED.value,
            "evidence": "not checked",
        }
        for sentence, value in unread(read, known)
    ]


def _all_shown(text: str) -> str:
    """`text` with nothing that the audit passes over: a report shows comments, code and front
    matter as they stand."""
    shown = re.sub(r"`|<!--|-->|[<>]", " ", plain(text))
    return re.sub(r"\A\s*---(?=\n)", "***", shown)


def _as_markdown(text: str, claims: Sequence[dict[str, Any]]) -> str:
    lines = ["## In an analyst's words", "", *prose(text), ""]
    lines += [
        f"- {inline(one['metric'], 60)} {one['value']}: {one['kind']},"
        f" {inline(one['evidence'], 200)}"
        for one in claims
    ]
    return "\n".join(lines).rstrip() + "\n"
