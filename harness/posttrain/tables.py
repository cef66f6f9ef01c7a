"""The tables of a training program, each read once: rows to train on, rows of the benchmark."""

from collections import Counter
from dataclasses import (
    dataclass,
    field,
)
from pathlib import Path
from typing import Any

from harness.domain.row_forms import (
    ANSWERS,
    ROLES,
    TEMPLATE_MARKS,
    flat,
    layout_of,
    one_form,
    strange_role,
)
from harness.errors import HarnessError
from harness.files import sha256_bytes
from harness.ledger.project import Project
from harness.posttrain.field_problems import FieldProblems
from harness.posttrain.untrusted_json import (
    parse_json_lines,
    read_json_lines,
    read_within,
)
from harness.posttrain.vocabulary import (
    PAIR,
    THRESHOLDS,
    Evaluator,
    RowTexts,
)
from harness.settings import granted

_SPOKEN = ("prompt", *ANSWERS)


@dataclass(frozen=True, kw_only=True)
class Form:
    """What a row may be."""

    texts: tuple[str, ...] = ()
    """Keys whose value is one message, as its text."""
    tools: bool = True
    """Whether a prompt may have tools."""
    reason: str = ""


ANY_FORM = Form()
ONE_TEXT = Form(
    texts=_SPOKEN,
    reason="a benchmark, and the trainer trl-grpo, take one question and one answer",
)
ROLLOUTS = Form(
    tools=False, reason="a rollout has the tools of the composition, and none of a row"
)


@dataclass(frozen=True, kw_only=True)
class Table:
    path: str = ""
    """Relative to the project, when it lies in it."""
    data: bytes = b""
    rows: list[dict[str, Any]] = field(default_factory=list)
    layouts: Counter[str] = field(default_factory=Counter)
    """Layout -> rows that have it."""

    def plain(self) -> dict[str, Any]:
        return {"path": self.path, "sha256": sha256_bytes(self.data), "rows": len(self.rows)}


def read_table(
    problems: FieldProblems,
    project: Project,
    name: str,
    path: str,
    texts: RowTexts,
    *,
    form: Form = ANY_FORM,
) -> Table:
    """The table at `path`, in the project or in a folder that config.toml declares. Without rows
    when it cannot be read. Prompts and answers are texts here, whatever layout the file has."""
    layout = project.layout
    root = layout.root.resolve()
    places = [root, *(place.resolve() for place in granted(project.settings))]
    named = root / path
    try:
        data = read_within(named, places)
        rows = parse_json_lines(data, path)
    except (HarnessError, OSError) as error:
        problems.add(name, "a file with one JSON object a line", path, str(error))
        return Table()
    real = named.resolve()
    if real.is_relative_to(layout.state.resolve()):  # it may lie below the project
        problems.add(name, "a file of the project", path, "it is the harness's own")
        return Table()
    layouts = Counter(layout_of(row) for row in rows)
    rows = [one_form(row) for row in rows]
    for number, row in enumerate(rows, 1):
        if fault := _row_fault(row, texts) or _form_fault(row, form):
            problems.add(f"{name} row {number}", *fault)
            break
    rows = [_texts(row) for row in rows]
    shown = real.relative_to(root).as_posix() if real.is_relative_to(root) else str(real)
    return Table(path=shown, data=data, rows=rows, layouts=layouts)


def texts_of(path: Path) -> list[dict[str, Any]]:
    """The rows of a file, prompts and answers as texts, whatever layout they have. Raises
    UsageError."""
    return [_texts(one_form(row)) for row in read_json_lines(path)[1]]


def _texts(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, **{key: flat(row[key]) for key in _SPOKEN if key in row}}


def benchmark_of(problems: FieldProblems, project: Project, path: str, evaluator: Any) -> Table:
    """As `read_table`: rows that the evaluator can score one by one, and enough for a verdict."""
    texts: RowTexts = (("id",), ("prompt",))
    if isinstance(evaluator, str) and evaluator in tuple(Evaluator):
        texts = Evaluator(evaluator).row_texts
    table = read_table(problems, project, "benchmark", path, texts, form=ONE_TEXT)
    # A row that lacks a text is the row's fault; where all do, the evaluator is not the one meant.
    if all(_row_fault(row, texts) for row in table.rows) and (others := _scored_by(table)):
        reason = "these rows hold what it asks for"
        problems.add("benchmark.evaluator", " or ".join(others), evaluator, reason)
    counts = Counter(str(row.get("id")) for row in table.rows)
    if repeated := sorted(name for name, count in counts.items() if count > 1):
        problems.add(
            "benchmark", "an id of its own for each row", repeated[0], "it is there twice"
        )
    if table.rows and len(table.rows) < THRESHOLDS.rows:
        reason = "too few for any verdict but INCONCLUSIVE"
        problems.add("benchmark", f"at least {THRESHOLDS.rows} rows", len(table.rows), reason)
    return table


def _scored_by(table: Table) -> list[str]:
    """The evaluators of the package whose texts all rows have."""
    return [
        evaluator.value
        for evaluator in Evaluator
        if table.rows and not any(_row_fault(row, evaluator.row_texts) for row in table.rows)
    ]


def _row_fault(row: dict[str, Any], texts: RowTexts) -> tuple[str, Any, str] | None:
    """(expected, actual, reason)."""
    missing = [keys for keys in texts if not any(flat(row.get(key)).strip() for key in keys)]
    if missing:
        expected = f"text in {', '.join(map(' or '.join, missing))}"
        return expected, row.get(missing[0][0]), "missing"
    if texts[-3:] == PAIR and row["chosen"] == row["rejected"]:
        return "chosen that differs from rejected", row["chosen"], "equal"
    return None


def _form_fault(row: dict[str, Any], form: Form) -> tuple[str, Any, str] | None:
    prompt = row.get("prompt")
    for name in (*_SPOKEN, "messages"):
        if (role := strange_role(row.get(name))) is not None:
            return (
                f"messages of {', '.join(ROLES)} in {name}",
                role,
                "no chat template has that role",
            )
    lists = [name for name in form.texts if name in row and not isinstance(row[name], str)]
    if lists:
        return f"one text as {lists[0]}", "several messages", form.reason
    if isinstance(prompt, dict) and not form.tools:
        return "a prompt without tools", "tools", form.reason
    if mark := TEMPLATE_MARKS.search(flat(prompt)):
        reason = f"it holds {mark[0]!r}: the trainer applies the model's chat template itself"
        return "a prompt without a chat template", flat(prompt)[:80], reason
    return None
