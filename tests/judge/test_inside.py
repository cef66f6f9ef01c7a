"""What a shell inside the sandbox of `harness claude` can do, and what it cannot, in bwrap and in
landlock."""

import json
import os
import signal
import subprocess
import time

import pytest

from tests.interactive.lab import must
from tests.judge.inside import Inside, left_over

OPENED = "harness experiment new --hypothesis centroids"


def receipts_of(inside: Inside) -> list[dict[str, object]]:
    folder = inside.journey.root / ".harness/receipts"
    lines = [line for file in folder.glob("*.jsonl") for line in file.read_text().splitlines()]
    return [json.loads(line) for line in lines]


def test_the_exit_code_and_both_streams_come_out(inside: Inside) -> None:
    answer = inside.run("echo out; echo err >&2; exit 7")
    assert (answer.exit_code, answer.stdout, answer.stderr) == (7, "out\n", "err\n")


def test_it_starts_without_an_argument(inside: Inside) -> None:
    environment = inside.environment()  # the stand-in is a shell: it reads its script from stdin
    done = subprocess.run(
        inside.bare,
        cwd=inside.journey.root,
        env=environment,
        input="echo begun; exit 7\n",
        capture_output=True,
        text=True,
        timeout=120.0,
        check=False,
    )
    assert (done.returncode, done.stdout) == (7, "begun\n"), done.stderr


def test_what_harness_is_there(inside: Inside) -> None:
    answer = inside.run("harness status --json; harness --version; harness status --nonsense")
    assert answer.exit_code == 2
    document, _, rest = answer.stdout.rpartition("}\n")
    assert json.loads(document + "}")["project"]
    assert "harness, version" in rest
    assert "harness status --nonsense" in answer.stderr


def test_the_secrets_do_not_exist(inside: Inside) -> None:
    state = inside.journey.state
    tries = [
        f"cat {state}/ledger.db",
        f"ls {state}",
        f"find {state.parent} -type f",
        f"cat {state}/vault/held_out/*",
        f"cat {state}/anchors/*",
        "cat /proc/$JUDGE/environ",
        "cat /proc/$JUDGE/mem",
        "cat /proc/$JUDGE/fd/*",
        "kill -9 $JUDGE",
        "cat .harness/../../*/state/harness/*/ledger.db",
    ]
    script = "; ".join(f"({text}) 2>/dev/null && echo 'GOT {text}'" for text in tries)
    # The judge's process id, as it is outside: nothing inside knows a better one.
    running = inside.start(f"read JUDGE < judge.pid; {script}; echo DONE")
    (inside.journey.root / "judge.pid").write_text(f"{running.pid}\n")
    out, err = running.communicate(timeout=60)
    assert "DONE" in out, err
    assert "GOT" not in out


def test_nothing_that_decides_can_be_written(inside: Inside) -> None:
    if inside.sandbox == "landlock":
        pytest.skip("rules of landlock add up: what lies in the project is in reach of Bash there")
    root = inside.journey.root
    kept = ["plan.md", ".harness/policy.json", ".claude/settings.json", ".mcp.json", ".git/config"]
    before = {name: (root / name).read_bytes() for name in kept}
    script = "; ".join(f"echo x >> {name} && echo GOT" for name in kept)
    made = "; ".join(
        f"touch {name} && echo GOT"
        for name in (".claude/x", ".harness/x", ".git/hooks/x", ".harness/receipts/x")
    )
    assert "GOT" not in inside.run(f"{script}; {made}").stdout
    assert {name: (root / name).read_bytes() for name in kept} == before


def test_hooks_find_their_byte_code_which_nobody_inside_can_change(inside: Inside) -> None:
    """Each call would compile all that it imports otherwise."""
    given = {"tool_name": "Bash", "tool_input": {"command": "ls"}, "session_id": "s"}
    call = json.dumps({**given, "cwd": str(inside.journey.root)})
    hook = "/usr/bin/python3 -I -S -v .claude/hooks/harness/run.py PreToolUse"
    answer = inside.run(f"echo '{call}' | {hook} 2> said.txt; echo code $?")
    assert "code 0" in answer.stdout, answer.stdout + answer.stderr
    said = (inside.journey.root / "said.txt").read_text()
    assert "frame.cpython" in said
    ours = [line for line in said.splitlines() if "/hooks/harness/lib/" in line]
    assert [line for line in ours if line.startswith("# code object from /")] == []
    kept = "find $HARNESS_COMPILED -name '*.pyc' | head -1"
    tries = f"touch $HARNESS_COMPILED/x && echo GOT; rm $({kept}) && echo GOT; {kept}"
    answer = inside.run(tries)
    assert "GOT" not in answer.stdout
    assert answer.stdout.strip().endswith(".pyc")


