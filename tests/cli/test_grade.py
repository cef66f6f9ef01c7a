"""The grade of a score by what users and agents type: who trained, who evaluated, which session was
there, and what a person lowered."""

import contextlib
import dataclasses
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness.domain.grade import PERSON
from harness.domain.statuses import SandboxKind
from harness.ledger.facts import EvaluationRecorded, SessionBegan
from harness.ledger.project import open_project
from harness.process import identity
from harness.sandbox.select import available, stronger
from tests.cli.journey import PLAN, Journey, make_project
from tests.invariants.scenario import SCENARIO

AGENT = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "5b0c"}
SESSION_LOWERED = "recomputed, session not isolated"

pytestmark = pytest.mark.skipif(
    stronger(SandboxKind.NONE) is None, reason="no sandbox works here: nothing can be lowered"
)


@pytest.fixture
def journey(tmp_path: Path) -> Journey:
    """A project with one seed and an open experiment."""
    made = make_project(tmp_path / "project", tmp_path / "home")
    (made.root / "plan.md").write_text(PLAN.replace("seeds: 3", "seeds: 1"), "utf-8")
    for words in (
        ("init",),
        ("plan", "approve"),
        ("experiment", "new", "--hypothesis", "centres"),
    ):
        assert made.harness(*words).exit_code == 0
    return made


def evidence(journey: Journey) -> str:
    row = journey.harness("experiment", "list", "--json").document["experiments"][-1]
    return str(row["evidence"])


def facts(journey: Journey, kind: str) -> list[dict[str, Any]]:
    """The bodies of the project's facts of one kind."""
    folder = journey.root / ".harness/memory/facts"
    lines = [json.loads(line) for path in folder.glob("*.jsonl") for line in path.open()]
    return [line["body"] for line in lines if line["kind"] == kind]


def trained_and_evaluated(journey: Journey, *, evaluate: dict[str, str] | None = None) -> None:
    assert journey.harness("train", "exp-0001").exit_code == 0
    answer = journey.harness("evaluate", "exp-0001", **(evaluate or {}))
    assert answer.exit_code == 0, answer.stdout + answer.stderr


def hook(journey: Journey, session: str) -> None:
    """SessionStart of a plain `claude`, as it runs the installed hook."""
    call = {"session_id": session, "cwd": str(journey.root), "source": "startup"}
    words = [sys.executable, "-I", "-S", ".claude/hooks/harness/run.py", "SessionStart"]
    subprocess.run(
        words,
        cwd=journey.root,
        env=journey.environment(CLAUDE_PROJECT_DIR=str(journey.root)),
        input=json.dumps({**call, "hook_event_name": "SessionStart"}).encode(),
        check=True,
        capture_output=True,
        timeout=60,
    )
    assert (journey.root / f".harness/receipts/{session}.jsonl").is_file()


def test_what_a_person_does_alone_has_no_qualifier(journey: Journey) -> None:
    trained_and_evaluated(journey)
    assert evidence(journey) == "recomputed"
    assert facts(journey, "session_seen") == []
    assert [fact["caller"] for fact in facts(journey, "run_registered")] == ["person"]
    shown = json.loads((journey.root / ".harness/experiments/exp-0001/score.json").read_text())
    assert (shown["validation"]["evidence"], shown["validation"]["not_isolated"]) == (
        "recomputed",
        [],
    )


def test_training_typed_by_an_agent_lowers_what_a_person_evaluates(journey: Journey) -> None:
    assert journey.harness("train", "exp-0001", **AGENT).exit_code == 0
    said = journey.harness("evaluate", "exp-0001")
    assert said.stdout.partition("\nnext: ")[0].endswith(SESSION_LOWERED)
    assert evidence(journey) == SESSION_LOWERED
    assert [fact["caller"] for fact in facts(journey, "run_registered")] == ["open"]
    (seen,) = facts(journey, "session_seen")
    assert seen == {"experiment": "exp-0001", "session": "5b0c", "trace": "command"}
    checked = journey.harness("gate", "check", "exp-0001", "--json").document
    assert checked["score"]["evidence"] == SESSION_LOWERED
    (recorded,) = facts(journey, "verdict_recorded")
    assert (recorded["score"]["not_isolated"], "evidence" in recorded["score"]) == (
        ["session"],
        False,
    )
    for page in ("experiments/CHECKLIST.md", "memory/STATE.md"):
        assert SESSION_LOWERED in (journey.root / ".harness" / page).read_text("utf-8"), page


def test_an_evaluation_typed_by_an_agent_lowers_a_persons_training(journey: Journey) -> None:
    trained_and_evaluated(journey, evaluate=AGENT)
    assert [fact["caller"] for fact in facts(journey, "run_registered")] == ["person"]
    assert evidence(journey) == SESSION_LOWERED


