"""The teacher of `harness traces rows`: its options, and what of it the manifest and the output
tell."""

import functools
import sys
from collections.abc import (
    Callable,
    Iterator,
    Mapping,
)
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from harness.artifacts.locate import Layout
from harness.cli.output import WholeNumber, environment
from harness.clock import SystemClock
from harness.domain.plain_text import one_line
from harness.errors import NotFoundError, UsageError
from harness.files import atomic_write, pretty_json
from harness.posttrain.base_models import known_models
from harness.settings import load_settings, require_interpreter
from harness.teachers.circularity import circularity
from harness.teachers.named import Around, asking_of, price_from
from harness.teachers.pairs import Taught
from harness.traces.ingest import manifest_of
from harness.traces.redaction import Redactor
from harness.traces.training_rows import Kind

_ANSWER_TOKENS = 512


@dataclass(frozen=True, kw_only=True)
class TeacherWords:
    teacher: str | None
    judge: str | None
    answers: Path | None
    spend_limit: float | None
    price: str | None
    answer_tokens: int
    most: int | None
    key_env: str | None
    kind: str


_OPTIONS = (
    click.option(
        "--teacher",
        default=None,
        metavar="SPEC",
        help="openai:MODEL[@URL], anthropic:MODEL[@URL], local:ID or FOLDER, replay:FILE.",
    ),
    click.option("--judge", default=None, help="The model that will judge, if one does."),
    click.option(
        "--answers",
        type=click.Path(path_type=Path),
        default=None,
        help="Where answers are kept; by default beside OUT.",
    ),
    click.option(
        "--spend-limit",
        type=click.FloatRange(min=0),
        default=None,
        help="US dollars that the teacher may cost.",
    ),
    click.option("--price", default=None, help="INPUT,OUTPUT in dollars a million tokens."),
    click.option(
        "--answer-tokens",
        type=WholeNumber(min=1),
        default=_ANSWER_TOKENS,
        show_default=True,
        help="Of one answer.",
    ),
    click.option("--most", type=WholeNumber(min=1), default=None, help="Questions, at most."),
    click.option(
        "--key-env",
        default=None,
        help="Variable with the key; OPENAI_API_KEY or ANTHROPIC_API_KEY.",
    ),
)
_NAMES = (
    "teacher",
    "judge",
    "answers",
    "spend_limit",
    "price",
    "answer_tokens",
    "most",
    "key_env",
)


def teacher_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options; the command gets them as one `teacher`."""

    @functools.wraps(command)
    def wrapped(**options: Any) -> None:
        words = {name: options.pop(name) for name in _NAMES}
        command(teacher=TeacherWords(**words, kind=options["kind"]), **options)

    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped


@contextmanager
def teaching(words: TeacherWords, out: Path, project: Path) -> Iterator[Taught | None]:
    """None without a teacher. Raises UsageError for a kind of row that has none."""
    if words.teacher is None:
        yield None
        return
    if words.kind != Kind.PAIRS:
        raise UsageError(
            f"A teacher makes pairs, not {words.kind}.", hint="Leave --kind out, or --teacher."
        )
    answers = words.answers or out.with_suffix(".answers.jsonl")
    asking = asking_of(words.teacher, answers, _around(words, project))
    try:
        yield Taught(
            asking=asking,
            longest=words.answer_tokens,
            most=words.most,
            redactor=Redactor(),
        )
    finally:
        asking.teacher.close()


def _around(words: TeacherWords, project: Path) -> Around:
    environ: Mapping[str, str] = environment()
    interpreter, folders = sys.executable, {}
    try:
        settings = load_settings(project, environ)
    except NotFoundError:  # outside a project a folder is named
        pass
    else:
        interpreter = require_interpreter(settings)
        models = known_models(Layout(settings)).items()
        folders = {name: Path(one.path) for name, one in models if one.path}
    return Around(
        environ=environ,
        interpreter=interpreter,
        folders=folders,
        clock=SystemClock(),
        key_variable=words.key_env,
        price=None if words.price is None else price_from(words.price),
        limit=words.spend_limit,
    )


def with_teacher(
    out: Path, manifest: dict[str, Any], taught: Taught | None, *, judge: str | None
) -> dict[str, Any]:
    """The manifest with what the teacher took, and whether teacher, judge and authors are one."""
    model = None
    if taught is not None:
        model = taught.asking.teacher.model
        pairs = manifest["rows"] + manifest["held_out"]
        manifest["teacher"] = dict(taught.asking.told(pairs))
        manifest["redacted_in_answers"] = dict(taught.redactor.counts)
    manifest["circularity"] = circularity(manifest["models"], teacher=model, judge=judge)
    atomic_write(manifest_of(out), pretty_json(manifest), mode=0o600)
    return manifest


def teacher_lines(manifest: Mapping[str, Any]) -> list[str]:
    lines = []
    if (took := manifest.get("teacher")) is not None:
        cost = (
            f"${took['usd']:.4f}, ${took['usd_a_pair']:.5f} a pair" if took["priced"] else "free"
        )
        stopped = f"; stopped by {took['stopped_by']}" if took["stopped_by"] else ""
        lines.append(
            f"teacher {one_line(took['model'], 100)}: {took['asked']} asked,"
            f" {took['recorded']} recorded, {took['seconds']:.1f} s, {cost}{stopped}"
        )
    lines += [
        f"circular: the {one['kind']}, {one['rows']} rows"
        for one in manifest["circularity"]["findings"]
    ]
    return lines
