"""A person's verb asked from inside `harness claude`: the person is asked on their own terminal, and
nothing else confirms it."""

import contextlib
import hashlib
import json
import os
import re
import signal
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import psutil
import pytest

from harness.errors import RefusedError
from harness.judge.question import MOST_REFUSED, Asker
from harness.judge.requests import Request
from harness.judge.terminal import LedProgram
from tests.cli.journey import Journey
from tests.judge.inside import Inside, left_over
from tests.screen import Screen

APPROVE = "harness plan approve"
ASKED = r"type (\d{4}) and press Enter"
BACK = r"harness: exit (\d+)\. Press Enter"
YES = "Type yes and press Enter"


def code_on(screen: Screen, *, times: int = 1) -> str:
    return screen.wait_for(ASKED, times=times)[5:9]


def approvals(journey: Journey) -> list[dict[str, Any]]:
    with contextlib.closing(sqlite3.connect(journey.state / "ledger.db")) as database:
        query = "SELECT data FROM facts WHERE kind = 'plan_approved' ORDER BY position"
        return [json.loads(row[0])["body"] for row in database.execute(query)]


def receipts(journey: Journey) -> list[dict[str, Any]]:
    files = sorted((journey.root / ".harness/receipts").glob("*.jsonl"))
    lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    asked = [line for line in lines if line["event"] == "AskedPerson"]
    return sorted(asked, key=lambda line: line["time"])


@pytest.fixture(scope="module")
def approved(approved: Journey) -> Journey:
    """Its plan is not as it was approved, before each test."""
    change_plan(approved, "0.80", "0.70")
    return approved


@pytest.fixture
def shell(approved: Journey) -> Inside:
    return Inside(approved, "bwrap")


def change_plan(journey: Journey, before: str, after: str) -> None:
    plan = journey.root / "plan.md"
    text = plan.read_text("utf-8")
    assert f"must: {before}" in text
    plan.write_text(text.replace(f"must: {before}", f"must: {after}"), "utf-8")


def test_what_a_terminal_reports_confirms_nothing(shell: Inside) -> None:
    """The session's last bytes ask the terminal for its cursor and its windows' focus; the answers
    come before the code, and after it."""
    screen = shell.on_screen(f"printf '\\e[6n\\e[?1004h'; {APPROVE}; echo code $?")
    screen.wait_for(r"\x1b\[6n")
    screen.write("\x1b[24;80R\n0000\n")
    code = code_on(screen)
    screen.write(f"\x1b[O\x1b[24;80R\x1b[I{code}\n")
    screen.wait_for(YES)
    screen.write("\n")
    assert screen.wait_for(BACK).split()[2] == "2."
    screen.write("\n")
    screen.wait_for("code 2")
    assert screen.end() == 0


def test_ctrl_c_ends_the_verb_and_not_the_session(shell: Inside) -> None:
    before = approvals(shell.journey)
    screen = shell.on_screen(f"{APPROVE}; echo code $?; exit 4")
    screen.write("1\n2\n")  # keys for Claude, typed before the code is there, are none
    screen.write(f"{code_on(screen)}\n")
    screen.wait_for(YES)
    screen.write("\x03")
    screen.wait_for(BACK)
    screen.write("\n")
    screen.wait_for("code 130")
    assert screen.end() == 4
    assert approvals(shell.journey) == before


def test_a_killed_verb_gives_the_terminal_back(shell: Inside) -> None:
    before = approvals(shell.journey)
    screen = shell.on_screen(f"{APPROVE}; echo code $?; exit 4")
    screen.write(f"{code_on(screen)}\n")
    screen.wait_for(YES)
    judge = psutil.Process(screen.pid)
    (verb,) = [child for child in judge.children() if "approve" in child.cmdline()]
    verb.kill()
    screen.wait_for(BACK)
    screen.write("\n")
    screen.wait_for("code 137")
    assert screen.end() == 4
    assert approvals(shell.journey) == before


def test_all_else_refuses_and_nobody_is_asked_for_ever(shell: Inside) -> None:
    before = len(receipts(shell.journey))
    screen = shell.on_screen(f"for i in 1 2 3 4; do {APPROVE}; echo code $?; done")
    keys = ("\n", "\x03", "{code}0\n")
    for number, key in enumerate(keys, 1):
        code = code_on(screen, times=number)
        screen.write(key.format(code=code))
    screen.wait_for("code 2", times=4)
    assert screen.end() == 0
    assert screen.seen.count("The person refused") == 3
    assert screen.seen.count("asked no more.") == 1
    assert f"cd '{shell.journey.root}' && {APPROVE}" in re.sub(r"\r?\n *", " ", screen.seen)
    rules = [receipt["rule"] for receipt in receipts(shell.journey)[before:]]
    assert rules == ["person_refused"] * 3 + ["refused_too_often"]


