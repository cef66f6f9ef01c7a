"""Which interpreter runs a command, what it says of itself, and how it finds the run logger."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from runs_support import Unconfined

from harness.artifacts.locate import Layout
from harness.artifacts.objects import load_object
from harness.domain.commands import with_interpreter
from harness.domain.statuses import SandboxKind
from harness.errors import RunError
from harness.runs.endings import explain, missing_package
from harness.runs.environment import ask_python, child_environment, prepare_private
from harness.runs.libraries import training_libraries
from harness.sandbox.select import SANDBOXES, available
from harness.settings import Settings


def test_python_is_the_projects_interpreter() -> None:
    assert with_interpreter(["python3", "train.py"], "/opt/py") == ["/opt/py", "train.py"]
    assert with_interpreter(["bash", "train.sh"], "/opt/py") == ["bash", "train.sh"]


def test_an_interpreter_tells_its_packages() -> None:
    python = ask_python(sys.executable, Unconfined())
    assert python["packages"]["numpy"]
    assert sys.prefix in python["prefixes"]


def test_a_package_beside_the_project_does_not_silence_its_interpreter(tmp_path: Path) -> None:
    """The sandbox of the question does not open what `pip install -e` points to."""
    if reason := available()[SandboxKind.LANDLOCK]:
        pytest.skip(reason)
    folder = tmp_path / "sibling" / "src"
    folder.mkdir(parents=True)
    command = [sys.executable, "-I", "-m", "venv", "--without-pip", str(tmp_path / ".venv")]
    subprocess.run(command, check=True, timeout=120)
    (packages,) = (tmp_path / ".venv/lib").glob("python*/site-packages")
    (packages / "gone.pth").symlink_to(tmp_path / "nowhere")
    (packages / "__editable__.sibling.pth").write_text(f"{folder}\n", "utf-8")
    sandbox = SANDBOXES[SandboxKind.LANDLOCK]()
    python = ask_python(str(tmp_path / ".venv/bin/python"), sandbox)
    assert python["project_paths"] == [str(folder)]


@pytest.mark.parametrize("interpreter", ["false"])
def test_an_interpreter_that_does_not_work_is_named(interpreter: str) -> None:
    with pytest.raises(RunError, match=interpreter):
        ask_python(interpreter, Unconfined())


@pytest.mark.parametrize("has_harness", [True, False])
def test_an_interpreter_without_the_harness_finds_the_run_logger(
    tmp_path: Path, has_harness: bool
) -> None:
    given = prepare_private(tmp_path, python={"has_harness": has_harness})
    assert bool(given) is not has_harness
    if given:
        environment = child_environment({}, tmp_path, given)
        words = [sys.executable, "-S", "-c", "import harness.run_logger as it; print(it.__file__)"]
        done = subprocess.run(
            words,
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert done.stdout.startswith(str(tmp_path / "lib"))
        assert [path.name for path in (tmp_path / "lib").iterdir()] == ["harness"]


@pytest.mark.parametrize(
    ("module", "package"), [("torch.nn", "torch"), ("harness", "experiment-harness")]
)
def test_a_package_that_the_interpreter_lacks_gets_its_hint(module: str, package: str) -> None:
    reason = explain(1, ["Traceback", f"ModuleNotFoundError: No module named '{module}'"])
    hint = missing_package(reason, "/opt/py/bin/python")
    assert hint is not None
    assert all(
        word in hint
        for word in (package, "/opt/py/bin/python -m pip", "`interpreter` in .harness/config.toml")
    )
    assert missing_package("crashed: ValueError: no", "/opt/py/bin/python") is None


def test_libraries_are_files_below_the_project_and_versions_elsewhere(tmp_path: Path) -> None:
    settings = Settings(
        root=tmp_path / "project",
        state=tmp_path / "state",
        project_id="test",
        interpreter=None,
        memory_dir=".harness/memory",
        readable=(),
    )
    layout = Layout(settings)
    python = {"python": "3.11.2", "packages": {"numpy": "2.4.0"}}

    def kept(*programs: str) -> dict[str, str]:
        digest = training_libraries(layout, programs, python)
        found: dict[str, str] = json.loads(load_object(layout.objects, digest))
        return found

    assert kept(sys.executable) == {"python": "3.11.2", "numpy": "2.4.0"}
    own = layout.root / ".venv"
    site = own / "lib/python3.11/site-packages"
    site.mkdir(parents=True)
    (own / "bin").mkdir()
    (own / "bin/python").symlink_to(sys.executable)
    (own / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).parent}\n")
    (site / "lib.py").write_text("x = 1\n")
    before = kept("bash", str(own / "bin/python"))
    assert {"lib", "bin/python", "pyvenv.cfg"} <= before.keys()
    (site / "lib.py").write_text("x = 2\n")
    after = kept(str(own / "bin/python"))
    assert {name for name in before if before[name] != after[name]} == {"lib"}
