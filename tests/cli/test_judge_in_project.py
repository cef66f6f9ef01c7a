"""The judge runs from the project's own environment: what is judged cannot write there, or it does
not judge."""

import json
import subprocess
from pathlib import Path

import pytest

from harness.domain.statuses import SandboxKind
from harness.errors import ConfigError
from harness.guard import own_python
from harness.guard.own_python import judge_below, require_out_of_reach
from harness.sandbox.select import available
from harness.settings import CONFIG
from tests.centroids import TRAIN
from tests.cli.journey import Journey, make_project
from tests.own_judge import LINKED, make_judge, site_of
from tests.terminal import run_in_terminal

PLANTS = """
import contextlib, os, sysconfig
for folder in {sysconfig.get_path("purelib"), "@SITE@"}:
    for name in ("planted.pth", "json.py"):
        with contextlib.suppress(OSError):
            open(os.path.join(folder, name), "w").write("import sys")
"""
# What the sandbox of a session lets through, as the loop makes it.
SESSION = """
import pathlib, sys
from harness.driver.environment import confinement, session_folders
from harness.ledger.project import open_project
from harness.sandbox.select import SANDBOXES
import os
with open_project(pathlib.Path("."), os.environ) as project:
    folders = session_folders(project.layout, "s-1")
    folders.create()
    confined = confinement(project, project.plan(), folders, gateway_port=9999)
    done = SANDBOXES[sys.argv[1]]().run(
        ["/bin/sh", "-c", "echo 1 > ok.txt; echo import sys > " + sys.argv[2]
         + "/planted.pth; mv .venv .old; true"],
        confinement=confined, cwd=project.layout.root, environment={}, timeout_s=60)
    assert done.exit_code == 0, done.stderr
"""


@pytest.fixture
def journey(tmp_path: Path) -> Journey:
    made = make_project(tmp_path / "project", tmp_path / "home")
    make_judge(made.root / ".venv")
    (made.root / ".gitignore").write_text("data/\n.venv/\n", "utf-8")
    harness(made, "init")
    with (made.root / CONFIG).open("a", encoding="utf-8") as config:
        config.write(f"readable = [{json.dumps(str(LINKED))}]\n")
    harness(made, "plan", "approve")
    return made


def own(journey: Journey, *words: str) -> "subprocess.CompletedProcess[str]":
    command = [journey.root / ".venv/bin/python", "-P", "-I", *words]
    return run_in_terminal(command, cwd=journey.root, env=journey.environment())


def harness(journey: Journey, *words: str, code: int = 0) -> dict:
    done = own(journey, "-m", "harness", *words, "--json")
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("kind", ["bwrap", "landlock"])
def test_training_plants_nothing_in_the_judges_environment(journey: Journey, kind: str) -> None:
    if reason := available()[SandboxKind(kind)]:
        pytest.skip(reason)
    site = site_of(journey.root / ".venv")
    (journey.root / "train.py").write_text(TRAIN + PLANTS.replace("@SITE@", str(site)), "utf-8")
    harness(journey, "experiment", "new", "--hypothesis", "blobs")
    chosen = ["--sandbox", kind, *(["--reason", "a test"] if kind == "landlock" else [])]
    trained = harness(journey, "train", "exp-0001", *chosen)
    assert {run["status"] for run in trained["runs"]} == {"completed"}
    assert not list(site.glob("planted.pth"))
    assert not list(site.glob("json.py"))
    harness(journey, "evaluate", "exp-0001", *chosen)


def test_a_session_cannot_write_it_in_bwrap_and_is_refused_in_landlock(journey: Journey) -> None:
    if reason := available()[SandboxKind.BWRAP]:
        pytest.skip(reason)
    site = site_of(journey.root / ".venv")
    done = own(journey, "-c", SESSION, "bwrap", str(site))
    assert done.returncode == 0, done.stderr
    assert (journey.root / "ok.txt").exists()
    assert not (site / "planted.pth").exists()
    assert site.is_dir()
    scenario = journey.root / "scenario.yaml"
    turns = "turns: [{text: done}, {text: done}]"  # the second one answers a reminder
    scenario.write_text(f"sessions: [{{role: model-builder, {turns}}}]\n", "utf-8")
    chosen = ["--sandbox", "landlock", "--reason", "a test", "--scenario", str(scenario)]
    refused = harness(journey, "run", *chosen, code=2)["error"]
    assert refused["code"] == "judge_in_reach"
    assert str(journey.root / ".venv") in refused["message"]
    assert "pipx" in refused["hint"]


def test_one_outside_the_project_is_nobodys_business(tmp_path: Path) -> None:
    assert judge_below(tmp_path) == []
    require_out_of_reach(tmp_path, SandboxKind.LANDLOCK)


def test_a_link_in_the_project_is_refused_in_every_sandbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, elsewhere = tmp_path / "project", tmp_path / "venv"
    root.mkdir()
    elsewhere.mkdir()
    (root / ".venv").symlink_to(elsewhere)
    monkeypatch.setattr(own_python.sys, "prefix", str(root / ".venv"))
    for kind in (SandboxKind.BWRAP, SandboxKind.LANDLOCK):
        with pytest.raises(ConfigError, match=r"\.venv is a link, which an agent could replace"):
            require_out_of_reach(root, kind)
    require_out_of_reach(root, SandboxKind.NONE)