def test_a_plain_session_stays_in_the_grade_after_its_receipts_are_gone(journey: Journey) -> None:
    hook(journey, "a1b2")
    shutil.rmtree(journey.root / ".harness/receipts")
    # A clean environment, as of a process that left its session.
    trained_and_evaluated(journey)
    assert evidence(journey) == SESSION_LOWERED
    (seen,) = facts(journey, "session_seen")
    assert (seen["session"], seen["trace"]) == ("a1b2", "command")
    assert [fact["session"] for fact in facts(journey, "session_began")] == ["a1b2"]


def test_a_session_that_is_seen_late_lowers_what_was_scored_before(journey: Journey) -> None:
    """One may hide, and say that it is the loop: it is no better for that."""
    trained_and_evaluated(journey)
    passed = journey.harness("gate", "check", "exp-0001", "--json").document
    assert (passed["score"]["evidence"], evidence(journey)) == ("recomputed", "recomputed")
    hook(journey, "a1b2")
    assert evidence(journey) == SESSION_LOWERED
    shown = journey.harness("experiment", "show", "exp-0001", "--json").document
    assert {run["caller"] for run in shown["runs"]} == {"open"}
    for page in ("experiments/CHECKLIST.md", "memory/STATE.md"):
        assert SESSION_LOWERED in (journey.root / ".harness" / page).read_text("utf-8"), page
    again = journey.harness("gate", "check", "exp-0001", "--json").document
    assert again["score"]["evidence"] == SESSION_LOWERED
    # Whatever the later facts say of their caller.
    with open_project(journey.root, journey.environment(), caller=PERSON) as project:
        (one,) = project.ledger.evaluations("exp-0001")
        fields = {part.name: getattr(one, part.name) for part in dataclasses.fields(one)}
        body = {name: value for name, value in fields.items() if name not in ("at", "grade")}
        project.ledger.append(EvaluationRecorded(**{**body, "caller": "driver:bwrap"}))
        assert all(
            one.grade.codes == ["session"] for one in project.ledger.evaluations("exp-0001")
        )
        evaluated = project.ledger.summary("exp-0001")["evaluated"]["validation"]
        assert [seed["not_isolated"] for seed in evaluated.values()] == [["session"]]
    assert journey.harness("ledger", "verify").exit_code == 0


def test_a_session_before_the_experiment_is_none_of_its(tmp_path: Path) -> None:
    journey = make_project(tmp_path / "project", tmp_path / "home")
    (journey.root / "plan.md").write_text(PLAN.replace("seeds: 3", "seeds: 1"), "utf-8")
    for words in (("init",), ("plan", "approve")):
        assert journey.harness(*words).exit_code == 0
    hook(journey, "a1b2")
    opened = journey.harness("experiment", "new", "--hypothesis", "centres")
    assert opened.exit_code == 0
    trained_and_evaluated(journey)
    assert (facts(journey, "session_seen"), evidence(journey)) == ([], "recomputed")
    assert [fact["session"] for fact in facts(journey, "session_began")] == ["a1b2"]


OPENED = [sys.executable, "-P", "-I", "-m", "harness", "experiment", "new", "--hypothesis", "x"]


@contextlib.contextmanager
def plain_session(journey: Journey) -> Iterator[None]:
    """One that lives, and that the ledger was told of."""
    cli = subprocess.Popen(["sleep", "100"])
    try:
        with open_project(journey.root, journey.environment()) as project:
            project.ledger.append(SessionBegan(session="f7a8", process=identity(cli.pid)))
        yield
    finally:
        cli.kill()
        cli.wait()


@pytest.fixture
def approved(tmp_path: Path) -> Journey:
    """Without an experiment."""
    made = make_project(tmp_path / "project", tmp_path / "home")
    for words in (("init",), ("plan", "approve")):
        assert made.harness(*words).exit_code == 0
    return made


def test_what_is_opened_while_a_plain_session_lives_is_its(approved: Journey) -> None:
    """Whoever opens it, and whatever traces are left."""
    with plain_session(approved):
        assert approved.harness("experiment", "new", "--hypothesis", "x").exit_code == 0
    (seen,) = facts(approved, "session_seen")
    assert (seen["session"], seen["trace"]) == ("f7a8", "alive")


ALONE = "while kill -0 $above 2>/dev/null; do sleep 0.05; done"


def detached(line: str) -> str:
    """For a shell that ends at once: `line`, in a session of its own, once that shell is gone."""
    return f"above=$$ setsid sh -c {shlex.quote(f'{ALONE}; {line}')} >out 2>&1 &"


DETACHED = detached(f"{shlex.join(OPENED)}; touch done")


