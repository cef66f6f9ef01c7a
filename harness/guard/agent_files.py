"""Claude Code's agent files, `.claude/agents/*.md`, also those whose front matter YAML refuses.

A file that Claude Code cannot read may be left out, or end as an agent with every tool. Here a
broken file never has more rights than its author wrote into it: what is not understood is a right
less, and a problem that is named.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from harness.artifacts.content import read_text
from harness.artifacts.front_matter import read_front_matter
from harness.contract.installation import MANIFEST, OWN_HOOKS, OWN_TEMPLATES, VENDORED
from harness.domain.late import Late, dataclass
from harness.domain.statuses import HooksMode
from harness.errors import UsageError
from harness.guard.policy.receipt import file_name
from harness.settings import Settings

ALL = "*"
_FIELD = re.compile(r"""\s*(?:-\s+)?["']?([A-Za-z][\w-]*)["']?\s*:(?:\s+(.*)|\s*)""")
_ITEM = re.compile(r"\s*-\s+(.*)")
_PIECES = re.compile(r"(?:[^,()]|\([^()]*\))+")
_TOOL = re.compile(r"[A-Za-z][\w*-]*(?:\([^()]*\))?")
_TOOLS, _DISALLOWED = "tools", "disallowedTools"
_MEANT = {
    "tool": _TOOLS,
    "tools": _TOOLS,
    "allowedtools": _TOOLS,
    "disallowedtools": _DISALLOWED,
    "disallowedtool": _DISALLOWED,
}
"""How the two fields are spelled, with case, `-` and `_` aside."""


@dataclass(frozen=True, kw_only=True)
class AgentFile(Late):
    path: Path
    name: str
    """From the front matter; without one, the file's."""
    tools: tuple[str, ...] | None
    """What its author allows; None: every tool."""
    problems: tuple[str, ...] = ()
    """Why Claude Code may read the file otherwise than it was meant, each with the next step."""


def read_agents(folder: Path) -> list[AgentFile]:
    """Every agent file in `folder` and below it, sorted by path; none where there is no folder."""
    return [read_agent(path) for path in sorted(folder.rglob("*.md"))]


def read_agent(path: Path) -> AgentFile:
    """One agent file. Never raises: a file that cannot be read has no tools, and says why."""
    try:
        text = read_text(path)
    except (UsageError, OSError) as error:
        return AgentFile(path=path, name=path.stem, tools=(), problems=(str(error),))
    try:
        front = read_front_matter(text, where=path.name)
    except UsageError as error:
        return _salvaged(path, text, f"{error.message} {error.hint}")
    return _agent(path, _fields(front.data.items()), [])


def _fields(pairs: Iterable[tuple[str, Any]]) -> dict[str, list[Any]]:
    """Key -> every value that stands under it."""
    found: dict[str, list[Any]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def _salvaged(path: Path, text: str, problem: str) -> AgentFile:
    """What the lines of a front matter say that is no YAML. Without its first `---` it says
    nothing."""
    lines = text.strip().split("\n")
    if lines[0].rstrip() != "---":
        return AgentFile(path=path, name=path.stem, tools=(), problems=(problem,))
    pairs: list[tuple[str, Any]] = []
    for line in lines[1:]:
        if line.rstrip() == "---":
            break
        field, item = _FIELD.fullmatch(line), _ITEM.fullmatch(line)
        if field and (not line[:1].isspace() or _meant(field[1]) in (_TOOLS, _DISALLOWED)):
            pairs.append((field[1], field[2] or []))
        elif item and pairs and isinstance(pairs[-1][1], list):
            pairs[-1][1].append(item[1])
    return _agent(path, _fields(pairs), [problem])


def _agent(path: Path, fields: dict[str, list[Any]], problems: list[str]) -> AgentFile:
    tools = _rights(fields, _TOOLS, problems)
    disallowed = _rights(fields, _DISALLOWED, problems)
    name = fields.get("name", [None])[0]
    if not isinstance(name, str) or not name.strip():
        problems.append(
            f"{path.name} has no name, so Claude Code does not load it: add a line `name:"
            f" {path.stem}`."
        )
        name = path.stem
    taken = {item for values in disallowed for item in values}
    kept = None if not tools or all(ALL in values for values in tools) else _common(tools)
    return AgentFile(
        path=path,
        name=name.strip().strip("\"'"),
        tools=(
            ()
            if ALL in taken
            else None
            if kept is None
            else tuple(item for item in kept if item not in taken)
        ),
        problems=tuple(problems),
    )


def _rights(fields: dict[str, list[Any]], wanted: str, problems: list[str]) -> list[list[str]]:
    """One list of tools for each time that the field stands there, under any of its spellings."""
    found = []
    for key, values in fields.items():
        if _meant(key) != wanted:
            continue
        if key != wanted:
            problems.append(
                f"Claude Code does not know `{key}` in an agent's file and ignores it: write"
                f" `{wanted}`."
            )
        found += [_listed(wanted, value, problems) for value in values]
    if len(found) > 1:
        problems.append(f"`{wanted}` stands there {len(found)} times: write it once.")
    return found


def _listed(field: str, value: Any, problems: list[str]) -> list[str]:
    pieces = value if isinstance(value, list) else [value]
    texts = [
        text
        for piece in pieces
        if isinstance(piece, str)
        for text in _PIECES.findall(piece.strip().strip("[]"))
    ]
    names = [text.strip().strip("\"'").strip() for text in texts]
    good = [name for name in names if name == ALL or _TOOL.fullmatch(name)]
    if (
        not good
        or len(good) < len([name for name in names if name])
        or any(not isinstance(p, str) for p in pieces)
    ):
        shown = f"{value!r:.60}"
        problems.append(
            f"`{field}` is {shown}; expected names of tools, as in `{field}: Read, Bash`."
        )
    return good


def _common(lists: list[list[str]]) -> list[str]:
    """What all of `lists` allow; a list with `*` allows everything."""
    limits = [values for values in lists if ALL not in values]
    return [item for item in dict.fromkeys(limits[0]) if all(item in values for values in limits)]


def _meant(key: str) -> str | None:
    return _MEANT.get(key.replace("-", "").replace("_", "").casefold())


def hooks_mode(settings: Settings) -> HooksMode:
    """What config.toml says; where it says nothing, PROJECT when hooks are in the project, else
    NONE."""
    if settings.hooks is not None:
        return settings.hooks
    vendored = (settings.root / VENDORED / MANIFEST).is_file()
    return HooksMode.PROJECT if vendored or has_own_hooks(settings.root) else HooksMode.NONE


def left_receipts(receipts: Path, session: str) -> bool:
    """Whether a hook noted anything of the session in this folder."""
    return (receipts / file_name(session)).is_file()


def has_own_hooks(root: Path) -> bool:
    """Whether `root` is the harness's own repository: hooks, agents and commands are rendered
    there, not installed."""
    return (root / OWN_HOOKS).is_dir() and (root / OWN_TEMPLATES / "agents").is_dir()
