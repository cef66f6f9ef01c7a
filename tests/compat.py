"""`make compat`: the proofs that start the real Claude Code CLI, with the pinned one and with the
newest.

Pinned is the CLI that comes with the installed Agent SDK. The newest is asked of npm, where the CLI
is published, or else of pip, whose newest Agent SDK carries one. `--with VERSION` takes that
version of npm's instead, `--record` writes docs/evidence/compat.json, and further words go to
pytest.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from bench._record import record
from harness.driver.environment import bundled_cli
from tests.interactive.place import CLI

ROOT = Path(__file__).parents[1]
PROOFS = ("tests/interactive", "-m", "slow or not slow")
PACKAGE, SDK = "@anthropic-ai/claude-code", "claude-agent-sdk"
MACHINES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}


def version_of(program: Path) -> str:
    """What the CLI calls itself, asked in an environment without anything of ours."""
    with tempfile.TemporaryDirectory() as home:
        environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": home,
            "CLAUDE_CONFIG_DIR": home,
            "TMPDIR": home,
        }
        said = subprocess.run(
            [program, "--version"], env=environment, capture_output=True, text=True, check=True
        )
    return said.stdout.split()[0]


def from_npm(folder: Path, version: str) -> Path:
    """The CLI of npm's package for this machine; `version` may be "latest"."""
    name = f"{PACKAGE}-{sys.platform}-{MACHINES[platform.machine().lower()]}@{version}"
    packed = subprocess.run(
        ["npm", "pack", "--silent", name], cwd=folder, capture_output=True, text=True, check=True
    )
    with tarfile.open(folder / packed.stdout.split()[-1]) as archive:
        archive.extract("package/claude", folder, filter="data")
    return folder / "package/claude"


def from_pip(folder: Path) -> Path:
    """The CLI in the newest Agent SDK's wheel."""
    words = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--only-binary",
        ":all:",
        SDK,
    ]
    subprocess.run(words, cwd=folder, env={**os.environ, "PIP_CONSTRAINT": os.devnull}, check=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        program = Path(archive.extract("claude_agent_sdk/_bundled/claude", folder))
    program.chmod(0o755)
    return program


def newest(folder: Path, pinned: str) -> Path | None:
    """The newest CLI, fetched; None when npm says that it is the pinned one."""
    if shutil.which("npm") is None:
        return from_pip(folder)
    asked = subprocess.run(
        ["npm", "view", PACKAGE, "version", "--json"], capture_output=True, text=True, check=True
    )
    version = json.loads(asked.stdout)
    return None if version == pinned else from_npm(folder, version)


def prove(program: Path, version: str, words: list[str]) -> bool:
    print(f"== Claude Code {version}", flush=True)
    command = [sys.executable, "-m", "pytest", *PROOFS, *words]
    return (
        subprocess.run(
            command, cwd=ROOT, env={**os.environ, CLI: str(program)}, check=False
        ).returncode
        == 0
    )


def main() -> int:
    reader = argparse.ArgumentParser(
        description="The proofs of the real CLI, with the pinned one and the newest."
    )
    reader.add_argument(
        "--with", dest="version", help="this version of npm's instead of the newest"
    )
    reader.add_argument(
        "--record", action="store_true", help="write docs/evidence/compat.json at the end"
    )
    given, words = reader.parse_known_args()
    pinned = version_of(bundled_cli())
    results = {pinned: prove(bundled_cli(), pinned, words)}
    with tempfile.TemporaryDirectory() as folder:
        other = (
            from_npm(Path(folder), given.version)
            if given.version
            else newest(Path(folder), pinned)
        )
        version = pinned if other is None else version_of(other)
        if other is None or version == pinned:
            print(f"The newest Claude Code is the pinned one, {pinned}: it ran once.")
        else:
            results[version] = prove(other, version, words)
    for version, passed in results.items():
        print(f"Claude Code {version}: {'pass' if passed else 'FAIL'}")
    if given.record and not (words or given.version):
        figures = {"pinned": pinned, "newest": version}
        result = {"result": "pass" if all(results.values()) else "FAIL"}
        record("compat", "make compat RECORD=1", figures | result)
    return 0 if all(results.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
