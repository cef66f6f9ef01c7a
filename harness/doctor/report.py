"""What the doctor found: one DoctorCheck for each way to break a guard, and the Report of all
of them."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

INSTALL = "`harness init` installs the hooks; run it in your own terminal."
"""The hint of whatever `harness init` wrote."""
NO_GUARD = {"sandbox", "agent_files", "mcp_server", "entries_once", "others_answer", "other_hooks"}
"""Checks that say nothing about a guard."""


@dataclass(frozen=True, kw_only=True)
class DoctorCheck:
    name: str
    """Stable, in snake case."""
    ok: bool | None
    """None: information, or it could not be told; the message says which."""
    guard: bool
    """Whether `ok` False means, or would mean, that a guard does not guard."""
    message: str
    hint: str = ""

    @property
    def broken(self) -> bool:
        return self.guard and self.ok is False


@dataclass(frozen=True, kw_only=True)
class Report:
    project: Path | None
    """The project's root; None when there is none at or above the folder that was asked about."""
    checks: tuple[DoctorCheck, ...]

    @property
    def broken(self) -> bool:
        """Whether any guard is broken."""
        return any(check.broken for check in self.checks)

    def lines(self, *, verbose: bool = False) -> list[str]:
        """The report for people: broken guards first, then other problems, then information,
        each with its hint; of what is in order a line a group with the count, or with `verbose` a
        line a check."""
        lines = []
        for check in sorted(self.checks, key=_weight):
            if check.ok is True and not verbose:
                continue
            lines.append(f"{_MARKS[_weight(check)]:5} {check.name:20} {check.message}")
            if check.hint and check.ok is not True:
                lines.append(f"{'':27}{check.hint}")
        if not verbose:
            groups = Counter(_group(check.name) for check in self.checks if check.ok is True)
            lines += [f"{'ok':5} {group:20} {_checks(number)}" for group, number in groups.items()]
        broken = sum(check.broken for check in self.checks)
        lines.append(
            f"{broken} problem{'s' if broken > 1 else ''} found" if broken else "all guards work"
        )
        return [_plain(line) for line in lines]

    def document(self) -> dict[str, Any]:
        """The report as `harness doctor --json` prints it."""
        return {
            "project": None if self.project is None else str(self.project),
            "broken": self.broken,
            "checks": [
                {
                    "name": check.name,
                    "ok": check.ok,
                    "guard": check.guard,
                    "message": _plain(check.message),
                    "hint": _plain(check.hint),
                }
                for check in self.checks
            ],
        }


def _plain(text: str) -> str:
    """Text that every terminal and file takes: settings may hold half characters."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def good(name: str, message: str) -> DoctorCheck:
    return DoctorCheck(name=name, ok=True, guard=name not in NO_GUARD, message=message)


def broken(name: str, message: str, hint: str) -> DoctorCheck:
    return DoctorCheck(name=name, ok=False, guard=True, message=message, hint=hint)


def amiss(name: str, message: str, hint: str) -> DoctorCheck:
    """Something is wrong, but every guard still works."""
    return DoctorCheck(name=name, ok=False, guard=False, message=message, hint=hint)


def note(name: str, message: str, hint: str = "") -> DoctorCheck:
    """Information, or what could not be told."""
    return DoctorCheck(name=name, ok=None, guard=name not in NO_GUARD, message=message, hint=hint)


def _checks(number: int) -> str:
    return "1 check" if number == 1 else f"{number} checks"


_GROUPS = {
    "entries": "hook entries",
    "hook": "hook files",
    "hooks": "hooks",
    "guards": "hooks",
    "others": "hooks",
    "interpreter": "hooks",
    "settings": "settings",
    "start": "settings",
    "other": "settings",
    "snapshot": "policy snapshot",
    "cli": "Claude Code CLI",
    "agent": "agents and tools",
    "mcp": "agents and tools",
    "sandbox": "sandbox",
}
"""First word of a check's name -> what it is about."""


def _group(name: str) -> str:
    return _GROUPS.get(name.partition("_")[0], name)


_MARKS = ("FAIL", "warn", "note", "ok")


def _weight(check: DoctorCheck) -> int:
    if check.ok is False:
        return 0 if check.guard else 1
    return 2 if check.ok is None else 3
