"""A predictions file that hostile code wrote: read, and turned into columns for the scorer.

Nothing in it is executed, followed or trusted for its size; csv or npz, by its first bytes. What is
no file of predictions raises Unscorable; predictions that cannot be scored are findings.
"""

import csv
import io
import math
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.artifacts.npz import Array, BadFileError, hostile, read_npz
from harness.domain.findings import Finding
from harness.domain.metrics import Needs
from harness.evaluation import problems
from harness.evaluation.problems import Unscorable
from harness.evaluation.scorer_program import Columns
from harness.plans.labels import as_number, class_name
from harness.plans.prediction_form import form_of

NAME = "predictions.csv"
"""What HARNESS_PREDICTIONS points to; np.savez appends .npz to it."""
_NAMES = (NAME, f"{NAME}.npz")
_MOST_COLUMNS = 10_000
RawColumns = dict[str, list[Any]]
SUM_TOLERANCE = 1e-3
"""How far from 1 a row's probabilities may sum: what four decimals lose over ten classes. The
scorer divides by the sum."""
RELATIVE = 1e-5
_OF_TYPICAL = 1e-6
"""Absolute tolerance of two predictions, as a share of their root mean square: near 0 the relative
one alone would refuse rounding."""


def read_predictions(folder: Path, *, rows: int, limit: int) -> RawColumns:
    """The columns that predict wrote into `folder`, as Python values, in the file's order.

    Args:
        rows: how many are expected; a file with over twice as many is not read on.
        limit: most bytes, both of the file and of what it unpacks to.
    """
    data = _read_bytes(folder, limit)
    if not data.strip():
        raise Unscorable(problems.nothing_written("left an empty file at HARNESS_PREDICTIONS"))
    most = 2 * rows + 100
    try:
        with hostile("cannot be read", Unscorable):
            packed = data.startswith(b"PK")
            columns = _parse_npz(data, most, limit) if packed else _parse_csv(data, most)
    except BadFileError as error:
        raise Unscorable(problems.unreadable(f"it {error.what}")) from error
    if "id" not in columns:
        raise Unscorable(
            problems.wrong_columns(
                list(columns), "`id` and `prediction`, `score` or `p_<class>`, as the metric needs"
            )
        )
    return columns


def _read_bytes(folder: Path, limit: int) -> bytes:
    # Relative to the opened folder, so that no link on the way is followed; O_NONBLOCK, so that a
    # pipe without a writer does not block.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        directory = os.open(folder, os.O_DIRECTORY | flags)
    except OSError as error:
        raise Unscorable(
            problems.unreadable(f"its folder was replaced ({error.strerror})")
        ) from error
    try:
        present = [name for name in _NAMES if _exists(name, directory)]
        if not present:
            raise Unscorable(problems.nothing_written("wrote nothing to HARNESS_PREDICTIONS"))
        if len(present) > 1:
            raise Unscorable(problems.unreadable(f"there are two, {' and '.join(present)}"))
        descriptor = os.open(present[0], flags, dir_fd=directory)
    except OSError as error:
        raise Unscorable(
            problems.unreadable(f"it is a link or cannot be opened ({error.strerror})")
        ) from error
    finally:
        os.close(directory)
    # Of the open file, not of its name. A second name could be a hard link to a file elsewhere.
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
        os.close(descriptor)
        raise Unscorable(problems.unreadable("it is not a regular file with one name"))
    with os.fdopen(descriptor, "rb") as stream:
        if status.st_size > limit:
            raise Unscorable(problems.too_large(status.st_size, limit))
        return stream.read(limit)


def _exists(name: str, directory: int) -> bool:
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _parse_csv(data: bytes, most: int) -> RawColumns:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unscorable(
            problems.unreadable(f"it is neither npz nor UTF-8 text (byte {error.start})")
        ) from error
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [name.strip() for name in next(reader)]
        _check_header(header)
        columns: RawColumns = {name: [] for name in header}
        kept = list(columns.values())
        for row in reader:
            if not row:
                continue
            if len(row) != len(header):
                why = f"line {reader.line_num} has {len(row)} fields, the header {len(header)}"
                raise Unscorable(problems.unreadable(why))
            for values, field in zip(kept, row, strict=True):
                values.append(field)
            if len(kept[0]) > most:
                raise Unscorable(
                    problems.unreadable(f"it has over {most:,} rows, twice what was asked for")
                )
    except (csv.Error, StopIteration) as error:
        raise Unscorable(
            problems.unreadable(f"line {reader.line_num} is not csv ({error})")
        ) from error
    return columns


