"""`harness init` as a person types it: what it says, how it ends, and that others than people are
refused."""

import importlib
import json
from pathlib import Path

import click
import pytest

from harness.cli.main import COMMANDS
from harness.contract.roles import ASKED_VERBS, HUMAN_VERBS
from harness.contract.slash_commands import UNASKED_VERBS
from tests.cli.journey import Journey, make_project
from tests.install.repository import tree

SETTINGS = ".claude/settings.json"


@pytest.fixture
def journey(tmp_path: Path) -> Journey:
    return make_project(tmp_path / "my project", tmp_path / "home")


def test_in_and_out_again(journey: Journey) -> None:
    before = tree(journey.root)
    shown = journey.harness("init", "--dry-run")
    assert shown.exit_code == 0, shown.stderr
    assert "create .harness/config.toml\n@@ -0,0 +1 @@\n+project_id = " in shown.stdout
    assert "create .claude/hooks/harness/run.py (" in shown.stdout
    assert "create .claude/settings.json" in shown.stdout
    assert shown.stdout.endswith("nothing was changed\n")
    assert tree(journey.root) == before
    done = journey.harness("init")
    assert done.exit_code == 0, done.stdout + done.stderr
    assert "wrote .claude/settings.json\n" in done.stdout
    assert "runs the hooks" in done.stdout
    assert "all guards work" in done.stdout
    again = journey.harness("init")
    assert (again.exit_code, "nothing to do" in again.stdout) == (0, True)
    shown = journey.harness("init", "--remove", "--dry-run")
    assert (shown.exit_code, "delete .claude/settings.json" in shown.stdout) == (0, True)
    gone = journey.harness("init", "--remove")
    assert gone.exit_code == 0, gone.stdout + gone.stderr
    assert tree(journey.root) == before


@pytest.mark.parametrize("name", [".claude", ".harness"])
def test_below_a_repository_with_settings_at_its_top_one_hint_says_so(
    journey: Journey, name: str
) -> None:
    inner = journey.root / "data"
    assert "\nhint: " not in journey.harness("init", "--dry-run", cwd=inner).stdout, (
        "no repository"
    )
    (journey.root / ".git").mkdir()
    assert "\nhint: " not in journey.harness("init", "--dry-run", cwd=inner).stdout, (
        "nothing at its top"
    )
    (journey.root / name).mkdir()
    assert "\nhint: " not in journey.harness("init", "--dry-run").stdout, "at the top itself"
    hints = [
        line
        for line in journey.harness("init", "--dry-run", cwd=inner).stdout.splitlines()
        if line.startswith("hint: ")
    ]
    assert len(hints) == 1
    assert f"top, {journey.root}, already has {name}/" in hints[0]
    done = journey.harness("init", cwd=inner)
    assert (done.exit_code, hints[0] in done.stdout) == (0, True), done.stdout
    assert "\nhint: " not in journey.harness("init", cwd=inner).stdout, "it is decided"


def test_json_is_one_object(journey: Journey) -> None:
    document = journey.harness("init", "--json").document
    assert (document["project"], document["root"]) == (str(journey.root), str(journey.root))
    assert (document["hooks"], document["dry_run"], document["conflicts"]) == (
        "project",
        False,
        [],
    )
    assert {"path": SETTINGS, "action": "create"} in document["changes"]
    assert document["doctor"]["broken"] is False
    assert Path(document["interpreter"]).is_absolute()
    document = journey.harness("init", "--remove", "--json").document
    assert {"path": SETTINGS, "action": "delete"} in document["changes"]


def test_a_conflict_or_a_dead_guard_is_exit_1(journey: Journey) -> None:
    journey.harness("init")
    guard = journey.root / ".claude/hooks/harness/run.py"
    text = guard.read_text()
    guard.write_text(text + "\n")
    answer = journey.harness("init")
    assert (
        answer.exit_code,
        "left as it is: .claude/hooks/harness/run.py was edited" in answer.stdout,
    ) == (
        1,
        True,
    )
    assert "FAIL" in answer.stdout
    assert answer.stdout.lower().count("delete .claude/hooks/harness/run.py") == 2, (
        "init and doctor agree"
    )
    assert "installs the hooks" not in answer.stdout
    guard.unlink()
    answer = journey.harness("init")
    assert (answer.exit_code, "wrote 1 file below .claude/hooks/harness\n" in answer.stdout) == (
        0,
        True,
    ), answer.stdout
    guard.write_text(text)
    (journey.root / ".claude/settings.local.json").write_text('{"disableAllHooks": true}')
    answer = journey.harness("init")
    assert answer.exit_code == 1
    assert "disableAllHooks" in answer.stdout


MINE = '{\n  "permissions": {\n    "allow": ["Bash(harness status:*)", "Bash(ls:*)"]\n  }\n}\n'


def rules(journey: Journey) -> list[str]:
    settings = json.loads((journey.root / SETTINGS).read_text())
    found: list[str] = settings.get("permissions", {}).get("allow", [])
    return found


def test_reading_verbs_are_allowed_only_when_a_person_asks_for_it(journey: Journey) -> None:
    assert journey.harness("init").exit_code == 0
    assert rules(journey) == []
    shown = journey.harness("init", "--allow", "--dry-run")
    assert '+      "mcp__harness",' in shown.stdout
    assert rules(journey) == []
    assert journey.harness("init", "--allow").exit_code == 0
    allowed = rules(journey)
    assert {"mcp__harness", "Bash(harness status:*)", "Bash(harness gate check:*)"} <= {*allowed}
    assert "nothing to do" in journey.harness("init", "--allow").stdout
    assert "nothing to do" in journey.harness("init").stdout
    assert rules(journey) == allowed
    audit = journey.harness("audit", "--json")
    assert (audit.exit_code, audit.document["changes"]) == (0, [])


