"""Honest work about code, data and places: it trains, is evaluated and passes, and nothing accuses
it."""

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.domain.statuses import SandboxKind
from harness.process import system_program
from harness.sandbox.select import SANDBOXES, available
from tests.cli.journey import Journey, make_project
from tests.workflows.honest import WORKFLOWS, Place, Workflow

KINDS = ("bwrap", "landlock")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(make_project(tmp_path / "project", tmp_path / "home"))
    yield place
    for folder in place.given_up:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("sandbox", KINDS)
@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda one: one.name)
def test_honest_work_passes(workflow: Workflow, sandbox: str, place: Place) -> None:
    if reason := available()[SandboxKind(sandbox)]:
        pytest.skip(f"{sandbox}: {reason}")
    if workflow.needs and importlib.util.find_spec(workflow.needs) is None:
        pytest.skip(f"{workflow.needs} is not installed")
    if sandbox not in workflow.where:
        pytest.skip(f"it does not work in {sandbox}")
    chosen = how(sandbox)
    journey, cwd = place.journey, place.root / workflow.cwd
    workflow.prepare(place)
    commit(place.root)
    passes(journey, "init")
    place.configure()
    passes(journey, "plan", "approve")
    commit(place.root)
    workflow.later(place)
    opened = passes(journey, "experiment", "new", "--hypothesis", "centroids", cwd=cwd)
    Path(opened["folder"], "config.yaml").write_text("model: centroids\n", "utf-8")
    command = ("train", "exp-0001")
    if workflow.by_nohup:
        by_nohup(journey, *command, alone=bool(chosen))
    else:
        words = ("--", *workflow.words) if workflow.words else ()
        trained = passes(journey, *command, *chosen, "--json", *words, cwd=cwd, as_json=False)
        assert [run["status"] for run in trained["runs"]] == ["completed"] * 3
    evaluated = passes(journey, "evaluate", "exp-0001", *chosen, cwd=cwd)
    claim = f"accuracy={evaluated['score']:.2f}"
    said = ("--claim", claim, "--summary", "As measured.")
    passes(journey, "experiment", "result", "exp-0001", *said, cwd=cwd)
    judged = passes(journey, "gate", "check", "exp-0001", cwd=cwd)
    assert (judged["verdict"], judged["findings"]) == ("PASS", [])
    audited = passes(journey, "audit")
    assert audited["changes"] == [], audited


def how(sandbox: str) -> tuple[str, ...]:
    """The options for `sandbox`: none where it is the strongest here, else a person gives a
    reason."""
    strongest = next(kind for kind in SANDBOXES if not available()[kind])
    if strongest is SandboxKind(sandbox):
        return ()
    return ("--sandbox", sandbox, "--reason", "The cluster's machines have no other.")


def passes(
    journey: Journey, *words: str, cwd: Path | None = None, as_json: bool = True
) -> dict[str, object]:
    """The answer of a command that must succeed."""
    answer = journey.harness(*words, *(["--json"] if as_json else []), cwd=cwd)
    assert answer.exit_code == 0, (words, answer.stdout, answer.stderr)
    return answer.document


WITHOUT_BWRAP = (
    *("unshare", "--map-root-user", "--mount", "/bin/sh", "-c"),
    'mount --bind /dev/null "$0" && exec "$@"',
    system_program("bwrap") or "/usr/bin/bwrap",
)
"""A machine whose strongest sandbox is landlock: a weaker one is chosen by a person at a terminal,
which `nohup` has none of."""


def by_nohup(journey: Journey, *words: str, alone: bool) -> None:
    """Started in the background of a terminal that is gone; its output lies in the project. `alone`:
    where landlock is the only sandbox."""
    command = ["/bin/sh", "-c", 'nohup "$@" & wait $!', "sh"]
    command += [*(WITHOUT_BWRAP if alone else ()), sys.executable, "-m", "harness", *words]
    with (journey.root / "nohup.out").open("wb") as output:
        done = subprocess.run(
            command,
            cwd=journey.root,
            env=journey.environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=240,
            check=False,
        )
    text = (journey.root / "nohup.out").read_text("utf-8")
    assert done.returncode == 0, text
    assert text.count("completed") >= 3, text


def commit(root: Path) -> None:
    """As the person does it."""
    words = ("-c", "user.name=A Person", "-c", "user.email=person@example.org")
    for command in (["init", "-q"], ["add", "-A"], [*words, "commit", "-q", "-m", "Work"]):
        subprocess.run(["git", *command], cwd=root, check=True, capture_output=True)
