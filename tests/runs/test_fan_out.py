"""Seeds that found the budget kept for others wait, and are told of; the order for one seed says
all, whatever the command line does."""

import sys
import threading
from collections import deque
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from placed_support import placing
from runs_support import wait_until

from harness.cli import train as train_verb
from harness.cli.main import harness
from harness.domain.findings import Finding
from harness.domain.statuses import RunStatus
from harness.runs import fan_out
from harness.runs.fan_out import FanOut, Pace
from harness.runs.launchers import on_node
from harness.runs.launchers.on_node import Watch
from harness.runs.placement import Order, write_order

SPENT, RECOVERED = (
    {"code": code, "message": code, "hint": "", "data": {}}
    for code in ("budget_spent", "run_recovered")
)


class Seeds:
    """Each start of a seed answers what is next in its list: findings, or None for no answer."""

    def __init__(self, patch: pytest.MonkeyPatch, **answers: list[Any]) -> None:
        self.answers = {name: deque(given) for name, given in answers.items()}
        self.started: list[int] = []
        self.done: dict[int, Any] = {}
        patch.setattr(fan_out, "close_abandoned", lambda *_words, **_more: [])
        patch.setattr(fan_out, "forget", lambda _folder: None)
        patch.setattr(fan_out, "_POLL_S", 0)
        patch.setattr(FanOut, "_placed", lambda _self, seed: self._start(seed))

    def train(self, *seeds: int) -> list[Finding]:
        project = SimpleNamespace(project=None, experiment="exp-0001", completed=lambda: self.done)
        engine = SimpleNamespace(name="local", most=None, gpus=0)
        words: dict[str, Any] = {"job": project, "engine": engine, "environment": {}}
        pace = Pace(silent_s=1, grace_s=0)
        made = FanOut(**words, on_event=lambda _event: None, resume=False, pace=pace)
        return made.run(seeds)

    def _start(self, seed: int) -> Any:
        self.started.append(seed)
        found = self.answers[f"s{seed}"].popleft()
        if found == []:
            self.done[seed] = SimpleNamespace(status=RunStatus.COMPLETED)
        return SimpleNamespace(
            seed=seed,
            folder=None,
            at=SimpleNamespace(job=""),
            news=lambda: None,
            ended=lambda: 0,
            last_words=lambda: "",
            answer=lambda: {} if found is None else {"findings": found},
        )


def test_a_seed_without_budget_goes_again_after_another_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also one that closed a lost run before it looked at the budget."""
    seeds = Seeds(monkeypatch, s1=[[]], s2=[[RECOVERED, SPENT], []])
    assert [one.code for one in seeds.train(1, 2)] == ["run_recovered"]
    assert (seeds.started, set(seeds.done)) == ([1, 2, 2], {1, 2})


def test_a_seed_without_budget_is_told_of_when_another_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seeds = Seeds(monkeypatch, s1=[[]], s2=[[SPENT]], s3=[None])
    assert [one.code for one in seeds.train(1, 2, 3)] == ["placement_lost", "budget_spent"]
    assert seeds.started == [1, 2, 3]


WORDS: dict[str, Any] = {
    "experiment": "exp-0001",
    "seed": 1,
    "argv": [],
    "engine": "local",
    "gpus": 1,
    "code": "",
    "config": None,
    "asked": {},
    "session": None,
    "boot": "",
    "resume": False,
    "first": True,
    "silent_s": 1.0,
    "grace_s": 1.0,
}


@pytest.mark.parametrize(
    ("engine", "asked", "lost", "status", "says"),
    [
        ("ray", True, False, "cancelled", "it was stopped by a person or a signal"),
        ("ray", True, True, "cancelled", "it was stopped by a person or a signal"),
        ("ray", False, True, "lost", "its ray worker on n7 died; the run was ended with it"),
        (
            "slurm",
            False,
            False,
            "lost",
            "slurm took the node n7 away, or its job was ended there; the run was ended with it",
        ),
        ("local", False, False, "cancelled", "it was stopped by a person or a signal"),
    ],
)
def test_a_signal_is_a_persons_only_where_one_asked_for_the_end(
    tmp_path: Path, engine: str, asked: bool, lost: bool, status: str, says: str
) -> None:
    (tmp_path / on_node.BEGAN).write_text('{"host": "n7"}')
    if asked:
        (tmp_path / on_node.CANCEL).touch()
    order = Order(**{**WORDS, "engine": engine}, caller="person", sandbox="none")
    ending = order.at_signal(tmp_path, lambda: lost)
    assert (ending.status, ending.reason) == (status, says)


def test_the_answer_of_a_supervisor_before_is_not_mixed_with_the_next_ones(tmp_path: Path) -> None:
    """Its worker was killed, and it writes while the next one is waiting for it."""
    slow = 'import time; time.sleep(2); print(\'{"before": true, "more": "and more"}\')'
    before = Watch([sys.executable, "-c", slow], {}, tmp_path)
    thread = threading.Thread(target=before, daemon=True)
    thread.start()
    wait_until((tmp_path / on_node.ANSWER).exists)
    Watch([sys.executable, "-c", "print('{}')"], {}, tmp_path)()
    thread.join()
    assert (tmp_path / on_node.ANSWER).read_text() == "{}\n"


def test_of_a_job_that_is_lost_the_engines_last_line_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where the node has no harness there is no answer, and no log of a supervisor."""
    seeds = Seeds(monkeypatch, s1=[None])

    def lost(self: FanOut, seed: int) -> Any:
        at = SimpleNamespace(
            job="7", lost=lambda: True, said=lambda: "trace\nNo module named 'harness'\n\n"
        )
        return fan_out._Seed(seed=seed, folder=tmp_path, at=at, tell=lambda *_words: None)

    monkeypatch.setattr(FanOut, "_placed", lost)
    (found,) = seeds.train(1)
    assert found.code == "placement_lost"
    assert "is not known any more (No module named 'harness')" in found.message


def test_an_order_says_who_asked_and_in_which_sandbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not the command line: an agent could see the order's name and give it --sandbox none."""
    placed = placing(tmp_path, "")
    for name, value in placed.environment.items():
        monkeypatch.setenv(name, value)
    seen: list[tuple[str, ...]] = []

    def kept(project: Any, order: Order, _folder: Path, **_more: Any) -> Any:
        seen.append((order.sandbox, str(project.caller), project.ledger.origin))
        return SimpleNamespace(ok=True, runs=[], findings=[])

    def sandbox_for(name: str, **_more: Any) -> None:
        seen.append((name,))

    monkeypatch.setattr(train_verb, "train_order", kept)
    monkeypatch.setattr(train_verb, "sandbox_for", sandbox_for)
    with placed.project() as project:
        order = Order(**WORDS, caller="driver:landlock", sandbox="landlock")
        name = write_order(project.layout, order).name
    asked = ["train", "exp-0001", "--placed", name, "--sandbox", "none", "--project"]
    said = CliRunner().invoke(harness, [*asked, str(placed.root)])
    assert said.exit_code == 0, said.output
    assert seen[0] == ("landlock",)
    assert seen[1][:2] == ("landlock", "driver:landlock")
    assert seen[1][2].endswith(" driver:landlock")
