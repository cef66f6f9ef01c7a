"""The judge is recorded at approval: another one judges nothing until a person approves again."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.settings import CONFIG
from tests.cli.journey import Journey, make_project
from tests.own_judge import make_judge, site_of
from tests.terminal import run_in_terminal


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("judge")
    make_judge(folder)
    return folder


@pytest.fixture
def site(judge: Path) -> Iterator[Path]:
    folder = site_of(judge)
    before = {path.name for path in folder.iterdir()}
    yield folder
    for path in folder.iterdir():
        if path.name not in before:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.fixture
def journey(tmp_path: Path) -> Journey:
    return make_project(tmp_path / "project", tmp_path / "home")


def harness(judge: Path, journey: Journey, *words: str) -> "subprocess.CompletedProcess[str]":
    command = [judge / "bin" / "python", "-P", "-I", "-m", "harness", *words]
    return run_in_terminal(command, cwd=journey.root, env=journey.environment())


def trained(judge: Path, journey: Journey) -> dict:
    """A project whose own Python is the one of this test; the answer of its approval."""
    done(judge, journey, "init")
    with (journey.root / CONFIG).open("a", encoding="utf-8") as config:
        config.write(f"interpreter = {json.dumps(sys.executable)}\n")
    approved = done(judge, journey, "plan", "approve")
    done(judge, journey, "experiment", "new", "--hypothesis", "blobs")
    assert done(judge, journey, "train", "exp-0001")["ok"]
    return approved


def done(judge: Path, journey: Journey, *words: str) -> dict:
    ended = harness(judge, journey, *words, "--json")
    assert ended.returncode in (0, 1), ended.stdout + ended.stderr
    return json.loads(ended.stdout)


def refused(judge: Path, journey: Journey, *words: str) -> str:
    ended = harness(judge, journey, *words, "--json")
    assert ended.returncode == 2, ended.stdout + ended.stderr
    error = json.loads(ended.stdout)["error"]
    assert error["code"] == "judge_changed"
    assert "harness plan approve" in error["hint"]
    return error["message"]


def test_another_judge_judges_nothing_until_a_person_approves_again(
    judge: Path, site: Path, journey: Journey
) -> None:
    approved = trained(judge, journey)
    score = done(judge, journey, "evaluate", "exp-0001")["score"]
    assert score > 0.5
    verdict = done(judge, journey, "gate", "check", "exp-0001")

    # Planted in the site folder, where no distribution lists them; and our own code changed.
    planted = {
        "evil.pth": ("evil.pth", "import sys\n"),
        "sitecustomize.py": ("sitecustomize.py, unlisted: sitecustomize.py", "x = 1\n"),
        "brotli/__init__.py": ("unlisted: brotli", "x = 1\n"),
        "harness/evaluation/extra.py": ("harness/evaluation/extra.py", "x = 1\n"),
    }
    for name, (told, text) in planted.items():
        path = site / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
        assert f": {told}" in refused(judge, journey, "gate", "check", "exp-0001")
        path.unlink()
        if name.startswith("brotli"):
            shutil.rmtree(path.parent)
    scorer = site / "harness" / "evaluation" / "scoring.py"
    status, text = scorer.stat(), scorer.read_text("utf-8")
    scorer.write_text(text.replace("Scored(", "Scored( ", 1)[: len(text)], "utf-8")
    os.utime(scorer, ns=(status.st_atime_ns, status.st_mtime_ns))
    told = refused(judge, journey, "evaluate", "exp-0001")
    assert told.endswith(": harness/evaluation/scoring.py.")
    assert refused(judge, journey, "train", "exp-0001") == told
    assert refused(judge, journey, "train", "exp-0001", "--from", "exp-0001") == told

    # A person approves the change: the version, seeds, score and verdict stand.
    again = done(judge, journey, "plan", "approve")
    assert (again["version"], again["sha256"]) == (approved["version"], approved["sha256"])
    assert again["judge"]["sha256"] != approved["judge"]["sha256"]
    assert done(judge, journey, "evaluate", "exp-0001")["score"] == score
    judged = done(judge, journey, "gate", "check", "exp-0001")
    assert {**judged, "notes": []} == {**verdict, "notes": []}
    assert len(done(judge, journey, "experiment", "show", "exp-0001")["runs"]) == 3


def test_a_package_that_is_installed_as_it_should_changes_no_judge(
    judge: Path, site: Path, journey: Journey
) -> None:
    trained(judge, journey)
    listed = site / "einops-1.0.dist-info"
    listed.mkdir()
    (listed / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: einops\nVersion: 1.0\n", "utf-8"
    )
    (listed / "RECORD").write_text(
        "einops/__init__.py,,\neinops-1.0.dist-info/RECORD,,\n", "utf-8"
    )
    (site / "einops").mkdir()
    (site / "einops" / "__init__.py").write_text("", "utf-8")
    assert done(judge, journey, "evaluate", "exp-0001")["score"] > 0.5
