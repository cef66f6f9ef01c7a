"""The second half of `make compat`, against a folder of wheels in the place of an index."""

import subprocess
import sys
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

from tests import compat_libraries as compat

PROOF = """import importlib.metadata, sys
import torch, trl

def test_versions():
    print(trl.__file__)
    assert importlib.metadata.version("torch") == {torch!r}
    assert torch.__file__.startswith(sys.prefix)
    assert trl.__version__ == importlib.metadata.version("trl")
    assert trl.__version__ != "99.0"
"""


def wheel(folder: Path, name: str, number: str, *, needs: str = "") -> None:
    info = f"{name}-{number}.dist-info"
    told = f"Metadata-Version: 2.1\nName: {name}\nVersion: {number}\n"
    files = {
        f"{name}/__init__.py": f"__version__ = {number!r}\n",
        f"{info}/METADATA": told + (f"Requires-Dist: {needs}\n" if needs else ""),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{one},,\n" for one in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(folder / f"{name}-{number}-py3-none-any.whl", "w") as made:
        for one, text in {**files, f"{info}/RECORD": record}.items():
            made.writestr(one, text)


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "wheels"
    folder.mkdir()
    for name in compat.LIBRARIES:
        wheel(folder, name, version(name))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    proof = tmp_path / "test_versions.py"
    proof.write_text(PROOF.format(torch=version("torch")))
    monkeypatch.setattr(compat, "PROOFS", (str(proof), "-p", "no:cacheprovider"))
    return folder


def test_the_newest_that_are_the_pinned_ones_run_once(
    index: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["compat"])
    recorded: list[object] = []
    monkeypatch.setattr(compat, "record", lambda *words: recorded.append(words))
    assert compat.main() == 0
    monkeypatch.setattr(sys, "argv", ["compat", "--record"])
    assert compat.main() == 0
    told = capfd.readouterr().out
    assert told.count("they ran once") == told.count("1 passed") == 2
    ((_, _, figures),) = recorded
    assert figures["newest trl"] == figures["pinned trl"] == version("trl")
    assert figures["result"] == "pass"


def test_a_newer_one_is_proved_in_an_environment_of_its_own(
    index: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    wheel(index, "trl", "99.0", needs="torch")
    monkeypatch.setattr(sys, "argv", ["compat", "--record"])
    recorded: list[object] = []
    monkeypatch.setattr(compat, "record", lambda *words: recorded.append(words))
    assert compat.main() == 1
    told = capfd.readouterr().out
    where = Path(sys.prefix).parent / "build"
    assert f"{where}/" in told  # the failed assertion's file, and no other fails
    assert told.count("1 passed") == told.count("1 failed") == 1
    assert "AssertionError: assert '99.0' != '99.0'" in told
    pinned, newest = told.splitlines()[-2:]
    assert pinned.endswith(f"peft {version('peft')}: pass")
    assert newest.startswith(f"trl 99.0, transformers {version('transformers')}, ")
    assert newest.endswith("FAIL")
    ((_, _, figures),) = recorded
    assert (figures["newest trl"], figures["result"]) == ("99.0", "FAIL")
    # This environment is what it was.
    asked = [sys.executable, "-c", "import trl; print(trl.__version__)"]
    assert subprocess.check_output(asked, text=True).strip() == version("trl") != "99.0"
