"""Where a session of the real CLI runs: an environment made from nothing, and folders of its
own."""

import os
from pathlib import Path

from harness.driver.environment import bundled_cli
from tests.interactive.gateway import OpenGateway

ROOT = Path(__file__).parents[2]
"""This repository, which is also the plugin."""
CLI = "HARNESS_TEST_CLI"
"""Names another Claude Code CLI than the one that comes with the Agent SDK; `make compat` sets
it."""


def cli() -> Path:
    return Path(os.environ[CLI]) if CLI in os.environ else bundled_cli()


def clean_environment(home: Path, gateway: OpenGateway) -> dict[str, str]:
    """Everything that a session's processes get. Nothing comes from ours; `harness` is not on its
    PATH."""
    temporary, programs = home / "tmp", home / "programs"
    for folder in (home / "config", temporary, programs):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not (programs / "claude").is_symlink():
        (programs / "claude").symlink_to(cli())
    return {
        # `harness claude` starts the `claude` of the person's PATH.
        "PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(home),
        "XDG_STATE_HOME": str(home / "state"),
        "CLAUDE_CONFIG_DIR": str(home / "config"),
        "TMPDIR": str(temporary),
        "CLAUDE_CODE_TMPDIR": str(temporary),
        "LANG": "C.UTF-8",
        "SHELL": "/bin/bash",
        "OMP_NUM_THREADS": "1",
        "ANTHROPIC_BASE_URL": gateway.url,
        "ANTHROPIC_API_KEY": gateway.key,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "0",
        "DISABLE_AUTOUPDATER": "1",
    }
