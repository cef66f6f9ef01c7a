"""How a project's hooks come to an interactive session, as its settings say or as it stands on
disk."""

from pathlib import Path

from harness.contract.installation import MANIFEST, OWN_HOOKS, OWN_TEMPLATES, VENDORED
from harness.domain.statuses import HooksMode
from harness.settings import Settings


def hooks_mode(settings: Settings) -> HooksMode:
    """What config.toml says; where it says nothing, PROJECT when hooks are in the project, else
    NONE."""
    if settings.hooks is not None:
        return settings.hooks
    vendored = (settings.root / VENDORED / MANIFEST).is_file()
    return HooksMode.PROJECT if vendored or has_own_hooks(settings.root) else HooksMode.NONE


def has_own_hooks(root: Path) -> bool:
    """Whether `root` is the harness's own repository: hooks, agents and commands are rendered
    there, not installed."""
    return (root / OWN_HOOKS).is_dir() and (root / OWN_TEMPLATES / "agents").is_dir()