def adopter(folder: Path) -> psutil.Process:
    """The process to which one falls whose parent has ended: PID 1, or a subreaper above us."""
    line = detached("ps -o ppid= -p $$ > parent")
    subprocess.run(["sh", "-c", line], cwd=folder, stdin=subprocess.DEVNULL, check=True)
    end = time.monotonic() + 60
    while not (told := folder / "parent").exists() or not told.read_text().strip():
        assert time.monotonic() < end
        time.sleep(0.05)
    return psutil.Process(int(told.read_text()))


@pytest.mark.parametrize(
    "line",
    [
        # Below something older than the session, as cron is, or the shell of an open terminal.
        f"nohup {shlex.join(OPENED)} >out 2>&1; touch done",
        # Left its parents, in an environment without a mark; there are no other traces.
        DETACHED,
    ],
    ids=["a job", "detached"],
)
def test_what_may_come_from_a_session_that_ended_is_its(
    approved: Journey, line: str, tmp_path: Path
) -> None:
    above = adopter(tmp_path)
    # One that adopts without saying so is something older, too: a terminal's server, say.
    plain = above.pid == 1 or above.name() in {"systemd", "init", "launchd"}
    traces = ["detached"] if line == DETACHED and plain else []
    with plain_session(approved):
        pass
    subprocess.run(
        ["sh", "-c", line],
        cwd=approved.root,
        env=approved.environment(),
        stdin=subprocess.DEVNULL,
        check=True,
        timeout=100,
    )
    end = time.monotonic() + 100
    while not (approved.root / "done").exists() and time.monotonic() < end:
        time.sleep(0.2)
    assert "exp-0001" in (approved.root / "out").read_text("utf-8")
    assert [fact["trace"] for fact in facts(approved, "session_seen")] == traces


def test_a_session_that_opens_the_experiment_is_seen_at_once(tmp_path: Path) -> None:
    journey = make_project(tmp_path / "project", tmp_path / "home")
    for words in (("init",), ("plan", "approve")):
        assert journey.harness(*words).exit_code == 0
    assert journey.harness("experiment", "new", "--hypothesis", "x", **AGENT).exit_code == 0
    (seen,) = facts(journey, "session_seen")
    assert (seen["experiment"], seen["session"]) == ("exp-0001", "5b0c")


def test_receipts_of_a_sandboxed_session_are_told_from_plain_ones(journey: Journey) -> None:
    folder = journey.root / ".harness/receipts"
    folder.mkdir(exist_ok=True)
    line = {"session": "c3d4", "event": "SessionStart", "sandbox": "bwrap"}
    late = {**line, "time": "2999-01-01T00:00:00.000Z"}
    (folder / "c3d4.jsonl").write_text(json.dumps(late) + "\n", "utf-8")
    assert journey.harness("handoff", "--note", "inside").exit_code == 0
    assert facts(journey, "session_seen") == []
    plain = {name: value for name, value in late.items() if name != "sandbox"}
    with (folder / "c3d4.jsonl").open("a") as file:  # the same session, resumed plainly
        file.write(json.dumps(plain) + "\n")
    assert journey.harness("handoff", "--note", "outside").exit_code == 0
    assert [fact["session"] for fact in facts(journey, "session_seen")] == ["c3d4"]


def test_a_session_without_hooks_is_seen_by_its_transcript(journey: Journey) -> None:
    named = str(journey.root).replace("/", "-").replace("_", "-")
    folder = journey.home / ".claude/projects" / named
    folder.mkdir(parents=True)
    (folder / "e5f6.jsonl").write_text('{"type": "user"}\n', "utf-8")
    (folder.parent / "-another").mkdir()
    (folder.parent / "-another/0000.jsonl").write_text("{}\n", "utf-8")
    trained_and_evaluated(journey)
    (seen,) = facts(journey, "session_seen")
    assert (seen["session"], seen["trace"]) == ("e5f6", "transcript")
    assert evidence(journey) == SESSION_LOWERED


def test_what_is_said_and_not_proven_is_no_isolation(journey: Journey) -> None:
    for said in ("isolated:bwrap", "driver:bwrap"):
        forged = {"HARNESS_CALLER": said, "HARNESS_CALLER_FD": "0"}
        assert journey.harness("train", "exp-0001", **forged).exit_code == 0
    assert [fact["caller"] for fact in facts(journey, "run_registered")] == ["unknown"]
    assert journey.harness("evaluate", "exp-0001").exit_code == 0
    assert evidence(journey) == SESSION_LOWERED


