"""A small task whose right answer can be checked: a date in words and an order, YYYY-MM-DD or
YYYY-DD-MM, and two ways to write it in figures, of which one has day and month the wrong way
round."""

import json
import random
from pathlib import Path

MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
)


def dates(count: int, seed: int, taken: frozenset[str] = frozenset()) -> list[dict[str, str]]:
    """Different dates, none of `taken`, each in one of two orders; day and month differ, so that
    the other is wrong."""
    draw = random.Random(seed)
    found: dict[str, dict[str, str]] = {}
    while len(found) < count:
        year, month, day = draw.randint(1950, 2030), draw.randint(1, 10), draw.randint(1, 10)
        order = draw.choice(("YYYY-MM-DD", "YYYY-DD-MM"))
        prompt = f"{day} {MONTHS[month - 1]} {year} as {order}?"
        if month != day and prompt not in taken and prompt not in found:
            right, wrong = f"{year}-{month:02}-{day:02}", f"{year}-{day:02}-{month:02}"
            right, wrong = (right, wrong) if order.endswith("DD") else (wrong, right)
            found[prompt] = {
                "id": f"{seed}-{len(found)}",
                "prompt": prompt,
                "chosen": right,
                "rejected": wrong,
            }
    return list(found.values())


def write_dates(folder: Path, *, train: int, held_out: int) -> None:
    """train.jsonl, swapped.jsonl (the same, chosen and rejected the other way round) and
    held_out.jsonl, which shares no prompt with them."""
    held = dates(held_out, 99)
    rows = dates(train, 7, frozenset(row["prompt"] for row in held))
    swapped = [row | {"chosen": row["rejected"], "rejected": row["chosen"]} for row in rows]
    for name, some in (("train", rows), ("swapped", swapped), ("held_out", held)):
        (folder / f"{name}.jsonl").write_text(
            "".join(json.dumps(row) + "\n" for row in some), "utf-8"
        )