def test_allowed_rules_stand_beside_a_persons_own_and_go_without_them(journey: Journey) -> None:
    (journey.root / ".claude").mkdir()
    (journey.root / SETTINGS).write_text(MINE)
    before = tree(journey.root)
    assert journey.harness("init", "--allow").exit_code == 0
    own = ["Bash(harness status:*)", "Bash(ls:*)"]
    assert rules(journey)[:2] == own
    assert len(rules(journey)) == len({*rules(journey)})
    assert journey.harness("init", "--remove").exit_code == 0
    assert tree(journey.root) == before
    assert journey.harness("init", "--allow").exit_code == 0
    settings = json.loads((journey.root / SETTINGS).read_text())
    (journey.root / SETTINGS).write_text(json.dumps({**settings, "model": "opus"}))
    answer = journey.harness("init", "--remove")
    assert (answer.exit_code, "only its entries were taken out" in answer.stdout) == (1, True)
    assert json.loads((journey.root / SETTINGS).read_text()) == {
        "permissions": {"allow": own},
        "model": "opus",
    }


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--hooks", "plugin", "--allow"], "allow_without_hooks"),
        (["--remove", "--allow"], "usage"),
    ],
)
def test_where_no_settings_are_written_nothing_can_be_allowed(
    journey: Journey, words: list[str], code: str
) -> None:
    before = tree(journey.root)
    answer = journey.harness("init", *words, "--json")
    assert (answer.exit_code, answer.document["error"]["code"]) == (2, code)
    assert tree(journey.root) == before


def test_of_a_persons_verbs_those_are_allowed_that_the_judge_asks(journey: Journey) -> None:
    """A prompt before the judge's own question would be a second one; each other verb keeps it."""
    assert journey.harness("init", "--allow").exit_code == 0
    bare = {rule.removeprefix("Bash(harness ").removesuffix(":*)") for rule in rules(journey)}
    allowed = {tuple(verb.split()) for verb in bare}
    assert {("plan", "approve"), ("gate", "approve"), ("gate", "reject")} <= allowed
    assert allowed & {*HUMAN_VERBS} <= {*ASKED_VERBS}


@pytest.mark.parametrize("verb", UNASKED_VERBS)
def test_what_is_allowed_without_a_prompt_is_no_persons_verb(verb: str) -> None:
    words = tuple(verb.split())
    assert words not in HUMAN_VERBS
    module, _, name = COMMANDS[words[0]].partition(":")
    command = getattr(importlib.import_module(module), name)
    for word in words[1:]:
        command = command.commands[word]
    assert isinstance(command, click.Command)
    assert not isinstance(command, click.Group), "a rule for it would let its verbs run too"


def test_settings_that_are_no_json_are_exit_2_with_their_place(journey: Journey) -> None:
    (journey.root / ".claude").mkdir()
    (journey.root / SETTINGS).write_text('{\n  "model": "opus",\n}\n')
    before = tree(journey.root)
    answer = journey.harness("init", "--json")
    assert answer.exit_code == 2
    assert answer.document["error"]["code"] == "settings_invalid"
    assert "line 3, column 1" in answer.document["error"]["message"]
    assert tree(journey.root) == before


def test_an_agent_neither_installs_nor_removes(journey: Journey) -> None:
    before = tree(journey.root)
    for words in (["init"], ["init", "--remove"], ["init", "--dry-run"]):
        answer = journey.harness(*words, "--json", CLAUDECODE="1")
        assert (answer.exit_code, json.loads(answer.stdout)["error"]["code"]) == (2, "human_verb")
    assert tree(journey.root) == before


def test_render_writes_the_snapshot_first_and_finds_the_project_from_below(
    journey: Journey,
) -> None:
    journey.harness("init")
    policy = journey.root / ".harness/policy.json"
    written = policy.read_bytes()
    policy.unlink()
    (journey.root / ".claude/agents/oracle.md").write_text("mine\n")
    answer = journey.harness("render", cwd=journey.root / "data")
    assert answer.exit_code == 2
    assert policy.read_bytes() == written


def test_what_a_person_rendered_is_accepted_and_what_an_agent_had_rendered_is_not(
    journey: Journey,
) -> None:
    journey.harness("init")
    agent = journey.root / ".claude/agents/oracle.md"
    rendered = agent.read_bytes()
    accepted = json.loads((journey.state / "accepted.json").read_text())["files"]
    for variables, taken in (({"CLAUDECODE": "1"}, False), ({}, True)):
        (journey.state / "accepted.json").write_text(
            (journey.state / "accepted.json")
            .read_text()
            .replace(accepted[".claude/agents/oracle.md"], "0" * 64)
        )
        agent.unlink()
        assert journey.harness("render", **variables).exit_code == 0
        assert agent.read_bytes() == rendered
        now = json.loads((journey.state / "accepted.json").read_text())["files"]
        assert (now == accepted) is taken


def test_with_the_plugin_s_hooks_nothing_is_outside_the_harness_folder(journey: Journey) -> None:
    before = tree(journey.root)
    answer = journey.harness("init", "--hooks", "plugin")
    assert answer.exit_code == 0, answer.stderr
    assert "the plugin provides the hooks" in answer.stdout
    assert {path.split("/")[0] for path in set(tree(journey.root)) - set(before)} == {".harness"}
    assert journey.harness("init", "--hooks", "some").exit_code == 2
