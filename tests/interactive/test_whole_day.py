"""A whole day in one session of the real CLI: from data to a plan, a kept experiment, one that an
alarm ends, a compaction, a resume and a decision. The person types in this one terminal only, and
is asked for one permission."""

import re
import shutil
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from harness.model_gateway.wire import newest_text, tool_results
from tests.centroids import PREDICT, TRAIN
from tests.cli.journey import PLAN, Journey, make_project
from tests.interactive.gateway import COMPACTING, Turn, bash, call, open_gateway, shown
from tests.interactive.lab import must
from tests.interactive.sklearn_repository import git
from tests.interactive.test_decide_inside import QUESTION, code_on, resize
from tests.interactive.test_harness_claude import ended, program
from tests.interactive.tmux import Terminal, interactive

pytestmark = pytest.mark.skipif(
    shutil.which("tmux") is None, reason="tmux is not installed: apt install tmux"
)
WORKING_S = 240.0
"""A whole experiment on a busy machine."""
SETTLED_S = 4.0
EDITS = "Yes, and switch to accept edits"
ASKED = re.compile(r"Do you want to [a-z ]+")
FAULTY = TRAIN.replace(
    '    log.epoch(0, {"loss":',
    "    import time\n    for lost in range(4):\n        time.sleep(1)\n"
    '        log.epoch(lost, {"loss": float("nan")})\n    log.epoch(4, {"loss":',
)
"""Its loss is not finite: the alarm that ends a run."""
ALARMED = ("exp-0002 run-01", "alarm non_finite", "next: explain the alarm")
"""In the status line, as long as nothing explains it."""


@pytest.fixture
def empty(tmp_path: Path) -> Journey:
    """Data, and the harness with `--allow`; no plan but the form, no code."""
    journey = make_project(tmp_path / "my project", tmp_path / "home")
    for name in ("plan.md", "train.py", "predict.py"):
        (journey.root / name).unlink()
    git(journey.root, "init", "-q", "-b", "main")
    must(journey.harness("init", "--allow"))
    return journey


@dataclass
class Day:
    """What the person does at the terminal. `screens`: where each main moment is kept, at both
    sizes."""

    terminal: Terminal
    screens: Path
    asked: list[str] = field(default_factory=list)
    """The permissions that the person was asked for."""

    def keep(self, moment: str) -> None:
        for columns, rows in ((80, 24), (120, 40)):
            resize(self.terminal, columns, rows)
            seen = self._settled()
            (self.screens / f"{moment}-{columns}x{rows}.txt").write_text(seen, "utf-8")

    def _settled(self) -> str:
        """The screen once it stays as it is for a moment; a status line may keep moving."""
        before, now = "", self.terminal.screen()
        end = time.monotonic() + SETTLED_S
        while now != before and time.monotonic() < end:
            time.sleep(0.5)
            before, now = now, self.terminal.screen()
        return now

    def allow_edits(self) -> None:
        screen = self.terminal.wait_for(EDITS)
        self.asked += ASKED.findall(screen)
        self.keep("permission")
        self.terminal.choose(EDITS, gone=EDITS)

    def decide(self, moment: str, *, shown: str = "") -> None:
        """Answer the judge, and go back to the session; `shown`: what counts from then on, which it
        puts before it is asked again."""
        code = code_on(self.terminal)
        self.keep(moment)
        self.terminal.keys(code, "Enter")
        if shown:
            self.terminal.wait_for(shown, "Type yes and press Enter", patience=WORKING_S)
            self.keep(f"{moment}-shown")
            self.terminal.keys("yes", "Enter")
        screen = self.terminal.wait_for("Press Enter to go back", patience=WORKING_S)
        assert "harness: exit 0." in screen, screen
        self.keep(f"{moment}-done")
        self.terminal.keys("Enter")
        self.terminal.wait_for(gone=QUESTION)


def drafting(root: Path) -> list[Turn]:
    plan = str(root / "plan.md")
    return [
        [call("form", "Read", file_path=plan)],
        [call("draft", "Write", file_path=plan, content=PLAN)],
        [bash("check", "harness plan check")],
        "PLAN-DRAFTED: harness plan approve plan.md",
    ]


