"""Agent definitions on disk: written from the contract, or compared with it."""

from pathlib import Path

from harness.contract.roles import ROLES
from harness.errors import RefusedError
from harness.files import atomic_write
from harness.rendering.prompts import BANNER, agent_file

AGENTS = Path(".claude/agents")
"""Where Claude Code looks for agents in every project."""
PLUGIN_AGENTS = Path("agents")
"""Where a plugin has them; only a repository with its own templates is one."""


def render(root: Path, check: bool = False) -> list[Path]:
    """Write agents/*.md and .claude/agents/*.md below `root`; with `check`, write nothing.

    Returns the paths, relative to `root`, that were not as the contract says: changed, missing, or rendered once and of
    no role any more (removed). A file of the same name without our banner is a person's: it is never overwritten, and
    raises RefusedError.
    """
    wanted = expected(root)
    differing = [path for path, text in wanted.items() if _read(root / path) != text]
    stale = [path for folder in _folders(root) for path in _rendered(root, folder) if path not in wanted]
    if not check:
        for path in differing:
            _require_ours(root / path)
        for path in differing:
            atomic_write(root / path, wanted[path])
        for path in stale:
            (root / path).unlink()
    return sorted(differing + stale)


def expected(root: Path) -> dict[Path, str]:
    """Path relative to `root` -> text, for every rendered file."""
    return {folder / f"{role.name}.md": agent_file(role) for folder in _folders(root) for role in ROLES}


def _folders(root: Path) -> tuple[Path, ...]:
    return (PLUGIN_AGENTS, AGENTS) if (root / "templates" / "agents").is_dir() else (AGENTS,)


def _rendered(root: Path, folder: Path) -> list[Path]:
    found = sorted((root / folder).glob("*.md"))
    return [path.relative_to(root) for path in found if BANNER in (_read(path) or "")]


def _require_ours(path: Path) -> None:
    text = _read(path)
    if text is not None and BANNER not in text:
        raise RefusedError(
            f"{path} exists and was not rendered by the harness, which has a role of that name.",
            mend="Rename that agent, then run `harness render` again.",
            code="agent_file_taken",
        )


def _read(path: Path) -> str | None:
    try:
        return path.read_text("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UnicodeDecodeError:
        return ""
