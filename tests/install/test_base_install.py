"""The wheel, installed from a local index with the words of the README, without what it does not
need."""

import os
import pty
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.cli.test_first_start import table
from tests.wheels import copied_source, needed, packed, uv_takes

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
README = (ROOT / "README.md").read_text("utf-8")
LEFT_OUT = ("torch", "scipy", "claude_agent_sdk", "transformers", "sklearn", "datasketch")
pytestmark = [pytest.mark.slow, pytest.mark.parallel]


def words(beginning: str) -> str:
    """The README's line that begins so, without its comment."""
    (line,) = re.findall(rf"^{re.escape(beginning)}.*$", README, re.M)
    return line.split("  #")[0].strip()


class Machine:
    """A HOME, a clone, and wheels instead of a network."""

    def __init__(self, base: Path) -> None:
        self.home, self.clone = base / "home", base / "clone"
        self.home.mkdir()
        copied_source(self.clone)
        for found in needed([*PROJECT["dependencies"], "setuptools"]):
            packed(found, base / "index")
        uv_takes(self.home, base / "index")
        self.path = f"{base / 'own/bin'}{os.pathsep}{os.environ['PATH']}"
        self.offline = {
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(base / "index"),
            "UV_PYTHON": str(Path(sys.executable).resolve()),
            "UV_PYTHON_DOWNLOADS": "never",
        }

    def run(self, line: str, cwd: Path, *, code: int = 0) -> str:
        keyboard, terminal = pty.openpty()
        try:
            done = subprocess.run(
                ["bash", "-euc", line],
                cwd=cwd,
                env={
                    "PATH": self.path,
                    "HOME": str(self.home),
                    "LANG": "C.UTF-8",
                    "OMP_NUM_THREADS": "1",
                    **self.offline,
                },
                stdin=terminal,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=240,
                check=False,
            )
        finally:
            os.close(keyboard)
            os.close(terminal)
        assert done.returncode == code, (line, done.stdout)
        return done.stdout


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return Machine(tmp_path_factory.mktemp("machine"))


@pytest.mark.ci
def test_a_base_install_from_wheels_judges_an_experiment(machine: Machine) -> None:
    base = machine.clone.parent
    machine.run("python3 -m venv own", base)
    machine.run(words("pip wheel "), machine.clone)
    machine.run(words("pip install --no-index "), machine.clone)
    (site,) = (base / "own/lib").glob("python3.*/site-packages")
    there = {path.name for path in site.iterdir()}
    assert there.isdisjoint(LEFT_OUT)
    megabytes = sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) / 1e6
    assert megabytes < 250

    project = base / "churn"
    table(project / "data/all.csv", 400, 3)
    for line in (
        "harness init --data data/all.csv --label churned --metric accuracy",
        "harness plan approve",
        'harness try "the starting program"',
        "harness keep",
    ):
        machine.run(line, project)
    assert "KEEP" in machine.run("harness report", project)
    said = machine.run("harness run", project, code=2)
    assert "leads agents by the Agent SDK (claude_agent_sdk), which is not here" in said
    assert "experiment-harness[loop]" in said
    assert "harness" in machine.run("harness --help", project)


def test_uv_installs_it_as_a_tool(machine: Machine) -> None:
    uv = Path(sys.executable).with_name("uv")
    if not uv.exists():
        pytest.skip("uv is not installed beside this Python")
    for line in (words("uv tool install "), words("uvx --from ")):
        said = machine.run(
            f"{uv.parent}/{line.replace('PATH-OF-THE-CLONE', str(machine.clone))}", machine.home
        )
    assert said.strip().endswith(PROJECT["version"])
    assert (machine.home / ".local/bin/harness").exists()


def interpreters() -> list[str]:
    """Of the versions that the package is said to run on, those that this machine has."""
    found = []
    for classifier in PROJECT["classifiers"]:
        number = classifier.rpartition(":: ")[2]
        if not re.fullmatch(r"3\.\d+", number):
            continue
        beside = Path(sys.base_prefix).parent  # pyenv's, and those of a tool cache
        own = sorted(beside.glob(f"{number}.*/bin/python{number}"))
        found += [str(path) for path in own[:1]] or filter(None, [shutil.which(f"python{number}")])
    return found


@pytest.mark.ci
def test_each_python_here_compiles_it_and_logs_a_run(tmp_path: Path) -> None:
    """What needs no package: the rest ran on the Python of this suite alone."""
    assert {one.rpartition(":: ")[2] for one in PROJECT["classifiers"]} >= {"3.11", "3.14"}
    assert len(interpreters()) >= 1
    program = (
        "from harness.run_logger import RunLogger\n"
        "with RunLogger.from_environment() as log:\n"
        "    log.start(total_epochs=1)\n    log.epoch(0, {'loss': 0.5})\n"
    )
    for place, python in enumerate(interpreters()):
        folder = tmp_path / str(place)
        folder.mkdir()
        clean = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "LANG": "C.UTF-8"}
        clean["PYTHONPYCACHEPREFIX"] = str(folder / "cache")
        for words in (["-m", "compileall", "-q", str(ROOT / "harness")], ["-c", program]):
            done = subprocess.run(
                [python, *words],
                cwd=folder,
                env={**clean, "PYTHONPATH": str(ROOT)},
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            assert done.returncode == 0, (python, done.stdout, done.stderr)
        (rows,) = folder.glob("harness-runs/*/metrics.jsonl")
        assert '"loss":0.5' in rows.read_text()


@pytest.mark.ci
def test_the_image_takes_what_is_there() -> None:
    text = (ROOT / "Dockerfile").read_text("utf-8")
    copied = [name for line in re.findall(r"^COPY (.*) \S+$", text, re.M) for name in line.split()]
    assert [name for name in copied if not (ROOT / name).exists()] == []
    assert "bubblewrap" in text


def test_docker_builds_the_image_and_its_sandbox_works() -> None:
    if shutil.which("docker") is None:
        pytest.skip("docker is not here")
    if subprocess.run(["docker", "info"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no docker daemon answers here")
    name = "experiment-harness-test"
    subprocess.run(["docker", "build", "-q", "-t", name, str(ROOT)], check=True, timeout=1200)
    line = words("docker run ").partition("experiment-harness")[0].replace("-it", "").split()
    shell = "harness init --hooks none --example sklearn && harness try first"
    mount = [part.replace('"$PWD"', "/tmp") for part in line]
    mount = [part for part in mount if part != "-v" and ":/project" not in part]
    subprocess.run([*mount, "--entrypoint", "bash", name, "-c", shell], check=True, timeout=600)
