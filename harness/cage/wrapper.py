"""A script that stands for a program and starts it caged: what the Agent SDK gets as `cli_path`."""

import shlex
from pathlib import Path

from harness.domain.sandbox import Confinement, Sandbox
from harness.files import atomic_write


def write_wrapper(sandbox: Sandbox, confinement: Confinement, program: Path, target: Path) -> Path:
    """Write `target`: it runs `program` in the cage with whatever arguments it is given.

    Keep it outside the confinement's writable paths, or what it confines could rewrite it. Raises CageError as
    `Sandbox.command` does.
    """
    command = shlex.join(sandbox.command([str(program)], confinement))
    atomic_write(target, f'#!/bin/sh\nexec {command} "$@"\n', durable=False, mode=0o755)
    return target
