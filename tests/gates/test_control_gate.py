"""A control file that changed while an experiment was worked on fails its gates, until it is
restored or accepted."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from harness.clock import iso
from harness.decisions.person import approve
from harness.domain.statuses import GateName, Split, Verdict
from harness.evaluation.experiment import evaluate_experiment
from harness.gates.check import check_gate, require_validation_passed
from harness.guard.accepted import accept_on_record
from harness.ledger import Ledger
from harness.ledger.facts import RecordedVerdict, TamperingNoticed
from harness.views.snapshot import experiment_row
from tests.traces.rows import Transcript
from tests.world import InProcess, World

CODE = "protected_path_changed"
SETTINGS, LOCAL = ".claude/settings.json", ".claude/settings.local.json"
BEFORE, AFTER = '{"hooks": {}}', '{"disableAllHooks": true}'


@pytest.fixture
def passed(world: World) -> str:
    """An experiment with a PASS on validation and on held-out, in a project with accepted
    settings."""
    write(world.root / SETTINGS, BEFORE)
    accept_on_record(world.project, by="human:ada", at=world.project.clock.now())
    experiment = world.open().id
    world.train(experiment)
    for split in Split:
        evaluate_experiment(
            world.project,
            experiment,
            split,
            InProcess(),
            environment={},
            admit=require_validation_passed,
        )
        if split is Split.VALIDATION:
            world.result(experiment)
        assert check_gate(world.project, experiment, GateName(split.value)).verdict is Verdict.PASS
    return experiment


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def of_control(verdict: RecordedVerdict) -> list[str]:
    return [found.message for found in verdict.findings if found.code == CODE]


@pytest.mark.parametrize("gate", GateName)
def test_it_fails_both_gates_and_says_that_nobody_is_known(
    world: World, passed: str, gate: GateName
) -> None:
    write(world.root / SETTINGS, AFTER)
    verdict = check_gate(world.project, passed, gate)
    assert verdict.verdict is Verdict.FAIL
    (message,) = of_control(verdict)
    assert SETTINGS in message
    assert "no session's receipts or transcript covers it" in message


HARMLESS = {
    "the MCP dialog": (LOCAL, {"enabledMcpjsonServers": ["harness"]}),
    "all servers": (LOCAL, {"enableAllProjectMcpServers": True}),
    "a server refused": (LOCAL, {"disabledMcpjsonServers": ["files"]}),
    "don't ask again": (LOCAL, {"permissions": {"allow": ["Bash(ls:*)"]}}),
    "a folder added": (LOCAL, {"permissions": {"additionalDirectories": ["/data"]}}),
    "model and theme": (LOCAL, {"model": "opus", "theme": "dark", "outputStyle": "terse"}),
    "a status line": (SETTINGS, {"statusLine": {"type": "command", "command": "date"}}),
    "shared permissions": (SETTINGS, {"permissions": {"allow": ["Bash(pytest:*)"]}}),
    "a variable of theirs": (SETTINGS, {"env": {"WANDB_PROJECT": "churn"}}),
    "transcripts kept": (SETTINGS, {"cleanupPeriodDays": 90}),
    "another plugin": (LOCAL, {"enabledPlugins": {"formatter@tools": True}}),
    "our plugin too": (LOCAL, {"enabledPlugins": {"harness@tools": True}}),
    "a hook of theirs": (
        SETTINGS,
        {"hooks": {"Notification": [{"hooks": [{"type": "command", "command": "beep"}]}]}},
    ),
    "a key of next year": (LOCAL, {"aKeyOfNextYear": 1}),
}
DANGEROUS = {
    "disableAllHooks": (LOCAL, {"disableAllHooks": True}, "switches every hook off"),
    "env.CLAUDE_CODE_SIMPLE": (LOCAL, {"env": {"CLAUDE_CODE_SIMPLE": "1"}}, "runs no hook"),
    "env.LD_PRELOAD": (LOCAL, {"env": {"LD_PRELOAD": "x.so"}}, "guards themselves run"),
    "enabledPlugins.harness@tools": (
        LOCAL,
        {"enabledPlugins": {"harness@tools": False}},
        "plugins' hooks run",
    ),
    "hooks.PreToolUse of others": (
        LOCAL,
        {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "rewrite"}]}]}},
        "may change a call after",
    ),
    "cleanupPeriodDays": (SETTINGS, {"cleanupPeriodDays": "long"}, "take no hook from the file"),
    "aHookOfNextYear": (LOCAL, {"aHookOfNextYear": 1}, "does not know"),
}


@pytest.mark.parametrize("case", HARMLESS)
def test_what_can_do_nothing_to_the_guards_touches_no_verdict(
    world: World, passed: str, case: str
) -> None:
    before = world.project.ledger.latest_verdict(passed)
    name, value = HARMLESS[case]
    write(world.root / name, json.dumps({**json.loads(BEFORE), **value}))
    after = check_gate(world.project, passed)
    assert (after.verdict, after.id) == (Verdict.PASS, before.id)
    row = experiment_row(world.project, world.project.ledger.experiment(passed))
    assert row["verdict"] == "PASS"


@pytest.mark.parametrize("key", DANGEROUS)
def test_a_key_that_can_is_named(world: World, passed: str, key: str) -> None:
    name, value, what = DANGEROUS[key]
    write(world.root / name, json.dumps({**json.loads(BEFORE), **value}))
    verdict = check_gate(world.project, passed)
    assert verdict.verdict is Verdict.FAIL
    (message,) = of_control(verdict)
    assert message.startswith(f"{name} sets {key}, ")
    assert what in message
    (found,) = (item for item in verdict.findings if item.code == CODE)
    assert found.data["keys"] == [key]
    write(world.root / name, BEFORE)
    assert check_gate(world.project, passed).verdict is Verdict.PASS


def test_the_session_is_named_from_its_transcript(
    world: World, passed: str, tmp_path: Path
) -> None:
    lines = Transcript(tmp_path / "projects/x/s1.jsonl", session="s1", cwd=world.root)
    lines.call(
        "t1", "Bash", iso(datetime.now(UTC)), command=f"python w.py # {world.root}/{SETTINGS}"
    )
    write(world.root / SETTINGS, AFTER)
    lines.result("t1", at=iso(datetime.now(UTC)))
    verdict = check_gate(
        world.project, passed, GateName.VALIDATION, transcripts=[tmp_path / "projects"]
    )
    (message,) = of_control(verdict)
    assert "session s1, certain: a call that names it ran when it changed" in message
    again = check_gate(
        world.project, passed, GateName.VALIDATION
    )  # without the transcripts at hand
    assert again.id == verdict.id
    (noticed,) = world.project.ledger.tampering()
    assert (noticed.what, noticed.path) == (CODE, SETTINGS)


def test_restored_or_accepted_it_passes_again(world: World, passed: str) -> None:
    write(world.root / SETTINGS, AFTER)
    assert check_gate(world.project, passed, GateName.VALIDATION).verdict is Verdict.FAIL
    write(world.root / SETTINGS, BEFORE)
    assert check_gate(world.project, passed, GateName.VALIDATION).verdict is Verdict.PASS
    write(world.root / SETTINGS, AFTER)
    assert check_gate(world.project, passed, GateName.VALIDATION).verdict is Verdict.FAIL
    accept_on_record(world.project, by="human:ada", at=world.project.clock.now())
    assert check_gate(world.project, passed, GateName.VALIDATION).verdict is Verdict.PASS


def test_what_changed_before_the_experiment_is_not_its_fault(world: World, passed: str) -> None:
    write(world.root / SETTINGS, AFTER)
    world.project.clock.sleep(20 * 365 * 86_400.0)  # far behind any file that is written now
    later = world.open_another(passed)
    world.train(later)
    evaluate_experiment(
        world.project,
        later,
        Split.VALIDATION,
        InProcess(),
        environment={},
        admit=require_validation_passed,
    )
    world.result(later)
    assert of_control(check_gate(world.project, later, GateName.VALIDATION)) == []


def test_a_decided_experiment_is_not_blamed_for_what_changes_later(
    world: World, passed: str
) -> None:
    approve(world.project, passed, by="Ada", reason="good")
    row = experiment_row(world.project, world.project.ledger.experiment(passed))
    write(world.root / SETTINGS, AFTER)
    assert experiment_row(world.project, world.project.ledger.experiment(passed)) == row
    assert of_control(check_gate(world.project, passed)) == []


def test_what_a_supervisor_noticed_already_is_told_once(world: World, passed: str) -> None:
    write(world.root / SETTINGS, AFTER)
    seen = {"expected": "a", "actual": "b", "experiment": passed}
    part = f"{SETTINGS}#disableAllHooks"  # as a supervisor names it
    world.project.ledger.append(TamperingNoticed(what=CODE, path=part, **seen))
    verdict = check_gate(world.project, passed, GateName.VALIDATION)
    assert of_control(verdict) == []
    assert "tampering_noticed" in {found.code for found in verdict.findings}


def test_a_damaged_list_is_a_finding_and_no_crash(world: World, passed: str) -> None:
    world.project.layout.accepted.write_text("{")
    verdict = check_gate(world.project, passed, GateName.VALIDATION)
    (message,) = of_control(verdict)
    assert "accepted.json is damaged" in message
    assert verdict.verdict is Verdict.FAIL
    assert (
        experiment_row(world.project, world.project.ledger.experiment(passed))["verdict"] == "FAIL"
    )


def test_a_list_that_the_ledger_does_not_remember_fails_the_gate(
    world: World, passed: str
) -> None:
    world.project.layout.accepted.unlink()
    write(world.root / SETTINGS, AFTER)
    verdict = check_gate(world.project, passed, GateName.VALIDATION)
    assert verdict.verdict is Verdict.FAIL
    (found,) = verdict.findings
    assert found.code == "protected_path_changed"
    assert str(world.project.layout.accepted) in found.message


def test_where_no_list_was_ever_accepted_gates_judge_as_before(
    world: World, passed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Ledger, "accepted_list", lambda ledger, writer: None)
    world.project.layout.accepted.unlink()
    write(world.root / SETTINGS, AFTER)
    assert check_gate(world.project, passed, GateName.VALIDATION).verdict is Verdict.PASS
