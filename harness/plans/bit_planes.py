"""What stands in a table beside its values: bits, digits and ways of writing, one plane each.

A plane holds 0 or 1 for each row: a bit of a number, a bit of one of its decimal digits, whether a
cell ends in a space. A plane is fine when nothing that is measured decides it: low bits of a
mantissa, late digits that are spread evenly, how a number or a space was typed.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[np.uint8]
_COARSE = 7
"""Upper bits of a mantissa that are the number's size: to one percent."""
_LEAST_DISTINCT = 128
"""Values of a measured column: fewer are codes, and bits of codes are the codes."""
_SAMPLE = 200
_EVEN = 0.2
"""The share of the commonest digit up to which digits are spread evenly. Prices end in 9."""
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\Z")


@dataclass(frozen=True, kw_only=True)
class Plane:
    column: str
    level: str
    """Which bit or digit: planes of one level stand at the same place of their columns."""
    low: int
    """How far from the last place: the lowest are looked at first."""
    fine: bool
    bits: Bits


def planes(
    column: str,
    values: NDArray[Any],
) -> list[Plane]:
    """Those of `values`, one a row, that are not the same in all rows."""
    kind = values.dtype.kind
    if kind == "f":
        found = _of_floats(column, values)
    elif kind in "iu":
        found = _of_whole(column, values)
    elif kind in "USO":
        found = _of_texts(column, [str(value) for value in values.tolist()])
    else:
        found = iter(())
    return [plane for plane in found if 0 < int(plane.bits.sum()) < len(plane.bits)]


def decimals(values: NDArray[Any]) -> int | None:
    """Digits after the point that all of them are written with; None where they are measured to
    the last bit."""
    finite = values[np.isfinite(values)]
    if not len(finite) or values.dtype.itemsize > np.dtype(np.float64).itemsize:
        return None
    size = len(str(int(min(float(np.abs(finite).max()), 1e18))))
    precise = 7 if values.dtype.itemsize <= np.dtype(np.float32).itemsize else 15
    places = 0
    for value in finite[:_SAMPLE]:
        text = np.format_float_positional(value, trim="-")
        places = max(places, len(text.partition(".")[2]))
        if places + size >= precise:
            return None
    rounded = np.round(finite.astype(np.float64), places).astype(finite.dtype)
    return places if np.array_equal(rounded, finite) else None


def _of_floats(
    column: str,
    values: NDArray[Any],
) -> Iterator[Plane]:
    single = values.astype(np.float32)
    double = values.astype(np.float64)
    exact = np.array_equal(single.astype(np.float64), double, equal_nan=True)
    bits: NDArray[Any] = single.view(np.uint32) if exact else double.view(np.uint64)
    width, mantissa = (32, 23) if exact else (64, 52)
    finite = double[np.isfinite(double)]
    many = len(np.unique(finite)) >= _LEAST_DISTINCT
    places = decimals(values)
    # What was rounded says in its bits what it says in its digits.
    measured = many and places is None
    for place in range(width):
        yield Plane(
            column=column,
            level=f"bit {place}",
            low=place,
            fine=measured and place < mantissa - _COARSE,
            bits=((bits >> bits.dtype.type(place)) & bits.dtype.type(1)).astype(np.uint8),
        )
    if places:
        whole = np.rint(np.abs(np.nan_to_num(double)) * 10.0**places)
        yield from _digits(column, whole.astype(np.int64), many)


def _of_whole(
    column: str,
    values: NDArray[Any],
) -> Iterator[Plane]:
    whole = np.abs(values.astype(np.int64))
    for place in range(int(whole.max(initial=0)).bit_length()):
        yield Plane(
            column=column,
            level=f"bit {place}",
            low=place,
            fine=False,
            bits=((whole >> place) & 1).astype(np.uint8),
        )
    yield from _digits(column, whole, many=False)


def _digits(
    column: str,
    whole: NDArray[np.int64],
    many: bool,
) -> Iterator[Plane]:
    spread = float(whole.std())
    for place in range(len(str(int(whole.max(initial=0))))):
        digit = whole // 10**place % 10
        # Beyond its spread a digit is the number's size.
        even = np.bincount(digit).max() < _EVEN * len(digit)
        for bit in range(4):
            yield Plane(
                column=column,
                level=f"digit {place + 1} from the end" + (f", bit {bit}" if bit else ""),
                low=place,
                fine=many and bool(even) and 10.0 ** (place + 1) < spread,
                bits=((digit >> bit) & 1).astype(np.uint8),
            )


def _of_texts(
    column: str,
    cells: Sequence[str],
) -> Iterator[Plane]:
    for number, (level, fine, told) in enumerate(_forms(cells)):
        bits = np.array(told, dtype=np.int64)
        for place in range(2 if fine else 1):
            yield Plane(
                column=column,
                level=f"{level}, {place}" if place else level,
                low=number,
                fine=fine,
                bits=((bits >> place) & 1).astype(np.uint8),
            )


def _forms(cells: Sequence[str]) -> Iterator[tuple[str, bool, list[int]]]:
    """(name, whether it is a way of typing alone, a count for each cell)."""
    yield "space at the end", True, [len(cell) - len(cell.rstrip()) for cell in cells]
    yield "space at the start", True, [len(cell) - len(cell.lstrip()) for cell in cells]
    inner = [sum(c.isspace() and c != " " for c in cell.strip()) for cell in cells]
    yield "other space", False, inner
    yield "doubled space", False, [cell.strip().count("  ") for cell in cells]
    hidden = [sum(unicodedata.category(c) == "Cf" for c in cell) for cell in cells]
    yield "invisible character", True, hidden
    composed = [int(unicodedata.normalize("NFC", cell) != cell) for cell in cells]
    yield "composed character", True, composed
    yield from _number_forms([cell.strip() for cell in cells])
    yield "capital", False, [sum(map(str.isupper, cell)) for cell in cells]
    yield "first capital", False, [int(cell.lstrip()[:1].isupper()) for cell in cells]
    yield "length", False, [len(cell.strip()) for cell in cells]


def _number_forms(cells: Sequence[str]) -> Iterator[tuple[str, bool, list[int]]]:
    numbers = [_NUMBER.match(cell) is not None for cell in cells]
    if not any(numbers):
        return

    def typed(of: Any) -> list[int]:
        # A cell without a number is typed like most: that it is missing may be honest knowledge.
        told = [
            int(of(cell)) if number else None
            for cell, number in zip(
                cells,
                numbers,
                strict=True,
            )
        ]
        usual = Counter(value for value in told if value is not None).most_common(1)[0][0]
        return [usual if value is None else value for value in told]

    after = typed(lambda cell: len(re.split("[eE]", cell)[0].partition(".")[2]))
    if len(set(after)) > 1:
        # Where all have the same number of decimals, a zero at the end is a value's.
        zeros = typed(_zeros)
        yield "zero at the end", True, zeros
        if any(zeros):
            yield "number of decimals", True, after
    yield "point at the end", True, typed(lambda cell: cell.endswith("."))
    yield "exponent", True, typed(lambda cell: "e" in cell.lower())
    yield "large E", True, typed(lambda cell: "E" in cell)
    yield "plus", True, typed(lambda cell: cell.startswith("+"))
    yield "zero at the start", False, typed(lambda cell: cell.lstrip("+-").startswith("0"))


def _zeros(cell: str) -> int:
    fraction = re.split("[eE]", cell)[0].partition(".")[2]
    return len(fraction) - len(fraction.rstrip("0"))
