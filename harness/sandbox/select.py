"""Which sandboxes work on this machine, found out by trying each once, and which one is taken."""

import functools
import sys

from harness.domain.sandbox import Sandbox
from harness.domain.statuses import SandboxKind
from harness.errors import SandboxError
from harness.process import (
    SYSTEM_FOLDERS,
    system_program,
)
from harness.sandbox.bwrap import Bwrap
from harness.sandbox.landlock import Landlock
from harness.sandbox.none import NoSandbox
from harness.sandbox.trial import fault

SANDBOXES: dict[SandboxKind, type[Bwrap] | type[Landlock] | type[NoSandbox]] = {
    SandboxKind.BWRAP: Bwrap,
    SandboxKind.LANDLOCK: Landlock,
    SandboxKind.NONE: NoSandbox,
}
"""Strongest first."""


def available() -> dict[SandboxKind, str | None]:
    """For each kind None, or the reason why it does not work here. Tried once a process."""
    return {kind: _reason(kind) for kind in SANDBOXES}


def choose(prefer: SandboxKind | None, *, required: bool) -> Sandbox:
    """The preferred sandbox, or the strongest that works. Raises SandboxError when `prefer` does
    not work here, or isolation is `required` and only `none` is left."""
    for kind in [prefer] if prefer is not None else list(SANDBOXES):
        if required and kind is SandboxKind.NONE:
            continue
        reason = _reason(kind)
        if reason is None:
            return SANDBOXES[kind]()
        if prefer is not None:
            raise SandboxError(
                f"The sandbox {kind.value} was asked for, but {reason}.",
                hint="Choose another with `--sandbox`, or fix what is named.",
                code="sandbox_unavailable",
            )
    reasons = "; ".join(
        f"{kind.value}: {reason}" for kind, reason in available().items() if reason
    )
    raise SandboxError(
        "Isolation is required, and only the sandbox none is left"
        f" ({reasons or 'it was asked for by name'}).",
        hint=(
            "Install bubblewrap, use Linux 6.7 or newer, or write `sandbox: preferred` in the plan."
        ),
        code="sandbox_required",
    )


def stronger(kind: SandboxKind) -> SandboxKind | None:
    """The strongest that works here, where it isolates more than `kind`."""
    best = choose(None, required=False).kind
    return best if best.strength > kind.strength else None


@functools.cache
def _reason(kind: SandboxKind) -> str | None:
    if kind is SandboxKind.NONE:
        return None
    if not sys.platform.startswith("linux"):
        return f"it needs Linux, and this is {sys.platform}"
    if kind is SandboxKind.BWRAP and system_program("bwrap") is None:
        return (
            f"there is no bwrap of root's in {', '.join(SYSTEM_FOLDERS)} (package bubblewrap);"
            " one elsewhere does not count: whoever wrote it could drop its options"
        )
    return fault(SANDBOXES[kind]())
