"""A wheel holds the templates and works without the checkout."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import harness
from harness.contract.roles import ROLES
from harness.rendering.prompts import agent_file
assert harness.__file__.startswith(sys.argv[1]), harness.__file__
print(sum(len(agent_file(role)) for role in ROLES))
"""


def test_wheel_renders_the_same_agents(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    for name in ("harness", "templates"):
        shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*command, "-w", str(tmp_path / "out"), str(source)], check=True, timeout=240)
    (wheel,) = (tmp_path / "out").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path / "installed")
    wanted = {f"harness/rendering/templates/{path.relative_to(ROOT / 'templates')}" for path in templates()}
    assert wanted <= set(names)
    assert {name.split("/")[0].split("-")[0] for name in names} == {"harness", "experiment_harness"}
    words = [sys.executable, "-c", PROGRAM, str(tmp_path / "installed")]
    ended = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    from harness.contract.roles import ROLES
    from harness.rendering.prompts import agent_file

    assert int(ended.stdout) == sum(len(agent_file(role)) for role in ROLES)


def templates() -> list[Path]:
    return [path for path in (ROOT / "templates").rglob("*") if path.is_file()]
