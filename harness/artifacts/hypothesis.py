"""hypothesis.md: what an experiment tries and why."""

from dataclasses import dataclass
from pathlib import Path

from harness.artifacts.front_matter import quote, read_front_matter
from harness.artifacts.text import read_text
from harness.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Hypothesis:
    experiment: str
    parent: str | None
    hypothesis: str
    """One line."""
    rationale: str


def render_hypothesis(
    *, experiment: str, parent: str | None, hypothesis: str, rationale: str
) -> str:
    """The text of hypothesis.md."""
    return "\n".join(
        [
            "---",
            f"experiment: {experiment}",
            f"parent: {parent or 'null'}",
            f"hypothesis: {quote(hypothesis)}",
            "---",
            "",
            f"# {hypothesis}",
            "",
            rationale.strip(),
            "",
        ]
    )


def read_hypothesis(path: Path) -> Hypothesis:
    """Raises NotFoundError, or UsageError with the line when the file does not say what it must."""
    front = read_front_matter(read_text(path), where=path.name)
    values = {key: front.data.get(key) for key in ("experiment", "parent", "hypothesis")}
    for key, value in values.items():
        if not (isinstance(value, str) and value.strip()) and not (
            key == "parent" and value is None
        ):
            raise UsageError(
                f"{path.name}:{front.line_of(key)}: {key} is {value!r}; expected text.",
                hint=f"Add a line `{key}: ...` to its front matter.",
                code="hypothesis_unreadable",
            )
    _, _, rationale = (
        front.body.partition("\n\n") if front.body.startswith("# ") else ("", "", front.body)
    )
    return Hypothesis(
        experiment=str(values["experiment"]),
        parent=None if values["parent"] is None else str(values["parent"]),
        hypothesis=str(values["hypothesis"]),
        rationale=rationale.strip(),
    )
