"""From a failure to a rule that holds, and out again: each step by the command that does it."""

import json
from pathlib import Path

import pytest

from tests.cli.journey import UNSANDBOXED, Again, Answer, Journey, make_project

NAN = """import math
import time

from harness.run_logger import RunLogger

with RunLogger.from_environment() as log:
    log.start()
    for epoch in range(600):
        log.epoch(epoch, {"train_loss": math.nan})
        time.sleep(0.1)
"""
HOOK = ("PreToolUse",)


@pytest.fixture(scope="module")
def again(tmp_path_factory: pytest.TempPathFactory) -> Again:
    base = tmp_path_factory.mktemp("lessons")
    return Again(base, ("init",), ("plan", "approve"))


def said(journey: Journey, *words: str, code: int = 0, **extra: str) -> Answer:
    answer = journey.harness(*words, **extra)
    assert answer.exit_code == code, (words, answer.stdout, answer.stderr)
    return answer


def experiment(journey: Journey, config: str, train: str) -> None:
    said(journey, "experiment", "new", "--hypothesis", f"With {config.strip()}")
    newest = max((journey.root / ".harness/experiments").glob("exp-*"))
    (newest / "config.yaml").write_text(config, "utf-8")
    (journey.root / "train.py").write_text(train, "utf-8")


def failed(journey: Journey) -> None:
    """An experiment whose training gave NaN, and was rejected by a person."""
    experiment(journey, "optimizer:\n  lr: 30.0\n", NAN)
    said(journey, "train", "exp-0001", *UNSANDBOXED, code=1)


def priors(journey: Journey) -> list[dict]:
    return said(journey, "priors", "list", "--json").document["priors"]


def test_a_failure_becomes_a_candidate_a_rule_of_the_gate_and_is_retired(again: Again) -> None:
    journey = again.journey()
    failed(journey)
    shown = said(journey, "postmortem", "exp-0001", "--json").document["post_mortems"]
    kinds = {(one["failure"], one["code"], one["cause"]) for one in shown}
    assert ("alarm", "non_finite", "optimisation") in kinds
    assert ("crash", "failed_alarm", "optimisation") in kinds
    (prior,) = priors(journey)
    assert (prior["status"], prior["enforces"]) == ("candidate", "config optimizer.lr below 30.0")
    briefing = (journey.root / ".harness/memory/BRIEFING.md").read_text("utf-8")
    assert "exp-0001 alarm (optimisation) [non_finite]" in briefing
    assert "What went wrong" in said(journey, "report").stdout

    said(journey, "gate", "reject", "exp-0001", "--reason", "NaN")
    codes = [one["code"] for one in said(journey, "postmortem", "--json").document["post_mortems"]]
    assert "rejected" in codes
    experiment(journey, "optimizer:\n  lr: 40.0\n", NAN)
    before = said(journey, "gate", "check", "exp-0002", "--json", code=1).document["findings"]
    assert "prior_not_held" not in [one["code"] for one in before]
    said(journey, "priors", "activate", "p-0001", "--reason", "It diverged.")
    held = said(journey, "gate", "check", "exp-0002", "--json", code=1).document["findings"]
    (found,) = [one for one in held if one["code"] == "prior_not_held"]
    assert "optimizer.lr is 40.0, not below 30" in found["message"]

    said(journey, "train", "exp-0002", *UNSANDBOXED, code=1)
    (prior,) = [one for one in priors(journey) if one["status"] == "active"]
    assert prior["recurrences"] == 1
    said(journey, "priors", "retire", "p-0001", "--reason", "It came again all the same.")
    (prior, *_) = priors(journey)
    assert (prior["status"], prior["moves"][-1]["recurrences"]) == ("retired", 1)
    after = said(journey, "gate", "check", "exp-0002", "--json", code=1).document["findings"]
    assert "prior_not_held" not in [one["code"] for one in after]
    page = (journey.root / ".harness/PRIORS.md").read_text("utf-8")
    assert "It came again all the same.; came again: 1" in page
    said(journey, "ledger", "verify")


def ask(journey: Journey, tool: str, **given: str) -> str:
    """The hook's decision for a call of the main session."""
    payload = {
        "hook_event_name": "PreToolUse",
        "session_id": "s",
        "cwd": str(journey.root),
        "tool_name": tool,
        "tool_input": given,
    }
    return hook(journey, json.dumps(payload))


