"""How a command becomes one of replicas, and what their crew told reaches people."""

import json
from pathlib import Path

import pytest

from harness.domain.statuses import SandboxKind
from harness.errors import RefusedError, UsageError
from harness.ledger.project import Project
from harness.runs.many_processes import ReplicaNews, replicas_of, replicated, require_ports

CMD = ["python", "train.py", "--lr", "0.1"]
CREW = ["python", "-m", "harness.training.replicas", "--replicas", "2", "--"]


def test_a_command_is_put_behind_the_crews_own_words_once() -> None:
    assert replicated(CMD, None) == CMD
    assert replicated(CMD, 2) == [*CREW, *CMD]
    assert replicated([*CREW, *CMD], 2) == [*CREW, *CMD]


def test_config_says_how_many_and_must_agree_with_the_option(project: Project) -> None:
    assert replicas_of(project, "exp-0001", None) is None
    assert replicas_of(project, "exp-0001", 3) == 3
    path = project.layout.experiment("exp-0001", "config")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("distributed: {engine: diloco, replicas: 4}\n")
    assert replicas_of(project, "exp-0001", None) == 4
    with pytest.raises(UsageError, match=r"--replicas is 3; .*config\.yaml says 4"):
        replicas_of(project, "exp-0001", 3)
    path.write_text("distributed: {replicas: many}\n")
    with pytest.raises(UsageError, match="replicas is 'many'; expected a whole number"):
        replicas_of(project, "exp-0001", None)
    path.write_text("distributed: {replicas: 9999}\n")
    with pytest.raises(UsageError, match="replicas is 9999; expected at most 64"):
        replicas_of(project, "exp-0001", None)
    path.write_text("distributed: {engine: ddp}\n")
    with pytest.raises(UsageError, match="engine is 'ddp'; expected diloco"):
        replicas_of(project, "exp-0001", None)
    with pytest.raises(UsageError, match="replicas is 99; expected at most 64"):
        replicas_of(project, "exp-0002", 99)
    path.write_text("distributed: {sync_every: 5}\n")
    assert replicas_of(project, "exp-0001", None) == 2


def test_without_a_port_replicas_are_refused() -> None:
    class Box:
        kind = SandboxKind.LANDLOCK

    require_ports(CMD, Box())  # type: ignore[arg-type]
    with pytest.raises(RefusedError, match="landlock gives training no port"):
        require_ports([*CREW, *CMD], Box())  # type: ignore[arg-type]


def test_states_are_told_once_and_as_plain_text(tmp_path: Path) -> None:
    news = ReplicaNews(tmp_path, "exp-0001/run-01")
    assert news.take() is None
    rows = [
        {"replica": 1, "state": "training", "round": 3},
        {"replica": 1, "state": ["ended"], "round": 3},
        {"replica": 1, "state": "stopped", "round": 4, "why": "signal 9\x1b[2J\nkept" + 900 * "!"},
    ]
    (tmp_path / "replicas.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    told = news.take()
    assert told is not None
    assert told["text"].startswith("exp-0001/run-01  replica 1: stopped, round 4 (signal 9")
    assert "\x1b" not in told["text"]
    assert "\n" not in told["text"]
    assert len(told["text"]) < 300
    assert news.take() is None
