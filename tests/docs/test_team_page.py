"""docs/team.md: its commands, run on a real server."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.journey import Journey, make_project
from tests.postgres import Postgres, postgres

__all__ = ["postgres"]

PAGE = Path(__file__).parents[2] / "docs" / "team.md"
FIRST = "exp-0001"
NEW = ("experiment", "new", "--hypothesis", "A wider net is better.")
URL = "postgresql://db.example/harness"


def commands() -> list[list[str]]:
    blocks = re.findall(r"```bash\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    return [line.split() for block in blocks for line in block.splitlines()]


def test_the_pages_commands_do_what_it_says(tmp_path: Path, postgres: Postgres) -> None:
    pip, there, back, grants, *_ = commands()
    assert pip[:2] == ["pip", "install"]
    journey = make_project(tmp_path / "project", tmp_path / "home")
    for words in (
        ("init",),
        ("plan", "approve"),
        NEW,
    ):
        answer = journey.harness(*words)
        assert answer.exit_code == 0, answer.stderr
    url = postgres.url()
    words = [url if word == URL else word for word in there[1:]]
    answer = journey.harness(*words)
    assert answer.exit_code == 0, answer.stderr
    assert "both were verified" in answer.stdout
    config = (journey.root / ".harness" / "config.toml").read_text("utf-8")
    assert f'ledger = "{url}"' in config
    shown = journey.harness("status", "--json").document
    assert shown["paths"]["ledger"].startswith(url)
    assert [one["experiment"] for one in shown["experiments"]] == ["exp-0001"]
    assert journey.harness("ledger", "verify").exit_code == 0

    assert grants[-2] == ">"
    sql = journey.harness(*grants[1:-2]).stdout
    postgres.sql("CREATE ROLE trainers LOGIN; CREATE ROLE viewers LOGIN;")
    postgres.sql(sql)
    (schema,) = re.findall(r"GRANT USAGE ON SCHEMA (\w+) TO trainers", sql)
    for user in ("trainers", "viewers"):
        assert postgres.sql(f"SELECT count(*) > 1 FROM {schema}.facts", user) == "t"
        with pytest.raises(subprocess.CalledProcessError, match="psql"):
            postgres.sql(f"DELETE FROM {schema}.facts", user)
    looked = journey.harness("status", PGUSER="viewers")
    assert looked.exit_code == 0, looked.stderr

    again = journey.harness(*words)
    assert again.exit_code == 2
    assert "already" in again.stderr
    answer = journey.harness(*back[1:])
    assert answer.exit_code == 0, answer.stderr
    assert "ledger" not in (journey.root / ".harness" / "config.toml").read_text("utf-8")
    assert journey.harness("ledger", "verify").exit_code == 0
    opened = journey.harness("experiment", "show", "exp-0001")
    assert opened.exit_code == 0, opened.stderr


def test_two_machines_share_one_ledger(tmp_path: Path, postgres: Postgres) -> None:
    first = make_project(tmp_path / "project", tmp_path / "home")
    for words in (("init",), ("plan", "approve"), NEW, ("ledger", "migrate", postgres.url())):
        answer = first.harness(*words)
        assert answer.exit_code == 0, answer.stderr
    second = Journey(tmp_path / "clone", tmp_path / "other-home")
    shutil.copytree(first.root, second.root)
    second.home.mkdir()
    assert second.harness("ledger", "import").exit_code == 0
    config = second.root / ".harness" / "config.toml"
    assert "postgresql" in config.read_text("utf-8")
    opened = second.harness("experiment", "new", "--hypothesis", "Another.", "--parent", FIRST)
    assert opened.exit_code == 0, opened.stderr
    assert "exp-0002" in opened.stdout
    for journey in (first, second):
        listed = journey.harness("experiment", "list", "--json").document["experiments"]
        assert sorted(one["experiment"] for one in listed) == [FIRST, "exp-0002"]
        assert journey.harness("ledger", "verify").exit_code == 0
    elsewhere = first.harness("train", "exp-0002", "--", "python", "train.py")
    assert elsewhere.exit_code == 2
    assert "its files are not here" in elsewhere.stderr
    again = first.harness("experiment", "new", "--hypothesis", "A third.", "--parent", FIRST)
    assert "exp-0003" in again.stdout, again.stderr
    page = (first.root / ".harness" / "experiments" / "CHECKLIST.md").read_text("utf-8")
    assert "exp-0002" in page
    assert "exp-0003" in page


def test_two_clones_merge_as_the_page_says(tmp_path: Path) -> None:
    log, worktree, merge, *_ = commands()[4:]
    assert worktree[:3] == ["git", "worktree", "add"]
    ours = make_project(tmp_path / "project", tmp_path / "home")
    for words in (("init",), ("plan", "approve"), NEW):
        answer = ours.harness(*words)
        assert answer.exit_code == 0, answer.stderr
    theirs = Journey(tmp_path / "theirs", tmp_path / "other-home")
    shutil.copytree(ours.root, theirs.root)
    theirs.home.mkdir()
    assert theirs.harness("ledger", "import").exit_code == 0
    for journey, hypothesis in ((theirs, "deeper"), (ours, "wider")):
        opened = journey.harness(*NEW[:-1], f"A {hypothesis} net is better.", "--parent", FIRST)
        assert opened.exit_code == 0, opened.stderr
    refused = ours.harness("ledger", "import", "../theirs/.harness/memory/facts")
    assert "harness ledger merge" in refused.stderr
    merged = ours.harness(*merge[1:])
    assert merged.exit_code == 0, merged.stderr
    assert "exp-0002 is now exp-0003" in merged.stdout
    folder = ours.root / ".harness" / "experiments"
    # As a merge leaves them that was killed once its facts stood.
    page = folder / "exp-0003" / "hypothesis.md"
    page.write_text(page.read_text("utf-8").replace("exp-0003", "exp-0002"), "utf-8")
    page.parent.rename(folder / "exp-0002")
    for mark in ours.state.glob("renamed-*.json"):
        mark.unlink()
    again = ours.harness(*merge[1:])
    assert "imported 0 facts" in again.stdout
    assert ".harness/experiments/exp-0003 has its new name" in again.stdout
    assert sorted(path.name for path in folder.glob("exp-*")) == [FIRST, "exp-0003"]
    text = page.read_text("utf-8")
    assert "exp-0003" in text
    assert "exp-0002" not in text
    shown = ours.harness("experiment", "show", "exp-0003", "--json").document
    assert (shown["hypothesis"], shown["parent"]) == ("A wider net is better.", FIRST)
    assert ours.harness("ledger", "verify").exit_code == 0
    assert "RENAME" in (ours.root / ".harness" / "memory" / "DECISION_LOG.md").read_text("utf-8")
    back = theirs.harness("ledger", "import", f"{ours.root}/.harness/memory/facts")
    assert back.exit_code == 0, back.stderr
    assert theirs.harness("ledger", "verify").exit_code == 0
    told = theirs.harness(*log[1:], USER="ada").stdout
    assert " person" in told


def test_a_password_in_config_toml_is_refused_and_not_repeated(tmp_path: Path) -> None:
    journey = make_project(tmp_path / "project", tmp_path / "home")
    assert journey.harness("init").exit_code == 0
    config = journey.root / ".harness" / "config.toml"
    config.write_text(config.read_text("utf-8") + 'ledger = "postgresql://a:hush@db/x"\n')
    answer = journey.harness("status")
    assert answer.exit_code == 2
    assert "password" in answer.stderr
    assert "hush" not in answer.stderr
