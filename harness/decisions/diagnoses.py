"""diagnosis.md and methods.md as agents record them; both add candidates to next.md."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.artifacts.content import read_text
from harness.artifacts.experiment_files import (
    DiagnosedAlarm,
    Diagnosis,
    RunDiagnosis,
    read_diagnosis,
    render_diagnosis,
)
from harness.artifacts.front_matter import read_yaml
from harness.artifacts.metrics_file import Row, belonging, rows_in
from harness.artifacts.next_ideas import CONFIDENCE, LONGEST, Idea, with_ideas
from harness.decisions.experiments import require_open, write_file
from harness.detectors.kinds import KINDS
from harness.domain.plain_text import inline, one_line, plain, prose
from harness.domain.records import Run
from harness.errors import HarnessError, NotFoundError, UsageError
from harness.gates.alarms import open_by_run, unanswered
from harness.ledger.project import Project

_SHOWN_ROWS = 20
_SHOWN_METRICS = 6


def record_diagnosis(
    project: Project,
    experiment: str,
    *,
    run: str,
    what_happened: str,
    mechanism: str,
    alarms: Sequence[Mapping[str, Any]],
    candidates: Sequence[Mapping[str, Any]],
    by: str,
) -> Path:
    """Write or replace the part of diagnosis.md about `run`, with the rows that `alarms` names, and
    add `candidates` to next.md.

    An entry of `alarms` may name another `run` of the experiment: the same cause explains it, in a
    part of its own, unless it has one. Raises NotFoundError for an unknown run, RefusedError for a
    decided experiment, UsageError for rows that the run does not have, an open alarm that is not
    named, or no candidate.
    """
    require_open(project, experiment, "diagnosis")
    registered = project.ledger.run(experiment, run)
    path = project.layout.experiment(experiment, "diagnosis")
    before = _standing(path)
    said = _section("what_happened", what_happened), _section("mechanism", mechanism)
    parts, named = [], []
    for name, entries in _by_run(run, alarms).items():
        if name != run and name in {part.run for part in before.runs}:
            continue
        about = registered if name == run else project.ledger.run(experiment, name)
        as_first = f"As {run}."
        texts = said if name == run else (as_first, as_first)
        part, answered = _part(project, about, entries, texts)
        parts.append(part)
        named += answered
    diagnosis = _merged(experiment, before, parts, named)
    _require_answered(project, registered, diagnosis)
    new = [_candidate(entry, "change") for entry in candidates]
    if not new:
        raise UsageError(
            "There is no candidate.",
            hint="Name what to change, as a hypothesis that a run can refute.",
        )
    # next.md first: after a kill in between the agent asks again, and no idea is added twice.
    _add_ideas(project, experiment, f"After the diagnosis of {run}", new)
    write_file(project, path, render_diagnosis(diagnosis, by=by))
    return path


def _by_run(run: str, alarms: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Run id -> its entries; `run` first, which is that of an entry that names none."""
    entries: dict[str, list[Mapping[str, Any]]] = {run: []}
    for entry in alarms:
        entries.setdefault(str(entry.get("run") or run), []).append(entry)
    return entries


def _part(
    project: Project, run: Run, entries: Sequence[Mapping[str, Any]], texts: tuple[str, str]
) -> tuple[RunDiagnosis, list[DiagnosedAlarm]]:
    shown = sorted({number for entry in entries for number in _numbers(entry)})
    count, rows = _own_rows(project, run, shown[:_SHOWN_ROWS])
    named = [_named(project, run, entry, count) for entry in entries]
    what, mechanism = texts
    evidence = _quoted(rows, len(shown))
    part = RunDiagnosis(run=run.id, what_happened=what, mechanism=mechanism, evidence=evidence)
    return part, named


def _require_answered(project: Project, run: Run, diagnosis: Diagnosis) -> None:
    """Raises UsageError for the first open alarm of `run` that `diagnosis` does not explain."""
    raised = {
        name: alarms
        for name, alarms in open_by_run(project, run.experiment).items()
        if name == run.id
    }
    rows, _ = _own_rows(project, run, ())
    for _, alarm, why in unanswered(diagnosis, raised, {run.id: rows}):
        raise UsageError(
            f"{run.experiment}/{run.id} raised {alarm.code} at row {alarm.row}, and {why}.",
            hint=(
                f"Name it among the alarms, with rows that show it, e.g. {{code: {alarm.code},"
                f" rows: [{alarm.row}]}}."
            ),
            code="alarm_undiagnosed",
        )


def record_methods(
    project: Project, experiment: str, *, methods: Sequence[Mapping[str, Any]], by: str
) -> Path:
    """Write methods.md, published methods that answer the diagnosis, and add them to next.md.

    Raises RefusedError for a decided experiment and UsageError for a method without source or
    hypothesis.
    """
    require_open(project, experiment, "list of methods")
    if not methods:
        raise UsageError(
            "There is no method.",
            hint="Name at least one, or end your turn and say what is missing.",
        )
    new = [_candidate(method, "hypothesis") for method in methods]
    lines = [
        f"# Methods for {experiment}",
        "",
        f"Found by {inline(by)}; what they promise is their source's claim.",
        "",
    ]
    for method in methods:
        name, source, track = (_said(key, method.get(key)) for key in ("name", "source", "track"))
        lines += [
            f"## {inline(name, LONGEST)}",
            "",
            f"- track: {inline(track, LONGEST)}",
            f"- source: {inline(source, LONGEST)}",
            f"- try: {inline(str(method['hypothesis']), LONGEST)}",
            f"- conditions: {inline(str(method.get('conditions')), LONGEST)}",
            "",
        ]
    _add_ideas(project, experiment, "From published methods", new)
    path = project.layout.experiment(experiment, "methods")
    write_file(project, path, "\n".join(lines))
    return path


