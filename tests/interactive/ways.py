"""Ways to change a file through the tools of Claude Code; each gets its path and yields one
call."""

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.interactive.gateway import bash, call

Call = dict[str, Any]

COMMANDS: dict[str, Callable[[str, str], str]] = {
    "redirect": lambda path, name: f"echo x > {path}",
    "append": lambda path, name: f"echo x >> {path}",
    "heredoc": lambda path, name: f"cat > {path} <<'END'\nx\nEND",
    "tee": lambda path, name: f"echo x | tee {path}",
    "sed": lambda path, name: f"sed -i s/a/b/ {path}",
    "cp": lambda path, name: f"cp train.py {path}",
    "mv": lambda path, name: f"mv train.py {path}",
    "mv-away": lambda path, name: f"mv {path} gone.txt",
    "ln": lambda path, name: f"ln -sf train.py {path}",
    "python": lambda path, name: f"python3 -c \"open({shlex.split(path)[0]!r}, 'w').write('x')\"",
    "find": lambda path, name: f"find $(dirname {path}) -name {name} -delete",
    "find-exec": lambda path, name: f"find {path} -exec rm {{}} +",
    "xargs": lambda path, name: f"echo {path} | xargs rm -f",
    "bash": lambda path, name: f"bash -c {shlex.quote(f'echo x > {path}')}",
    "env": lambda path, name: f"env A=1 sh -c {shlex.quote(f'echo x > {path}')}",
    "cd": lambda path, name: f'cd "$(dirname {path})" && echo x > {name}',
    "cd-plain": lambda path, name: (
        f"cd {shlex.quote(str(Path(shlex.split(path)[0]).parent))} && echo x > ./{name}"
    ),
    "background": lambda path, name: f"(sleep 0.1; echo x > {path}) &",
    "rm": lambda path, name: f"rm -f {path}",
    "truncate": lambda path, name: f"truncate -s 0 {path}",
    "chmod": lambda path, name: f"chmod 000 {path}",
}
"""Bash forms: (quoted path, file name) -> command."""
GIT = {
    "checkout": "git checkout HEAD -- {path}",
    "restore": "git restore {path}",
    "stash": "git stash push -- {path}",
    "rm": "git rm -q --cached {path} && git rm -qf {path}",
}
"""Forms of git, for files that git knows."""


def bash_ways(label: str, path: Path) -> list[Call]:
    """One call a Bash form, labelled <label>_<form>."""
    quoted = shlex.quote(str(path))
    return [bash(f"{label}_{form}", make(quoted, path.name)) for form, make in COMMANDS.items()]


def git_ways(label: str, path: Path) -> list[Call]:
    return [
        bash(f"{label}_git-{form}", text.format(path=shlex.quote(str(path))))
        for form, text in GIT.items()
    ]


def tool_ways(label: str, path: Path, edit: tuple[str, str] | None = None) -> list[Call]:
    """MCP, and Edit of (words that stand in the file, what replaces them); other words would be no
    call at all."""
    calls = [call(f"{label}_mcp", "mcp__files__write_file", path=str(path), content="x")]
    if edit is not None:
        given = {
            "file_path": str(path),
            "old_string": edit[0],
            "new_string": edit[1],
            "replace_all": True,
        }
        calls.append(call(f"{label}_edit", "Edit", **given))
    return calls


def labels(calls: Sequence[Call]) -> set[str]:
    return {item["id"] for item in calls}