def _check_header(header: list[str]) -> None:
    if len(header) > _MOST_COLUMNS:
        raise Unscorable(problems.unreadable(f"it has {len(header):,} columns"))
    if len(set(header)) != len(header):
        twice = sorted({name for name in header if header.count(name) > 1})
        raise Unscorable(
            problems.unreadable(f"it has columns of the same name: {problems.examples(twice)}")
        )


def _parse_npz(data: bytes, most: int, limit: int) -> RawColumns:
    try:
        arrays = read_npz(io.BytesIO(data), most_bytes=limit)
    except BadFileError as error:
        if error.too_large is not None:
            raise Unscorable(problems.too_large(error.too_large, limit)) from error
        raise Unscorable(problems.unreadable(f"it {error.what}")) from error
    _check_header([name.strip() for name in arrays])
    for name, array in arrays.items():
        if array.ndim != 1 or len(array) > most:
            which = problems.quoted(name)
            raise Unscorable(
                problems.unreadable(
                    f"array {which} has the shape {array.shape}, expected one value a row"
                )
            )
    if len({len(array) for array in arrays.values()}) > 1:
        lengths = {name: len(array) for name, array in arrays.items()}
        raise Unscorable(
            problems.unreadable(f"its arrays have different lengths: {problems.quoted(lengths)}")
        )
    return {name: _values(array) for name, array in arrays.items()}


def _values(array: Array) -> list[Any]:
    values: list[Any] = array.tolist()
    if array.dtype.kind == "S":
        return [value.decode("utf-8", errors="replace") for value in values]
    return values


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What predictions must look like, for the rows in the order of `ids`."""

    ids: tuple[str, ...]
    names: tuple[str, ...]
    """How findings call these rows."""
    needs: Needs
    numeric: bool
    """The labels are numbers."""
    classes: tuple[str, ...] = ()
    """Of the training labels and of this split's; empty when the metric has none."""
    required: tuple[str, ...] = ()
    """Classes that must have a column of probabilities: those of the training labels."""
    positive: str | None = None
    """The positive one of two classes, whose score is wanted."""


@dataclass(frozen=True, kw_only=True)
class Checked:
    columns: Columns | None
    """In the order of Expected.ids; None with findings."""
    findings: tuple[Finding, ...] = field(default=())


def check(raw: RawColumns, expected: Expected) -> Checked:
    """Every fault of the predictions at once: ids first, then the values of the rows present."""
    total = len(expected.ids)
    if not raw["id"]:
        return Checked(columns=None, findings=(problems.no_rows(),))
    place, findings = _match_ids([str(value).strip() for value in raw["id"]], expected)
    names = _columns_needed(raw, expected)
    if isinstance(names, Finding):
        return Checked(columns=None, findings=(*findings, names))
    present = [index for index in range(total) if index in place]
    called = [expected.names[index] for index in present]
    columns: Columns = {}
    for name, source in names.items():
        values = [raw[source][place[index]] for index in present]
        columns[name], wrong = _convert(source, values, called, expected)
        findings.extend(wrong)
    if not findings and "prediction" not in columns and expected.needs is not Needs.ANY:
        findings.extend(_check_sums(columns, called))
    return Checked(columns=None if findings else columns, findings=tuple(_once(findings)))


def differing(first: Columns, second: Columns, names: Sequence[str]) -> list[str]:
    """The rows, by name, on which two predictions disagree: text exactly, numbers to 1e-5."""
    # Not bit by bit: batches of other sizes round sums differently, also on one machine.
    apart: set[int] = set()
    for column, values in first.items():
        others = second[column]
        scale = _OF_TYPICAL * _typical(values)
        apart.update(
            i
            for i, pair in enumerate(zip(values, others, strict=True))
            if not _agree(*pair, scale)
        )
    return [names[index] for index in sorted(apart)]


def _match_ids(ids: list[str], expected: Expected) -> tuple[dict[int, int], list[Finding]]:
    """({index in expected: index in the file}, findings)."""
    index_of = {identifier: index for index, identifier in enumerate(expected.ids)}
    place: dict[int, int] = {}
    twice, extra = [], []
    for position, identifier in enumerate(ids):
        index = index_of.get(identifier)
        if index is None:
            extra.append(identifier)
        elif index in place:
            twice.append(expected.names[index])
        else:
            place[index] = position
    absent = [name for index, name in enumerate(expected.names) if index not in place]
    findings = []
    if absent:
        findings.append(problems.missing(absent, len(expected.ids)))
    if twice:
        findings.append(problems.duplicate(twice, len(ids)))
    if extra:
        findings.append(problems.extra(extra, len(ids)))
    return place, findings


