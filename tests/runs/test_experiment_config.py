"""config.yaml is there before a run is registered: a person's own, or written from the command."""

import json
from pathlib import Path

import pytest
from runs_support import GOOD, Trainer

from harness.artifacts.content import linked
from harness.artifacts.front_matter import read_yaml
from harness.artifacts.objects import load_object
from harness.domain.statuses import Verdict
from harness.errors import RefusedError, UsageError
from harness.files import sha256_file
from harness.gates.findings import outcome_of
from harness.ledger.project import Project
from harness.runs import experiment_config
from harness.runs.experiment_config import (
    keep_config,
    not_read,
    options_of,
    read_values,
    values_of,
)

EXPERIMENT = "exp-0001"


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("python train.py", {}),
        ("python -u train.py --lr 0.1 --fast", {"lr": "0.1", "fast": "true"}),
        ("python train.py --lr=1e-3 -k 5", {"lr": "1e-3", "k": "5"}),
        ("python train.py --shift -3 --name wide", {"shift": "-3", "name": "wide"}),
        ("python train.py optim.lr=0.1 data/x.csv", {"optim.lr": "0.1"}),
        ("python -m pkg.train --depth 4", {"depth": "4"}),
        ("./train --depth 4", {"depth": "4"}),
    ],
)
def test_a_commands_options_are_read(command: str, options: dict[str, str]) -> None:
    assert options_of(command.split()) == options


def config(project: Project) -> Path:
    path = project.layout.experiment(EXPERIMENT, "config")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def said(project: Project) -> dict[str, object]:
    return dict(read_yaml(config(project).read_text(), where="config.yaml").data)


def test_without_a_file_one_is_written_from_command_and_values(project: Project) -> None:
    words = ["python", "train.py", "--lr", "0.1", "--name", "a: b"]
    digest, written = keep_config(project, EXPERIMENT, words, {"model": "net", "depth": "3"})
    assert written
    assert said(project) == {
        "command": "python train.py --lr 0.1 --name 'a: b'",
        "lr": 0.1,
        "name": "a: b",
        "model": "net",
        "depth": 3,
    }
    assert digest is not None
    assert load_object(project.layout.objects, digest) == config(project).read_bytes()


def test_no_option_takes_the_place_of_the_command(project: Project) -> None:
    words = ["python", "train.py", "--command", "sleep 1"]
    keep_config(project, EXPERIMENT, words, {})
    assert said(project)["command"] == "python train.py --command 'sleep 1'"


def test_a_file_that_is_there_stays_as_it_is(project: Project) -> None:
    config(project).write_text("lr: 0.2  # mine\n")
    words = ["python", "train.py", "--lr", "0.1"]
    assert keep_config(project, EXPERIMENT, words, {"lr": "0.2"})[1] is False
    assert config(project).read_text() == "lr: 0.2  # mine\n"
    with pytest.raises(UsageError, match="does not say what --set says of lr") as refused:
        keep_config(project, EXPERIMENT, words, {"lr": "0.1"})
    assert (refused.value.code, refused.value.exit_code) == ("config_exists", 2)


def test_a_link_in_its_place_is_neither_followed_nor_replaced(
    project: Project, tmp_path: Path
) -> None:
    (tmp_path / "mine").write_text("")
    config(project).symlink_to(tmp_path / "mine")
    assert keep_config(project, EXPERIMENT, ["x"], {"lr": "1"}) == (None, False)
    assert (tmp_path / "mine").read_text() == ""


def test_a_link_that_comes_after_the_look_is_not_followed(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, outside = config(project).parent, tmp_path / "outside"
    outside.mkdir()

    def looked(root: Path, path: Path) -> None:
        assert linked(root, path) is None
        folder.rename(folder.with_name("old"))
        folder.symlink_to(outside)

    monkeypatch.setattr(experiment_config, "linked", looked)
    with pytest.raises(RefusedError) as refused:
        keep_config(project, EXPERIMENT, ["x"], {"lr": "1"})
    assert refused.value.code == "link_in_place"
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("text", ["lr", "=1", "a b=1", "1=2"])
def test_what_is_no_value_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="expected KEY=VALUE"):
        read_values([text])


def test_a_run_remembers_what_it_said(project: Project, run_training: Trainer) -> None:
    events: list[dict[str, object]] = []
    report = run_training(seeds=[1], values={"lr": "0.1"}, on_event=events.append)
    assert report.runs[0].config == sha256_file(config(project))
    assert said(project)["lr"] == 0.1
    assert events[0]["kind"] == "config_written"


READS = GOOD.replace(
    "    log.start(total_epochs=3)\n",
    '    log.start(total_epochs=3, config={"mine": log.config.get("lr", 0.5)})\n',
)


def started(project: Project, run: str) -> dict[str, object]:
    path = project.layout.run(EXPERIMENT, run, "metrics")
    said: dict[str, object] = json.loads(path.read_text().splitlines()[0])["config"]
    return said


def test_training_reads_it_and_all_seeds_have_what_the_first_one_had(
    project: Project, run_training: Trainer
) -> None:
    report = run_training(READS, seeds=[1], values={"lr": "0.01"})
    assert [found.code for found in report.findings] == []
    assert started(project, "run-01") == {"mine": 0.01}
    config(project).write_text("lr: 0.9\n")
    events: list[dict[str, object]] = []
    report = run_training(READS, seeds=[1, 2], on_event=events.append)
    assert [run.id for run in report.runs] == ["run-01", "run-02"]
    assert started(project, "run-02") == {"mine": 0.01}
    assert report.runs[0].config == report.runs[1].config
    assert "config.yaml changed since exp-0001/run-01" in str(events[0]["text"])


def test_a_value_that_training_does_not_ask_for_is_told_once(
    project: Project, run_training: Trainer
) -> None:
    report = run_training(READS, seeds=[1, 2], values={"lr": "0.01", "width": "7"})
    (found,) = report.findings
    assert found.code == "value_not_read"
    assert "--set width=7 stands in config.yaml" in found.message
    assert 'log.config.get("width", ...)' in found.hint
    assert "train.py --width 7`" in found.hint
    assert outcome_of(found) is Verdict.PASS


ASKED = {"lr": "0.01", "mode": "fast"}


@pytest.mark.parametrize(
    ("words", "unread", "logged", "names"),
    [
        ([], ["lr", "mode"], {}, ["lr", "mode"]),
        ([], ["mode"], {}, ["mode"]),
        ([], ["lr", "mode"], {"lr": 0.01, "mode": "slow"}, ["mode"]),
        (["--lr", "0.01", "mode=fast"], ["lr", "mode"], {}, []),
        ([], None, {}, []),
        ([], {"lr": 1}, {}, []),
    ],
)
def test_what_shows_that_a_value_was_used(
    words: list[str], unread: object, logged: dict[str, object], names: list[str]
) -> None:
    command = ["python", "train.py", *words]
    assert not_read(ASKED, command, unread=unread, logged=logged) == names


def test_a_file_that_cannot_be_read_or_is_too_long_hands_over_nothing(project: Project) -> None:
    for text in ("a: [", "a: " + "x" * 70_000, "command: python\n"):
        config(project).write_text(text)
        digest, _ = keep_config(project, EXPERIMENT, ["x"], {})
        assert values_of(project, digest) == {}
    assert values_of(project, None) == {}
