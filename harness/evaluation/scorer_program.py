"""The scoring program: labels and predictions in, numbers out; it never runs an agent's code.

Run as `python -I -S scorer_program.py JOB RESULT`, from a fresh folder that holds a verified copy
of it, so it is one self-contained file of the standard library. JOB is a JSON object:

    scorer       name of a built-in, or null for a frozen script
    script       path of the script, relative to the folder `frozen` beside this file, or null
    labels       one value a row: a class name (text) or a number
    ids          one text a row, in the order of labels; what a script sees as `id`
    predictions  {column: values}: `prediction`, or `p_<class>` for each class
    baseline     the trivial predictor's predictions in the same form, or null
    resamples    how many bootstrap resamples of a script's score to make
    seed         of those resamples
    groups       each row's group, or null: whole groups are resampled
    options      what the functions of a metric of the harness get by name
    tries        instead of predictions: a list of them, to try a script with

RESULT is `{"value", "rows", "baseline", "resampled"}`; a non-finite number is the text "NaN" or
"Infinity". `rows` are the contributions whose mean is the value, null where a metric has none
(f1, scripts). With `tries` it is `{"tries"}`: a number each, or what went wrong as `{"why"}`.

A script is a file with `def score(labels: list, predictions: list[dict]) -> float`; each prediction
is `{"id": text, "prediction": text or number}` or `{"id": text, "p_<class>": number, ...}`, in the
order of labels. It may import the standard library and the files frozen with it.
"""

import importlib.util
import json
import math
import random
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

Columns = dict[str, list[Any]]

FROZEN = Path(__file__).parent / "frozen"
"""Where the harness puts a script and its import closure, after it verified their hashes."""
METRIC = Path(__file__).parent / "metric.py"
"""Where it puts a copy of `harness/evaluation/metrics/<name>.py`."""


WHY = 300
"""Most characters of what went wrong in a try."""


RAISED: tuple[type[BaseException], ...] = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError, NameError, OSError),
    *(ImportError, RuntimeError, SyntaxError, SystemExit, TypeError, ValueError),
)
"""What a script raises on an answer that it does not know, beside errors of its own."""


def refusals() -> tuple[type[BaseException], ...]:
    """These, and the error classes that the script and the files frozen with it define."""
    names = {
        name
        for name, module in sys.modules.items()
        if str(getattr(module, "__file__", None) or "").startswith(f"{FROZEN}/")
    }
    defined = (value for name in names for value in vars(sys.modules[name]).values())
    own = (
        value
        for value in defined
        if isinstance(value, type) and issubclass(value, Exception) and value.__module__ in names
    )
    return (*RAISED, *own)


def mean(values: Sequence[float]) -> float:
    """The correctly rounded mean; infinity when the sum leaves the range of a float. Raises on no
    values."""
    try:
        return math.fsum(values) / len(values)
    except OverflowError:
        return math.inf


def load_file(path: Path) -> ModuleType:
    """The file as a module, outside any package."""
    spec = importlib.util.spec_from_file_location(f"scored_by_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path.name} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    spec.loader.exec_module(module)
    return module


def load_script(path: Path) -> Callable[[list[Any], list[dict[str, Any]]], float]:
    """The `score` function of a frozen script; its folder and `frozen` are on the import path."""
    for folder in (str(FROZEN), str(path.parent)):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    score = getattr(load_file(path), "score", None)
    if not callable(score):
        raise SystemExit(f"{path.name} has no function `score(labels, predictions)`")
    return score  # type: ignore[no-any-return]


def as_records(ids: list[str], columns: Columns) -> list[dict[str, Any]]:
    names = list(columns)
    return [
        {"id": identifier, **dict(zip(names, values, strict=True))}
        for identifier, *values in zip(ids, *columns.values(), strict=True)
    ]


def number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise SystemExit(
            f"score() returned {value!r} of type {type(value).__name__}; expected one float"
        )
    return float(value)


def plain(value: float | None) -> float | str | None:
    if value is None or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def own_words(error: BaseException) -> str:
    """What a script raised and where, in one line: the last of its own frames."""
    text = " ".join(str(error).split())
    what = f"{type(error).__name__}: {text}"[:WHY]
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename.startswith(f"{FROZEN}/")]
    if isinstance(error, SyntaxError) and str(error.filename).startswith(f"{FROZEN}/"):
        return f"{type(error).__name__}: {error.msg} ({_in(error.filename)}, line {error.lineno})"
    if not own:
        return text[:WHY] if isinstance(error, SystemExit) else what
    last = own[-1]
    return f"{what} ({_in(last.filename)}, line {last.lineno}, in {last.name}: {last.line})"


