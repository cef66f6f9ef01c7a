"""What may be asked from inside the sandbox, and what is no request at all."""

import os
from pathlib import Path

import click
import pytest

from harness.cli.main import harness
from harness.contract.roles import ASKED_VERBS, HUMAN_VERBS
from harness.errors import HarnessError
from harness.judge.requests import OF_PERSONS, REQUESTS, read_request

NEVER = (
    *("init", "render", "gc", "run", "continue", "demo", "cheats run", "cheats render", "doctor"),
    *("claude", "import run.log", "ledger import", "ledger export", "ledger rebuild"),
    *("priors check", "posttrain write-spec exp-0001 /tmp/x", "posttrain export a b"),
    *("posttrain model add", "posttrain observe m --outcome good", "audit --json --accept"),
    *("gate approve exp-0001 --reason x --override", "plan approve --changes 12ab"),
    *("plan approve ../secret.md", "plan approve link.md", "plan approve a.md --project /"),
    *("gate reject exp-0001 --sandbox none --reason x", "experiment show exp-0001 --exact"),
    *("data split a.csv --label y", "priors add a.md", "posttrain approve --benchmark b"),
    *("nonsense", "train exp-0001 --sandbox none", "train exp-0001 --sandbox=bwrap"),
    *("train --sandbox auto exp-0001", "train exp-0001 --session other", "mcp --sandbox none"),
    *("evaluate exp-0001 --sandbox landlock", "watch --split", "handoff --file plan.md"),
    *("report --out x.md", "try wider --sandbox none", "keep --override exp-0001"),
    *("status --project /", "status --project ..", "audit --transcripts ."),
    *("claims audit ../secret.md", "claims audit link.md", "plan check ../secret.md"),
    *("watch ../secret.md", "watch /etc/passwd", "posttrain spec --dataset ../secret.md"),
    *("train exp-0001 --interpreter /bin/sh", "--json plan approve"),
)
FINE = {
    "train exp-0001": "train --project ROOT -- exp-0001",
    "train exp-0001 --resume --json -- python t.py --sandbox none": (
        "train --resume --json --project ROOT -- exp-0001 python t.py --sandbox none"
    ),
    "evaluate exp-0001 --split held-out": "evaluate --split=held-out --project ROOT -- exp-0001",
    "try wider --set lr=0.1 --json -- python t.py --project /": (
        "try --set=lr=0.1 --json --project ROOT wider -- python t.py --project /"
    ),
    "try --continue": "try --continue --project ROOT",
    "try -- python t.py": "try --project ROOT -- python t.py",
    "report --json": "report --json --project ROOT",
    "keep exp-0001 --json": "keep --project ROOT -- exp-0001",
    "train --set lr=0.1 -- python t.py": "train --set=lr=0.1 --project ROOT -- python t.py",
    "watch --once --wait": "watch --once --wait --project ROOT",
    "gate check exp-0001": "gate check --project ROOT -- exp-0001",
    "experiment new --hypothesis --sandbox": "experiment new --hypothesis=--sandbox --project ROOT",
    "experiment compare exp-0001 exp-0002": (
        "experiment compare --project ROOT -- exp-0001 exp-0002"
    ),
    "status --project . --json": "status --json --project ROOT",
    "watch exp-0001 --until-alarm": "watch --until-alarm --project ROOT -- exp-0001",
    "watch exp-0001 --once": "watch --once --project ROOT -- exp-0001",
    "watch logs/run.log": "watch --once --project ROOT -- logs/run.log",
    "claims audit notes.md": "claims audit --project ROOT -- notes.md",
    "plan check": "plan check --project ROOT",
    "plan check plans/a.draft.md": "plan check --project ROOT -- plans/a.draft.md",
    "plan approve plans/b.md --json": "plan approve --ask --project ROOT -- plans/b.md",
    "plan approve --help": "plan approve --help --project ROOT",
    "audit --accept": "audit --accept --ask --project ROOT",
    "gate approve exp-0001 --reason=x": "gate approve --reason=x --project ROOT -- exp-0001",
    "posttrain rollback --reason x": "posttrain rollback --reason=x --project ROOT",
    "handoff -": "handoff --project ROOT -- -",
    "mcp --project .": "mcp --project ROOT",
    "train --help": "train --help --project ROOT",
    "--version": "--version",
    "": "--help",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (tmp_path / "secret.md").write_text("0.97", "utf-8")
    (root / "link.md").symlink_to("../secret.md")
    return root


@pytest.mark.parametrize("line", NEVER)
def test_what_is_no_request(root: Path, line: str) -> None:
    with pytest.raises(HarnessError) as refused:
        read_request(line.split(), cwd=root, root=root)
    assert refused.value.exit_code == 2
    assert refused.value.code in ("human_verb", "not_a_request")
    assert "outside `harness claude`" in refused.value.hint or "project" in refused.value.message


@pytest.mark.parametrize("line", FINE)
def test_what_may_be_asked_is_put_together_anew(root: Path, line: str) -> None:
    words = read_request(line.split(), cwd=root, root=root).words
    assert " ".join(words).replace(str(root), "ROOT") == FINE[line]


def test_no_request_is_a_persons(root: Path) -> None:
    for verb in HUMAN_VERBS:
        assert verb not in REQUESTS
        if verb in OF_PERSONS:
            words = [*verb, *["exp-0001"] * OF_PERSONS[verb].least]
            assert read_request(words, cwd=root, root=root).asked == f"harness {' '.join(words)}"
            continue
        with pytest.raises(HarnessError):
            read_request([*verb], cwd=root, root=root)


def test_who_is_asked_to_keep_is_told_what(root: Path) -> None:
    with pytest.raises(HarnessError, match="the id of an experiment") as refused:
        read_request(["keep", "--reason", "good"], cwd=root, root=root)
    assert "`harness keep exp-0001`" in refused.value.hint


def test_what_a_person_is_asked_for_is_one_list(root: Path) -> None:
    """Hooks let through inside what the judge asks for, and all else that may be asked is asked of
    nobody."""
    assert set(OF_PERSONS) == set(ASKED_VERBS) <= set(HUMAN_VERBS)
    assert not any(
        read_request(line.split(), cwd=root, root=root).asked for line in ("status", "")
    )


def test_a_persons_verb_is_run_in_the_projects_root(root: Path) -> None:
    (root / "plans").mkdir()
    (root / "sub").mkdir()
    words = ["plan", "approve", "../plans/b.md"]
    request = read_request(words, cwd=root / "sub", root=root)
    assert request.words[-1] == "plans/b.md"
    assert request.asked == "harness plan approve plans/b.md"


def test_what_may_be_asked_exists() -> None:
    """Each row is a command, and each option of it is one of that command's."""
    for verb, askable in (*REQUESTS.items(), *OF_PERSONS.items()):
        command: click.Command | None = harness
        for word in (word for word in verb if not word.startswith("--")):
            assert isinstance(command, click.Group)
            command = command.get_command(click.Context(command), word)
        assert command is not None, verb
        known = {name for parameter in command.params for name in parameter.opts}
        copied = {askable.copy_option} - {""}
        assert {*askable.flags, *askable.values, *askable.paths, *copied} <= known, verb


def test_a_word_that_is_no_verb_is_answered_with_what_is_meant(root: Path) -> None:
    for line, meant in (
        ("list", "`harness experiment list`"),
        ("gate keep exp-0001", "`harness keep EXP`"),
        ("approve plan.md", "`harness plan approve`"),
    ):
        with pytest.raises(HarnessError) as refused:
            read_request(line.split(), cwd=root, root=root)
        assert (refused.value.exit_code, refused.value.code) == (2, "usage")
        assert meant in refused.value.hint


def test_readable_folders_may_be_named(root: Path) -> None:
    data = root.parent / "data"
    data.mkdir()
    words = ["posttrain", "spec", "--dataset", str(data / "rows.jsonl")]
    with pytest.raises(HarnessError):
        read_request(words, cwd=root, root=root)
    asked = read_request(words, cwd=root, root=root, readable=[data]).words
    assert f"--dataset={os.path.join('..', 'data', 'rows.jsonl')}" in asked
