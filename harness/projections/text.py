"""Text in Markdown: what people and agents wrote stays inside its cell or quote."""

import re

BANNER = (
    "<!-- Made by the harness from its ledger; edits are overwritten. Rebuild: harness ledger"
    " rebuild -->"
)

_SPACE = re.compile(r"\s+")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]")


def one_line(text: str, limit: int | None = None) -> str:
    """`text` on one line without control characters, cut to `limit` characters."""
    line = _SPACE.sub(" ", _CONTROL.sub("", text)).strip()
    return line if limit is None or len(line) <= limit else line[: limit - 1].rstrip() + "…"


def inline(text: str, limit: int | None = None) -> str:
    """`text` on one line with HTML escaped: a comment would hide the rest of the page."""
    return one_line(text, limit).replace("&", "&amp;").replace("<", "&lt;")


def cell(text: str | None, limit: int = 160) -> str:
    """`text` for a table cell; "-" when empty."""
    safe = inline(text or "", limit).replace("\\", "\\\\").replace("|", "\\|")
    return safe or "-"


def quoted(text: str) -> list[str]:
    """`text` as a block quote, line by line: no line can pass for a heading or an entry."""
    lines = [inline(line) for line in text.splitlines()]
    return [f"> {line}".rstrip() for line in lines] or ["> -"]


def number(value: float) -> str:
    """A score with four decimals, or four significant digits if it is very small or large."""
    return f"{value:.4f}" if value == 0 or 1e-3 <= abs(value) < 1e6 else f"{value:.4g}"


def table(columns: tuple[str, ...], rows: list[str]) -> list[str]:
    """A Markdown table; `rows` are complete lines."""
    return [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}", *rows]


def row(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


def page(*blocks: list[str]) -> str:
    """The non-empty blocks, separated by empty lines, with a final newline."""
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"
