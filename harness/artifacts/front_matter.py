"""The one parser of YAML front matter, and of YAML files, with the line of every value.

It reads the plain part of YAML 1.2: `1e-3` is a number; `on`, `yes` and dates are text. Duplicate
keys, anchors and tags are errors: each has hidden a wrong value from its author.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import field
from typing import TYPE_CHECKING, Any

from harness.domain.late import Late, dataclass, later
from harness.domain.plain_text import plain
from harness.errors import UsageError

if TYPE_CHECKING:
    import yaml  # type: ignore[import-untyped]
else:
    yaml = later("yaml")  # a command that only looks often reads none

Path = tuple[str | int, ...]

_NULL = re.compile(r"(?:~|null|Null|NULL|)\Z")
_BOOL = re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z")
_INT = re.compile(r"[-+]?[0-9]+\Z")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_NON_FINITE = re.compile(r"(?:([-+]?)\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z")
_MAX_DEPTH = 40
_MAX_DIGITS = 400
# Escapes in YAML can make a lone surrogate, which UTF-8 files and the ledger cannot hold.
_NO_TEXT = re.compile("[\ud800-\udfff]")
_QUOTE = "quote text that holds `: ` or starts with `[`, `*` or `%`."
_HINT_FRONT = f"Front matter is YAML between two lines `---`; {_QUOTE}"
_HINT_FILE = f"The whole file is YAML, `key: value` lines; {_QUOTE}"


@dataclass(frozen=True, kw_only=True)
class FrontMatter(Late):
    data: dict[str, Any]
    body: str
    """What follows the closing `---`, without leading blank lines."""
    where: str
    lines: dict[Path, int] = field(default_factory=dict)
    """Key path -> line in the file, from 1."""
    texts: dict[Path, str] = field(default_factory=dict)
    """Key path of a scalar -> how it was written, without quotes."""

    def line_of(self, *path: str | int) -> int:
        """The line of the value at `path`, or of the nearest part above it that exists."""
        for length in range(len(path), -1, -1):
            if path[:length] in self.lines:
                return self.lines[path[:length]]
        return 1

    def text_of(self, *path: str | int) -> str | None:
        return self.texts.get(path)


def read_front_matter(text: str, *, where: str) -> FrontMatter:
    """Split `text` with `\\n` line ends into front matter and body.

    Raises UsageError with `where`, the line, what was found and what was expected.
    """
    lines = text.removeprefix("\ufeff").split("\n")
    start = next((number for number, line in enumerate(lines) if line.strip()), None)
    if start is None:
        raise _error(where, 1, "the file is empty; expected front matter between two `---` lines")
    if lines[start].rstrip() != "---":
        raise _error(
            where,
            start + 1,
            f"found {_shown(lines[start])}; expected `---`, the start of the front matter",
        )
    end = next(
        (number for number in range(start + 1, len(lines)) if lines[number].rstrip() == "---"),
        None,
    )
    if end is None:
        raise _error(
            where, start + 1, "the front matter is not closed; expected a second line `---`"
        )
    block = "\n".join(lines[start + 1 : end]) + "\n"
    body = "\n".join(lines[end + 1 :]).lstrip("\n")
    return _read(block, where=where, offset=start + 2, body=body, hint=_HINT_FRONT)


def read_yaml(text: str, *, where: str) -> FrontMatter:
    """A whole YAML file by the same rules; the body is empty. Raises UsageError."""
    return _read(
        text.removeprefix("\ufeff"),
        where=where,
        offset=1,
        body="",
        hint=_HINT_FILE,
    )


def quote(text: str) -> str:
    """`text` as a YAML scalar on one line, which this parser reads back as plain text."""
    escaped = plain(text).replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\n", "\\n").replace("\t", "\\t") + '"'


def _read(block: str, *, where: str, offset: int, body: str, hint: str) -> FrontMatter:
    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        """Composes nodes only; `_Builder` makes the values."""

    # PyYAML's own resolvers follow YAML 1.1, which reads `on` as true and `1e-3` as text.
    Loader.yaml_implicit_resolvers = {}
    loader: Loader | None = None
    try:
        loader = Loader(block)
        node = loader.get_single_node()
    except (yaml.YAMLError, RecursionError) as error:
        raise _yaml_error(error, where, offset, hint) from error
    finally:
        if loader is not None:
            loader.dispose()
    if node is None:
        return FrontMatter(data={}, body=body, where=where, lines={(): offset})
    builder = _Builder(offset)
    data = builder.build(node, (), 0)
    if builder.problems:
        raise UsageError(
            "\n".join(f"{where}:{line}: {what}." for line, what in builder.problems),
            hint="Correct these lines.",
            code="front_matter",
        )
    if not isinstance(data, dict):
        raise _error(where, offset, "expected `key: value` lines", hint)
    return FrontMatter(
        data=data,
        body=body,
        where=where,
        lines=builder.lines,
        texts=builder.texts,
    )


class _Builder:
    """Turns composed nodes of PyYAML into plain values and remembers where each was."""

    def __init__(self, offset: int) -> None:
        self._offset = offset
        self._seen: set[int] = set()
        self.lines: dict[Path, int] = {}
        self.texts: dict[Path, str] = {}
        self.problems: list[tuple[int, str]] = []

    def build(self, node: Any, path: Path, depth: int) -> Any:
        line = node.start_mark.line + self._offset
        self.lines.setdefault(path, line)
        # PyYAML composes an alias as the node of its anchor: a node seen twice is one.
        if id(node) in self._seen:
            return self._refuse(line, "an alias (`*name`); write the value out")
        self._seen.add(id(node))
        if depth > _MAX_DEPTH:
            return self._refuse(line, f"more than {_MAX_DEPTH} levels")
        if node.id == "scalar":
            return self._scalar(node, path, line)
        if not node.tag.startswith("tag:yaml.org,2002:"):
            return self._refuse(line, f"the tag {node.tag!r}; only plain values are read")
        if node.id == "sequence":
            return [
                self.build(item, (*path, number), depth + 1)
                for number, item in enumerate(node.value)
            ]
        return dict(self._pairs(node, path, depth))

    def _pairs(self, node: Any, path: Path, depth: int) -> Iterator[tuple[str, Any]]:
        first: dict[str, int] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + self._offset
            if key_node.id != "scalar":
                self._refuse(line, "a key that is not text")
                continue
            key = key_node.value
            if _NO_TEXT.search(key):
                self._refuse(line, f"the key {_shown(key)} containing a lone surrogate")
                continue
            if key in first:
                self._refuse(line, f"the key {key!r} a second time (first on line {first[key]})")
                continue
            first[key] = line
            self.lines[(*path, key)] = line
            yield key, self.build(value_node, (*path, key), depth + 1)

    def _scalar(self, node: Any, path: Path, line: int) -> Any:
        text: str = node.value
        if _NO_TEXT.search(text):
            return self._refuse(line, f"{_shown(text)} containing a lone surrogate")
        self.texts[path] = text
        if node.style is not None:
            return text
        if node.tag not in ("tag:yaml.org,2002:str", "!", "tag:yaml.org,2002:null"):
            return self._refuse(line, f"the tag {node.tag!r}; only plain values are read")
        return plain_scalar(text)

    def _refuse(self, line: int, what: str) -> None:
        self.problems.append((line, f"found {what}"))


def plain_scalar(text: str) -> Any:
    """The value of an unquoted scalar: None, bool, int, float or the text itself."""
    if _NULL.match(text):
        return None
    if _BOOL.match(text):
        return text.lower() == "true"
    # int() refuses more than 4,300 digits by an error of its own; such text is no measured number.
    if len(text) > _MAX_DIGITS:
        return text
    if _INT.match(text):
        return int(text)
    if _FLOAT.match(text):
        return float(text)
    if match := _NON_FINITE.match(text):
        return math.nan if match[1] is None else -math.inf if match[1] == "-" else math.inf
    return text


def _yaml_error(error: Exception, where: str, offset: int, hint: str) -> UsageError:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    line = offset + (mark.line if mark is not None else 0)
    problem = (
        getattr(error, "problem", None) or getattr(error, "reason", None) or "nested too deeply"
    )
    if "'\\t'" in problem:
        hint = "YAML is indented with spaces: put them in the place of the tab."
    return _error(where, line, f"this is not YAML: {problem}", hint)


def _error(where: str, line: int, what: str, hint: str = _HINT_FRONT) -> UsageError:
    return UsageError(f"{where}:{line}: {what}.", hint=hint, code="front_matter")


def _shown(line: str) -> str:
    return repr(line if len(line) <= 60 else line[:57] + "...")
