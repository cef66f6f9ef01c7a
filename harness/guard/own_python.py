"""A judge's Python below the project's root: what is judged could write there, unless the sandbox
takes that away."""

import os
import sys
from pathlib import Path

from harness.artifacts.content import linked
from harness.domain.statuses import SandboxKind
from harness.errors import ALONE, ConfigError

_PARTS = ("bin", "lib", "pyvenv.cfg")
_PACKAGE = Path(__file__).resolve().parents[1]


def judge_below(root: Path) -> list[Path]:
    """What below `root`, by name or behind links, runs when the harness judges."""
    places = [Path(os.path.normpath(sys.prefix)), _PACKAGE]
    # A root that is the environment itself stays writable, but for the parts that Python reads.
    places = [
        part
        for place in places
        for part in ([place / name for name in _PARTS] if place == root else [place])
    ]
    real = root.resolve()
    return [
        place
        for place in places
        if place.exists() and (root in place.parents or real in place.resolve().parents)
    ]


def require_out_of_reach(root: Path, kind: SandboxKind) -> None:
    """For a sandbox in which the project is writable. Raises ConfigError (judge_in_reach) where it
    cannot keep the judge's Python out of it: bwrap mounts that read-only, landlock's rules add up,
    and a link can be replaced. Without a sandbox the score says that nothing was isolated."""
    if kind is SandboxKind.NONE:
        return
    for place in judge_below(root):
        link = linked(root, place) if root in place.parents else None
        if kind is SandboxKind.BWRAP and link is None:
            continue
        why = (
            f"{link} is a link, which an agent could replace"
            if link is not None
            else f"the sandbox {kind.value} cannot make it read-only in a writable project"
        )
        raise ConfigError(
            f"The harness itself runs from {place}, inside the project: {why}.",
            hint=(
                f"Install it outside ({ALONE}); the project's environment may go on training, by"
                " `interpreter` in .harness/config.toml. Or move that environment out of the"
                " project."
            ),
            code="judge_in_reach",
        )
