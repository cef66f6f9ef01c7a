"""MANIFEST.json beside the vendored hooks: what was installed. Hooks, doctor and `init` read it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.contract.installation import MANIFEST, VENDORED
from harness.files import pretty_json

PATH = f"{VENDORED}/{MANIFEST}"


@dataclass(frozen=True, kw_only=True)
class Manifest:
    version: str
    interpreter: str
    files: Mapping[str, str]
    """SHA-256 of each vendored file as it was written, by its path below VENDORED."""
    rendered: Mapping[str, str]
    """The same of agents and slash commands, by their path from the root."""
    settings: Mapping[str, Any]
    """The hooks section that was merged into the settings."""
    server: Mapping[str, Any] | None
    """The tool server that was merged into .mcp.json; None when the name was taken."""
    created: tuple[str, ...]
    """Merged files that did not exist before."""
    allowed: tuple[str, ...] = ()
    """The permission rules that `harness init --allow` added; a person's own are not in it."""

    def text(self) -> str:
        return pretty_json(
            {
                "version": self.version,
                "interpreter": self.interpreter,
                "files": dict(self.files),
                "rendered": dict(self.rendered),
                "settings": dict(self.settings),
                "server": None if self.server is None else dict(self.server),
                "created": list(self.created),
                "allowed": list(self.allowed),
            }
        )

    def hashes(self) -> dict[str, str]:
        """Path from the root -> SHA-256 as written, of every file that is wholly ours."""
        return {
            **{f"{VENDORED}/{name}": digest for name, digest in self.files.items()},
            **self.rendered,
        }


def read_manifest(root: Path) -> Manifest | None:
    """None when it is missing or damaged: files are then compared with what would be written."""
    try:
        value = json.loads((root / PATH).read_text("utf-8"))
        return Manifest(
            version=str(value["version"]),
            interpreter=str(value["interpreter"]),
            files=_hashes(value["files"]),
            rendered=_hashes(value.get("rendered", {})),
            settings=dict(value["settings"]),
            server=None if value.get("server") is None else dict(value["server"]),
            created=tuple(map(str, value.get("created", ()))),
            allowed=tuple(map(str, value.get("allowed", ()))),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _hashes(value: Mapping[str, Any]) -> dict[str, str]:
    return {str(name): str(digest) for name, digest in value.items()}
