"""What every command of an agent gets of the harness's own environment, and which Python runs
it."""

import os
import shutil
from collections.abc import Mapping, Sequence

from harness.process import CARRIED, HANDED_ON, LOADER, MACHINE, OURS, judge_environment

PASSED_ON = (*HANDED_ON, *MACHINE)
"""Everything else, keys above all, stays with the harness."""
LEDGER_ACCESS = (
    *("PGPASSWORD", "PGPASSFILE", "PGUSER", "PGSERVICE"),
    *("PGSSLMODE", "PGSSLROOTCERT", "PGSSLCERT", "PGSSLKEY"),
)
_PYTHONS = ("python", "python3")
_ENVIRONMENTS = ("pyvenv.cfg", "conda-meta")


def passed_on(inherited: Mapping[str, str]) -> dict[str, str]:
    """The allowed part of `inherited`; of what a clean start put aside, the caller's own value."""
    found = {name: inherited.get(CARRIED + name, inherited.get(name)) for name in PASSED_ON}
    return {name: value for name, value in found.items() if value is not None}


def ledger_access(inherited: Mapping[str, str]) -> dict[str, str]:
    """What opens a team's ledger on its server. For processes that record facts, never for one that
    trains, predicts or scores; no launcher writes it where another machine would read it."""
    return {name: inherited[name] for name in LEDGER_ACCESS if name in inherited}


def for_supervisors(inherited: Mapping[str, str]) -> dict[str, str]:
    """All that a process of ours gets which records facts."""
    return judge_environment(inherited) | ledger_access(inherited)


def put_aside(environment: Mapping[str, str]) -> dict[str, str]:
    """`environment` of a confined command, for the programs that confine it: what would make them
    load an agent's libraries stands under another name."""
    return {
        CARRIED + name if name in LOADER else name: value for name, value in environment.items()
    }


def taken_up(environment: Mapping[str, str]) -> list[str]:
    """What stands before a command, inside, to give it back what `put_aside`; empty for nothing.
    `environment` may be the one before or after that."""
    names = [name for name in LOADER if {name, CARRIED + name} & set(environment)]
    words = [f'export {name}="${CARRIED}{name}"; unset {CARRIED}{name}' for name in names]
    return ["/bin/sh", "-c", "; ".join([*words, 'exec "$@"']), "sh"] if names else []


def for_helpers(inherited: Mapping[str, str]) -> dict[str, str]:
    """The part of `inherited` that a person's own program gets: no key is in it."""
    return passed_on(inherited) | {name: inherited[name] for name in OURS if name in inherited}


def found(program: str) -> str | None:
    """The path of a command's first word on the PATH that the command gets, as shutil.which."""
    return shutil.which(program, path=passed_on(os.environ).get("PATH", os.defpath))


def with_interpreter(argv: Sequence[str], interpreter: str) -> list[str]:
    """`argv` with a first word `python` or `python3` replaced by the interpreter's path, and one
    that names a program of its environment (torchrun, accelerate, a console script) by that."""
    if argv and argv[0] in _PYTHONS:
        return [interpreter, *argv[1:]]
    own = None if not argv else _of_environment(argv[0], interpreter)
    return list(argv) if own is None else [own, *argv[1:]]


def _of_environment(word: str, interpreter: str) -> str | None:
    """The program `word` beside the interpreter of a virtual or conda environment."""
    programs = os.path.dirname(interpreter)
    home = os.path.dirname(programs)
    is_own = any(os.path.exists(os.path.join(home, mark)) for mark in _ENVIRONMENTS)
    if not is_own or not word or os.path.basename(word) != word:
        return None
    return shutil.which(word, path=programs)
