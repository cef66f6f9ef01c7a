"""The next version of a plan with another number of seeds, as a draft that a person approves."""

import os
import re
from pathlib import Path, PurePosixPath

from harness.artifacts.content import write_below
from harness.artifacts.front_matter import read_front_matter
from harness.artifacts.objects import load_object
from harness.contract.artifacts import BY_NAME, DRAFT
from harness.errors import RefusedError
from harness.ledger.facts import ApprovedPlan
from harness.ledger.project import Project
from harness.plans.parse import parse_plan

_SEEDS = re.compile(r"(\bseeds\s*:\s*)\d+")


def draft_with_seeds(project: Project, approved: ApprovedPlan, seeds: int) -> Path:
    """Write it; returns its path, relative to the project. No other byte of the plan changes.
    Raises RefusedError (draft_exists, seeds_not_found)."""
    name = f"{PurePosixPath(approved.path).stem}{DRAFT}"
    relative = Path(BY_NAME["plans"].path) / name
    text = load_object(project.layout.objects, approved.sha256).decode("utf-8")
    new = _with_seeds(text, approved.path, seeds)
    place = project.layout.root / relative
    if os.path.lexists(place) and (place.is_symlink() or place.read_text("utf-8") != new):
        raise RefusedError(
            f"{relative} is there, with other text.",
            hint=f"Write `seeds: {seeds}` into its oracle, or approve or remove it first.",
            code="draft_exists",
        )
    write_below(project.layout.root, place, new)
    return relative


def _with_seeds(text: str, where: str, seeds: int) -> str:
    line = read_front_matter(text, where=where).line_of("oracle", "seeds")
    lines = text.split("\n")
    lines[line - 1] = _SEEDS.sub(rf"\g<1>{seeds}", lines[line - 1], count=1)
    new = "\n".join(lines)
    if parse_plan(new, where=where).oracle.seeds != seeds:
        raise RefusedError(
            f"The line of oracle.seeds was not found in {where}.",
            hint=f"Write `seeds: {seeds}` into the plan's oracle yourself.",
            code="seeds_not_found",
        )
    return new
