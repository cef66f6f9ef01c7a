"""What config.toml says of each place where trainings may run: `[launchers.NAME]`."""

import math
from collections.abc import Mapping
from typing import Any

from harness.errors import ConfigError

LOCAL, SLURM, RAY = "local", "slurm", "ray"
TORCHRUN, SKYPILOT = "torchrun", "skypilot"
NUMBER, WHOLE = "a number", "a whole number"
LOCALLY = f'"{LOCAL}", for a trial on this machine'
TEXT, TEXTS, TABLE = "text", "a list of texts", "a table"
FLAG = "true or false"

OPTIONS: Mapping[str, Mapping[str, str]] = {
    LOCAL: {"gpus": WHOLE},
    SLURM: {
        "partition": TEXT,
        "account": TEXT,
        "qos": TEXT,
        "constraint": TEXT,
        "gpus": WHOLE,
        "cpus": WHOLE,
        "memory_gb": NUMBER,
        "time": NUMBER,
        "setup": TEXTS,
        "more": TABLE,
        "cluster": LOCALLY,  # another one is `clusters` of `more`
    },
    RAY: {
        "address": TEXT,
        "cpus": NUMBER,
        "gpus": NUMBER,
        "restarts": WHOLE,
    },
    TORCHRUN: {"processes": WHOLE, "shard": FLAG},
    SKYPILOT: {
        "cloud": TEXT,
        "region": TEXT,
        "accelerators": TEXT,
        "cpus": TEXT,
        "memory": TEXT,
        "image_id": TEXT,
        "use_spot": FLAG,
        "setup": TEXTS,
    },
}
"""Launcher -> option -> what it takes."""

Options = Mapping[str, Mapping[str, Any]]


def read_launchers(value: object, *, where: str) -> Options:
    """`value` of the key `launchers` in the file `where`. Raises ConfigError."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise _wrong(where, f"launchers is {value!r}; expected tables")
    for name, options in value.items():
        known = OPTIONS.get(name)
        if known is None:
            names = ", ".join(OPTIONS)
            raise _wrong(where, f"launchers has {name!r}; known: {names}")
        if not isinstance(options, Mapping):
            raise _wrong(where, f"launchers.{name} is {options!r}; expected a table")
        for key, given in options.items():
            if key not in known:
                there = ", ".join(known)
                raise _wrong(where, f"launchers.{name} has {key!r}; known: {there}")
            if not _fits(given, known[key]):
                said = f"launchers.{name}.{key} is {given!r}"
                raise _wrong(where, f"{said}; expected {known[key]}")
    return value


def _fits(given: object, wanted: str) -> bool:
    if wanted == NUMBER:
        return type(given) in (int, float) and 0 <= float(str(given)) < math.inf
    if wanted == WHOLE:
        return type(given) is int and given >= 0
    if wanted == LOCALLY:
        return given == LOCAL
    if wanted == TEXT:
        return isinstance(given, str) and bool(given)
    if wanted == TEXTS:
        return isinstance(given, list) and all(isinstance(one, str) for one in given)
    if wanted == TABLE:
        return isinstance(given, Mapping)
    return isinstance(given, bool)


def _wrong(where: str, what: str) -> ConfigError:
    hint = "docs/launchers.md says what each takes."
    return ConfigError(f"{where}: {what}.", hint=hint)
