"""What the snapshot says about one path: may it be read, may it be changed, by whom, and what to do
instead."""

from __future__ import annotations

import os

from .named_values import Record
from .paths import fixed, fold, inside, matches, may_meet, places, same_file, wholes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Denial(Record):
    __slots__ = ("hint", "path", "reason", "rule")

    def __init__(self, rule: str, reason: str, hint: str, path: str = "") -> None:
        self.rule = rule
        self.reason = reason
        self.hint = hint
        self.path = path


def taught(one: dict[str, str], what: str, path: str = "") -> Denial:
    """`one`: an entry of the snapshot's `taught`."""
    return Denial(
        "prior_denies",
        f"{what} is denied by {one['prior']}, which a person activated: {one['rule']}",
        f"Do it another way; where the rule is wrong, say so in your answer: a person notes it with"
        f" `harness priors refused {one['prior']}`.",
        path,
    )


class PathRules:
    """Rules about paths, for one role of one snapshot. `role` is None when the snapshot knows no
    such role."""

    def __init__(self, snapshot: dict[str, Any], role: str) -> None:
        self.snapshot = snapshot
        self.role = role
        rights = snapshot["roles"].get(role) or {"writes": [], "code": False}
        self.writes: list[str] = rights["writes"]
        self.code: bool = rights["code"]
        self.root: str = snapshot["root"]
        self.state: str = snapshot["state"]
        self.protected = [self.absolute(path) for path in snapshot["protected"]]
        self.frozen = [self.absolute(path) for path in snapshot["frozen"]]
        self.hidden = [self.absolute(path) for path in snapshot["hidden"]]
        self.own = [self.absolute(path) for path in self.writes]
        self.elsewhere = [place for place in snapshot.get("elsewhere", ()) if place != self.root]
        self.worktrees: list[str] = snapshot.get("worktrees", [])
        self.linkable = [*self.protected, *self.frozen]
        self.taught = [
            (self.absolute(one["pattern"]), one)
            for one in snapshot.get("taught", ())
            if one["form"] == "deny path"
        ]
        self.protected += snapshot.get("off_limits", ())
        self.notes: list[str] = snapshot.get("notes", [])
        self.plans = frozenset(map(fold, snapshot.get("plans") or ()))
        self.dotted = [
            path for path in snapshot["protected"] if path.startswith(".") and "/" not in path
        ]

    def absolute(self, relative: str) -> str:
        return os.path.normpath(os.path.join(self.root, relative))

    def shown(self, path: str) -> str:
        """Relative to the project where it is inside, for messages."""
        if path != self.root and path.startswith(self.root + "/"):
            return path[len(self.root) + 1 :]
        return path

    def read(self, path: str, cwd: str, *, below: bool = False) -> Denial | None:
        """None when `path` may be read as far as this policy knows; with `below`, all that lies
        below it too."""
        for place in places(path, cwd):
            denial = self._secret(place, below=below, there=True)
            if denial:
                return denial
        return None

    def read_pattern(self, pattern: str, cwd: str, *, below: bool = False) -> Denial | None:
        """Like `read` for a path with wildcards, `**` among them; what it may name counts as
        named."""
        start, deep, _ = pattern.partition("**")
        for whole in wholes(start + "*" if deep else pattern, cwd):
            secret = [
                *([] if self._scratch(fixed(whole)) else [self.state]),
                *filter(os.path.lexists, self.hidden),
            ]
            for known in secret:
                if may_meet(whole, known, below=below or bool(deep)):
                    return self._secret(known, below=False)
        return None

    def write(self, path: str, cwd: str, *, below: bool = False) -> Denial | None:
        """None when `path` may be changed as far as this policy knows; with `below`, all that lies
        below it too."""
        found = places(path, cwd)
        own = found[-1] in self.own
        for place in found:
            if any(matches(place, glob, whole=False) for glob in self.notes):
                continue
            denial = self._secret(place, below=False) or self._control(place, below=below)
            denial = (
                denial
                or self._secret(place, below=below)
                or (None if own else self._dotted(place))
                or self._taught(place, below=below)
            )
            if denial:
                return denial
        return self._hard_link(found[-1])

    def write_pattern(self, pattern: str, cwd: str, *, below: bool = False) -> Denial | None:
        """Like `write` for a path with wildcards; what it may name counts as named."""
        found = wholes(pattern, cwd)
        for whole in found:
            state = [] if self._scratch(fixed(whole)) else [self.state]
            for known in [*state, *self.hidden, *self.protected, *self.frozen]:
                if may_meet(whole, known, below=below):
                    return self._secret(known, below=False) or self._denied(known)
            for known, one in self.taught:
                if may_meet(whole, known, below=below) or may_meet(
                    whole, fixed(known), below=True
                ):
                    return taught(one, self.shown(known))
        return self._dotted(found[0])

    def tree_is_ours(self, cwds: tuple[str, ...]) -> bool:
        """Whether a command that changes a whole working tree from one of `cwds` reaches this
        project."""
        real = [os.path.realpath(cwd) for cwd in cwds]
        return any(inside(cwd, self.root) or inside(self.root, cwd) for cwd in real)

    def outside(self, path: str, cwd: str) -> bool:
        return not inside(places(path, cwd)[-1], self.root)

    def names(self, text: str, *, frozen: bool = False) -> str | None:
        """The first protected thing that `text` spells out, or None; with `frozen`, the plan's data
        and scorer too."""
        folded = fold(text)
        learned = [known for known, _ in self.taught]
        kept = [*self.frozen, *learned] if frozen else []
        for known in [self.state, *self.hidden, *self.protected, *kept]:
            name = self.shown(known)
            if _spells(folded, fold(name)):
                return name
        return None

    def _scratch(self, place: str) -> bool:
        return any(matches(place, glob, whole=False) for glob in self.snapshot["scratch"])

    def _secret(self, place: str, *, below: bool, there: bool = False) -> Denial | None:
        """`there`: of held-out files below `place` only those count that exist; approval moves them
        to the vault."""
        if (inside(place, self.state) and not self._scratch(place)) or (
            below and inside(self.state, place)
        ):
            return Denial(
                "state_out_of_reach",
                f"{place} is in the harness's state directory, which agents may neither read nor"
                " write.",
                "Call the tool run_status, if your role has it, or ask the person who runs the"
                " harness.",
                place,
            )
        for hidden in self.hidden:
            under = below and inside(hidden, place) and (not there or os.path.lexists(hidden))
            if inside(place, hidden) or under:
                return Denial(
                    "held_out_hidden",
                    f"{self.shown(place)} holds held-out rows, which only the harness reads.",
                    "Work with the plan's training and validation data.",
                    place,
                )
        return None

    def _control(self, place: str, *, below: bool) -> Denial | None:
        if any(place == own for own in self.own):
            return None
        elsewhere = self._elsewhere(place)
        for known in [*self.protected, *self.frozen]:
            apart = elsewhere in self.worktrees and inside(
                elsewhere, known
            )  # Claude Code puts its own below .claude
            if not apart and (inside(place, known) or (below and inside(known, place))):
                return self._denied(place if inside(place, known) else known)
        if inside(place, self.root) and not self.code and not elsewhere:
            return Denial(
                "read_only_role",
                f"{self.shown(place)} is not written by the role {self.role}.",
                self._own_files(),
                place,
            )
        return None

    def _dotted(self, place: str) -> Denial | None:
        """A control folder by its name alone: another worktree's or project's, or one behind a link
        made just now."""
        if self._elsewhere(place):
            return None
        below_root = place[len(self.root) :] if inside(place, self.root) else place
        for name in fold(below_root).split("/"):
            if any(name == fold(known) for known in self.dotted):
                reason = (
                    f"{self.shown(place)} lies in a folder called {name}, which decides what is"
                    " enforced or recorded."
                )
                return Denial(
                    "protected_path",
                    f"{reason} {self.role} may not change it.",
                    self._own_files(),
                    place,
                )
        return None

    def _taught(self, place: str, *, below: bool) -> Denial | None:
        """What a prior denies that a person activated."""
        for known, one in self.taught:
            above = below and inside(fixed(known), place)
            if above or matches(fold(place), fold(known), whole=False):
                return taught(one, self.shown(place), place)
        return None

    def _elsewhere(self, place: str) -> str:
        """The root of another project in which `place` lies and whose own rules judge it too: one
        beside this one, or within it; empty when there is none. What this project protects stays
        so, also where another one was planted."""
        nearest = max(
            (root for root in self.elsewhere if inside(place, root)), key=len, default=""
        )
        return "" if inside(self.root, nearest) and inside(place, self.root) else nearest

    def _denied(self, place: str) -> Denial:
        relative = self.shown(place)
        experiments = self.snapshot["experiments"]
        if fold(relative) in self.plans:
            return self._plan(relative, place)
        for artifact in self.snapshot["artifacts"]:
            if matches(fold(relative), fold(artifact["glob"]), whole=False):
                return self._artifact(artifact, relative, place)
        if any(inside(place, known) for known in self.frozen):
            return Denial(
                "frozen_by_plan",
                f"{relative} is frozen by the approved plan: its hash is part of every evaluation.",
                "Write derived data to another file; a changed split or scorer needs a newly"
                " approved plan.",
                place,
            )
        if inside(place, self.absolute(experiments)):
            reason = (
                f"{relative} is no artifact of an experiment;"
                f" {experiments} belongs to the harness."
            )
        else:
            reason = f"{relative} is protected: it decides what is enforced or recorded."
        return Denial(
            "protected_path", f"{reason} {self.role} may not change it.", self._own_files(), place
        )

    def _artifact(self, artifact: dict[str, str], relative: str, place: str) -> Denial:
        writer = artifact["writer"]
        if artifact["name"] in ("plan", "plans"):
            return self._plan(relative, place)
        if writer != self.role:
            rule = "protected_path" if writer in ("harness", "human") else "not_your_artifact"
            who = {
                "harness": "the harness alone writes it",
                "human": "a person alone writes it",
            }.get(writer)
            reason = (
                f"{relative} is denied to {self.role}: {who or f'it is the artifact of {writer}'}."
            )
            return Denial(rule, reason, self._own_files(), place)
        current = self.snapshot["open_experiment"]
        which = f"the open experiment is {current['id']}" if current else "no experiment is open"
        hint = (
            self._own_files()
            if current
            else "Open one first with the tool open_experiment or `harness experiment new`."
        )
        return Denial(
            "other_experiment", f"{relative} belongs to another experiment; {which}.", hint, place
        )

    def _plan(self, relative: str, place: str) -> Denial:
        """Of an approved plan, or where another one would stand beside it."""
        reason = (
            f"{relative} is denied to {self.role}: once a plan is approved, a person alone"
            " writes it."
        )
        name = os.path.splitext(os.path.basename(relative))[0]
        draft = f"plans/{name}.draft.md"
        hint = (
            f"Write the next version to {draft}, run `harness plan check {draft}`, and ask a"
            f" person for `harness plan approve {draft}`: it shows what changes."
            f" {self._own_files()}"
            if self.code
            else "Say in your answer what the plan should say, and why."
        )
        return Denial("protected_path", reason, hint, place)

    def _own_files(self) -> str:
        own = ", ".join(self.writes) or "none"
        ordinary = " and the project's ordinary files" if self.code else ""
        return f"Your own files now: {own}{ordinary}."

    def _hard_link(self, place: str) -> Denial | None:
        try:
            other = same_file(place, self.linkable)
        except OverflowError:
            return Denial(
                "hard_link",
                f"{self.shown(place)} has several names, and too many files are protected to tell"
                " whether it is one.",
                "Copy it to a new file and change the copy.",
                place,
            )
        if other is None:
            return None
        reason = (
            f"{self.shown(place)} is another name (hard link) of the protected"
            f" {self.shown(other)}."
        )
        return Denial("hard_link", reason, "Write to a separate file.", place)


def _spells(text: str, name: str) -> bool:
    """Whether `name` stands in `text` and is no part of a longer word there; before a dot a word
    may end anyway."""
    at = text.find(name)
    while at >= 0:
        starts = name.startswith(".") or not _wordy(text[at - 1 : at])
        if starts and not _wordy(text[at + len(name) : at + len(name) + 1]):
            return True
        at = text.find(name, at + 1)
    return False


def _wordy(character: str) -> bool:
    return character.isalnum() or character in ("_", "-")
