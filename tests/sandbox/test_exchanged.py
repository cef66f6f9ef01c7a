"""What an agent puts in a listed path's place, after it was looked at, is not shown."""

import subprocess
from pathlib import Path

import pytest

from harness.domain.sandbox import Confinement, Placed
from harness.errors import SandboxError
from harness.sandbox import reach
from harness.sandbox.reach import grants
from tests.sandbox.conftest import SECRET, Place


def exchange(path: Path, target: Path) -> None:
    path.rename(path.with_name("aside"))
    path.symlink_to(target)


@pytest.mark.parametrize("how", ["writable", "read_only", "placed"])
def test_a_link_that_comes_before_the_mount_opens_nothing(sandboxed: Place, how: str) -> None:
    run = sandboxed.project / "run"
    run.mkdir()
    given = (Placed(path=run, source=run, writable=True),) if how == "placed" else (run,)
    confinement = Confinement(**{how: given}, hidden=(sandboxed.state,))
    words = ["/bin/sh", "-c", "cat run/*; echo begun"]
    command = sandboxed.sandbox.command(words, confinement, environment={})
    exchange(run, sandboxed.vault_file.parent)
    done = subprocess.run(command, cwd=sandboxed.project, capture_output=True, check=False)
    assert done.returncode == 125, done.stderr
    assert b"was exchanged before" in done.stderr
    assert SECRET not in done.stdout
    assert b"begun" not in done.stdout


def test_a_path_that_was_resolved_has_no_link(tmp_path: Path) -> None:
    run, vault = tmp_path / "run", tmp_path / "state" / "vault"
    run.mkdir()
    vault.mkdir(parents=True)
    placed = (Placed(path=run, source=run, writable=True),)
    exchange(run, vault)
    for hidden in ((), (vault.parent,)):
        with pytest.raises(SandboxError) as refused:
            grants([], Confinement(placed=placed, hidden=hidden))
        assert refused.value.code == "exchanged_meanwhile"


def test_a_link_that_comes_while_it_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, vault = tmp_path / "run", tmp_path / "vault"
    run.mkdir()
    vault.mkdir()
    resolve = Path.resolve

    def then_exchanged(path: Path, strict: bool = False) -> Path:
        found = resolve(path, strict)
        if path == run and not run.is_symlink():
            exchange(run, vault)
        return found

    monkeypatch.setattr(reach.Path, "resolve", then_exchanged)
    with pytest.raises(SandboxError, match="was exchanged while"):
        grants([], Confinement(writable=(run,)))