def hook(journey: Journey, payload: str) -> str:
    import subprocess
    import sys

    program = journey.root / ".claude/hooks/harness/run.py"
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(program), "PreToolUse"],
        input=payload,
        capture_output=True,
        text=True,
        env=journey.environment(CLAUDE_PROJECT_DIR=str(journey.root)),
        cwd=journey.root,
        check=False,
    )
    return f"deny {done.stderr}" if done.returncode == 2 else f"{done.returncode} {done.stdout}"


def test_a_rule_that_denies_holds_in_the_hook_from_activation_to_the_second_false_refusal(
    again: Again,
) -> None:
    journey = again.journey()
    for lesson, rule in (
        ("Packages changed under a run", "deny command pip install *"),
        ("Raw rows were edited", "deny path raw/*.csv"),
    ):
        words = ("--lesson", lesson, "--evidence", "exp-0001", "--rule", "Do not.")
        said(journey, "priors", "add", *words, "--enforce", rule)
    calls = (
        ("Bash", {"command": "cd /tmp && FOO=1 /usr/bin/pip install numpy"}),
        ("Bash", {"command": "rm -r raw"}),
        ("Write", {"file_path": "raw/a.csv"}),
    )
    assert not any(ask(journey, tool, **given).startswith("deny") for tool, given in calls)
    said(
        journey, "priors", "activate", "p-0001", "--reason", "r", "--json", code=2, CLAUDECODE="1"
    )
    for name in ("p-0001", "p-0002"):
        said(journey, "priors", "activate", name, "--reason", "It happened twice.")
    for tool, given in calls:
        answer = ask(journey, tool, **given)
        assert answer.startswith("deny"), (given, answer)
        assert "which a person activated" in answer
    assert not ask(journey, "Write", file_path="raw.csv").startswith("deny")
    assert not ask(journey, "Bash", command="pip list").startswith("deny")
    for reason in ("It was a new environment.", "Again."):
        said(journey, "priors", "refused", "p-0001", "--reason", reason)
    (first, second) = priors(journey)
    assert (first["status"], first["refusals"], second["status"]) == ("retired", 2, "active")
    assert "Again." in first["moves"][-1]["reason"]
    assert not ask(journey, *calls[0][:1], **calls[0][1]).startswith("deny")
    assert ask(journey, "Write", file_path="raw/a.csv").startswith("deny")
    again_ = said(journey, "priors", "refused", "p-0001", "--reason", "x", "--json", code=2)
    assert again_.document["error"]["code"] == "prior_not_active"


def test_a_rule_comes_to_another_project_as_a_candidate_and_private_words_stay(
    again: Again, tmp_path: Path
) -> None:
    first = again.journey()
    for rule in ("deny path acme_rows/*", "file reading.md"):
        words = ("--lesson", f"About {rule.split()[0]}", "--evidence", "e", "--rule", "r")
        said(first, "priors", "add", *words, "--enforce", rule)
    for name in ("p-0001", "p-0002"):
        said(first, "priors", "activate", name, "--reason", "yes")
    (first.root / ".harness/private-words.txt").write_text("acme\n", "utf-8")
    out = tmp_path / "priors.json"
    made = said(first, "priors", "export", "--out", str(out), "--json").document
    assert (made["priors"], made["left_out"]) == (["p-0002"], ["p-0001"])
    assert "acme" not in out.read_text("utf-8").lower()
    second = make_project(tmp_path / "second" / "project", tmp_path / "second" / "home")
    said(second, "init")
    said(second, "priors", "import", str(out))
    (prior,) = priors(second)
    assert (prior["enforces"], prior["status"]) == ("file reading.md", "candidate")


def test_a_rule_that_cannot_be_read_or_activated_is_refused(again: Again) -> None:
    journey = again.journey()
    words = ("priors", "add", "--lesson", "l", "--evidence", "e", "--rule", "r")
    wrong = said(journey, *words, "--enforce", "allow everything", "--json", code=2)
    assert wrong.document["error"]["code"] == "rule_unreadable"
    said(journey, *words)
    none = said(journey, "priors", "activate", "p-0001", "--reason", "r", "--json", code=2)
    assert none.document["error"]["code"] == "prior_without_rule"
    assert said(journey, "postmortem").stdout.strip() == "nothing went wrong yet"
