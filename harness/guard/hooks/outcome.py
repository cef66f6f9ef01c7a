"""What a hook answers: an exit status and what stands on stdout and stderr."""

from __future__ import annotations

PASSED, REFUSED = 0, 2
"""The only two: Claude Code takes any other status for a fault of the hook and goes on."""


class Outcome:
    __slots__ = ("code", "errors", "output")

    def __init__(self, code: int = PASSED, *, output: str = "", errors: str = "") -> None:
        self.code = code
        self.output = output
        self.errors = errors


def refused(reason: str, hint: str) -> Outcome:
    """Deny, with what to do instead; the model reads it."""
    return Outcome(REFUSED, errors=f"harness: {reason} {hint}".rstrip() + "\n")
