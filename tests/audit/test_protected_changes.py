"""The audit of protected paths: whatever killed the guard, the change and its session are named."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from harness.audit.activity import transcript_home
from harness.audit.attribution import Grade
from harness.audit.changes import ChangeKind
from harness.audit.protected import AuditReport, audit_protected
from harness.clock import iso, parse_iso
from harness.decisions.experiments import decide
from harness.guard.accepted import accept_on_record, control_listing
from harness.guard.policy.receipt import append_receipt
from harness.ledger import Ledger
from harness.ledger.facts import HandOffWritten
from harness.projections import refresh as refreshing
from harness.projections.refresh import edited_pages
from harness.rendering.derived import write_derived
from harness.rendering.policy_snapshot import policy_snapshot, write_policy_snapshot
from tests.traces.rows import Transcript
from tests.world import World

SETTINGS = ".claude/settings.json"
HOOKED = '{"hooks": {"PreToolUse": []}}\n'
KILLED = '{"disableAllHooks": true}\n'


@pytest.fixture
def guarded(world: World) -> World:
    """A project with settings that a person accepted."""
    write(world.root / SETTINGS, HOOKED)
    write(world.root / ".claude/agents/a.md", "---\nname: a\ndescription: d\ntools: Read\n---\n")
    write_policy_snapshot(world.project)
    accept_on_record(world.project, by="human:ada", at=datetime.now(UTC) - timedelta(hours=2))
    return world


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def moment(seconds: float = 0) -> str:
    return iso(datetime.now(UTC) + timedelta(seconds=seconds))


def transcript(
    world: World, session: str, *, folder: str | None = None, cwd: Path | None = None
) -> Transcript:
    slug = folder or "".join(letter if letter.isalnum() else "-" for letter in str(world.root))
    path = transcript_home(world.environment) / slug / f"{session}.jsonl"
    return Transcript(path, session=session, cwd=cwd or world.root)


def receipt(
    world: World, session: str, event: str, call: str = "", *, at: str | None = None, **more: Any
) -> None:
    line = {
        "time": at or moment(),
        "session": session,
        "role": "main",
        "event": event,
        "tool_use_id": call,
        "paths": [],
    }
    append_receipt(
        str(world.project.layout.project("receipts")),
        {**line, "permission": None, "rule": "r", **more},
    )


def audited(world: World) -> AuditReport:
    snapshot = policy_snapshot(world.project)
    return audit_protected(
        world.project, snapshot, [transcript_home(world.environment)], edited_pages(world.project)
    )


def found(report: AuditReport) -> dict[str, list[tuple[str, Grade]]]:
    return {
        change.path: [(item.session, item.grade) for item in suspects]
        for change, suspects in report.changes
    }


def test_an_untouched_project_is_clean(guarded: World):
    guarded.open()
    write_policy_snapshot(guarded.project)
    report = audited(guarded)
    assert (report.clean, report.changes, report.unguarded, report.sessions) == (True, (), (), 0)


def test_a_killed_guard_and_what_it_let_through_are_named_with_the_session(guarded: World):
    """No receipt at all: the settings were emptied by a program, then files were written with
    nobody looking."""
    experiment = guarded.open().id
    guarded.train(experiment)
    write_policy_snapshot(guarded.project)
    metrics = guarded.run_path(experiment, "metrics")
    lines = transcript(guarded, "evil")
    lines.prompt("make it pass")
    lines.call("t1", "Bash", moment(), command="python w.py")
    write(guarded.root / SETTINGS, KILLED)
    lines.result("t1", at=moment())
    lines.call("t2", "Write", moment(), file_path=str(metrics), content="{}")
    metrics.write_text("{}\n")
    lines.result("t2", at=moment())
    lines.call("t3", "Bash", moment(), command="case x in x) rm .claude/agents/a.md;; esac")
    (guarded.root / ".claude/agents/a.md").unlink()
    lines.result("t3", at=moment())
    report = audited(guarded)
    relative = guarded.project.layout.relative(metrics)
    assert found(report) == {
        SETTINGS: [("evil", Grade.LIKELY)],
        relative: [("evil", Grade.CERTAIN)],
        ".claude/agents/a.md": [("evil", Grade.CERTAIN)],
    }
    assert [(item.session, item.call, item.rule, item.guard) for item in report.unguarded] == [
        ("evil", "t2", "protected_path", "left no receipt"),
        ("evil", "t3", "protected_path", "left no receipt"),
    ]
    assert report.unseen == 3
    ((_, (suspect,)),) = [item for item in report.changes if item[0].path == relative]
    assert suspect.words() == "certain: a call that names it ran when it changed"
    assert [call["tool_use_id"] for call in suspect.calls] == ["t2"]


def test_of_many_calls_the_one_that_ran_at_that_moment_is_named(guarded: World):
    write(guarded.root / SETTINGS, KILLED)
    changed = datetime.fromtimestamp((guarded.root / SETTINGS).stat().st_ctime, UTC)
    lines = transcript(guarded, "s1")
    for number, start in enumerate((-0.8, -0.4, -0.1, 0.3, 0.7)):
        lines.call(f"t{number}", "Bash", iso(changed + timedelta(seconds=start)), command="make")
        lines.result(f"t{number}", at=iso(changed + timedelta(seconds=start + 0.2)))
    ((_, (suspect,)),) = audited(guarded).changes
    assert [call["tool_use_id"] for call in suspect.calls] == ["t2"]


def test_receipts_alone_name_the_session_and_the_two_moments_between_which_it_changed(
    guarded: World,
):
    receipt(guarded, "s1", "SessionStart", control={SETTINGS: "aaa"}, at=moment(-60))
    receipt(guarded, "s1", "PreToolUse", "t1", tool="Bash", permission="allow", at=moment(-1))
    write(guarded.root / SETTINGS, KILLED)
    receipt(
        guarded, "s1", "PostToolUse", "t1", tool="Bash", control={SETTINGS: "bbb"}, at=moment(1)
    )
    receipt(guarded, "s2", "SessionStart", control={SETTINGS: "bbb"}, at=moment(3600))
    report = audited(guarded)
    ((change, (suspect,)),) = report.changes
    assert (change.path, suspect.session, suspect.grade) == (SETTINGS, "s1", Grade.LIKELY)
    assert "between two of the session's receipts" in suspect.words()
    assert [call["tool_use_id"] for call in suspect.calls] == ["t1"]


def test_a_digest_that_changed_at_another_time_is_a_possible_one(guarded: World):
    receipt(guarded, "s1", "SessionStart", control={SETTINGS: "aaa"}, at=moment(-3600))
    receipt(
        guarded,
        "s1",
        "PostToolUse",
        "t1",
        tool="Bash",
        control={SETTINGS: "bbb"},
        at=moment(-3500),
    )
    write(guarded.root / SETTINGS, KILLED)
    assert found(audited(guarded)) == {SETTINGS: [("s1", Grade.POSSIBLE)]}


def test_a_folder_that_counts_as_one_covers_its_files(guarded: World):
    hook = ".claude/hooks/harness/run.py"
    receipt(
        guarded, "s1", "SessionStart", control={".claude/hooks/harness": "aaa"}, at=moment(-60)
    )
    write(guarded.root / hook, "pass")
    receipt(
        guarded, "s1", "PostToolUse", "t1", control={".claude/hooks/harness": "bbb"}, at=moment(1)
    )
    assert found(audited(guarded)) == {hook: [("s1", Grade.LIKELY)]}


def test_what_nothing_covers_is_said_to_be_covered_by_nothing(guarded: World):
    receipt(guarded, "long ago", "SessionStart", at=moment(-7200))
    receipt(guarded, "long ago", "SessionEnd", at=moment(-7100))
    write(guarded.root / SETTINGS, KILLED)
    assert found(audited(guarded)) == {SETTINGS: []}


def test_a_session_that_only_ran_at_the_time_is_a_possible_one(guarded: World):
    receipt(guarded, "s1", "SessionStart", at=moment(-60))
    write(guarded.root / SETTINGS, KILLED)
    receipt(guarded, "s1", "SessionEnd", at=moment(60))
    assert found(audited(guarded)) == {SETTINGS: [("s1", Grade.POSSIBLE)]}


def test_a_call_with_its_receipt_is_not_judged_again(guarded: World):
    lines = transcript(guarded, "s1")
    lines.call("t1", "Write", moment(), file_path=str(guarded.root / "plan.md"), content="x")
    lines.result("t1", "PreToolUse:Write hook error: denied", error=True, at=moment())
    receipt(
        guarded, "s1", "PreToolUse", "t1", tool="Write", permission="deny", rule="protected_path"
    )
    assert (audited(guarded).unguarded, audited(guarded).unseen) == ((), 0)


def test_the_receipt_of_another_session_excuses_nothing(guarded: World):
    lines = transcript(guarded, "s1")
    lines.call("t1", "Write", moment(), file_path=".claude/settings.json", content="x")
    lines.result("t1", at=moment())
    receipt(guarded, "s2", "PreToolUse", "t1", tool="Write", permission="allow")
    assert [item.session for item in audited(guarded).unguarded] == ["s1"]


@pytest.mark.parametrize(
    "text",
    [
        "<tool_use_error>String to replace not found</tool_use_error>",
        "PreToolUse:Write hook error: [/usr/bin/python3]: the policy snapshot is missing",
        "The user doesn't want to proceed with this tool use.",
    ],
)
def test_a_call_that_claude_code_refused_was_not_made(guarded: World, text: str):
    lines = transcript(guarded, "s1")
    lines.call("t1", "Write", moment(), file_path="plan.md", content="x")
    lines.result("t1", text, error=True, at=moment())
    assert audited(guarded).unguarded == ()


def test_a_tool_server_that_words_its_errors_so_is_not_believed(guarded: World):
    lines = transcript(guarded, "s1")
    lines.call("t1", "mcp__files__write", moment(), path="plan.md")
    lines.result("t1", "<tool_use_error>no</tool_use_error>", error=True, at=moment())
    assert [item.call for item in audited(guarded).unguarded] == ["t1"]


@pytest.mark.parametrize(
    ("text", "error", "ran"),
    [("done", False, True), ("Exit code 1", True, True), ("no", True, False)],
)
def test_a_denied_call_that_ran_all_the_same_is_named(
    guarded: World, text: str, error: bool, ran: bool
):
    lines = transcript(guarded, "s1")
    lines.call("t1", "Bash", moment(), command="rm plan.md")
    lines.result("t1", text, error=error, at=moment())
    receipt(
        guarded,
        "s1",
        "PreToolUse",
        "t1",
        tool="Bash",
        permission="deny",
        rule="protected_path",
        reason="no",
    )
    assert [item.guard for item in audited(guarded).unguarded] == (
        ["denied it, and it ran all the same"] if ran else []
    )


def test_of_calls_that_only_receipts_know_the_path_is_judged(guarded: World):
    receipt(guarded, "s1", "PostToolBatch", "t1", tool="Write", rule="unhooked", paths=["plan.md"])
    receipt(
        guarded, "s1", "PostToolBatch", "t2", tool="Write", rule="unhooked", paths=["notes.txt"]
    )
    receipt(guarded, "s1", "PostToolUse", "t3", tool="Bash", rule="no_rule")
    report = audited(guarded)
    assert [(item.call, item.rule) for item in report.unguarded] == [("t1", "protected_path")]
    assert report.unseen == 3


def test_calls_of_before_the_acceptance_are_left_alone(guarded: World):
    lines = transcript(guarded, "old")
    lines.call("t1", "Write", moment(-3 * 3600), file_path="plan.md", content="x")
    lines.result("t1", at=moment(-3 * 3600))
    assert (audited(guarded).unguarded, audited(guarded).unseen) == ((), 0)


@pytest.mark.parametrize(("hours", "named"), [(-1, []), (1, ["t1", "t2"])])
def test_a_plan_that_was_drafted_before_its_approval_accuses_nobody(
    world: World, hours: int, named: list[str]
):
    """No receipt: the session had no hooks. What was an ordinary file then is no breach now."""
    approved = parse_iso(world.project.ledger.plans()[0].at)
    accept_on_record(world.project, by="human:ada", at=approved - timedelta(hours=2))
    at = iso(approved + timedelta(hours=hours))
    lines = transcript(world, "s1")
    lines.call("t1", "Write", at, file_path=str(world.root / "plan.md"), content="x")
    lines.result("t1", at=at)
    lines.call("t2", "Bash", at, command="cp raw.csv data/train.csv")
    lines.result("t2", at=at)
    lines.call("t3", "Write", at, file_path=str(world.root / "train.py"), content="x")
    lines.result("t3", at=at)
    report = audited(world)
    assert ([item.call for item in report.unguarded], report.unseen) == (named, 3)


def test_a_subagents_call_is_judged_as_its_role_and_named_with_the_agent(guarded: World):
    main = transcript(guarded, "s1")
    main.call("t1", "Agent", moment(), subagent_type="harness:oracle", prompt="judge")
    path = main.path.with_suffix("") / "subagents/agent-a1.jsonl"
    inner = Transcript(path, session="s1", cwd=guarded.root, agent="a1")
    inner.prompt("judge", at=moment())
    inner.call(
        "t2", "Write", moment(), file_path="train.py", content="x"
    )  # an oracle writes no code
    inner.result("t2", at=moment())
    (call,) = audited(guarded).unguarded
    assert (call.session, call.agent, call.call, call.rule) == (
        "s1",
        "a1",
        "t2",
        "tool_not_offered",
    )


def test_a_session_that_started_elsewhere_is_found_by_the_path_that_it_spells(
    guarded: World, tmp_path: Path
):
    lines = transcript(guarded, "other", folder="-somewhere-else", cwd=tmp_path)
    lines.call("t1", "Write", moment(), file_path=str(guarded.root / SETTINGS), content=KILLED)
    write(guarded.root / SETTINGS, KILLED)
    lines.result("t1", at=moment())
    stranger = transcript(guarded, "stranger", folder="-quite-another", cwd=tmp_path)
    stranger.call("t1", "Write", moment(), file_path=str(tmp_path / "x"), content="plan.md")
    report = audited(guarded)
    assert found(report) == {SETTINGS: [("other", Grade.CERTAIN)]}
    assert report.sessions == 1


def test_a_worktree_has_the_same_rules(guarded: World, tmp_path: Path):
    place = tmp_path / "tree"
    for name in ("plan.md", ".git"):
        write(place / name, "gitdir: x")
    write(guarded.root / ".git/worktrees/tree/gitdir", f"{place}/.git\n")
    lines = transcript(
        guarded, "s1", folder="".join(c if c.isalnum() else "-" for c in str(place)), cwd=place
    )
    lines.call("t1", "Write", moment(), file_path="plan.md", content="x")
    lines.result("t1", at=moment())
    assert [item.call for item in audited(guarded).unguarded] == ["t1"]


def test_receipts_that_were_cut_are_named_until_a_person_accepts_it(guarded: World):
    for call in ("t1", "t2"):
        receipt(guarded, "s1", "PreToolUse", call, tool="Bash", permission="allow")
    assert audited(guarded).clean  # looking remembers how far they went
    path = guarded.project.layout.project("receipts") / "s1.jsonl"
    path.write_text(path.read_text().splitlines(keepends=True)[1])
    for _ in range(2):
        ((change, _),) = audited(guarded).changes
        assert (change.kind, change.path) == ("receipts", ".harness/receipts/s1.jsonl")
    path.unlink()
    ((change, _),) = audited(guarded).changes
    assert change.actual == "missing"
    accept_on_record(guarded.project, by="human:ada", at=datetime.now(UTC))
    assert audited(guarded).clean


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 1}'])
def test_a_policy_that_does_not_say_what_the_ledger_says_is_named(guarded: World, text: str):
    guarded.project.layout.project("policy").write_text(text)
    assert [change.path for change, _ in audited(guarded).changes] == [".harness/policy.json"]


def test_a_stale_policy_is_named(guarded: World):
    guarded.open()
    assert [change.kind for change, _ in audited(guarded).changes] == ["policy"]


def tamper_metrics(world: World, experiment: str) -> Path:
    path = world.run_path(experiment, "metrics")
    path.write_text(path.read_text() + "{}\n")
    return path


def tamper_checkpoint(world: World, experiment: str) -> Path:
    path = world.run_path(experiment, "checkpoints") / "last.json"
    path.write_text('{"cut": 0}')
    return path


def tamper_plan(world: World, experiment: str) -> Path:
    path = world.root / "plan.md"
    path.write_text(path.read_text() + "\nmore\n")
    return path


def remove_status(world: World, experiment: str) -> Path:
    path = world.run_path(experiment, "status")
    path.unlink()
    return path


@pytest.mark.parametrize("tamper", [tamper_metrics, tamper_checkpoint, tamper_plan, remove_status])
def test_what_the_ledger_recorded_is_compared_too(
    guarded: World, tamper: Callable[[World, str], Path]
):
    experiment = guarded.open().id
    guarded.train(experiment)
    write_policy_snapshot(guarded.project)
    path = tamper(guarded, experiment)
    assert found(audited(guarded)) == {guarded.project.layout.relative(path): []}


def test_a_clone_without_runs_is_not_accused(guarded: World):
    experiment = guarded.open().id
    guarded.train(experiment)
    write_policy_snapshot(guarded.project)
    shutil.rmtree(guarded.path(experiment, "result").parent / "runs")
    assert audited(guarded).clean


def test_without_an_acceptance_nobody_can_say_and_that_is_not_clean(guarded: World):
    guarded.project.layout.accepted.unlink()
    report = audited(guarded)
    assert (report.accepted, report.clean) == (None, False)
    assert [change.kind for change, _ in report.changes] == [ChangeKind.LIST]


def test_a_rewritten_list_is_named_and_a_person_can_accept_anew(guarded: World):
    write(guarded.root / SETTINGS, KILLED)
    listed = guarded.project.layout.accepted
    document = json.loads(listed.read_text("utf-8"))
    document["files"] = control_listing(guarded.root)
    listed.write_text(json.dumps(document), "utf-8")
    (named,) = [change for change, _ in audited(guarded).changes]
    assert (named.kind, named.path) == (ChangeKind.LIST, str(listed))
    accept_on_record(guarded.project, by="human:ada")
    assert audited(guarded).clean


def test_a_project_whose_ledger_remembers_no_list_is_audited_as_before(
    guarded: World, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(Ledger, "accepted_list", lambda ledger, writer: None)
    assert audited(guarded).clean
    guarded.project.layout.accepted.unlink()
    assert audited(guarded).changes == ()


def test_pages_that_the_ledger_does_not_say_are_named_until_they_are_written_anew(guarded: World):
    guarded.open()
    layout = guarded.project.layout
    write_derived(guarded.project)
    assert audited(guarded).clean
    edited = (layout.project("checklist"), layout.decision_log, layout.state_md)
    for path in edited:
        path.write_text(path.read_text("utf-8") + "| exp-0099 | kept |\n", "utf-8")
    layout.briefing.unlink()
    named = {
        change.path for change, _ in audited(guarded).changes if change.kind is ChangeKind.PAGE
    }
    assert named == {layout.relative(path) for path in edited}
    write_derived(guarded.project, everything=True)
    assert audited(guarded).clean


def test_pages_keep_the_words_of_the_harness_that_wrote_them(
    guarded: World, monkeypatch: pytest.MonkeyPatch
):
    """An upgrade that says an old entry otherwise accuses no page, and what is added to it is no
    change either."""
    experiment = guarded.open().id
    words = dict.fromkeys(("context", "choice", "alternatives", "reason"), "a test")
    decide(
        guarded.project,
        kind="CANCEL",
        experiment=experiment,
        by="a person",
        confidence="high",
        **words,
    )
    guarded.project.ledger.append(
        HandOffWritten(by="agent", session=None, text="half done", experiment=experiment)
    )
    write_derived(guarded.project)
    layout, old = guarded.project.layout, guarded.project.layout.decision_log.read_text("utf-8")
    for name in ("entry", "hand_off_page", "state_page", "briefing"):
        before = getattr(refreshing, name)
        monkeypatch.setattr(
            refreshing, name, lambda *given, before=before: before(*given) + "said otherwise\n"
        )
    assert audited(guarded).clean
    guarded.open_another(guarded.open().id)
    write_derived(guarded.project)
    assert layout.decision_log.read_text("utf-8").startswith(old)
    assert layout.decision_log.read_text("utf-8").count("said otherwise") == 1
    assert audited(guarded).clean
    (page,) = layout.hand_off("2026-01-01T00:00:00.000Z", "0" * 64).parent.glob("*.md")
    for path in (page, layout.decision_log):
        path.write_text(
            path.read_text("utf-8").replace("a test", "a tost").replace("half done", "well done"),
            "utf-8",
        )
    named = {change.path for change, _ in audited(guarded).changes}
    assert named == {layout.relative(path) for path in (page, layout.decision_log)}


def test_agent_files_that_claude_code_may_misread_are_told_and_accuse_nobody(guarded: World):
    write(
        guarded.root / ".claude/agents/b.md", "---\ndescription: Use when: x\ntools: Read\n---\n"
    )
    accept_on_record(guarded.project, by="human:ada", at=datetime.now(UTC))
    report = audited(guarded)
    assert [(agent.name, agent.tools) for agent in report.agents] == [("b", ("Read",))]
    assert report.clean


def test_damaged_receipts_and_transcripts_hide_no_others(guarded: World):
    receipts = guarded.project.layout.project("receipts")
    write(
        receipts / "a.jsonl",
        '{"time": 3, "session": "a"}\nnot json\n{"session": "a", "time": "never"}\n',
    )
    (receipts / "b.jsonl").mkdir()
    os.mkfifo(receipts / "c.jsonl")
    home = transcript_home(guarded.environment)
    write(
        home / "x" / "d.jsonl",
        f'{json.dumps(str(guarded.root))}\n{{"type": "assistant", "message": 3}}\n',
    )
    lines = transcript(guarded, "s1")
    lines.call("t1", "Write", "not a time", file_path="plan.md", content="x")
    lines.call("t2", "Write", moment(), file_path="plan.md", content="x")
    report = audited(guarded)
    assert [item.call for item in report.unguarded] == ["t2"]
    assert {one.path.name: one.why for one in report.unread} == {
        "d.jsonl": "1 damaged lines",
        "s1.jsonl": "1 calls without a time",
    }


def test_a_damaged_transcript_is_counted_and_never_nothing_found(guarded: World):
    lines = transcript(guarded, "s1")
    lines.call("t1", "Read", moment(), file_path="a.txt")
    assert audited(guarded).clean
    whole = lines.path.read_bytes()
    lines.path.write_bytes(b"\x00\xff\x00garbage\n" * 3 + whole)
    report = audited(guarded)
    assert (report.clean, report.sessions) == (False, 1)
    assert [(one.path, one.why) for one in report.unread] == [(lines.path, "3 damaged lines")]
    lines.path.write_bytes(whole)
    pipe, folder = lines.path.with_name("s2.jsonl"), lines.path.with_name("s3.jsonl")
    os.mkfifo(pipe)
    folder.mkdir()
    agent = lines.path.with_name("agent-x.jsonl")
    os.mkfifo(agent)
    report = audited(guarded)
    assert not report.clean
    assert {one.path for one in report.unread} == {pipe, folder}
    assert all("is not a regular file" in one.why for one in report.unread)
    for path in (pipe, agent):
        path.unlink()
    folder.rmdir()
    lines.path.write_bytes(whole + b'{"type": "assist')  # its session still writes, or was killed
    assert audited(guarded).clean


def test_a_real_commit_and_a_branch_that_follows_another_change_nothing(guarded: World):
    def git(*words: str) -> None:
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words],
            cwd=guarded.root,
            check=True,
        )

    git("init", "-q", "-b", "main")
    git("commit", "-q", "--allow-empty", "-m", "first")
    write(guarded.root / ".git/config", (guarded.root / ".git/config").read_text())
    accept_on_record(guarded.project, by="human:ada", at=datetime.now(UTC))
    git("branch", "-q", "--track", "other", "main")
    git("remote", "add", "origin", "/nowhere")
    assert audited(guarded).clean
    git("config", "core.hooksPath", "/tmp/evil")
    assert found(audited(guarded)) == {".git/config": []}


def test_a_key_that_nobody_knows_is_told_and_accuses_nobody(guarded: World) -> None:
    write(guarded.root / SETTINGS, '{"hooks": {"PreToolUse": []}, "ofNextYear": 1}')
    report = audited(guarded)
    ((change, _),) = report.changes
    assert (change.path, change.grave) == (SETTINGS, False)
    assert change.words() == f"{SETTINGS} sets ofNextYear, which this harness does not know"
    assert report.clean
    write(guarded.root / SETTINGS, KILLED)
    report = audited(guarded)
    assert not report.clean
    assert [change.words() for change, _ in report.changes] == [
        f"{SETTINGS} sets disableAllHooks, which switches every hook off"
    ]
    write(guarded.root / SETTINGS, '{"hooks":{"PreToolUse":[]},"theme":"dark","model":"opus"}')
    assert audited(guarded).changes == ()
