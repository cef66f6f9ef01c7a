"""`--teacher SPEC`: which teacher, where it is, what it costs.

openai:MODEL[@URL]       chat completions: OpenAI, vLLM and others
anthropic:MODEL[@URL]    Messages
local:ID or local:FOLDER a transformers model: one of `posttrain model add`, or its folder
replay:FILE              answers that were recorded before; no other is given
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.clock import Clock
from harness.domain.prices import Price, price_of
from harness.errors import RunError, UsageError
from harness.teachers.asking import (
    Answer,
    AnswerFile,
    Asking,
    Question,
    Teacher,
    always,
)
from harness.teachers.endpoints import Endpoint
from harness.teachers.local import LocalTeacher

_URLS = {"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com/v1"}
KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
"""Variables that the keys are read from."""
_HINT = "E.g. `openai:MODEL@http://127.0.0.1:8000/v1`, `anthropic:MODEL`, `local:ID`."


@dataclass(frozen=True, kw_only=True)
class Named:
    form: str
    model: str
    place: str
    """Address, folder or file."""


@dataclass(frozen=True, kw_only=True)
class Around:
    """What a teacher needs of the command that asks."""

    environ: Mapping[str, str]
    interpreter: str
    folders: Mapping[str, Path]
    """Id of an added model -> its weights."""
    clock: Clock
    key_variable: str | None = None
    price: Price | None = None
    """As the person says; else the list price, where one is known."""
    limit: float | None = None


def named(spec: str) -> Named:
    """Raises UsageError for what is none of the four forms."""
    form, _, rest = spec.partition(":")
    if not rest or form not in (*_URLS, "local", "replay"):
        raise UsageError(f"{spec!r} names no teacher.", hint=_HINT, code="teacher_unknown")
    if form in _URLS:
        model, at, url = rest.partition("@http")
        place = f"http{url}" if at else _URLS[form]
        return Named(form=form, model=model, place=place)
    return Named(form=form, model=Path(rest).name if form == "local" else "", place=rest)


def asking_of(spec: str, answers: Path, around: Around) -> Asking:
    """The teacher ready to be asked; its answers go to `answers`, or come from there. Raises
    UsageError."""
    wanted = named(spec)
    teacher: Teacher
    price = around.price
    if wanted.form == "replay":
        recorded = AnswerFile(Path(wanted.place))
        return Asking(teacher=_replayed(recorded), answers=recorded, price=None, limit=None)
    if wanted.form == "local":
        folder = around.folders.get(wanted.place, Path(wanted.place))
        if not (folder / "config.json").is_file():
            raise UsageError(
                f"{wanted.place!r} is neither an added model nor a folder of one.",
                hint="`harness posttrain model add ID --weights FOLDER`, or name the folder.",
                code="teacher_unknown",
            )
        model = wanted.place if wanted.place in around.folders else wanted.model
        teacher = LocalTeacher(
            model,
            folder,
            interpreter=around.interpreter,
            inherited=around.environ,
            clock=around.clock,
        )
    else:
        price = price or price_of(wanted.model)
        if price is None:
            raise UsageError(
                f"What {wanted.model} costs is unknown.",
                hint="Give --price INPUT,OUTPUT in dollars a million tokens; `--price 0,0` of a"
                " service of your own.",
                code="price_unknown",
            )
        price = price if price.input or price.output else None
        key = around.environ.get(around.key_variable or KEYS[wanted.form]) or None
        teacher = Endpoint(
            form=wanted.form, model=wanted.model, url=wanted.place, key=key, clock=around.clock
        )
    return Asking(teacher=teacher, answers=AnswerFile(answers), price=price, limit=around.limit)


def price_from(words: str) -> Price:
    """Of `INPUT,OUTPUT`, dollars a million tokens. Raises UsageError."""
    try:
        given, got = (float(word) for word in words.split(","))
        if not (0 <= given < float("inf") and 0 <= got < float("inf")):
            raise ValueError
    except ValueError:
        raise UsageError(
            f"--price {words!r} is no price.",
            hint="E.g. `--price 3,15`: dollars a million tokens of input and of output.",
        ) from None
    return Price(
        input=given, output=got, cache_write=given, cache_write_1h=given, cache_read=given
    )


def _replayed(recorded: AnswerFile) -> Teacher:
    if len(recorded.models) != 1:
        raise UsageError(
            f"{recorded.path} holds answers of {len(recorded.models)} models; expected one.",
            hint="Name the file that `--answers` wrote, of one teacher.",
            code="teacher_unknown",
        )
    return _Replay(recorded.models[0], recorded.path)


class _Replay:
    """Answers nothing by itself."""

    def __init__(self, model: str, path: Path) -> None:
        self.model, self.lost, self._path = model, 0, path

    def answer(self, question: Question, may_try: Callable[[int], bool] = always) -> Answer:
        raise RunError(
            f"{self._path} has no answer to question {question.sha256[:12]}.",
            hint="Ask the teacher itself, with `--answers` naming this file: only what is missing"
            " is asked.",
            code="answer_not_recorded",
        )

    def close(self) -> None:
        return
