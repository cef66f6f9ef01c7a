"""What people type that is wrong: each answer names what was typed, what was expected and what
leads on, and nothing is done."""

import click
import pytest

from harness.cli.main import harness
from harness.contract.meant import MORE, OPTIONS, WORDS
from tests.cli.journey import Journey, make_project

EXP = "exp-0001"
WRONG: dict[tuple[str, ...], tuple[str, str]] = {
    ("list",): ("'list'", "`harness experiment list`"),
    ("ls",): ("'ls'", "`harness experiment list`"),
    ("show",): ("'show'", "`harness experiment show EXP`"),
    ("show", EXP): ("'show'", "`harness experiment show EXP`"),
    ("approve",): ("'approve'", "`harness plan approve`"),
    ("approve", EXP): ("'approve'", "`harness keep EXP`"),
    ("check",): ("'check'", "`harness gate check EXP`"),
    ("check", "plan.md"): ("'check'", "`harness plan check`"),
    ("new",): ("'new'", "`harness try"),
    ("new", "a wider MLP"): ("'new'", "`harness try"),
    ("start",): ("'start'", "`harness try"),
    ("results",): ("'results'", "`harness report`"),
    ("compare", EXP, "exp-0002"): ("'compare'", "`harness experiment compare A B`"),
    ("diff", EXP, "exp-0002"): ("'diff'", "`harness experiment compare A B`"),
    ("log",): ("'log'", "`harness decisions`"),
    ("logs",): ("'logs'", "`harness watch`"),
    ("tail",): ("'tail'", "`harness watch`"),
    ("reject", EXP): ("'reject'", "`harness gate reject EXP --reason TEXT`"),
    ("resume",): ("'resume'", "`harness try --continue`"),
    ("eval", EXP): ("'eval'", "`harness evaluate`"),
    ("fit",): ("'fit'", "`harness train`"),
    ("stop",): ("'stop'", "Ctrl-C"),
    ("uninstall",): ("'uninstall'", "`harness init --remove`"),
    ("split", "a.csv"): ("'split'", "`harness data split TABLE --label COLUMN`"),
    ("verify",): ("'verify'", "`harness ledger verify`"),
    ("help", "frobnicate"): ("'frobnicate'", "`harness --help`"),
    ("version",): ("'version'", "`harness --version`"),
    ("statsu",): ("'statsu'", "`harness status`"),
    ("frobnicate",): ("'frobnicate'", "`harness --help`"),
    ("--project", ".", "status"): ("--project", "`harness status --project DIR`"),
    ("run", EXP): (EXP, f"`harness train {EXP}`"),
    ("train", "a wider MLP"): ("'a wider MLP'", "`harness try 'a wider MLP'`"),
    ("train", "1"): ("'1'", f"`harness train {EXP}`"),
    ("train", "exp1"): ("'exp1'", f"`harness train {EXP}`"),
    ("train", "--lr", "0.1"): ("--lr", "`harness train -- python train.py --lr 0.1`"),
    ("train", "--seed", "1"): ("--seed", "`oracle.seeds`"),
    ("evaluate", "--held-out"): ("--held-out", "`harness evaluate EXP --split held-out`"),
    ("evaluate", EXP, "held-out"): ("held-out", "`harness evaluate EXP --split held-out`"),
    ("evaluate", "--split", "test"): ("'test'", "Expected `harness evaluate"),
    ("evaluate", "best"): ("'best'", "`harness experiment list`"),
    ("gate", "check", "--held-out"): ("--held-out", "`harness gate check EXP --gate held-out`"),
    ("gate", "check", "plan.md"): ("'plan.md'", "`harness plan check plan.md`"),
    ("gate", "keep", EXP): ("'keep'", "`harness keep EXP`"),
    ("gate", "approve", EXP): ("--reason", "Expected `harness gate approve"),
    ("gate", "approve", EXP, "-m", "good"): ("-m", "--reason TEXT"),
    ("gate", "approve", "exp-1", "--reason", "x"): ("'exp-1'", f"`harness gate approve {EXP}`"),
    ("experiment", "ls"): ("'ls'", "`harness experiment list`"),
    ("experiment", "delete", EXP): ("'delete'", "`harness gate reject EXP --reason TEXT`"),
    ("experiment", "new", "a wider MLP"): ("--hypothesis", "Expected `harness experiment new"),
    ("experiment", "new"): ("--hypothesis", "Expected `harness experiment new"),
    ("experiment", "compare", EXP): ("'B'", "Expected `harness experiment compare"),
    ("experiment", "compare", "a", "b"): ("'a'", "`harness experiment list`"),
    ("plan", "validate"): ("'validate'", "`harness plan check`"),
    ("plan", "show"): ("'show'", "`harness status`"),
    ("plan", "new"): ("'new'", "`harness init`"),
    ("status", EXP): (EXP, "`harness experiment show EXP`"),
    ("report", "latest"): ("'latest'", "`harness experiment list`"),
    ("keep", "--override"): ("--override", "`harness gate approve EXP --reason TEXT --override`"),
    ("keep", "the best"): ("'the best'", "`harness experiment list`"),
    ("try", "a", "wider", "MLP"): (
        "a wider MLP",
        "`harness try 'a wider MLP' -- python train.py`",
    ),
    ("try", EXP): (EXP, "`harness try --continue`"),
    ("try", "x", "--lr", "1"): ("--lr", '`harness try "x" --set lr=0.1`'),
    ("report", "report.md"): ("report.md", "`harness report --out report.md`"),
    ("keep", EXP): (EXP, '`harness try "IDEA"`'),
    ("init", "--data", "a.csv", "--target", "y"): ("--target", "`--label COLUMN`"),
    ("gate", "reject", EXP): ("--reason", f'E.g. `harness gate reject {EXP} --reason "'),
    ("commit", "-m", "wider"): ("'commit'", "`harness keep EXP`"),
    ("checkout", EXP): ("'checkout'", "`--parent EXP`"),
    ("push",): ("'push'", "git, which carries the facts"),
    ("revert", EXP): ("'revert'", "`harness gate reject EXP --reason TEXT`"),
    ("blame", "plan.md"): ("'blame'", "`harness audit`"),
    ("exp", "run"): ("'exp'", "`harness experiment list`"),
    ("metrics", "show"): ("'metrics'", "`harness report`"),
    ("params", "diff"): ("'params'", "`harness experiment compare A B --config`"),
    ("repro",): ("'repro'", "`harness reproduce EXP`"),
    ("sweep", "sweep.yaml"): ("'sweep'", '`harness try "x" --set lr=0.1`'),
    ("login",): ("'login'", "there is no account"),
    ("models",): ("'models'", "`harness posttrain model list`"),
    ("Status",): ("'Status'", "`harness status`"),
    ("try", "x", "lr=0.1"): ("x lr=0.1", "`harness try x --set lr=0.1`"),
    ("try", "x", "--set"): ("--set", "KEY=VALUE"),
    ("try", "x", "--set", "lr", "0.1"): ("'lr'", "`--set lr=0.1`"),
    ("try", "x", "-m", "y"): ("-m", '`harness try "a wider MLP"`'),
    ("train", EXP, "exp-0002"): ("exp-0002", "`harness train exp-0002`"),
    ("watch", "latest"): ("latest", "Name an experiment, e.g. exp-0001"),
    ("experiment", "show", "latest"): ("'latest'", "`harness experiment list`"),
    ("experiment", "show", EXP, "exp-0002"): ("exp-0002", "`harness experiment compare A B`"),
    ("plan", "approve", EXP): (EXP, f"`harness keep {EXP}`"),
    ("plan", "check", "train.py"): ("train.py", "`harness plan check`"),
    ("gate", "reject", EXP, "too slow"): ("--reason", f"`harness gate reject {EXP} --reason "),
    ("keep", EXP, "--force"): ("--force", "--override`"),
    ("report", "--out", ""): ("expected the name of a file", "harness report"),
    ("report", "--out", "no/such/r.html"): ("no/such", "harness report"),
    ("report", "--out", "/proc/r.html"): ("/proc/r.html", "another folder"),
    ("report", "--out", "r.docx"): ("r.docx", "`--out r.md`"),
    ("report", "--card", "dataset", "--out", "card.pdf"): ("card.pdf", "`--out card.md`"),
    ("priors", "export", "--out", ""): ("expected the name of a file", "harness priors export"),
    ("priors", "export", "--out", "/proc/p"): ("/proc/p", "another folder"),
    ("run", ""): ("regular file", "Name a file"),
    ("report", "--format", "html"): ("--format", "`harness report --json`"),
    ("doctor", "--fix"): ("--fix", "`harness init`"),
    ("data", "split", "--label", "y"): ("TABLE", "Expected `harness data split"),
    ("data", "split", "no such.csv", "--label", "y"): ("no such.csv", "path"),
    ("data", "split", "data/train.npz", "--target", "y"): ("--target", "`--label COLUMN`"),
    ("handoff", "I stopped at the wider one"): ("wider one", "--note 'I stopped"),
    ("import",): ("PATH", "Expected `harness import"),
    ("priors", "add", "never do this"): ("--lesson", "Expected `harness priors add"),
    ("continue", EXP): (EXP, "`harness try --continue`"),
    ("audit", "accept"): ("accept", "`harness audit --accept`"),
    ("run", "--budget", "5"): ("--budget", "`budget.usd` or `budget.tokens` of plan.md"),
    ("baseline", "--seeds", "two"): (
        "'two' is not a valid whole number",
        "harness baseline --help",
    ),
    ("baseline", "--seeds", "is not a valid integer range"): (
        "'is not a valid integer range' is not a valid whole number",
        "harness baseline --help",
    ),
    ("try", "x", "--", "train.py"): ("train.py", "`harness try x -- python train.py`"),
    ("try", "x", "--", "trian.py", "--lr", "1"): (
        "trian.py",
        "`harness try x -- python train.py --lr 1`",
    ),
    ("experiment", "compare", EXP, "exp-0002"): (
        f"There is no experiment '{EXP}'.",
        "`harness experiment list`",
    ),
    ("experiment", "compare", EXP, EXP): (f"the same experiment, {EXP}", "its parent"),
    ("try", "x", "--parent", "best"): ("an id looks like exp-0001", "`harness experiment list`"),
    ("data", "split", "data/trian.npz", "--label", "y"): ("trian.npz", "data/train.npz?"),
    ("decisions", "yesterday"): ("'yesterday'", "`harness experiment list`"),
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Journey:
    base = tmp_path_factory.mktemp("wrong")
    made = make_project(base / "project", base / "home")
    for words in (("init",), ("plan", "approve")):
        assert made.harness(*words).exit_code == 0
    return made


def test_there_are_more_than_forty() -> None:
    assert len(WRONG) > 40


@pytest.mark.parametrize("words", WRONG, ids=" ".join)
def test_a_wrong_use_is_answered_with_what_was_meant(
    project: Journey, words: tuple[str, ...]
) -> None:
    named, meant = WRONG[words]
    answer = project.harness(*words)
    assert (answer.exit_code, answer.stdout) == (2, "")
    first, *rest = answer.stderr.splitlines()
    assert first.startswith("harness: ")
    assert named in first
    assert meant in " ".join(rest)
    assert "Did you mean --help" not in answer.stderr
    assert "Traceback" not in answer.stderr


def test_none_of_them_did_anything(project: Journey) -> None:
    nothing = {"experiments": [], "total": 0}
    assert project.harness("experiment", "list", "--json").document == nothing


def command_at(path: str) -> click.Command:
    command: click.Command = harness
    for word in path.split()[1:]:
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), word)
        assert found is not None, path
        command = found
    return command


def test_what_is_there_has_no_other_meaning() -> None:
    for path, words in WORDS.items():
        group = command_at(path)
        assert isinstance(group, click.Group), path
        assert not set(words) & set(group.list_commands(click.Context(group))), path
    for path, option in OPTIONS:
        known = {name for parameter in command_at(path).params for name in parameter.opts}
        assert option not in known, (path, option)
    for path in MORE:
        assert not isinstance(command_at(path), click.Group)
