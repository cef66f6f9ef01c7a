"""Who else is at work in a project, in words for who begins there: sessions of `harness claude` and
loops by what they announced, plain sessions by the ledger."""

from collections.abc import (
    Iterator,
    Mapping,
)
from typing import Any

from harness.domain.plain_text import one_line
from harness.judge.identity import (
    DRIVER,
    ISOLATED,
    living,
)
from harness.ledger.project import Project
from harness.process import is_same_alive

_WHO = {
    ISOLATED: "A session of `harness claude`",
    DRIVER: "A loop of `harness run`",
}
_SHARED = "You share its ledger, the plan's budget and the looks"
_APART = (
    "For an experiment of your own at the same time: `git worktree add ../NAME`, and"
    " `harness claude` there."
)


def beside(project: Project) -> list[str]:
    """A sentence each, and what is shared with them; empty for who is alone."""
    root = str(project.layout.root)
    others = [
        about
        for about in living(project.layout.state)
        if about.get("kind") in _WHO and about.get("root")
    ]
    lines = [_announced(about, root) for about in others]
    lines += _plain(project)
    if not lines:
        return []
    if any(about["root"] == root for about in others):
        return [*lines, f"{_SHARED}, its files and its open experiment. {_APART}"]
    return [*lines, f"{_SHARED}."]


def _announced(about: Mapping[str, Any], root: str) -> str:
    place = str(about["root"])
    where = "in this working tree" if place == root else f"in {one_line(place)}"
    who, pid = _WHO[about["kind"]], about["server"].get("pid")
    return f"{who} is at work {where} (process {pid}, {about.get('sandbox')})."


def _plain(project: Project) -> Iterator[str]:
    for began, _ in project.ledger.sessions_began():
        if is_same_alive(began.process):
            pid = began.process.get("pid")
            yield (
                f"A plain `claude` is at work in this project (process {pid}): scores of what is"
                " open meanwhile say `session not isolated`."
            )