def test_a_draft_of_the_plan_is_written_and_checked_inside(inside: Inside) -> None:
    draft = "plans/plan.draft.md"
    answer = inside.run(
        f"mkdir plans; cp plan.md {draft}; harness plan check {draft}; rm -r plans"
    )
    assert f"{draft} can be approved." in answer.stdout, answer.stderr
    assert f"`harness plan approve {draft}`" in answer.stdout


def test_the_home_is_read_only_but_for_the_clis_own(inside: Inside) -> None:
    home = inside.journey.home
    (home / "notes.txt").write_text("mine\n")
    (home / ".claude").mkdir(exist_ok=True)
    script = (
        "cat ~/notes.txt; echo x >> ~/notes.txt; echo x > ~/.bash_profile;"
        f" echo x > '{home}/.bash_profile'; echo x > '{home}/notes.txt'; echo x > ~/.claude/kept;"
        " echo $TMPDIR; echo x > $TMPDIR/file"
    )
    answer = inside.run(script)
    assert answer.stdout.startswith("mine\n")
    assert (home / "notes.txt").read_text() == "mine\n"
    assert not (home / ".bash_profile").exists()
    assert (home / ".claude/kept").read_text() == "x\n"
    assert not os.path.exists(answer.stdout.split()[-1])  # gone with the session


def test_what_lowers_trust_is_refused(inside: Inside) -> None:
    script = (
        "harness train exp-0001 --sandbox none; echo $?; harness plan approve; echo $?;"
        " harness gate approve exp-0001 --reason x --json; echo $?; harness claude -p hi; echo $?"
    )
    answer = inside.run(script)
    assert answer.stdout.count("2\n") == 4
    assert '"code": "human_verb"' in answer.stdout
    assert "person" in answer.stderr


def test_nothing_planted_inside_reaches_the_judge(inside: Inside) -> None:
    root = inside.journey.root
    planted = "import os; open(os.environ['HOME'] + '/state/PLANTED', 'w')"
    (root / "lib").mkdir(exist_ok=True)
    for name in ("sitecustomize.py", "usercustomize.py", "json.py", "lib/sitecustomize.py"):
        (root / name).write_text(planted)
    tool = root / "lib/git"
    tool.write_text("#!/bin/sh\ntouch $HOME/state/PLANTED\n")
    tool.chmod(0o755)
    script = (
        "export PYTHONPATH=$PWD/lib PYTHONHOME= LD_PRELOAD=$PWD/lib/x.so PATH=$PWD/lib:$PATH"
        " HARNESS_CALLER=driver HARNESS_CALLER_FD=0 XDG_STATE_HOME=$PWD/lib"
        " CLAUDE_CODE_SESSION_ID='../../x';"
        " unset LD_PRELOAD; harness status --json; harness audit > /dev/null; harness ledger verify"
    )
    answer = inside.run(script)
    for name in ("sitecustomize.py", "usercustomize.py", "json.py"):
        (root / name).unlink()
    assert str(inside.journey.state) in answer.stdout, answer.stderr
    assert not (inside.journey.home / "state/PLANTED").exists()


def test_only_what_runs_inside_may_ask(inside: Inside) -> None:
    running = inside.start("echo $HARNESS_JUDGE; read -t 30 < <(sleep 20)")
    try:
        assert running.stdout is not None
        socket = running.stdout.readline().strip()
        assert os.stat(socket).st_mode & 0o777 == 0o600
        assert os.stat(os.path.dirname(socket)).st_mode & 0o777 == 0o700
        refused = inside.journey.harness("status", HARNESS_JUDGE=socket)
        assert refused.exit_code == 3
        assert "ended before it answered" in refused.stderr
    finally:
        running.send_signal(signal.SIGTERM)
        running.communicate(timeout=60)
    assert not os.path.exists(socket)


def test_two_sessions_in_one_project(inside: Inside) -> None:
    script = "harness experiment list --json > /dev/null && echo FINE; sleep 2"
    pair = [inside.start(script) for _ in range(2)]
    for running in pair:
        out, err = running.communicate(timeout=90)
        assert out == "FINE\n", err
    assert not list(inside.journey.state.glob("judge/*.json"))


