"""What a command line touches: the directories in which it may run, and each path that it changes
or reads there. Paths that it does not spell out are found by name below a folder, or at the end of
a protected path when nobody knows the directory.
"""

from __future__ import annotations

import os

from .denials import unreadable
from .path_rules import Denial
from .paths import SCANNED, fold, inside, may_meet, places, wild_match

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .arguments import Argument
    from .path_rules import Denial, PathRules

_MOST_FOLDERS = 32


class Touched:
    """`denials` holds what forbids the paths, `unsure` why more may be touched than was read;
    `lost` why nobody can say in which directory it runs, empty while that is known."""

    def __init__(self, snapshot: dict[str, Any], judge: PathRules, cwd: str) -> None:
        self.snapshot = snapshot
        self.judge = judge
        self.cwds: tuple[str, ...] = (cwd,)
        self.environment: dict[str, list[str]] = {}
        self.denials: list[Denial] = []
        self.unsure: list[str] = []
        self.lost = ""
        self.paths: list[str] = []

    def enter(self, folder: Argument) -> None:
        """A change of directory adds a place where the commands may run: branches are not
        followed."""
        if folder.text == "-":
            return
        if not folder.known or folder.pattern:
            self.astray("it changes to a directory that is not known here")
            if folder.known:
                self.read(folder)
            return
        added = [
            os.path.normpath(os.path.join(cwd, os.path.expanduser(folder.text)))
            for cwd in self.cwds
        ]
        cwds = tuple(dict.fromkeys([*self.cwds, *added]))
        if len(cwds) > _MOST_FOLDERS:
            self.astray("it changes directory more often than can be followed")
        self.cwds = cwds[:_MOST_FOLDERS]
        self.environment["PWD"] = list(self.cwds)
        for place in added:
            denial = self.judge.read(place, place)
            if denial:
                self.denials.append(denial)

    def astray(self, why: str) -> None:
        self.unsure.append(why)
        self.lost = self.lost or why

    def change(
        self,
        argument: Argument,
        *,
        below: bool = False,
        only: tuple[str, ...] = (),
        hint: str = "",
    ) -> None:
        """`below`: with all that lies below it, or, of that, what is called like one of the
        wildcards `only`; `hint`: what to do instead, where that is not what the path's rule
        says."""
        if not argument.known:
            self.unsure.append(f"{argument.text} is not known here")
            return
        denial = self._changed(argument, below, only)
        if denial is None:
            self.paths.append(argument.text)
        elif hint and below:
            self.denials.append(Denial(denial.rule, denial.reason, hint, denial.path))
        else:
            self.denials.append(denial)

    def _changed(self, argument: Argument, below: bool, only: tuple[str, ...]) -> Denial | None:
        for cwd in self.cwds:
            if argument.pattern:
                denial = self.judge.write_pattern(argument.text, cwd, below=below)
            elif only:
                denial = write_named(self.judge, argument.text, cwd, only)
            else:
                denial = self.judge.write(argument.text, cwd, below=below)
            if denial:
                return denial
        if self.lost:
            return write_lost(self.judge, argument.text, self.lost, below=below)
        return None

    def read(self, argument: Argument, *, below: bool = False, only: tuple[str, ...] = ()) -> None:
        for cwd in self.cwds:
            denial = self._read_in(argument, cwd, below, only)
            if denial and below:
                hint = f"It is below {argument.text}: name the folders or files that you need."
                denial = Denial(denial.rule, denial.reason, hint, denial.path)
            if denial:
                self.denials.append(denial)
                return
        self.paths.append(argument.text)

    def _read_in(
        self, argument: Argument, cwd: str, below: bool, only: tuple[str, ...]
    ) -> Denial | None:
        if argument.pattern:
            return self.judge.read_pattern(argument.text, cwd, below=below)
        denial = self.judge.read(argument.text, cwd, below=below)
        if denial and below and only and self.judge.read(argument.text, cwd) is None:
            return read_named(self.judge, denial, only)
        return denial

    def unknown(self, rest: list[Argument]) -> None:
        """A program of which nothing is known: it may change what it is given, so control files are
        not given to it."""
        experiments = self.judge.absolute(self.snapshot["experiments"])
        for argument in rest:
            if argument.pattern:
                self.read(argument)
            text = argument.text
            for piece in {
                text,
                text.partition("=")[2] or text,
                text[2:] if text.startswith("-") and text[2:] else text,
            }:
                for cwd in self.cwds:
                    denial = self.judge.read(piece, cwd) or self.judge.write(piece, cwd)
                    reading = denial and (
                        denial.rule == "frozen_by_plan" or inside(denial.path, experiments)
                    )
                    if denial and denial.rule != "read_only_role" and not reading:
                        self.denials.append(denial)
                        return


_DERIVED = "__pycache__"


def write_named(judge: PathRules, folder: str, cwd: str, only: tuple[str, ...]) -> Denial | None:
    """Whether the files below `folder` that are called like one of the wildcards `only` may be
    changed."""
    denial = judge.write(folder, cwd)
    if denial:
        return denial
    for place in places(folder, cwd):
        for known in [judge.state, *judge.hidden, *judge.protected, *judge.frozen]:
            if inside(known, place) and _found(known, only):
                return judge.write(known, cwd)
    return None


def read_named(judge: PathRules, denial: Denial, only: tuple[str, ...]) -> Denial | None:
    """`denial`, which forbids reading all below a folder, where a file that it is about is called
    like `only`."""
    return next((denial for known in [judge.state, *judge.hidden] if _found(known, only)), None)


def _found(known: str, only: tuple[str, ...]) -> bool:
    """Whether `known` or something below it has such a name; what Python compiles counts as
    nothing. True where there is too much to look at."""
    names = [fold(name) for name in only]
    if any(wild_match(fold(os.path.basename(known)), name) for name in names):
        return True
    seen = 0
    for _, inner, files in os.walk(known):
        inner[:] = [name for name in inner if name != _DERIVED]
        seen += len(files)
        if seen > SCANNED or any(
            wild_match(fold(item), name) for item in (*inner, *files) for name in names
        ):
            return True
    return False


def write_lost(judge: PathRules, path: str, why: str, *, below: bool) -> Denial | None:
    """Whether `path`, relative to a directory that nobody knows because of `why`, may be something
    protected: the end of a protected path, or a thing that stands in a protected folder."""
    if path.startswith(("/", "~")):
        return None
    given = "/" + "/".join(
        part for part in os.path.normpath(path).split("/") if part not in (".", "..")
    )
    if given == "/":
        return unreadable(why, path) if below else None
    first = fold(given.split("/")[1])
    for known in [*judge.protected, *judge.frozen]:
        parts = judge.shown(known).strip("/").split("/")
        ends = ("/" + "/".join(parts[start:]) for start in range(len(parts)))
        if any(may_meet(given, end, below=below) for end in ends):
            return unreadable(why, judge.shown(known))
        if any(wild_match(fold(name), first) for name in _listed(known)):
            return unreadable(why, judge.shown(known))
    return None


def _listed(folder: str) -> list[str]:
    """Names in a folder and in those within it."""
    try:
        names = os.listdir(folder)
        inner = [os.path.join(folder, name) for name in names]
        return [
            *names,
            *(name for place in inner if os.path.isdir(place) for name in os.listdir(place)),
        ]
    except OSError:
        return []