def trying(root: Path, number: int, train: str) -> list[Turn]:
    files = {"train.py": train, "predict.py": PREDICT}
    looks = (
        [[call(f"look{number}", "Read", file_path=str(root / "train.py"))]] if number > 1 else []
    )
    writes = [
        call(f"{name}{number}", "Write", file_path=str(root / name), content=text)
        for name, text in files.items()
        if number == 1 or name != "predict.py"
    ]
    words = "'centroids tell the blobs apart'" if number == 1 else "'so does a loss'"
    return [
        *looks,
        writes,
        [bash(f"try{number}", f"harness try {words} --set model=centroids")],
    ]


KEEP = "harness keep exp-0001"
DROP = "harness gate reject exp-0002 --reason 'Its loss is not finite.'"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_day_in_one_terminal_with_one_permission(empty: Journey, tmp_path: Path) -> None:
    root, session, screens = empty.root, str(uuid.uuid4()), tmp_path / "screens"
    screens.mkdir()
    script: dict[str, list[Turn]] = {
        "Draft this project's plan": drafting(root),
        "PLEASE RUN IT": [
            [bash("approve", "harness plan approve plan.md")],
            "PLAN-STANDS",
        ],
        "Try this idea in one experiment, from its opening to the gate: nearest": [
            *trying(root, 1, TRAIN),
            "TRIED-AND-JUDGED",
        ],
        "PLEASE KEEP IT": [[bash("keep", KEEP)], "IT-IS-KEPT"],
        "Try this idea in one experiment, from its opening to the gate: a loss": [
            *trying(root, 2, FAULTY),
            "THE-ALARM-ENDED-IT",
        ],
    }
    started = program("bwrap")
    with open_gateway(script) as gateway:
        words = ("--session-id", session, "--permission-mode", "default")
        with interactive(
            root, empty.home, gateway, *words, program=started, by_hand=True
        ) as terminal:
            day = Day(terminal, screens)
            terminal.wait_for("harness:")
            day.keep("start")
            terminal.say("/harness:plan three blobs, from data/", until=EDITS)
            day.allow_edits()
            terminal.wait_for("PLAN-DRAFTED", patience=WORKING_S)
            day.keep("plan-drafted")
            terminal.say("PLEASE RUN IT", until=QUESTION)
            day.decide("plan", shown="accuracy")
            terminal.wait_for("PLAN-STANDS")
            terminal.say(
                "/harness:try nearest centroids", until="TRIED-AND-JUDGED", patience=WORKING_S
            )
            day.keep("judged")
            terminal.say("PLEASE KEEP IT", until=QUESTION)
            day.decide("kept")
            terminal.wait_for("IT-IS-KEPT")
            terminal.say("/harness:try a loss", until="THE-ALARM-ENDED-IT", patience=WORKING_S)
            terminal.wait_for(*ALARMED)
            day.keep("alarm")
            terminal.say("/compact", until="Compacted")
            day.keep("compacted")
            terminal.write("/exit")
            terminal.keys("Enter")
            ended(empty.home)
        assert gateway.failure is None
        requests = gateway.requests
    # The resumed session repeats what the commands said before, behind what the person types.
    with open_gateway({"PLEASE DROP IT": [[bash("drop", DROP)], "IT-IS-DROPPED"]}) as gateway:
        again = ("--resume", session, "--permission-mode", "default")
        with interactive(
            root, empty.home, gateway, *again, program=started, by_hand=True
        ) as terminal:
            day.terminal = terminal
            terminal.wait_for(*ALARMED)
            day.keep("resumed")
            terminal.say("PLEASE DROP IT", until=QUESTION)
            day.decide("dropped")
            terminal.wait_for("IT-IS-DROPPED")
            day.keep("end")
        told: dict[str, str] = {}
        for request in (*requests, *gateway.requests):
            told |= tool_results(request.body)
    assert gateway.failure is None
    assert len(day.asked) == 1, day.asked
    assert "plan.md can be approved" in told["check"]
    assert "verdict PASS" in " ".join(told["try1"].split())
    assert "non_finite" in told["try2"]
    compacted = [item for item in requests if COMPACTING in newest_text(item.body)]
    assert compacted
    resumed = next(item for item in gateway.requests if "PLEASE DROP IT" in shown(item))
    assert "What was done so far." in shown(resumed)
    rows = must(empty.harness("experiment", "list", "--json")).document["experiments"]
    assert {row["experiment"]: row["status"] for row in rows} == {
        "exp-0001": "kept",
        "exp-0002": "discarded",
    }
    audit = empty.harness("audit", "--json", CLAUDE_CONFIG_DIR=str(empty.home / "config"))
    assert audit.document["unguarded"] == []
    ended(empty.home)