def test_a_training_whose_starter_was_killed_is_not_begun(journey: Journey) -> None:
    with subprocess.Popen(["sleep", "60"]) as loop:
        starter = identity(loop.pid)
        loop.kill()
    with tempfile.TemporaryFile() as handed:
        handed.write(json.dumps({"token": "of a loop that is gone", "starter": starter}).encode())
        handed.flush()
        descriptor = handed.fileno()
        orphan = {"HARNESS_CALLER": "driver:bwrap", "HARNESS_CALLER_FD": str(descriptor)}
        done = subprocess.run(
            [sys.executable, "-m", "harness", "train", "exp-0001", "--json"],
            cwd=journey.root,
            env=journey.environment(**orphan),
            pass_fds=[descriptor],
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 2, done.stdout + done.stderr
    assert json.loads(done.stdout)["error"]["code"] == "starter_gone"
    assert facts(journey, "run_registered") == []


LOWERING = [
    ("train", "exp-0001"),
    ("evaluate", "exp-0001"),
    ("run", "plan.md"),
    ("continue",),
    ("posttrain", "run", "exp-0001"),
    ("posttrain", "evaluate", "0123abc"),
    ("mcp",),
]


@pytest.mark.parametrize("words", LOWERING, ids=" ".join)
def test_no_agent_lowers_isolation(journey: Journey, words: tuple[str, ...]) -> None:
    if words[0] in ("run", "continue"):
        (journey.root / "s.yaml").write_text(SCENARIO, "utf-8")
        words = (*words, "--scenario", "s.yaml")
    weaker = (*words, "--sandbox", "none", "--json")
    for more in ((), ("--reason", "it is quicker")):
        refused = journey.harness(*weaker, *more, **AGENT).document["error"]
        assert refused["code"] == "human_verb"
        assert "in your own terminal" in refused["hint"]
    wanted = journey.harness(*weaker).document["error"]
    assert wanted["code"] == "no_reason"
    assert "--reason TEXT" in wanted["hint"]
    assert facts(journey, "decision_recorded") == []


def test_a_person_lowers_it_with_a_reason_that_is_kept(journey: Journey) -> None:
    why = ("--reason", "The GPU driver does not start in bwrap.")
    for verb in ("train", "evaluate"):
        done = journey.harness(verb, "exp-0001", "--sandbox", "none", *why)
        assert done.exit_code == 0, done.stderr
    assert evidence(journey) == "recomputed, training not isolated, predict not isolated"
    rows = journey.harness("decisions", "exp-0001", "--json").document["decisions"]
    assert {(row["kind"], row["experiment"], row["reason"]) for row in rows} == {
        ("LOWER", "exp-0001", why[1])
    }
    assert all(row["by"].startswith("human:") for row in rows)
    assert len(rows) == 2
    assert "LOWER" not in (journey.root / ".harness/experiments/CHECKLIST.md").read_text("utf-8")


def test_a_script_says_why_as_well(journey: Journey) -> None:
    words = [sys.executable, "-m", "harness", "train", "exp-0001", "--sandbox", "none", "--json"]
    answers = [
        subprocess.run(
            [*words, *more],
            cwd=journey.root,
            env=journey.environment(PYTHONPATH=os.getcwd()),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        for more in ((), ("--reason", "a nightly script"))
    ]
    assert [answer.returncode for answer in answers] == [2, 0]
    assert json.loads(answers[0].stdout)["error"]["code"] == "no_reason"
    (decision,) = facts(journey, "decision_recorded")
    assert "without a terminal" in decision["context"]


def test_one_weaker_than_what_works_is_lowering_too(journey: Journey) -> None:
    works = [kind for kind, reason in available().items() if reason is None]
    if works[:2] != [SandboxKind.BWRAP, SandboxKind.LANDLOCK]:
        pytest.skip("needs both sandboxes")
    refused = journey.harness("train", "exp-0001", "--sandbox", "landlock", "--json", **AGENT)
    assert refused.document["error"]["code"] == "human_verb"
    strongest = journey.harness("train", "exp-0001", "--sandbox", "bwrap", **AGENT)
    assert strongest.exit_code == 0, strongest.stderr


def test_a_plan_that_requires_isolation_fails_what_an_open_session_made(tmp_path: Path) -> None:
    journey = make_project(tmp_path / "project", tmp_path / "home")
    plan = PLAN.replace("seeds: 3", "seeds: 1").replace(
        "schema: 1", "schema: 1\nsandbox: required"
    )
    (journey.root / "plan.md").write_text(plan, "utf-8")
    for words in (("init",), ("plan", "approve"), ("experiment", "new", "--hypothesis", "x")):
        assert journey.harness(*words).exit_code == 0
    trained_and_evaluated(journey, evaluate=AGENT)
    found = journey.harness("gate", "check", "exp-0001", "--json").document
    assert found["verdict"] == "FAIL"
    (absent,) = [one for one in found["findings"] if one["code"] == "isolation_absent"]
    assert absent["data"] == {"run": "run-01", "link": "session"}
    assert "Open a new experiment" in absent["hint"]
    refused = journey.harness("train", "exp-0001", "--sandbox", "none", "--reason", "x", "--json")
    assert refused.document["error"]["code"] == "isolation_absent"
