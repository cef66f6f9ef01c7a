"""A script that scores with packages: a wheel that the test builds is the index, and what is
installed of it is frozen."""

import re
import zipfile
from pathlib import Path

import pytest

from tests.cli.journey import Answer, Journey, make_project

CODE = """def right(labels, answers):
    return sum(one == other for one, other in zip(labels, answers)) / len(labels)
"""
SCORER = """import rightness

def score(labels, predictions):
    return rightness.right(labels, [int(float(row["prediction"])) for row in predictions])
"""
FIRST, SECOND = "rightness==1.0", "rightness==2.0"


def wheel(folder: Path, version: str) -> None:
    folder.mkdir(exist_ok=True)
    inside = f"rightness-{version}.dist-info"
    head = f"Metadata-Version: 2.1\nName: rightness\nVersion: {version}\n"
    kind = "Wheel-Version: 1.0\nGenerator: a test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files = {"rightness.py": CODE, f"{inside}/METADATA": head, f"{inside}/WHEEL": kind}
    record = "".join(f"{name},,\n" for name in [*files, f"{inside}/RECORD"])
    with zipfile.ZipFile(folder / f"rightness-{version}-py3-none-any.whl", "w") as archive:
        for name, text in {**files, f"{inside}/RECORD": record}.items():
            archive.writestr(name, text)


class Story:
    """One project, from a plan that nothing can install to a judged experiment and a broken
    environment."""

    def __init__(self, base: Path) -> None:
        self.journey = make_project(base / "project", base / "home")
        self.wheels = base / "wheels"
        for version in ("1.0", "2.0"):
            wheel(self.wheels, version)
        (self.journey.root / "score.py").write_text(SCORER)
        self.plan(FIRST)
        self.said = {"init": self("init")}

    def plan(self, *packages: str) -> None:
        path = self.journey.root / "plan.md"
        text = path.read_text("utf-8")
        if "packages:" not in text:
            text = text.replace("metric: accuracy", "metric: rightness\n  packages: []")
        text = re.sub(r"  packages: .*", f"  packages: [{', '.join(packages)}]", text)
        path.write_text(re.sub(r"  scorer: .*", "  scorer: score.py", text), "utf-8")

    def __call__(self, *words: str, index: bool = True) -> Answer:
        more = {"PIP_FIND_LINKS": str(self.wheels)} if index else {}
        return self.journey.harness(*words, PIP_NO_INDEX="1", **more)

    def environment(self) -> Path:
        """The one of the first version."""
        texts = (self.journey.state / "vault/scorers").glob("*/installed.txt")
        return next(text.parent for text in texts if text.read_text() == f"{FIRST}\n")


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    told = Story(tmp_path_factory.mktemp("packages"))
    said = told.said
    said["checked"] = told("plan", "check", "--json")
    said["offline"] = told("plan", "approve", "--json", index=False)
    said["after"] = told("status", "--json")
    said["approved"] = told("plan", "approve", "--json")
    said["tried"] = told("try", "centroids", "--json")
    said["again"] = told("plan", "approve", "--json", index=False)
    module = next(told.environment().rglob("rightness.py"))
    module.chmod(0o644)
    module.write_text(CODE.replace("len(labels)\n", "1\n"))
    said["gate"] = told("gate", "check", "exp-0001", "--json")
    said["train"] = told("train", "exp-0001", "--json")
    module.write_text(CODE)
    told.plan(SECOND)
    said["second"] = told("plan", "approve", "--json")
    return told


def test_without_an_index_it_says_what_is_missing_and_approves_nothing(story: Story) -> None:
    (note,) = [one for one in story.said["checked"].document["findings"] if "score" in one["code"]]
    assert note["code"] == "scorer_not_probed"
    assert "oracle.packages" in note["message"]
    refused = story.said["offline"]
    error = refused.document["error"]
    assert (refused.exit_code, error["code"]) == (2, "scorer_packages")
    assert FIRST in error["message"]
    assert "PIP_FIND_LINKS" in error["hint"]
    assert story.said["after"].document["plan"] is None


def test_it_scores_with_what_was_installed_for_it_alone(story: Story) -> None:
    assert story.said["approved"].exit_code == 0, story.said["approved"].stdout
    assert story.said["tried"].exit_code == 0, story.said["tried"].stdout
    assert story.environment().is_dir()
    assert story.said["again"].document["version"] == 1


def test_a_changed_file_of_it_is_a_finding(story: Story) -> None:
    codes = {one["code"] for one in story.said["gate"].document["findings"]}
    assert "scorer_changed" in codes
    error = story.said["train"].document["error"]
    assert (story.said["train"].exit_code, error["code"]) == (2, "scorer_changed")
    assert "environment" in error["message"]


def test_another_version_begins_a_new_comparison(story: Story) -> None:
    error = story.said["second"].document["error"]
    assert error["code"] == "changes_not_confirmed"
    assert f"-{FIRST}" in error["message"]
    assert f"+{SECOND}" in error["message"]
    assert "new comparison, for the scorer's packages changed" in error["message"]


def test_a_package_of_a_built_in_scorer_or_without_a_version_is_refused(tmp_path: Path) -> None:
    journey: Journey = Story(tmp_path).journey
    text = (journey.root / "plan.md").read_text("utf-8")
    for edit, words in {
        (FIRST, "rightness"): "a package with its version",
        ("scorer: score.py", "scorer: accuracy"): "needs no packages",
    }.items():
        (journey.root / "plan.md").write_text(text.replace(*edit), "utf-8")
        refused = journey.harness("plan", "check", "--json")
        assert refused.exit_code == 2
        assert words in refused.document["error"]["message"]
