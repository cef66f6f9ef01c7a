"""Each small repository that `harness init --example` copies is judged in an empty folder."""

import subprocess
import sys
from pathlib import Path

import pytest

from harness.errors import RefusedError
from harness.install.examples import EXAMPLES, copy_example, example, examples
from tests.cli.journey import Journey
from tests.cli.test_first_start import judged, must

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def empty(tmp_path: Path) -> Journey:
    root, home = tmp_path / "try-it", tmp_path / "home"
    root.mkdir()
    home.mkdir()
    return Journey(root, home)


def test_an_example_is_ready_to_try(empty: Journey) -> None:
    done = must(empty, "init", "--hooks", "none", "--example", "sklearn")
    assert "approved plan.md: it is the example's own" in done.stdout.replace(".harness/", "")
    assert 'next: `harness try "first"`' in done.stdout
    assert must(empty, "status", "--json").document["plan"]["version"] == 1
    shown = empty.harness("init", "--hooks", "none", "--example", "sklearn", "--json")
    assert shown.document["error"]["code"] == "folder_not_empty"
    inner = empty.harness("init", "inner", "--hooks", "none", "--example", "sklearn", "--json")
    assert inner.document["error"]["code"] == "project_above"
    assert not (empty.root / "inner").exists()


def test_a_call_that_stopped_after_the_copy_goes_on(empty: Journey) -> None:
    words = ("init", "--hooks", "none", "--example", "sklearn")
    copy_example(example("sklearn"), empty.root)
    (empty.root / "notes.txt").write_text("mine")
    assert empty.harness(*words, "--json").document["error"]["code"] == "folder_not_empty"
    (empty.root / "notes.txt").unlink()
    must(empty, "init", "--hooks", "none")
    assert "approved" in must(empty, *words).stdout


@pytest.mark.parametrize("name", ["train.py", "data/churn.csv"])
def test_what_was_changed_is_no_left_over_and_a_split_table_does_not_come_back(
    tmp_path: Path, name: str
) -> None:
    chosen = example("sklearn")
    copy_example(chosen, tmp_path)
    (tmp_path / "data/churn.csv").unlink()
    copy_example(chosen, tmp_path)
    assert not (tmp_path / "data/churn.csv").exists()
    (tmp_path / name).write_text("other\n")
    with pytest.raises(RefusedError, match="is not empty"):
        copy_example(chosen, tmp_path)


def test_an_example_is_not_copied_into_a_folder_of_claude_code(empty: Journey) -> None:
    refused = empty.harness("init", ".claude", "--example", "sklearn", "--json")
    assert refused.document["error"]["code"] == "inside_own_folder"
    assert list(empty.root.iterdir()) == []


def test_the_project_of_an_example_may_be_a_folder_in_it(empty: Journey) -> None:
    words = ("init", "--hooks", "none", "--example", "monorepo")
    copy_example(example("monorepo"), empty.root)  # as a call leaves it that is stopped here
    done = must(empty, *words)
    inner = empty.root / "services/churn"
    assert f'next: `cd {inner}`, then `harness try "first"`' in done.stdout
    assert (inner / ".harness/plan.md").is_file()
    assert not (empty.root / ".harness").exists()
    assert (empty.root / "services/invoices/README.md").is_file()
    assert (
        must(empty, "status", "--json", "--project", str(inner)).document["plan"]["version"] == 1
    )
    shown = empty.harness(*words, "--json")
    assert shown.document["error"]["code"] == "folder_not_empty"


@pytest.mark.slow
@pytest.mark.parametrize("name", [one.name for one in examples()])
def test_each_is_judged(empty: Journey, name: str) -> None:
    chosen = example(name)
    for module in chosen.needs:
        pytest.importorskip(module)
    must(empty, "init", "--hooks", "none", "--example", name)
    verdict = judged(Journey(empty.root / chosen.project, empty.home))
    assert verdict["verdict"] == "PASS", verdict


def test_an_unknown_name_gets_the_list_and_nothing_is_made(empty: Journey) -> None:
    refused = empty.harness("init", "--example", "keras", "--json")
    error = refused.document["error"]
    assert (refused.exit_code, error["code"]) == (2, "no_example")
    assert "sklearn (scikit-learn on a csv table); transformers (" in error["message"]
    assert list(empty.root.iterdir()) == []
    both = empty.harness("init", "--example", "sklearn", "--label", "left", "--json")
    assert both.exit_code == 2


def test_every_example_says_what_it_is() -> None:
    assert {one.name for one in examples()} == {
        path.name for path in EXAMPLES.iterdir() if path.is_dir()
    }
    for one in examples():
        assert (EXAMPLES / one.name / one.data).is_file()
        readme = (EXAMPLES / one.name / "README.md").read_text("utf-8")
        assert f"harness init --example {one.name}\n" in readme


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("sklearn", "--record"), "leave the names out, or leave --record out"),
        (("--record", "sklearn", "pytorch"), "leave the names out, or leave --record out"),
        (("sklaern",), "there is no example 'sklaern'; known: "),
    ],
)
def test_no_record_of_some_stands_under_the_command_for_all(
    words: tuple[str, ...], told: str
) -> None:
    evidence = ROOT / "docs" / "evidence" / "examples.json"
    before = evidence.read_bytes()
    program = [sys.executable, str(ROOT / "bench" / "examples.py"), *words]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout, told in ended.stderr) == (2, "", True)
    assert evidence.read_bytes() == before