def _in(filename: str | None) -> str:
    return str(Path(str(filename)).relative_to(FROZEN))


def score_script(job: dict[str, Any]) -> dict[str, Any]:
    script = load_script(FROZEN / job["script"])
    labels, ids = job["labels"], job["ids"]
    records = as_records(ids, job["predictions"])
    value = number(script(list(labels), [dict(record) for record in records]))
    baseline = job["baseline"]
    resampled = []
    for chosen in resamples_of(job):
        resampled.append(
            number(script([labels[i] for i in chosen], [dict(records[i]) for i in chosen]))
        )
    return {
        "value": plain(value),
        "rows": None,
        "baseline": plain(number(script(list(labels), as_records(ids, baseline))))
        if baseline
        else None,
        "resampled": [plain(item) for item in resampled] or None,
    }


def try_script(job: dict[str, Any]) -> dict[str, Any]:
    script = load_script(FROZEN / job["script"])
    return {"tries": [tried(script, job, columns) for columns in job["tries"]]}


def tried(script: Callable[..., Any], job: dict[str, Any], columns: Columns) -> Any:
    try:
        return plain(number(script(list(job["labels"]), as_records(job["ids"], columns))))
    except refusals() as error:
        return {"why": own_words(error)}


def score_metric(job: dict[str, Any]) -> dict[str, Any]:
    """A metric of the harness: `rows`, whose mean is the score, or `score`."""
    metric = load_file(METRIC)
    labels, predictions, baseline = job["labels"], job["predictions"], job["baseline"]
    options = job["options"]
    if not hasattr(metric, "rows"):
        trivial = metric.score(labels, baseline, **options) if baseline else None
        return {
            "value": plain(metric.score(labels, predictions, **options)),
            "rows": None,
            "baseline": plain(trivial),
            "resampled": resampled_metric(metric, job) or None,
        }
    rows = metric.rows(labels, predictions, **options)
    trivial = mean(metric.rows(labels, baseline, **options)) if baseline else None
    return {
        "value": plain(mean(rows)),
        "rows": [plain(row) for row in rows],
        "baseline": plain(trivial),
        "resampled": None,
    }


def resampled_metric(metric: ModuleType, job: dict[str, Any]) -> list[float | str | None]:
    labels, columns = job["labels"], job["predictions"]
    scores = []
    for chosen in resamples_of(job):
        part = {name: [values[i] for i in chosen] for name, values in columns.items()}
        drawn = [labels[i] for i in chosen]
        scores.append(plain(metric.score(drawn, part, **job["options"])))
    return scores


def resamples_of(job: dict[str, Any]) -> Iterator[list[int]]:
    """Rows drawn with replacement, as many as there are; of groups, as many whole groups."""
    draw, units = random.Random(job["seed"]), dict[int, list[int]]()
    for row, group in enumerate(job["groups"] or range(len(job["labels"]))):
        units.setdefault(group, []).append(row)
    members = list(units.values())
    for _ in range(job["resamples"]):
        yield [row for unit in draw.choices(members, k=len(members)) for row in unit]


def in_own_words(
    work: Callable[[dict[str, Any]], dict[str, Any]], job: dict[str, Any]
) -> dict[str, Any]:
    """Ends the process with one line of the script's own when the script raises."""
    try:
        return work(job)
    except RAISED as error:
        raise SystemExit(own_words(error)) from None
    except refusals() as error:
        raise SystemExit(own_words(error)) from None


def main(arguments: list[str]) -> None:
    job_path, result_path = (Path(argument) for argument in arguments)
    job = json.loads(job_path.read_text("utf-8"))
    if job["script"]:
        result = in_own_words(try_script if "tries" in job else score_script, job)
    else:
        result = score_metric(job)
    result_path.write_text(json.dumps(result, allow_nan=False), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
