"""What an agent inside the sandbox may ask of the judge: a closed table of verbs and options.

What is not in it is no request. The words that the judge's child gets are put together anew from
what was read here, so nothing reaches it that only looked like something else.
"""

import os
import shlex
from collections.abc import (
    Callable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import (
    dataclass,
    field,
)
from pathlib import Path

from harness.contract.meant import meant_by
from harness.contract.roles import HUMAN_VERBS
from harness.domain.ids import names_experiment
from harness.domain.plain_text import one_line
from harness.errors import (
    HarnessError,
    RefusedError,
    UsageError,
)

STDIN = "-"
_LOWERS_TRUST = ("--sandbox", "--session")
_HELP = ("--help", "-h")
_EVERYWHERE = ("--json", *_HELP)
_OUTSIDE = "A person runs it in their own terminal, outside `harness claude`."
_LONGEST = 600
"""Characters of a command that a person is asked for: all of it is shown to them."""


@dataclass(frozen=True, kw_only=True)
class Askable:
    """What may follow one verb: options by name, and how many words."""

    flags: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    """Options whose value is a file of the project."""
    words: int = 0
    """The most positional words; -1: any number."""
    least: int = 0
    """The fewest: what a person is asked says what it is about."""
    files: bool = False
    """The words are files of the project, but for experiments' ids; the child gets copies."""
    copy_option: str = ""
    """With files: the option of the child that takes the copy; the word stays, as a name."""
    command: bool = False
    """What stands after `--` is a command, and stays there."""
    once: bool = False
    """With files it is asked once: a copy does not grow."""
    stdin: bool = False


_COUNTED = Askable(words=1)
REQUESTS: dict[tuple[str, ...], Askable] = {
    ("train",): Askable(
        flags=("--resume",),
        values=("--from", "--launcher", "--replicas", "--set"),
        words=-1,
    ),
    ("try",): Askable(
        flags=("--continue",),
        values=("--parent", "--rationale", "--set"),
        words=-1,
        command=True,
    ),
    ("baseline",): Askable(flags=("--write",), values=("--seeds", "--gain")),
    ("evaluate",): Askable(
        flags=("--check",),
        values=("--split", "--predict-from"),
        words=1,
    ),
    ("reproduce",): Askable(words=1, least=1),
    ("gate", "check"): Askable(values=("--gate",), words=1),
    ("gates", "show"): Askable(),
    ("phase", "show"): Askable(),
    ("experiment", "new"): Askable(values=("--hypothesis", "--rationale", "--parent")),
    ("experiment", "result"): Askable(
        values=("--claim", "--summary", "--shortfall"),
        words=1,
    ),
    ("experiment", "list"): Askable(values=("--limit",)),
    ("experiment", "show"): _COUNTED,
    ("experiment", "compare"): Askable(flags=("--code", "--config"), words=2),
    ("status",): Askable(flags=("--briefing",)),
    ("report",): Askable(words=-1),
    ("cost",): Askable(),
    ("watch",): Askable(
        flags=("--once", "--wait", "--follow", "--plain", "--until-alarm"),
        words=-1,
        files=True,
        once=True,
    ),
    ("decisions",): _COUNTED,
    ("recall",): Askable(values=("--kind", "--experiment", "--limit"), words=-1),
    ("postmortem",): _COUNTED,
    ("claims", "audit"): Askable(flags=("--git",), values=("--since",), words=-1, files=True),
    ("handoff",): Askable(values=("--note", "--experiment"), words=1, stdin=True),
    ("priors", "list"): Askable(),
    ("audit",): Askable(),
    ("plan", "check"): Askable(words=1, files=True, copy_option="--copy"),
    ("scenario", "check"): Askable(words=1, files=True, copy_option="--copy"),
    ("ledger", "verify"): Askable(),
    ("posttrain", "spec"): Askable(
        values=(
            *("--backend", "--mode", "--model", "--evaluator", "--tier", "--trainer", "--seed"),
            *("--dtype", "--set", "--minutes", "--tokens", "--profile"),
        ),
        paths=("--dataset", "--benchmark"),
    ),
    ("posttrain", "run"): Askable(flags=("--resume",), words=1),
    ("posttrain", "status"): Askable(),
    ("posttrain", "lineage"): _COUNTED,
    ("posttrain", "evaluate"): Askable(values=("--mode", "--against"), words=1),
    ("mcp",): Askable(stdin=True),
}
"""Verb -> what may be asked with it. `priors check` runs commands of a file, so it is not here."""
_REASONED = Askable(values=("--reason",), words=1)
OF_PERSONS: dict[tuple[str, ...], Askable] = {
    ("plan", "approve"): Askable(words=1, files=True),
    ("gate", "approve"): _REASONED,
    ("gate", "reject"): _REASONED,
    ("keep",): Askable(values=("--reason",), words=1, least=1),
    ("audit", "--accept"): Askable(),
    ("posttrain", "promote"): _REASONED,
    ("posttrain", "reject"): _REASONED,
    ("posttrain", "rollback"): Askable(values=("--reason", "--to", "--profile")),
}
"""Verb of a person -> what may be asked with it: the person is asked, and it runs as theirs. Not
`--changes`, which says what a person has read, nor `--override`."""
_SHOW_FIRST = (("plan", "approve"), ("audit", "--accept"))
"""With `--ask` they show what they are about to do, and ask for it."""


@dataclass(frozen=True, kw_only=True)
class Request:
    words: tuple[str, ...]
    """For `harness`, put together anew."""
    files: Mapping[str, Path] = field(default_factory=dict)
    """Words that are files, and where each led when it was asked."""
    copy_option: str = ""
    """As `Askable` says it."""
    stdin: bool = False
    """Whether it reads what the asker sends."""
    asked: str = ""
    """Of a person's verb the command line that the person is asked for; it runs as theirs, in the
    project's root, on their terminal."""


def read_request(
    argv: Sequence[str], *, cwd: Path, root: Path, readable: Sequence[Path] = ()
) -> Request:
    """The request that `argv` makes in `cwd`; its words are for who stands in the root. Raises
    RefusedError, or UsageError for what cannot be read."""
    verb, askable = _verb(argv)
    if askable is None:
        return Request(words=("--version" if verb else "--help",))
    if verb in OF_PERSONS and not any(word in _HELP for word in argv):
        return _of_person(argv, verb, askable, cwd=cwd, root=root)

    files: dict[str, Path] = {}

    def file(text: str) -> str:
        return _file(text, cwd, root, readable)

    options, words = _parted(argv, verb, askable, cwd=cwd, root=root, file=file)
    if askable.files:
        words = [text if names_experiment(text) else file(text) for text in words]
        files = {text: root / text for text in words if not names_experiment(text)}
    if files and askable.once:
        options = ["--once", *(text for text in options if text not in ("--once", "--follow"))]
    rest = ["--", *words] if words and not askable.command else words
    reads = askable.stdin and (verb == ("mcp",) or words == [STDIN])
    whole = (*verb, *options, "--project", str(root), *rest)
    return Request(words=whole, files=files, copy_option=askable.copy_option, stdin=reads)


def _of_person(
    argv: Sequence[str], verb: tuple[str, ...], askable: Askable, *, cwd: Path, root: Path
) -> Request:
    """What runs is what the person is shown, whole. The answer goes to them: no `--json`."""

    def file(text: str) -> str:
        return _file(text, cwd, root, ())

    options, words = _parted(argv, verb, askable, cwd=cwd, root=root, file=file)
    words = [file(text) for text in words] if askable.files else words
    options = [one_line(text) for text in options if text != "--json"]
    shown = shlex.join(["harness", *verb, *words, *options])
    if len(shown) > _LONGEST or any(one_line(text) != text for text in words):
        raise UsageError(
            f"A person is shown the whole `harness {' '.join(verb)} ...` before it runs; this one"
            f" has more than {_LONGEST} characters, or a name with some that cannot be seen.",
            hint="Say it shorter, in plain words.",
            code="not_showable",
        )
    asks = ["--ask"] if verb in _SHOW_FIRST else []
    rest = ["--", *words] if words else []
    return Request(words=(*verb, *options, *asks, "--project", str(root), *rest), asked=shown)


def _parted(
    argv: Sequence[str],
    verb: tuple[str, ...],
    askable: Askable,
    *,
    cwd: Path,
    root: Path,
    file: Callable[[str], str],
) -> tuple[list[str], list[str]]:
    """(options, words) after the verb; `--project` is looked at and left out."""
    parts = list(_options(argv[len(verb) :], verb, askable, file))
    options = [text for is_option, text in parts if is_option]
    words = [text for is_option, text in parts if not is_option]
    project = [text for text in options if text.startswith("--project=")]
    for text in project:
        _require_same(text.partition("=")[2], cwd, root)
    options = [text for text in options if text not in project]
    if len(words) < askable.least:
        raise UsageError(
            f"`harness {' '.join(verb)}` is asked of a person with the id of an experiment.",
            hint=f"E.g. `harness {' '.join(verb)} exp-0001`.",
        )
    if askable.words >= 0 and len(words) > askable.words:
        raise UsageError(
            f"`harness {' '.join(verb)}` takes at most {askable.words} words; got {words}.",
            hint=f"See `harness {' '.join(verb)} --help`.",
        )
    return options, words


def _verb(argv: Sequence[str]) -> tuple[tuple[str, ...], Askable | None]:
    """The verb and its row; without a row `--version`, or the help when the verb is empty."""
    words = tuple(argv)
    for verb, askable in (*OF_PERSONS.items(), *REQUESTS.items()):
        if words[: len(verb)] == verb:
            return verb, askable
    if words in ((), ("--help",), ("-h",)):
        return (), None
    if words == ("--version",):
        return words, None
    for human in HUMAN_VERBS:
        if words[: len(human)] == human:
            raise _refused(f"harness {' '.join(human)}", human=True)
    group = words[0] in {verb[0] for verb in REQUESTS}
    shown = " ".join(("harness", *words[: 2 if group else 1]))
    path, _, word = shown.rpartition(" ")
    if meant := meant_by(path, word):
        raise UsageError(f"{word!r} is no command of `{path}`.", hint=f"Did you mean {meant}?")
    raise _refused(shown, human=False)


def _options(
    argv: Sequence[str], verb: tuple[str, ...], askable: Askable, file: Callable[[str], str]
) -> Iterator[tuple[bool, str]]:
    """(is an option, text) of each part; options as `--name=value`."""
    shown = f"harness {' '.join(verb)}"
    rest = iter(argv)
    for word in rest:
        if word == "--":
            yield from ((False, item) for item in ("--", *rest)[not askable.command :])
            return
        if not word.startswith("-") or word == STDIN:
            yield False, word
            continue
        name, joined, value = word.partition("=")
        if name in _LOWERS_TRUST or (*verb, name) in HUMAN_VERBS:
            raise _refused(f"{shown} {name}", human=True)
        if word in (*askable.flags, *_EVERYWHERE):
            yield True, word
            continue
        if name not in (*askable.values, *askable.paths, "--project"):
            raise _refused(f"{shown} {name}", human=False)
        if not joined:
            value = next(rest, "")
        yield True, f"{name}={file(value) if name in askable.paths else value}"


def _file(text: str, cwd: Path, root: Path, readable: Sequence[Path]) -> str:
    """Where `text` leads from `cwd`, as seen from the root; the judge reads no file for an agent
    that it could not read itself."""
    path = Path(os.path.realpath(cwd / text))
    if not any(path.is_relative_to(place) for place in (root, *readable)):
        raise RefusedError(
            f"{text!r} leads to {path}, outside the project.",
            hint="Name a file of the project, or of a folder in `readable` of config.toml.",
            code="not_a_request",
        )
    return os.path.relpath(path, root)


def _require_same(text: str, cwd: Path, root: Path) -> None:
    place = Path(os.path.realpath(cwd / text))
    if not place.is_relative_to(root):
        raise RefusedError(
            f"`--project {text}` is another project; this session's judge answers for {root} only.",
            hint=_OUTSIDE,
            code="not_a_request",
        )


def _refused(what: str, *, human: bool) -> HarnessError:
    why = (
        "is a person's: no agent approves, decides or lowers isolation"
        if human
        else "cannot be asked for from inside the sandbox"
    )
    return RefusedError(
        f"`{what}` {why}.", hint=_OUTSIDE, code="human_verb" if human else "not_a_request"
    )