def _columns_needed(raw: RawColumns, expected: Expected) -> dict[str, str] | Finding:
    """Column that is scored -> column of the file, or the finding that they are not there."""
    probabilities = [name for name in raw if name.startswith("p_")]
    if expected.needs is Needs.ANY:
        wanted = ["prediction"] if "prediction" in raw else probabilities
    elif expected.needs is Needs.SCORES and expected.positive is not None:
        # A program that writes all forms at once says most by the probability.
        forms = (f"p_{expected.positive}", "score", "prediction")
        source = next((name for name in forms if name in raw), None)
        return _wrong(raw, expected) if source is None else {"prediction": source}
    elif expected.needs in (Needs.SCORES, Needs.PROBABILITIES):
        unknown = any(name[2:] not in expected.classes for name in probabilities)
        absent = any(f"p_{name}" not in raw for name in expected.required)
        # In class order: of equal probabilities the order decides.
        wanted = [f"p_{name}" for name in expected.classes if f"p_{name}" in raw]
        wanted = [] if unknown or absent else wanted
    else:
        wanted = ["prediction"] if "prediction" in raw else []
    return {name: name for name in wanted} if wanted else _wrong(raw, expected)


def _wrong(raw: RawColumns, expected: Expected) -> Finding:
    classes = expected.required or expected.classes
    return problems.wrong_columns(list(raw), form_of(expected.needs, classes, expected.positive))


def _convert(
    column: str, values: list[Any], called: list[str], expected: Expected
) -> tuple[list[Any], list[Finding]]:
    """The values as class names or finite floats; a value that is neither stands in a finding."""
    as_probability = column.startswith("p_") and expected.needs is not Needs.ANY
    if expected.needs is Needs.CLASS:
        return _convert_classes(values, called, expected)
    if expected.needs is Needs.ANY and not expected.numeric and column == "prediction":
        return [value if isinstance(value, str) else str(value) for value in values], []
    converted, wrong, infinite, outside = [], [], [], []
    for value, name in zip(values, called, strict=True):
        number = as_number(value)
        if number is None:
            wrong.append((name, value))
        elif not math.isfinite(number):
            infinite.append(name)
        elif as_probability and not 0.0 <= number <= 1.0:
            outside.append(name)
        converted.append(number)
    return converted, _value_findings(wrong, infinite, outside, len(values), column)


def _value_findings(
    wrong: list[tuple[str, Any]], infinite: list[str], outside: list[str], total: int, column: str
) -> list[Finding]:
    findings = []
    if wrong:
        findings.append(problems.wrong_type(wrong, total, "a number"))
    if infinite:
        findings.append(problems.non_finite(infinite, total))
    if outside:
        what = f"have a {problems.quoted(column)} outside [0, 1]"
        findings.append(problems.not_probabilities(outside, total, what))
    return findings


def _convert_classes(
    values: list[Any], called: list[str], expected: Expected
) -> tuple[list[Any], list[Finding]]:
    known = set(expected.classes)
    converted, wrong, infinite, unknown = [], [], [], []
    for value, name in zip(values, called, strict=True):
        guess = class_name(value, expected.numeric)
        if guess in known:
            converted.append(guess)
        elif guess is not None:
            unknown.append((name, value))
        elif as_number(value) is not None:
            infinite.append(name)
        else:
            wrong.append((name, value))
    findings = []
    if wrong:
        findings.append(
            problems.wrong_type(wrong, len(values), "a class, which here is a number,")
        )
    if infinite:
        findings.append(problems.non_finite(infinite, len(values)))
    if unknown:
        findings.append(problems.unknown_class(unknown, len(values), expected.classes))
    return converted, findings


def _check_sums(columns: Columns, called: list[str]) -> list[Finding]:
    sums = [math.fsum(row) for row in zip(*columns.values(), strict=True)]
    off = [
        name for name, total in zip(called, sums, strict=True) if abs(total - 1.0) > SUM_TOLERANCE
    ]
    what = "have probabilities that do not sum to 1"
    return [problems.not_probabilities(off, len(sums), what)] if off else []


def _once(findings: Sequence[Finding]) -> list[Finding]:
    """One finding a code: with many probability columns the first says enough."""
    return list({finding.code: finding for finding in reversed(findings)}.values())[::-1]


def _typical(values: Sequence[Any]) -> float:
    """Root mean square of the numbers among `values`; 0 when there are none."""
    sizes = [abs(value) for value in values if isinstance(value, float)]
    largest = max(sizes, default=0.0)
    if not largest:
        return 0.0
    # Scaled by the largest: the square of 1e200 would overflow.
    return largest * math.sqrt(math.fsum((size / largest) ** 2 for size in sizes) / len(sizes))


def _agree(first: Any, second: Any, scale: float) -> bool:
    if isinstance(first, float) and isinstance(second, float):
        return math.isclose(first, second, rel_tol=RELATIVE, abs_tol=scale)
    return bool(first == second)