def test_a_killed_session_leaves_nothing_behind(inside: Inside) -> None:
    running = inside.start("echo $HARNESS_JUDGE; (sleep 1000 &) ; sleep 1000")
    assert running.stdout is not None
    socket = running.stdout.readline().strip()
    running.kill()
    running.wait()
    end = time.monotonic() + 20
    while left_over(inside.journey.home) and time.monotonic() < end:
        time.sleep(0.1)
    assert left_over(inside.journey.home) == []
    assert os.path.exists(socket)
    assert inside.run("harness status").exit_code == 0
    assert not os.path.exists(os.path.dirname(socket))  # the next session clears it away
    assert not list(inside.journey.state.glob("judge/*.json"))


def test_a_hand_off_may_come_from_a_file(inside: Inside) -> None:
    secret = next(inside.journey.state.glob("vault/held_out/*"))
    answer = inside.run(
        f"echo 'Try more.' > note.txt; harness handoff --file note.txt; echo $?;"
        f" echo Piped | harness handoff -; echo $?; harness handoff --file '{secret}'; echo $?"
    )
    assert answer.stdout.count("\n0\n") == 2, answer.stderr
    assert answer.stdout.endswith("3\n")


def test_receipts_reach_the_project(inside: Inside) -> None:
    """A hook inside hands its receipt to the judge, which says beside it where it came from."""
    before = len(receipts_of(inside))
    payload = {
        "session_id": f"s-{inside.sandbox}",
        "cwd": str(inside.journey.root),
        "hook_event_name": "SessionStart",
        "source": "startup",
    }
    hook = ".claude/hooks/harness/run.py"
    answer = inside.run(
        f"export CLAUDE_PROJECT_DIR=$PWD; echo '{json.dumps(payload)}'"
        f" | /usr/bin/python3 -I -S {hook} SessionStart"
    )
    assert f"runs in a sandbox ({inside.sandbox})" in answer.stdout, answer.stderr
    after = receipts_of(inside)
    assert len(after) == before + 1
    (line,) = [item for item in after if item["session"] == payload["session_id"]]
    assert (line["event"], line["sandbox"]) == ("SessionStart", inside.sandbox)


def test_a_session_that_ends_hands_over(inside: Inside) -> None:
    """Its hook inside tells the judge, which reads the transcript outside."""
    session = f"end-{inside.sandbox}"
    call = {"type": "tool_use", "id": "t-1", "name": "Bash", "input": {"command": "touch a.md"}}
    answer = {"type": "tool_result", "tool_use_id": "t-1", "content": ""}
    rows = [
        {"type": kind, "uuid": kind, "message": {"role": kind, "content": [content]}}
        for kind, content in (("assistant", call), ("user", answer))
    ]
    lines = "\n".join(json.dumps({**row, "sessionId": session}) for row in rows)
    told = {"session_id": session, "cwd": str(inside.journey.root), "reason": "other"}
    payload = json.dumps({**told, "hook_event_name": "SessionEnd"})
    ran = inside.run(
        f"export CLAUDE_PROJECT_DIR=$PWD; mkdir -p ~/.claude/projects/p;"
        f" echo '{lines}' >~/.claude/projects/p/{session}.jsonl;"
        f" echo '{payload}' | /usr/bin/python3 -I -S .claude/hooks/harness/run.py SessionEnd"
    )
    assert ran.exit_code == 0, ran.stderr
    deadline = time.monotonic() + 60
    briefing = ""
    while f"> Session {session} ended.\n" not in briefing and time.monotonic() < deadline:
        time.sleep(0.1)
        briefing = inside.journey.harness("status", "--briefing").stdout
    assert "> Done: ran `touch a.md`." in briefing


def test_training_by_a_request(inside: Inside) -> None:
    answer = inside.run(
        f"{OPENED} --json; harness train $(cd .harness/experiments; ls -d exp-???? | tail -1)"
    )
    assert answer.exit_code == 0, answer.stderr
    assert "completed" in answer.stdout
    rows = must(inside.journey.harness("experiment", "list", "--json")).document["experiments"]
    assert rows[-1]["experiment"] in answer.stdout
    must(inside.journey.harness("ledger", "verify"))
    reason = ["--reason", "enough"]
    inside.journey.harness("gate", "reject", rows[-1]["experiment"], *reason)