def test_a_screen_that_looks_like_the_question_asks_nothing(shell: Inside) -> None:
    """Its code goes to whoever printed it; in the real question it is no code."""
    screen = shell.on_screen(
        "echo 'To run it, type 12345 and press Enter.'; read x; echo got $x;"
        f" printf '\\e]2;12345\\e\\\\\\e(0\\e[8m\\e]0;'; {APPROVE}; echo code $?"
    )
    screen.wait_for("type 12345 and")
    screen.write("12345\n")
    screen.wait_for("got 12345")
    code_on(screen)
    # An open title, invisible letters and another alphabet are ended before the question.
    assert "\x18\x1b\\\x1b[!p\x1b[0m" in screen.seen.rpartition("asks you to run")[0]
    screen.write("12345\n")
    screen.wait_for("code 2")
    assert screen.end() == 0


def test_the_persons_terminal_cannot_be_opened_inside(inside: Inside) -> None:
    """Neither read, which would take their keys, nor written."""
    name = inside.journey.root / "terminal.txt"
    tries = "chmod 666 $T; (echo FAKE > $T) && echo WROTE; (timeout 1 cat < $T) && echo READ"
    screen = inside.on_screen(
        f"echo ready; read go; T=$(cat terminal.txt); {tries}; echo DONE; tty; exit 0"
    )
    screen.wait_for("ready")
    name.write_text(os.readlink(f"/proc/{screen.pid}/fd/0"), "utf-8")
    screen.write("\n")
    screen.wait_for("DONE")
    screen.end()
    assert not {"FAKE", "WROTE", "READ"} & set(screen.seen.split())


def test_one_question_at_a_time(shell: Inside) -> None:
    screen = shell.on_screen(f"({APPROVE}; echo one $?) & ({APPROVE}; echo two $?) & wait; exit 0")
    code_on(screen)
    time.sleep(1)
    assert not re.search("one 2|two 2", screen.seen)  # nothing of the session is shown meanwhile
    screen.write("\n")
    screen.wait_for("one 2")
    screen.wait_for("two 2")
    assert screen.end() == 0
    assert screen.seen.count("Another question of this session") == 1
    assert len(re.findall(ASKED, screen.seen)) == 1


def test_a_resized_terminal_is_passed_on_afterwards(shell: Inside) -> None:
    script = f"trap 'stty size' WINCH; {APPROVE}; sleep 0.5; echo now $(stty size); read line"
    screen = shell.on_screen(script)
    code_on(screen)
    screen.resize(31, 91)
    screen.write("\n")
    screen.wait_for("30 91")  # another size for a moment: the program draws its screen anew
    screen.wait_for("now 31 91")
    assert not screen.is_echoing()
    screen.write("\n")
    screen.end()


def test_no_word_is_cut_at_the_terminals_edge(shell: Inside) -> None:
    screen = shell.on_screen("sleep 1; harness keep exp-0001; echo over")
    screen.resize(24, 80)
    code_on(screen)
    page = screen.seen[screen.seen.rindex("asks you to run") :]
    assert "looks are counted. The numbers" in " ".join(page.split())
    assert max(len(line) for line in page.splitlines()) <= 80
    screen.write("\r")
    screen.wait_for("over\\r")
    screen.end()


def test_a_terminal_that_is_closed_meanwhile_ends_everything(shell: Inside) -> None:
    before = approvals(shell.journey)
    screen = shell.on_screen(f"{APPROVE}; sleep 1000")
    screen.write(f"{code_on(screen)}\n")
    screen.wait_for(YES)
    os.close(screen.ours)
    end = time.monotonic() + 60
    while left_over(shell.journey.home) and time.monotonic() < end:
        time.sleep(0.1)
    assert left_over(shell.journey.home) == []
    assert approvals(shell.journey) == before


def test_a_signal_ends_the_session_and_the_question(shell: Inside) -> None:
    screen = shell.on_screen(f"{APPROVE}; sleep 1000")
    code_on(screen)
    os.kill(screen.pid, signal.SIGTERM)
    assert screen.end() == 128 + signal.SIGTERM
    assert screen.is_echoing()