def model_name(project: Project, experiment: str) -> str:
    """config.yaml's name of the model, else the plan's: lower case letters, digits and dashes."""
    try:
        data = read_yaml(
            read_text(project.layout.experiment(experiment, "config")), where="config.yaml"
        ).data
    except HarnessError:
        data = {}
    model = data.get("model")
    if isinstance(model, dict):
        model = next(
            (model[key] for key in ("kind", "name", "type") if isinstance(model.get(key), str)),
            None,
        )
    name = (
        model
        if isinstance(model, str) and model.strip()
        else project.ledger.experiment(experiment).plan
    )
    kept = "".join(
        letter if letter.isascii() and letter.isalnum() else "-" for letter in name.lower()
    )
    return "-".join(filter(None, kept.split("-")))[:30].strip("-") or "model"


def _numbers(entry: Mapping[str, Any]) -> list[int]:
    rows = entry.get("rows")
    return [row for row in rows if type(row) is int] if isinstance(rows, list) else []


def _own_rows(project: Project, run: Run, wanted: Sequence[int]) -> tuple[int, dict[int, Row]]:
    """How many rows the run has, and those with the wanted numbers, which count from 1."""
    path = project.layout.run(run.experiment, run.id, "metrics")
    name, count = f"{run.experiment}/{run.id}", 0
    found = {}
    for row in belonging(rows_in(path), run=name, token_sha256=run.token):
        count += 1
        if count in wanted:
            found[count] = row
    return count, found


def _named(project: Project, run: Run, entry: Mapping[str, Any], count: int) -> DiagnosedAlarm:
    code, rows = entry.get("code"), entry.get("rows")
    raised = {
        alarm.alarm["code"]: alarm.alarm["metric"]
        for alarm in project.ledger.alarms(run.experiment, run.id)
    }
    if code not in raised:
        raise UsageError(
            f"{run.experiment}/{run.id} raised no alarm {code!r}; it raised"
            f" {', '.join(sorted(raised)) or 'none'}.",
            hint="Name those that the run raised.",
        )
    if (
        not isinstance(rows, list)
        or not rows
        or not all(type(row) is int and 0 < row <= count for row in rows)
    ):
        raise UsageError(
            f"The rows of {code} are {rows!r:.80}; expected row numbers from 1 to {count}, those"
            " that show it.",
            hint=(
                "Count the run's own lines in metrics.jsonl from 1; the alarm's evidence names"
                " rows."
            ),
        )
    return DiagnosedAlarm(run=run.id, code=str(code), metric=raised[code], rows=tuple(rows))


def _standing(path: Path) -> Diagnosis:
    """Empty where there is none that can be read."""
    try:
        return read_diagnosis(path)
    except (NotFoundError, UsageError):
        return Diagnosis(experiment="", alarms=(), runs=())


def _merged(
    experiment: str,
    before: Diagnosis,
    parts: Sequence[RunDiagnosis],
    named: Sequence[DiagnosedAlarm],
) -> Diagnosis:
    new = {part.run for part in parts}
    runs = [one for one in before.runs if one.run not in new]
    alarms = [one for one in before.alarms if one.run not in new]
    return Diagnosis(
        experiment=experiment,
        alarms=(*alarms, *named),
        runs=tuple(sorted([*runs, *parts], key=lambda one: one.run)),
    )


def _quoted(rows: Mapping[int, Row], named: int) -> str:
    """One line a row, as it was logged; `named`: how many there are in all."""
    lines = []
    for number, row in rows.items():
        metrics = row.get("metrics")
        shown = list(metrics.items())[:_SHOWN_METRICS] if isinstance(metrics, dict) else []
        values = ", ".join(f"{inline(str(key), LONGEST)} {value}" for key, value in shown)
        values = values or inline(str(row.get("event")), LONGEST)
        lines.append(f"- row {number}, epoch {row.get('epoch', '-')}: {values}")
    more = named - _SHOWN_ROWS
    return "\n".join([*lines, *([f"- and {more} more rows"] if more > 0 else [])]) or "- no row"


def _candidate(entry: Mapping[str, Any], key: str) -> Idea:
    code, confidence = entry.get("alarm"), entry.get("confidence")
    if code not in KINDS or confidence not in CONFIDENCE:
        raise UsageError(
            f"A candidate says alarm {code!r:.40} and confidence {confidence!r:.40}.",
            hint=f"Name the code of the alarm that it answers, and one of {', '.join(CONFIDENCE)}.",
        )
    return Idea(
        text=one_line(_said(key, entry.get(key)), LONGEST),
        answers=str(code),
        confidence=str(confidence),
    )


def _add_ideas(project: Project, experiment: str, title: str, added: Sequence[Idea]) -> None:
    path = project.layout.experiment(experiment, "next")
    try:
        before = read_text(path)
    except HarnessError:
        before = ""
    after = with_ideas(before, title, added)
    if after != before:
        write_file(project, path, after)


def _said(name: str, value: object) -> str:
    text = plain(value).strip() if isinstance(value, str) else ""
    if not text:
        raise UsageError(f"{name} is {value!r:.60}; expected text.", hint=f"Say {name} in words.")
    return text


def _section(name: str, value: object) -> str:
    # The sections of the file are found by their headings: the text has none of its own.
    return "\n".join(prose(_said(name, value))).strip()
