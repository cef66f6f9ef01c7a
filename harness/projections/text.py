"""The Markdown of the pages: blocks, tables, numbers. `domain.plain_text` quotes foreign text."""

from harness.domain.plain_text import plain

BANNER = (
    "<!-- Made by the harness from its ledger; edits are overwritten. Rebuild: harness ledger"
    " rebuild -->"
)


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
    return plain("\n\n".join("\n".join(block) for block in blocks if block)) + "\n"
