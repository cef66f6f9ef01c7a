"""A wheel holds templates, hooks, policy and examples, and works without the checkout."""

import subprocess
import sys
import zipfile
from pathlib import Path

from harness.contract.installation import VENDORED
from harness.contract.roles import ROLES
from harness.rendering.prompts import agent_file
from harness.rendering.vendored_hooks import vendored_files
from tests.wheels import copied_source

ROOT = Path(__file__).parents[2]
PROGRAM = """
import os
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import harness
from harness.contract.roles import ROLES
from harness.install.install import install
from harness.rendering.prompts import agent_file
assert harness.__file__.startswith(sys.argv[1]), harness.__file__
done = install(Path(sys.argv[2]), None, os.environ, by="human:ada")
assert done.conflicts == (), done.conflicts
from harness.install.examples import copy_example, example
copy_example(example("sklearn"), Path(sys.argv[2] + "-example"))
assert Path(sys.argv[2] + "-example", "data/churn.csv").is_file()
print(sum(len(agent_file(role)) for role in ROLES))
"""


def test_wheel_renders_the_same_agents_and_installs_the_same_hooks(tmp_path):
    source = tmp_path / "source"
    copied_source(source)
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
    ]
    subprocess.run([*command, "-w", str(tmp_path / "out"), str(source)], check=True, timeout=240)
    (wheel,) = (tmp_path / "out").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path / "installed")
    wanted = {f"harness/rendering/{path.relative_to(ROOT)}" for path in shipped()}
    wanted |= {f"harness/{path.relative_to(ROOT)}" for path in example_files()}
    assert wanted <= set(names)
    assert {name.split("/")[0].split("-")[0] for name in names} == {
        "harness",
        "experiment_harness",
    }
    words = [sys.executable, "-c", PROGRAM, str(tmp_path / "installed"), str(tmp_path / "project")]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path / "home")}
    ended = subprocess.run(
        words,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    for name, data in vendored_files().items():
        assert (tmp_path / "project" / VENDORED / name).read_bytes() == data
    assert int(ended.stdout) == sum(len(agent_file(role)) for role in ROLES)


def example_files() -> list[Path]:
    files = [path for path in (ROOT / "examples").rglob("*") if path.is_file()]
    return [path for path in files if "__pycache__" not in path.parts]


def shipped() -> list[Path]:
    templates = [path for path in (ROOT / "templates").rglob("*") if path.is_file()]
    return [*templates, *(ROOT / "hooks").glob("*.py")]
