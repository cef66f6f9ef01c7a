"""Drafts: the next version of an approved plan, which an agent may write and a person takes over.

`plans/NAME.draft.md` is the draft of the plan NAME: of the approved file of that name, wherever it
stands (plan.md: plans/plan.draft.md), else of plans/NAME.md. Approving the draft puts it there.
"""

from dataclasses import replace
from pathlib import PurePosixPath

from harness.artifacts.content import hash_file, write_below
from harness.contract.artifacts import BY_NAME, DRAFT
from harness.errors import RefusedError
from harness.files import sha256_bytes
from harness.ledger.project import Project
from harness.plans.review import Draft
from harness.plans.scaffold import PLAN_FORM

_FOLDER = BY_NAME["plans"].path


def in_its_place(project: Project, draft: Draft) -> Draft:
    """`draft` with the path at which it is approved. Raises RefusedError when what stands there is
    neither approved nor the draft itself."""
    name = _name(PurePosixPath(draft.relative))
    if not name:
        return draft
    root, approvals = project.layout.root, project.ledger.plans()
    first = BY_NAME["plan"].path
    known = {PurePosixPath(path).stem: path for path in (first, *(one.path for one in approvals))}
    target = known.get(name, f"{_FOLDER}/{name}.md")
    place = root / target
    if place.resolve() != place:
        raise RefusedError(
            f"{target} leads to {place.resolve()}, through a link.",
            hint=f"Put a real file or folder in its place; {draft.relative} is written there.",
            code="link_in_place",
        )
    versions = {sha256_bytes(text) for text in (draft.data, PLAN_FORM.encode())}
    versions |= {one.sha256 for one in approvals if one.path == target}
    if place.is_file() and hash_file(place) not in versions:
        raise RefusedError(
            f"{target} holds text that nobody approved, and {draft.relative} would replace it.",
            hint=f"Move what is yours into {draft.relative}, then remove or restore {target}.",
            code="plan_edited",
        )
    return replace(draft, path=place, relative=target)


def take_over(project: Project, draft: Draft, placed: Draft) -> None:
    """Put the draft's text in its place. Before the approval is a fact: a call that was killed in
    between is finished by the next one, which finds the draft's own text there. Raises as
    `in_its_place`, which is asked again: a person has read meanwhile."""
    in_its_place(project, draft)
    if placed.path != draft.path:
        write_below(project.layout.root, placed.path, draft.data)


def remove_taken(draft: Draft, placed: Draft) -> None:
    if placed.path != draft.path and draft.path.read_bytes() == draft.data:
        draft.path.unlink()


def _name(path: PurePosixPath) -> str:
    """Of the plan whose draft it is; empty for every other path."""
    drafted = path.parent.as_posix() == _FOLDER and path.name.endswith(DRAFT)
    return path.name.removesuffix(DRAFT) if drafted else ""
