"""config.yaml of an experiment: it is there before the training, and kept as it was then.

It says what is tried. Training gets its values as they were when the run was registered, through
the run logger (`log.config`), and may leave them. Without one it is written from the command's own
options, so nobody is held up, and nothing is written after the fact.
"""

import difflib
import functools
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from harness.artifacts.code_snapshot import Snapshot
from harness.artifacts.content import decode, linked, read_bytes, read_text, write_below
from harness.artifacts.front_matter import plain_scalar, quote, read_yaml
from harness.artifacts.objects import ObjectDamagedError, load_object, store_bytes
from harness.artifacts.training_code import words_of
from harness.contract.artifacts import BY_NAME
from harness.domain.findings import Finding
from harness.errors import HarnessError, NotFoundError, UsageError
from harness.gates.findings import finding
from harness.ledger.project import Project

_KEY = re.compile(r"[A-Za-z_][\w.-]*")
_WORD = re.compile(r"[A-Za-z_][\w./-]*")
_HEAD = "# Written by `harness train` from its command.\n"
_CLOSE = 0.75
"""How near a word of the code is to be named, of 1."""
_CONFIG = BY_NAME["config"].path
_LONGEST = 64_000
"""Bytes: a variable of a process has at most 128 KiB."""


def keep_config(
    project: Project, experiment: str, words: Sequence[str], values: Mapping[str, str]
) -> tuple[str | None, bool]:
    """(its hash, whether it was written now); the text is kept in the vault under the hash. None
    where a link or a folder stands in its place, which is the gate's to name.

    Without a file one is written: the command `words` with its options, and `values`. Raises
    UsageError (config_exists) when there is a file that says another thing than `values`,
    RefusedError (session_over) for a tool whose session has ended.
    """
    path = project.layout.experiment(experiment, "config")
    if linked(project.layout.root, path) is not None or path.is_dir():
        return None, False
    try:
        data = read_bytes(path)
    except NotFoundError:
        data = b""
    written = not data.strip()
    if written:
        data = _text(words, values).encode("utf-8")
        project.ledger.require_session()
        write_below(project.layout.root, path, data)
    else:
        _require_same(path, project.layout.relative(path), values)
    return store_bytes(data, project.layout.objects), written


def values_of(project: Project, digest: str | None) -> dict[str, Any]:
    """What training is handed of the text with this hash; nothing of one that cannot be read, or is
    too long for a variable."""
    if digest is None:
        return {}
    try:
        data = load_object(project.layout.objects, digest)
        said = read_yaml(decode(data, where=_CONFIG), where=_CONFIG).data
    except HarnessError:
        return {}  # the gate names what is wrong with it
    return {} if len(data) > _LONGEST else {k: v for k, v in said.items() if k != "command"}


def not_read(
    asked: Mapping[str, str], words: Sequence[str], *, unread: Any, logged: Mapping[str, Any]
) -> list[str]:
    """Those of `asked`, by --set, of which nothing shows that training had them: it did not ask the
    run logger (`unread`, as its last row names them), did not log the value itself, and the command
    has no such option."""
    known = unread if isinstance(unread, list) else []
    options = options_of(words)
    return [
        key
        for key, value in asked.items()
        if key in known and key not in options and logged.get(key) != plain_scalar(value)
    ]


def unread(asked: Mapping[str, str], words: Sequence[str], names: Sequence[str]) -> Finding:
    """What is said of `names`, which `not_read` gave."""
    said = ", ".join(f"{name}={asked[name]}" for name in names)
    first = f"--{names[0]} {asked[names[0]]}"
    return finding(
        "value_not_read",
        f"--set {said} stands in config.yaml, and nothing shows that training used it: it did not"
        " ask the run logger for it.",
        f'Read it there, `log.config.get("{names[0]}", ...)`; or hand it to the command:'
        f" `-- {shlex.join(words)} {first}`.",
        names=list(names),
    )


def unnamed(
    asked: Mapping[str, str], words: Sequence[str], code: Snapshot, objects: Path
) -> str | None:
    """What is said, before anything is trained, of those of `asked` that `code` can hardly read:
    none of its files has the word, and the command no such option. None when there are none."""
    options = options_of(words)
    due = [key for key in asked if key not in options]
    try:
        known = words_of(code, objects) if due else set()
    except ObjectDamagedError:  # training names it
        return None
    lost = [key for key in due if key.rpartition(".")[2].replace("-", "_") not in known]
    if not lost:
        return None
    close = functools.partial(difflib.get_close_matches, n=1, cutoff=_CLOSE)
    near = [one for key in lost for one in close(key, sorted(known))]
    meant = f" (is {', '.join(near)} meant?)" if near else ""
    said = ", ".join(f"{key}={asked[key]}" for key in lost)
    return (
        f"--set {said}: no file of the code has the word {', '.join(lost)}{meant}, so training"
        " reads it only where it takes all values at once."
    )


def read_values(options: Sequence[str]) -> dict[str, str]:
    """Of `--set KEY=VALUE`. Raises UsageError."""
    values = {}
    for text in options:
        key, sign, value = text.partition("=")
        if not sign or not _KEY.fullmatch(key):
            raise UsageError(
                f"--set {text!r} is no value of {_CONFIG}; expected KEY=VALUE.",
                hint="E.g. `--set lr=0.1`.",
            )
        values[key] = value
    return values


def options_of(words: Sequence[str]) -> dict[str, str]:
    """What a command's options say: `--lr 0.1`, `--lr=0.1`, `--fast`, `lr=0.1`."""
    rest = list(words[_begin(words) :])
    found = {}
    for place, word in enumerate(rest):
        key, sign, value = word.lstrip("-").partition("=")
        if not _KEY.fullmatch(key) or not (sign or _is_option(word)):
            continue
        after = rest[place + 1 : place + 2]
        if not sign:
            value = after[0] if after and not _is_option(after[0]) else "true"
        found[key] = value
    return found


def _is_option(word: str) -> bool:
    return len(word) > 1 and word.startswith("-") and isinstance(plain_scalar(word), str)


def _begin(words: Sequence[str]) -> int:
    """Behind the program: a script, or the module after -m."""
    for place, word in enumerate(words):
        if word in ("-m", "-c"):
            return place + 2
        if PurePosixPath(word).suffix in (".py", ".sh"):
            return place + 1
    return 1


def _text(words: Sequence[str], values: Mapping[str, str]) -> str:
    command = {"command": shlex.join(words)}
    said = command | options_of(words) | {**values} | command  # no option takes its name
    return _HEAD + "".join(f"{line}\n" for line in _lines(said))


def _lines(said: Mapping[str, str]) -> Iterator[str]:
    for key, value in said.items():
        plain = _WORD.fullmatch(value) or not isinstance(plain_scalar(value), str)
        yield f"{key}: {value if plain and value else quote(value)}"


def _require_same(path: Path, shown: str, values: Mapping[str, str]) -> None:
    if not values:
        return
    there = read_yaml(read_text(path), where=path.name).data
    other = [key for key, value in values.items() if there.get(key) != plain_scalar(value)]
    if other:
        raise UsageError(
            f"{shown} is there, and does not say what --set says of {', '.join(other)}.",
            hint="Change the file, or leave --set out.",
            code="config_exists",
        )
