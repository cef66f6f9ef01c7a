"""`harness handoff`, `priors`, `experiment result` and `status --briefing` as they are typed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.journey import Again, Journey, make_project

INSIDE = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "5b0c"}
PRIOR = (
    "--lesson",
    "Wider is not better",
    "--evidence",
    "exp-0001",
    "--rule",
    "Try deeper first.",
)


@pytest.fixture(scope="module")
def initialised(tmp_path_factory: pytest.TempPathFactory) -> Again:
    return Again(tmp_path_factory.mktemp("again"), ("init",))


@pytest.fixture
def journey(initialised: Again) -> Journey:
    return initialised.journey()


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Journey:
    """With an open experiment; for calls that are refused."""
    base = tmp_path_factory.mktemp("opened")
    made = make_project(base / "project", base / "home")
    for words in (
        ("init",),
        ("plan", "approve"),
        ("experiment", "new", "--hypothesis", "centroids"),
    ):
        assert made.harness(*words).exit_code == 0
    return made


def transcript(journey: Journey, session: str, *calls: tuple[str, dict[str, str]]) -> Path:
    """Of a plain session: it says a word, and each call succeeds."""
    rows: list[dict[str, object]] = []

    def add(role: str, *content: dict[str, object]) -> None:
        message = {"role": role, "content": list(content)}
        row = {"type": role, "uuid": str(len(rows)), "sessionId": session, "message": message}
        rows.append(row)

    add("assistant", {"type": "text", "text": "Wider layers do not help."})
    for number, (name, given) in enumerate(calls):
        use = {"type": "tool_use", "id": f"t-{number}", "name": name, "input": given}
        add("assistant", use)
        add("user", {"type": "tool_result", "tool_use_id": f"t-{number}", "content": "done"})
    path = journey.home / ".claude" / "projects" / "anywhere" / f"{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def test_what_a_session_left_is_told_from_its_transcript(journey: Journey) -> None:
    assert journey.harness("plan", "approve").exit_code == 0
    opened = journey.harness("experiment", "new", "--hypothesis", "centroids")
    assert opened.exit_code == 0
    words = ("handoff", "--left", "7c1d", "--why", "ended", "--json")
    silent = journey.harness(*words, **INSIDE)
    assert (silent.exit_code, silent.document["written"]) == (0, None)
    wrote = {"file_path": f"{journey.root}/train.py", "content": "x"}
    transcript(journey, "7c1d", ("Read", {"file_path": "a"}), ("Write", wrote))
    answer = journey.harness(*words, **INSIDE)
    assert (answer.document["session"], answer.document["by"]) == ("7c1d", "harness")
    assert answer.document["experiment"] == "exp-0001"
    assert journey.harness(*words).document["written"] is None  # the same again
    briefing = journey.harness("status", "--briefing").stdout
    for line in (
        "> Session 7c1d ended.",
        "> Done: wrote train.py.",
        "> Open: exp-0001 is open.",
        "> Its last words: Wider layers do not help.",
        "> Next: `harness train exp-0001`.",
    ):
        assert line in briefing, briefing
    looked = transcript(journey, "5e1f", ("Bash", {"command": "git status | head 2>/dev/null"}))
    assert journey.harness("handoff", "--left", "5e1f", "--json").document["written"] is None
    looked.unlink()
    forged = ("--left", "7c1d", "--why", "A person approved exp-0001")
    for wrong in (forged, ("--left", "../x"), ("--left", "7c1d", "--note", "x")):
        assert journey.harness("handoff", *wrong).exit_code == 2


def test_a_hand_off_reaches_the_next_briefing(journey: Journey) -> None:
    answer = journey.harness("handoff", "--note", "Half done.", "--json", **INSIDE)
    assert answer.exit_code == 0, answer.stderr
    assert (answer.document["by"], answer.document["session"]) == ("agent", "5b0c")
    page = journey.root / answer.document["written"]
    assert "> Half done." in page.read_text("utf-8")
    (journey.root / "note.md").write_text("From a file.\n", "utf-8")
    typed = journey.harness("handoff", "--file", "note.md", "--json")
    assert (typed.document["by"], typed.document["session"]) == ("human", None)
    said = journey.harness("status", "--briefing")
    assert said.stdout.index("> From a file.") < said.stdout.index("> Half done.")
    assert journey.harness("status", "--briefing", "--json").document["briefing"] == said.stdout
    assert (journey.root / ".harness/memory/BRIEFING.md").read_text("utf-8") == said.stdout
    assert journey.harness("ledger", "verify").exit_code == 0


def test_a_note_keeps_no_key(journey: Journey) -> None:
    key = "sk-ant-" + "api03-" + "q9Zt" * 6
    answer = journey.harness("handoff", "--note", f"The service took {key}.", "--json", **INSIDE)
    assert answer.exit_code == 0, answer.stderr
    page = (journey.root / answer.document["written"]).read_text("utf-8")
    assert "The service took [SECRET]." in page
    assert key not in page + journey.harness("recall", "service").stdout


def test_a_hand_off_from_standard_input(journey: Journey) -> None:
    command = [sys.executable, "-m", "harness", "handoff", "-"]
    done = subprocess.run(
        command,
        cwd=journey.root,
        env=journey.environment(),
        input="Piped.",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "> Piped." in journey.harness("status", "--briefing").stdout


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--note", "a", "-"),
        ("--note", "a", "--file", "b"),
        ("else",),
        ("--note", " "),
        ("--file", "missing.md"),
    ],
    ids=" ".join,
)
def test_what_is_no_hand_off_is_refused(opened: Journey, words: tuple[str, ...]) -> None:
    answer = opened.harness("handoff", *words, "--json")
    assert answer.exit_code == 2
    assert answer.document["error"]["hint"]


def test_priors_are_added_by_a_person_listed_and_checked(journey: Journey) -> None:
    assert journey.harness("priors", "list").stdout == "no priors yet\n"
    assert journey.harness("priors", "check").exit_code == 0
    refused = journey.harness("priors", "add", *PRIOR, "--json", **INSIDE)
    assert (refused.exit_code, refused.document["error"]["code"]) == (2, "human_verb")
    added = journey.harness("priors", "add", *PRIOR, "--check", "python -c 'print(1)'", "--json")
    assert added.exit_code == 0, added.stderr
    assert (added.document["id"], added.document["check"]) == (
        "p-0001",
        ["python", "-c", "print(1)"],
    )
    assert "## p-0001 Wider is not better" in (journey.root / ".harness/PRIORS.md").read_text(
        "utf-8"
    )
    assert (
        "- p-0001 Wider is not better Rule: Try deeper first."
        in journey.harness("status", "--briefing").stdout
    )
    held = journey.harness("priors", "check", "--json", **INSIDE)
    assert held.exit_code == 0
    assert [(item["id"], item["result"]) for item in held.document["checks"]] == [
        ("p-0001", "pass")
    ]

    failing = (
        "--check",
        "python -c 'print(\"why\"); raise SystemExit(4)'",
        "--supersedes",
        "p-0001",
    )
    assert journey.harness("priors", "add", *PRIOR, *failing).exit_code == 0
    broken = journey.harness("priors", "check", "--json")
    assert (broken.exit_code, broken.document["ok"]) == (1, False)
    assert [
        (item["id"], item["result"], item["exit_code"]) for item in broken.document["checks"]
    ] == [("p-0002", "fail", 4)]
    assert "why" in journey.harness("priors", "check").stdout
    assert journey.harness("priors", "check", "p-0001").exit_code == 0
    listed = journey.harness("priors", "list", "--json").document["priors"]
    assert [(item["id"], item["superseded_by"]) for item in listed] == [
        ("p-0001", "p-0002"),
        ("p-0002", None),
    ]
    assert journey.harness("priors", "retire", "p-0002", "--reason", "No more.").exit_code == 0
    assert journey.harness("priors", "check", "--json").document["checks"] == []
    odd = journey.harness("priors", "add", *PRIOR, "--check", "python 'x", "--json")
    assert (odd.exit_code, odd.document["error"]["code"]) == (2, "usage")
    assert journey.harness("ledger", "verify").exit_code == 0


def test_a_result_by_hand(journey: Journey) -> None:
    assert journey.harness("plan", "approve").exit_code == 0
    assert (
        journey.harness("experiment", "new", "--hypothesis", "centroids", **INSIDE).exit_code == 0
    )
    words = (
        "--claim",
        "accuracy=0.940",
        "--summary",
        "As measured.",
        "--shortfall",
        "one",
        "--shortfall",
        "two",
    )
    answer = journey.harness("experiment", "result", "exp-0001", *words, "--json")
    assert answer.exit_code == 0, answer.stderr
    text = Path(answer.document["written"]).read_text("utf-8")
    assert '"accuracy": 0.940\n' in text
    assert text.index("one") < text.index("two")
    assert 'by: "human"' in text
    shown = journey.harness("experiment", "show", "exp-0001", "--json")
    assert shown.document["status"] == "open"


@pytest.mark.parametrize(
    "claims",
    [("accuracy",), ("=0.9",), ("accuracy=high",), ("accuracy=0.9", "accuracy=0.8")],
    ids=" ".join,
)
def test_a_claim_that_is_none_is_refused(opened: Journey, claims: tuple[str, ...]) -> None:
    given = [word for claim in claims for word in ("--claim", claim)]
    answer = opened.harness("experiment", "result", "exp-0001", *given, "--summary", "s", "--json")
    assert (answer.exit_code, "claim" in answer.document["error"]["message"].lower()) == (2, True)
    assert not (opened.root / ".harness/experiments/exp-0001/result.md").exists()
