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
from harness.runs.environment import (
    ask_python,
    child_environment,
    prepare_private,
    training_libraries,
)
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


def test_a_program_of_another_environment_is_not_told_to_install() -> None:
    reason = explain(1, ["ModuleNotFoundError: No module named 'torch'"])
    hint = missing_package(reason, "/usr/bin/torchrun")
    assert hint is not None
    assert "a bare name after `--` is looked up in its environment first" in hint
    assert "-m pip" not in hint


TORCHRUN = """\
[rank1]: Traceback (most recent call last):
[rank1]:   File "/work/train.py", line 7, in <module>
[rank1]:     raise ValueError("the labels are 1 to 10")
[rank1]: ValueError: the labels are 1 to 10
E1129 13:40:11.002000 41 torch/distributed/elastic/multiprocessing/api.py:882] failed (exitcode: 1) local_rank: 1
Traceback (most recent call last):
  File "/venv/bin/torchrun", line 8, in <module>
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  rank      : 1 (local_rank: 1)
  exitcode  : 1 (pid: 43)
  error_file: <N/A>
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
============================================================
"""
ACCELERATE = """\
Traceback (most recent call last):
KeyError: 'label'
Traceback (most recent call last):
  File "/venv/bin/accelerate", line 8, in <module>
subprocess.CalledProcessError: Command '['/venv/bin/python', 'train.py']' returned non-zero exit status 1.
"""
SPAWN = """\
Traceback (most recent call last):
torch.multiprocessing.spawn.ProcessRaisedException:

-- Process 1 terminated with the following error:
Traceback (most recent call last):
ZeroDivisionError: division by zero
"""
PEER = """\
[rank1]: ValueError: the shard of rank 1 is empty
[rank0]: RuntimeError: [gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:5786.
"""
MEMORY = TORCHRUN[TORCHRUN.index("Traceback (most recent call last):\n  File") :]
MEMORY = MEMORY.replace("exitcode  : 1 ", "exitcode  : -9 ")


@pytest.mark.parametrize(
    ("stderr", "reason"),
    [
        (TORCHRUN, "crashed: ValueError: the labels are 1 to 10"),
        (ACCELERATE, "crashed: KeyError: 'label'"),
        (PEER, "crashed: ValueError: the shard of rank 1 is empty"),
        (SPAWN, "crashed: ZeroDivisionError: division by zero"),
        (MEMORY, "one of its processes was killed by SIGKILL, which the harness did not send: "),
        ("Traceback\nChildFailedError: train.py FAILED\n", "crashed: ChildFailedError: "),
    ],
)
def test_a_failure_is_the_childs_own(stderr: str, reason: str) -> None:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    assert explain(1, lines).startswith(reason)


@pytest.mark.parametrize("mark", ["pyvenv.cfg", "conda-meta"])
def test_a_bare_name_is_a_program_of_the_interpreters_environment(
    tmp_path: Path, mark: str
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("python", "torchrun", "fit"):
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)
    python = str(programs / "python")
    # Without the mark it is the system's Python: its neighbours are no environment's.
    assert with_interpreter(["torchrun", "train.py"], python) == ["torchrun", "train.py"]
    (tmp_path / mark).mkdir()
    assert with_interpreter(["torchrun", "train.py"], python) == [
        str(programs / "torchrun"),
        "train.py",
    ]
    assert with_interpreter(["fit"], python) == [str(programs / "fit")]
    assert with_interpreter(["python3", "a.py"], python) == [python, "a.py"]
    for words in (["bash", "run.sh"], ["./torchrun"], []):
        assert with_interpreter(words, python) == words
