"""The warm server of tests: a call says how it died, and the next call starts another one."""

import shutil
import sys
from pathlib import Path

import pytest

from tests import warm


@pytest.mark.parametrize("program", ["false", "true"])
def test_a_server_that_died_is_named_with_its_exit_code_and_not_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    servers: list[warm.Warm] = []
    monkeypatch.setattr(warm, "_warm", servers)
    monkeypatch.setattr(sys, "executable", shutil.which(program))
    for _ in range(2):
        with pytest.raises(
            RuntimeError, match=f"exit code {int(program == 'false')} while .* asked for .'status'"
        ):
            warm.run_warm(["status"], cwd=tmp_path, env={})
        assert servers == []
