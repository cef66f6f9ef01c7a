"""The Python for hooks: one that ran the guard rightly; shims and scripts are told from it without
being started."""

import sys
from pathlib import Path

import pytest

from harness.errors import RefusedError
from harness.install.hook_interpreter import candidates, choose, stand_in

SYSTEM = "/usr/bin/python3"


def program(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def test_the_system_s_comes_first_and_the_one_before_it_before_that() -> None:
    assert candidates()[0] == SYSTEM
    assert candidates("/opt/python3")[:2] == ("/opt/python3", SYSTEM)
    assert Path(candidates()[-1]).is_absolute()
    assert candidates(SYSTEM) == candidates()


def test_the_environment_s_own_python_is_not_among_them() -> None:
    assert sys.executable not in candidates()
    assert "virtual environment" in stand_in(Path(sys.executable))


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("shims/python3", "#!/bin/sh\nexec pyenv exec python3\n", "is a shim"),
        (".asdf/shims/python3", "binary", "is a shim"),
        ("bin/uv", "binary", "is uv"),
        ("bin/python3", '#!/usr/bin/env bash\nexec python3.12 "$@"\n', "is a script"),
    ],
)
def test_what_picks_another_python_is_rejected(
    tmp_path: Path, name: str, text: str, why: str
) -> None:
    path = program(tmp_path / name, text)
    assert why in stand_in(Path(path))
    link = tmp_path / "linked" / "python3"
    link.parent.mkdir()
    link.symlink_to(path)
    assert why in stand_in(link), "also behind a link"


def test_what_is_not_there_or_may_not_run_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "python3").write_text("binary")
    assert "does not exist" in stand_in(tmp_path / "none")
    assert "executed" in stand_in(tmp_path / "python3")
    assert "absolute" in stand_in(Path("python3"))


def test_the_first_that_guards_is_chosen_and_the_others_are_named(tmp_path: Path) -> None:
    shim = program(tmp_path / "shims" / "python3", "#!/bin/sh\n")
    chosen = choose([shim, "/bin/true", "/bin/cat", SYSTEM, "/never/looked/at"])
    assert chosen.interpreter == SYSTEM
    said = dict(chosen.rejected)
    assert set(said) == {shim, "/bin/true", "/bin/cat"}
    assert "does not deny" in said["/bin/true"]


def test_none_is_refused_with_what_is_wrong_with_each(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="/bin/false does not deny") as refused:
        choose([str(tmp_path / "none"), "/bin/false"])
    assert refused.value.code == "no_interpreter"
