"""Which cages work on this machine, found out by trying each once, and which one is taken."""

import functools
import shutil
import sys
from pathlib import Path

from harness.cage.bwrap import Bwrap
from harness.cage.landlock import Landlock
from harness.cage.none import NoCage
from harness.cage.process import PYTHON
from harness.domain.sandbox import Confinement, Sandbox
from harness.domain.statuses import CageKind
from harness.errors import CageError

SANDBOXES: dict[CageKind, type[Bwrap] | type[Landlock] | type[NoCage]] = {
    CageKind.BWRAP: Bwrap,
    CageKind.LANDLOCK: Landlock,
    CageKind.NONE: NoCage,
}
"""Strongest first."""


def available() -> dict[CageKind, str | None]:
    """For each kind None, or the reason why it does not work here. Tried once a process."""
    return {kind: _reason(kind) for kind in SANDBOXES}


def choose(prefer: CageKind | None, *, required: bool) -> Sandbox:
    """The preferred cage, or else the strongest that works.

    Raises CageError when `prefer` does not work here (another is not taken instead), or when isolation is
    `required` and only `none` is left.
    """
    for kind in [prefer] if prefer is not None else list(SANDBOXES):
        if required and kind is CageKind.NONE:
            continue
        reason = _reason(kind)
        if reason is None:
            return SANDBOXES[kind]()
        if prefer is not None:
            raise CageError(
                f"The cage {kind.value} was asked for, but {reason}.",
                mend="Choose another with `--cage`, or mend what is named.",
                code="cage_unavailable",
            )
    reasons = "; ".join(f"{kind.value}: {reason}" for kind, reason in available().items() if reason)
    raise CageError(
        f"Isolation is required, and only the cage none is left ({reasons or 'it was asked for by name'}).",
        mend="Install bubblewrap, use Linux 6.7 or newer, or write `sandbox: preferred` in the plan.",
        code="cage_required",
    )


@functools.cache
def _reason(kind: CageKind) -> str | None:
    if kind is CageKind.NONE:
        return None
    if not sys.platform.startswith("linux"):
        return f"it needs Linux, and this is {sys.platform}"
    if kind is CageKind.BWRAP and shutil.which("bwrap") is None:
        return "bwrap is not installed (package bubblewrap)"
    try:
        tried = SANDBOXES[kind]().run(
            [PYTHON, "-I", "-S", "-c", "print('caged')"],
            confinement=Confinement(),
            cwd=Path("/usr"),
            environment={},
            timeout_s=20,
        )
    except CageError as error:
        return error.message
    if tried.exit_code == 0 and tried.stdout == b"caged\n":
        return None
    last = tried.stderr.decode("utf-8", "replace").strip().splitlines()
    return f"it fails here: {last[-1] if last else f'exit status {tried.exit_code}'}"
