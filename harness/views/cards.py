"""Cards in the form of Hugging Face: README.md of a kept model, and of the plan's data. Every
number has its level; what nobody recorded, e.g. a licence, is said to be unknown."""

from collections.abc import Iterator, Mapping
from typing import Any

import yaml  # type: ignore[import-untyped]

from harness.artifacts.objects import load_object
from harness.domain.plain_text import code, in_quotes, inline
from harness.domain.records import Experiment, Run
from harness.domain.statuses import ExperimentStatus, Split, spoken
from harness.errors import HarnessError, RefusedError
from harness.evaluation.scores import counted_runs
from harness.ledger.facts import ApprovedPlan
from harness.ledger.project import Project
from harness.plans.approved import data_hashes, data_told, plan_of
from harness.views.report import again, report
from harness.views.tables import score_text

_CONFIG = 6000
"""Characters of a configuration that a card shows."""
_UNKNOWN = "unknown: nobody recorded it"


def model_card(project: Project, experiment: str) -> str:
    """Raises NotFoundError, RefusedError (not_kept)."""
    record = project.ledger.experiment(experiment)
    if record.status is not ExperimentStatus.KEPT:
        raise RefusedError(
            f"{experiment} is {record.status}; expected a kept one: a card says what was kept.",
            hint="`harness report` names those that are kept.",
            code="not_kept",
        )
    approved = plan_of(project, record)
    row = report(project, [experiment])["experiments"][0]
    runs = counted_runs(project.ledger.runs(experiment))
    parts = [
        f"# {inline(approved.name, 80)}: {experiment}",
        inline(in_quotes(record.hypothesis)),
        "## Evaluation",
        *_scores(row),
        "## Training",
        *_training(project, approved, runs),
        "## Intended use and limits",
        *_limits(approved, row),
        "## How to check it",
        f"`harness experiment show {experiment}` and `harness ledger verify` in the project;"
        f" `harness reproduce {experiment}` trains it again.",
    ]
    return _front(_model_data(project, approved, record, row)) + "\n\n".join(parts) + "\n"


def _front(data: Mapping[str, Any]) -> str:
    text = yaml.safe_dump(dict(data), sort_keys=False, allow_unicode=True)
    return f"---\n{text}---\n\n"


def _model_data(
    project: Project, approved: ApprovedPlan, record: Experiment, row: Mapping[str, Any]
) -> dict[str, Any]:
    workflow = str(approved.content["workflow"])
    results = [
        {
            "task": {"type": workflow},
            "dataset": {"name": approved.name, "type": approved.name, "split": split.value},
            "metrics": [
                {
                    "type": row[split.value]["metric"],
                    "value": row[split.value]["score"],
                    "name": f"{row[split.value]['metric']}, {row[split.value]['evidence']}",
                }
            ],
        }
        for split in (Split.VALIDATION, Split.HELD_OUT)
        if row[split.value]["score"] is not None
    ]
    data: dict[str, Any] = {"tags": ["experiment-harness", workflow]}
    if results:
        name = f"{approved.name}-{record.id}"
        data["model-index"] = [{"name": name, "results": results}]
    return data


def _scores(row: Mapping[str, Any]) -> Iterator[str]:
    lines = [
        f"- {inline(row[split]['metric'], 60)} on {spoken(Split(split))}: {score_text(row[split])}"
        for split in ("validation", "held_out")
        if row[split]["metric"]
    ]
    if row["compared"]:
        lines.append(f"- against {row['against']}: {inline(row['compared'])} (recomputed)")
    decided = row["decision"]
    if decided:
        by, why = inline(decided["by"], 80), inline(in_quotes(decided["reason"]))
        lines.append(f"- {decided['kind']} by {by} ({decided['id']}): {why}")
    lines += [f"- {again(made)} (recomputed)" for made in row["reproductions"]]
    yield "\n".join(lines)


def _training(project: Project, approved: ApprovedPlan, runs: list[Run]) -> Iterator[str]:
    lines = [f"- data: {inline(data_told(approved))}"]
    for run in runs:
        took = "time unknown" if run.seconds is None else f"{run.seconds:.0f} s (measured)"
        lines.append(
            f"- {run.id}: seed {run.seed}, {took}, code {code(run.code[:12])},"
            f" {code(' '.join(run.argv))}"
        )
    yield "\n".join(lines)
    config = _config(project, runs[-1]) if runs else ""
    if config:
        # Indented: no text of a configuration ends a block of this form.
        yield "\n".join(f"    {line}" for line in config.splitlines())


def _config(project: Project, run: Run) -> str:
    if run.config is None:
        return ""
    try:
        return load_object(project.layout.objects, run.config).decode("utf-8", "replace")[:_CONFIG]
    except HarnessError:
        return ""


def _limits(approved: ApprovedPlan, row: Mapping[str, Any]) -> Iterator[str]:
    lines = [
        f"- made for: {inline(in_quotes(approved.content['objective'], 600))}",
        f"- licence: {_UNKNOWN}",
        "- shown on the rows of this plan only; nothing is said of other data",
    ]
    for split in ("validation", "held_out"):
        _, _, lacks = str(row[split]["evidence"] or "").partition(", ")
        if lacks:
            lines.append(f"- {spoken(Split(split))}: {inline(lacks)}")
    lines += [f"- {one['code']}: {inline(one['message'])}" for one in row["findings"]]
    yield "\n".join(lines)


def dataset_card(project: Project) -> str:
    """Of the data of the plan in force. Raises RefusedError (no_plan)."""
    approved = project.plan()
    hashes = data_hashes(approved)
    splits = {name: one for name, one in approved.splits.items() if "rows" in one}
    lines = [
        f"- {spoken_name(name)}: {one['rows']:,} rows (measured), SHA-256"
        f" {code(hashes.get(name, one.get('sha256', ''))[:16])}{_hidden(one)}"
        for name, one in splits.items()
    ]
    held: Mapping[str, Any] = next((one for one in splits.values() if one.get("label")), {})
    parts = [
        f"# Data of {inline(approved.name, 80)}",
        inline(in_quotes(approved.content["objective"], 600)),
        "## Splits",
        "\n".join(lines),
        "## Columns",
        "\n".join(
            f"- {what}: {code(_named(held[what]))}"
            for what in ("inputs", "label", "id", "group")
            if held.get(what)
        )
        or _UNKNOWN,
        "## How it is used",
        f"Scored by {inline(str(approved.content['oracle']['metric']), 80)}. Held-out rows lie in"
        " the vault of the project, and their labels entered no process that ran an agent's code."
        f" Approved by {inline(approved.by, 80)} on {approved.at[:10]}, version"
        f" {approved.version}.",
        "## Source and licence",
        _UNKNOWN,
    ]
    examples = [{"name": name, "num_examples": one["rows"]} for name, one in splits.items()]
    front = {
        "pretty_name": approved.name,
        "tags": ["experiment-harness", str(approved.content["workflow"])],
        "dataset_info": {"splits": examples},
    }
    return _front(front) + "\n\n".join(parts) + "\n"


def spoken_name(split: str) -> str:
    return split.replace("_", "-")


def _hidden(split: Mapping[str, Any]) -> str:
    return ", labels hidden from the project" if split.get("hidden") else ""


def _named(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
