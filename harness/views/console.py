"""The terminal that views draw on."""

from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from harness.domain.plain_text import plain

_SIZES = ("COLUMNS", "LINES")


class PlainConsole(Console):
    """Shows no text but plain text: control codes are those that the terminal is drawn with."""

    def __init__(self, environment: Mapping[str, str] | None = None, **given: Any) -> None:
        """A size of nothing in `environment`, as COLUMNS=0, says that the size is not known."""
        if environment is not None:
            given["_environ"] = {
                name: value
                for name, value in environment.items()
                if name not in _SIZES or (value.isdecimal() and int(value) > 0)
            }
        super().__init__(**given)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=plain(segment.text))
