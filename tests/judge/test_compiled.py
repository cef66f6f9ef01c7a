"""What `harness claude` starts before its sandbox: nothing that a file of the project names."""

import json
from pathlib import Path

import pytest

from harness.contract.installation import MANIFEST, VENDORED
from harness.judge import compiled
from harness.judge.compiled import compile_hooks
from harness.rendering.claude_files import SYSTEM_PYTHON


def project(root: Path, interpreter: str) -> Path:
    library = root / VENDORED / "lib/harness/guard/hooks"
    library.mkdir(parents=True)
    (library / "frame.py").write_text("A = 1\n")
    (root / VENDORED / MANIFEST).write_text(json.dumps({"interpreter": interpreter}))
    return root


def noting(folder: Path) -> Path:
    """A program that leaves its environment beside itself."""
    program = folder / "python3"
    program.write_text(f"#!/bin/sh\n/usr/bin/env > '{folder}/started'\n")
    program.chmod(0o755)
    return program


def test_the_systems_python_compiles(tmp_path: Path) -> None:
    compile_hooks(tmp_path / "made", project(tmp_path / "root", SYSTEM_PYTHON), [])
    assert "frame" in {path.name.split(".")[0] for path in (tmp_path / "made").rglob("*.pyc")}


def test_no_program_that_a_projects_file_names_is_started(tmp_path: Path) -> None:
    program = noting(tmp_path)
    compile_hooks(tmp_path / "made", project(tmp_path / "root", str(program)), [])
    assert not (tmp_path / "started").exists()
    assert not (tmp_path / "made").exists()


def test_what_compiles_sees_nothing_of_the_persons_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = str(noting(tmp_path))
    monkeypatch.setattr(compiled, "candidates", lambda: (program,))
    monkeypatch.setenv("A_KEY", "of the person")
    compile_hooks(tmp_path / "made", project(tmp_path / "root", program), [])
    seen = (tmp_path / "started").read_text()
    assert "PATH=" in seen
    assert "A_KEY" not in seen
