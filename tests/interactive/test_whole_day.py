"""A whole day in one session of the real CLI: from data to a plan, a kept experiment, one that an
alarm ends, a compaction, a resume and a decision. The person is asked for one permission; in
`harness claude` they type in this one terminal only, in a plain `claude` their decisions are made in
another."""

import re
import shlex
import shutil
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from harness.model_gateway.wire import newest_text, tool_results
from tests.centroids import PREDICT, TRAIN
from tests.cli.journey import PLAN, Journey, make_project
from tests.interactive.gateway import COMPACTING, Turn, bash, call, open_gateway, shown
from tests.interactive.lab import must
from tests.interactive.sklearn_repository import git
from tests.interactive.test_decide_inside import resize
from tests.interactive.test_harness_claude import ended, program
from tests.interactive.tmux import QUESTION, Terminal, code_on, interactive
from tests.judge.inside import require_sandbox

pytestmark = pytest.mark.skipif(
    shutil.which("tmux") is None, reason="tmux is not installed: apt install tmux"
)
WORKING_S = 240.0
"""A whole experiment on a busy machine."""
SETTLED_S = 4.0
REDRAWN_S = 20.0
EDITS = "Yes, and switch to accept edits"
ASKED = re.compile(r"Do you want to [a-z ]+")
FAULTY = TRAIN.replace(
    '    log.epoch(0, {"loss":',
    "    import time\n    for lost in range(4):\n        time.sleep(1)\n"
    '        log.epoch(lost, {"loss": float("nan")})\n    log.epoch(4, {"loss":',
)
"""Its loss is not finite: the alarm that ends a run."""
PLAIN = "plain"
GRADES = {
    "bwrap": "recomputed",
    "landlock": "recomputed, local sockets not isolated",
    PLAIN: "recomputed, session not isolated",
}
"""How a session runs -> what its scores are worth."""
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
    """What the person does. `screens`: where each main moment is kept, at both sizes. `elsewhere`:
    the project in another terminal, where a plain session's decisions are made."""

    terminal: Terminal
    screens: Path
    elsewhere: Journey | None
    asked: list[str] = field(default_factory=list)
    """The permissions that the person was asked for."""
    typed: list[str] = field(default_factory=list)
    """What they typed in another terminal."""

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

    def status(self, *words: str) -> None:
        """Wait for `words` of the status line. The CLI draws what changed alone, and after a resize it
        may lose a sign ("exp-0 02"): then all is drawn anew, at another size."""
        for columns in (110, 120, 110):
            try:
                self.terminal.wait_for(*words, patience=REDRAWN_S)
                return
            except AssertionError:
                resize(self.terminal, columns, 40)
        self.terminal.wait_for(*words)

    def allow_edits(self) -> None:
        screen = self.terminal.wait_for(EDITS)
        self.asked += ASKED.findall(screen)
        self.keep("permission")
        self.terminal.choose(EDITS, gone=EDITS)

    def decide(
        self, prompt: str, answer: str, moment: str, verb: Sequence[str], *, shown: str = ""
    ) -> None:
        """Have Claude run a person's verb, and decide; `shown`: what counts from then on, which the
        harness puts before they are asked again."""
        if self.elsewhere is None:
            self.terminal.say(prompt, until=QUESTION)
            self._answer_the_judge(moment, shown)
            self.terminal.wait_for(answer)
            return
        self.terminal.say(prompt, until=answer)
        self.keep(moment)
        self.typed.append(" ".join(verb[:2]))
        said = self.elsewhere.harness(*verb)
        if shown:
            assert (said.exit_code, shown in said.stderr) == (2, True), said.stderr
            confirming = said.stderr.rpartition("`harness ")[2].split("`")[0]
            said = self.elsewhere.harness(*confirming.split())
        must(said)

    def _answer_the_judge(self, moment: str, shown: str) -> None:
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


APPROVE = ("plan", "approve", "plan.md")
KEEP = ("keep", "exp-0001")
DROP = ("gate", "reject", "exp-0002", "--reason", "Its loss is not finite.")


def asking(label: str, verb: Sequence[str], answer: str) -> list[Turn]:
    return [[bash(label, shlex.join(["harness", *verb]))], answer]


def left(terminal: Terminal, home: Path) -> None:
    terminal.write("/exit")
    terminal.keys("Enter")
    ended(home)


@pytest.mark.parametrize("mode", GRADES)
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_day_with_one_permission(empty: Journey, tmp_path: Path, mode: str) -> None:
    if mode != PLAIN:
        require_sandbox(mode)
    root, session, screens = empty.root, str(uuid.uuid4()), tmp_path / "screens"
    screens.mkdir()
    script: dict[str, list[Turn]] = {
        "Draft this project's plan": drafting(root),
        "PLEASE RUN IT": asking("approve", APPROVE, "PLAN-STANDS"),
        "Try this idea in one experiment, from its opening to the gate: nearest": [
            *trying(root, 1, TRAIN),
            "TRIED-AND-JUDGED",
        ],
        "PLEASE KEEP IT": asking("keep", KEEP, "IT-IS-KEPT"),
        "Try this idea in one experiment, from its opening to the gate: a loss": [
            *trying(root, 2, FAULTY),
            "THE-ALARM-ENDED-IT",
        ],
    }
    started = () if mode == PLAIN else program(mode)
    with open_gateway(script) as gateway:
        words = ("--session-id", session, "--permission-mode", "default")
        with interactive(root, empty.home, gateway, *words, program=started) as terminal:
            day = Day(terminal, screens, empty if mode == PLAIN else None)
            terminal.wait_for("harness:")
            day.keep("start")
            terminal.say("/harness:plan three blobs, from data/", until=EDITS)
            day.allow_edits()
            terminal.wait_for("PLAN-DRAFTED", patience=WORKING_S)
            day.keep("plan-drafted")
            day.decide("PLEASE RUN IT", "PLAN-STANDS", "plan", APPROVE, shown="accuracy")
            terminal.say(
                "/harness:try nearest centroids", until="TRIED-AND-JUDGED", patience=WORKING_S
            )
            day.keep("judged")
            day.decide("PLEASE KEEP IT", "IT-IS-KEPT", "kept", KEEP)
            terminal.say("/harness:try a loss", until="THE-ALARM-ENDED-IT", patience=WORKING_S)
            day.status(*ALARMED)
            day.keep("alarm")
            terminal.say("/compact", until="Compacted")
            day.keep("compacted")
            left(terminal, empty.home)
        assert gateway.failure is None
        requests = gateway.requests
    # The resumed session repeats what the commands said before, behind what the person types.
    with open_gateway({"PLEASE DROP IT": asking("drop", DROP, "IT-IS-DROPPED")}) as gateway:
        again = ("--resume", session, "--permission-mode", "default")
        with interactive(root, empty.home, gateway, *again, program=started) as terminal:
            day.terminal = terminal
            day.status(*ALARMED)
            day.keep("resumed")
            day.decide("PLEASE DROP IT", "IT-IS-DROPPED", "dropped", DROP)
            day.keep("end")
        told: dict[str, str] = {}
        for request in (*requests, *gateway.requests):
            told |= tool_results(request.body)
    assert gateway.failure is None
    assert len(day.asked) == 1, day.asked
    second = ["plan approve", "keep exp-0001", "gate reject"] if mode == PLAIN else []
    assert day.typed == second
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
    assert rows[0]["evidence"] == GRADES[mode]
    audit = empty.harness("audit", "--json", CLAUDE_CONFIG_DIR=str(empty.home / "config"))
    assert audit.document["unguarded"] == []
    ended(empty.home)
