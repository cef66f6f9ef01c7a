"""Where Claude Code keeps what is its own: settings, login, transcripts."""

from collections.abc import Mapping
from pathlib import Path

CONFIG_DIR = "CLAUDE_CONFIG_DIR"


def claude_folder(environment: Mapping[str, str], home: Path) -> Path:
    """`$CLAUDE_CONFIG_DIR`, by default `.claude` in the home directory."""
    named = environment.get(CONFIG_DIR)
    return Path(named) if named else home / ".claude"