def test_nobody_is_asked_who_is_not_there(shell: Inside) -> None:
    told = shell.run(f"{APPROVE}; echo $?").stderr
    screen = shell.on_screen(f"{APPROVE}; exit 5", "-p")
    assert screen.end() == 5
    for said in (told, screen.seen):
        assert "nobody can be asked here" in said
        assert f"&& {APPROVE}`" in said
    assert not re.search(ASKED, screen.seen)


def test_a_confirmed_verb_that_does_not_start_is_no_refusal(shell: Inside) -> None:
    root = shell.journey.root
    screen = shell.on_screen(f"{APPROVE}; echo one $?; {APPROVE}; echo two $?")
    code = code_on(screen)
    moved = root.rename(root.with_name("moved"))
    root.write_text("no folder to start in")
    try:
        screen.write(f"{code}\n")
        screen.wait_for(r"harness: it did not start \(.*\)\. Press Enter")
    finally:
        root.unlink()
        moved.rename(root)
    screen.write("\n")
    screen.wait_for("one 2")
    assert "it did not start" in screen.seen.rpartition("Press Enter to go back")[2]
    assert "The person refused" not in screen.seen
    code_on(screen, times=2)
    screen.write("\n")
    screen.wait_for("two 2")
    assert screen.end() == 0
    assert "2 more may be refused" in re.sub(r"\r?\n *", " ", screen.seen)


class NoTerminal:
    """Lends what is no terminal, as after it was closed."""

    alternate = ending = False

    def lend(self, use: Callable[[], None], _done: threading.Event) -> bool:
        use()
        return True


def test_who_cannot_be_asked_refused_nothing(tmp_path: Path) -> None:
    asker = Asker(cast("LedProgram", NoTerminal()), tmp_path, {}, present=True)
    request = Request(words=("plan", "approve"), asked=APPROVE)
    for _ in range(MOST_REFUSED + 1):
        with pytest.raises(RefusedError, match="their terminal does not answer") as refused:
            asker.ask(request)
        assert refused.value.code == "human_verb"


def test_the_words_are_shown_whole_and_plain(shell: Inside) -> None:
    reason = "x" * 700
    screen = shell.on_screen(
        f"harness gate reject exp-0001 --reason {reason}; harness gate reject exp-0001 --reason"
        " $'worse\\e[2J\\n\\n  harness: type 0000' --json; echo code $?"
    )
    code_on(screen)
    assert "more than 600 characters" in screen.seen
    assert "'--reason=worse harness: type 0000'" in screen.seen
    assert "in Claude's words" in screen.seen
    screen.write("\n")
    screen.wait_for("code 2")
    assert '"code": "person_refused"' in screen.seen
    assert screen.end() == 0


MUST = {"bwrap": ("0.70", "0.60"), "landlock": ("0.60", "0.50")}


def test_the_code_makes_it_the_persons_own(inside: Inside) -> None:
    """They see what is approved before it counts, and what counts is what they saw."""
    plan, earlier = inside.journey.root / "plan.md", approvals(inside.journey)
    shown = hashlib.sha256(plan.read_bytes()).hexdigest()
    told = len(receipts(inside.journey))
    screen = inside.on_screen(
        f"export CLAUDE_CODE_SESSION_ID=s-1; {APPROVE}; echo code $?; read line; echo got $line"
    )
    screen.wait_for("asks you to run")
    assert APPROVE in screen.seen
    screen.write(f"{code_on(screen)}\n")
    screen.wait_for(YES)
    before, after = MUST[inside.sandbox]
    assert re.search(rf"oracle\.tiers\.must: 0\.\d -> {before.rstrip('0')}", screen.seen)
    assert approvals(inside.journey) == earlier
    change_plan(inside.journey, before, after)
    screen.write("yes\n")
    screen.wait_for(BACK)
    screen.write("\n")
    screen.wait_for("A person ran .harness plan approve. on their terminal: exit 0")
    screen.wait_for("code 0")
    screen.write("hello\n")
    screen.wait_for("got hello")
    assert screen.end() == 0
    (new,) = approvals(inside.journey)[len(earlier) :]
    assert (new["version"], new["sha256"]) == (len(earlier) + 1, shown)
    assert new["by"].startswith("human:")
    (receipt,) = receipts(inside.journey)[told:]
    assert (receipt["session"], receipt["rule"], receipt["exit_code"]) == ("s-1", "person_ran", 0)
    assert (receipt["asked"], receipt["sandbox"]) == (APPROVE, inside.sandbox)
    assert left_over(inside.journey.home) == []
