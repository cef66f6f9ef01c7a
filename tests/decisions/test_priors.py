"""The checks of priors: what holds, what does not, what takes too long; and that nothing of one is
left."""

import time
from pathlib import Path

import psutil
import pytest

from harness.decisions.priors import CheckedPrior, Holds, check_priors
from harness.errors import NotFoundError
from harness.ledger.project import Project

ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/nowhere",
    "ANTHROPIC_API_KEY": "k",
    "CLAUDECODE": "1",
}


def prior(project: Project, check: list[str] | None, **fields: str) -> str:
    return project.ledger.record_prior(
        **{
            "lesson": "l",
            "evidence": "e",
            "rule": "r",
            "by": "human:ada",
            "check": check,
            **fields,
        }
    ).id


def checked(project: Project, *names: str, seconds: float = 60.0) -> list[CheckedPrior]:
    return check_priors(project, names, ENVIRONMENT, seconds=seconds)


def test_each_check_runs_in_the_project_and_says_how_it_ended(project: Project) -> None:
    prior(project, ["python", "-c", "import os; print(os.getcwd())"])
    prior(project, ["python", "-c", "print('why'); raise SystemExit(3)"])
    prior(project, None)
    prior(project, ["no-such-program-here"])
    first, second, third, fourth = checked(project)
    assert (first.holds, first.exit_code, first.output) == (Holds.YES, 0, str(project.layout.root))
    assert (second.holds, second.exit_code, second.output) == (Holds.NO, 3, "why")
    assert third.holds is Holds.UNCHECKED
    assert (fourth.holds, "could not be started" in fourth.output) == (Holds.NO, True)
    assert [item.holds.broken for item in (first, second, third, fourth)] == [
        False,
        True,
        False,
        True,
    ]


def test_a_check_gets_neither_keys_nor_the_marks_of_an_agent(project: Project) -> None:
    prior(project, ["python", "-c", "import os; print(sorted(os.environ))"])
    (item,) = checked(project)
    assert "'HOME'" in item.output
    assert "ANTHROPIC_API_KEY" not in item.output
    assert "CLAUDECODE" not in item.output


def test_harness_is_this_harness_whatever_the_path_and_the_project_have(project: Project) -> None:
    (project.layout.root / "harness.py").write_text("raise SystemExit(9)\n", "utf-8")
    prior(project, ["harness", "--version"])
    (item,) = checked(project)
    assert (item.holds, item.output.startswith("harness, version")) == (Holds.YES, True)


def test_a_check_that_takes_too_long_is_ended_with_what_it_started(
    project: Project, tmp_path: Path
) -> None:
    note = tmp_path / "pid"
    prior(project, ["sh", "-c", 'sleep 600 & echo $! > "$0"; wait', str(note)])
    (item,) = checked(project, seconds=2.0)
    assert (item.holds, item.exit_code) == (Holds.LATE, None)
    left = int(note.read_text())
    for _ in range(300):
        if not alive(left):
            break
        time.sleep(0.1)
    assert not alive(left)


def alive(pid: int) -> bool:
    """A zombie that nobody has waited for is not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_only_the_end_of_a_long_output_is_kept(project: Project) -> None:
    prior(project, ["python", "-c", "print('x' * 100000); print('the end')"])
    (item,) = checked(project)
    assert item.output.endswith("the end")
    assert len(item.output) <= 2000


def test_superseded_priors_are_checked_only_by_name(project: Project) -> None:
    first = prior(project, ["python", "-c", "raise SystemExit(1)"])
    second = prior(project, ["python", "-c", "pass"], supersedes=first)
    assert [(item.prior.id, item.holds) for item in checked(project)] == [(second, Holds.YES)]
    assert [item.prior.id for item in checked(project, first, second)] == [first, second]
    with pytest.raises(NotFoundError, match="p-0009"):
        checked(project, first, "p-0009")
