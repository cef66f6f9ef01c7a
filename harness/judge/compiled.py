"""The byte code of hooks, for a session in the sandbox of `harness claude`.

A hook keeps its byte code in the state directory's parent, which does not exist inside: each call
would compile the whole library, which takes longer than all else that it does. So it is compiled
outside, anew for each session, into a folder that is read-only inside.
"""

import json
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

from harness.contract.installation import MANIFEST, OWN_HOOKS, VENDORED
from harness.install.hook_interpreter import candidates
from harness.rendering.claude_files import SYSTEM_PYTHON

COMPILED = "HARNESS_COMPILED"
"""Tells hooks where it is; hooks/run.py reads it."""
_LIBRARY = ("harness/guard/hooks", "harness/guard/policy", "harness/domain/plain_text.py")
_PATIENCE_S = 30.0


def compile_hooks(folder: Path, root: Path, plugins: Iterable[Path]) -> None:
    """Compile the hooks' library of the project at `root` and of `plugins`, with the Python that
    starts them. What cannot be compiled is left out: hooks compile it themselves."""
    vendored = root / VENDORED
    libraries = dict.fromkeys(plugins, SYSTEM_PYTHON)
    interpreter = _interpreter(vendored)
    # A file of the project names it, and this runs outside the sandbox: no other program may start.
    if interpreter in candidates():
        libraries[vendored / "lib"] = interpreter
    if (root / OWN_HOOKS / "run.py").is_file():  # the harness's own repository
        libraries[root] = SYSTEM_PYTHON
    for library, interpreter in libraries.items():
        names = [str((library / name).resolve()) for name in _LIBRARY if (library / name).exists()]
        if names:
            words = [
                "-I",
                "-S",
                "-X",
                f"pycache_prefix={folder}",
                "-m",
                "compileall",
                "-q",
                *names,
            ]
            _run([interpreter, *words])


def _run(words: list[str]) -> None:
    try:
        subprocess.run(
            words,
            env={"PATH": os.defpath},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return


def _interpreter(vendored: Path) -> str:
    """As it was installed, by the manifest beside the programs."""
    try:
        said = json.loads((vendored / MANIFEST).read_text("utf-8")).get("interpreter")
    except (OSError, ValueError, AttributeError):
        said = None
    return said if isinstance(said, str) else SYSTEM_PYTHON
