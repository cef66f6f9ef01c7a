"""From an approved plan to a kept result and its report, in three words; and what is refused."""

import re
from pathlib import Path

import pytest

from tests.centroids import TRAIN
from tests.cli.journey import PLAN, UNSANDBOXED
from tests.cli.test_try import IDEA, ONE_SEED, STEPS, Story, begun

WORSE = TRAIN.replace("centroids = np", "centroids = -np")
RESULT = "result.md"


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    """One idea is kept, the next one is worse and discarded."""
    story = begun(tmp_path_factory.mktemp("keep"), PLAN)
    story("no plan", "report", "--json", code=2)
    story("approve", "plan", "approve")
    story("empty", "report")
    story("none", "keep", "--json", code=2)
    story("first", "try", IDEA, "--json")
    story("below an agent", "keep", "--json", code=2, CLAUDECODE="1")
    story("kept", "keep")
    story("why", "decisions", "--json")
    story("again", "keep", "exp-0001", "--json", code=2)
    story.write("train.py", WORSE)
    story("second", "try", "the other side | is <b>better</b>", code=1)
    story(
        "compared", "experiment", "compare", "exp-0002", "exp-0001", "--code", "--config", code=1
    )
    story(
        "compared as JSON",
        *("experiment", "compare", "exp-0002", "exp-0001", "--code", "--config", "--json"),
        code=1,
    )
    story("not kept", "keep", "--json", code=1)
    story("looks", "status", "--json")
    story("dropped", "gate", "reject", "exp-0002", "--reason", "It is the wrong side.")
    story("discarded", "keep", "exp-0002", "--json", code=2)
    story("report", "report")
    story("report as JSON", "report", "--json")
    story("written", "report", "--out", "report.md", "--json")
    story("by an agent", "report", "--out", "other.md", "--json", code=2, CLAUDECODE="1")
    story("shown to an agent", "report", CLAUDECODE="1")
    story("undone", "gate", "reject", "exp-0001", "--reason", "A leak was found.")
    return story


def test_one_call_is_all_steps(story: Story) -> None:
    document = story.said["first"].document
    assert list(document["steps"]) == STEPS
    assert document["steps"]["new"]["experiment"] == document["experiment"] == "exp-0001"
    assert [run["status"] for run in document["steps"]["train"]["runs"]] == ["completed"] * 3
    assert document["steps"]["evaluate"]["split"] == "validation"
    gate = document["steps"]["gate"]
    assert (gate["verdict"], gate["recorded"], document["verdict"]) == ("PASS", True, "PASS")
    assert gate["findings"] == []
    result = story.journey.root / ".harness/experiments/exp-0001/result.md"
    score = document["steps"]["evaluate"]["score"]
    assert f'"accuracy": {score:.4g}' in result.read_text("utf-8")
    assert story.said["first"].stderr == ""


def test_the_table_has_score_reference_comparison_verdict_and_one_next_step(
    story: Story,
) -> None:
    lines = story.said["second"].stdout.splitlines()
    shown = ["experiment", "builds", "score", "reference", "comparison", "verdict", "finding"]
    names = [line.split()[0] for line in lines if line[1:2].strip()]
    assert [name for name in names if name in shown] == shown
    text = " ".join(" ".join(lines).split())
    for words in (
        "builds on exp-0001",
        "validation, 3 seeds, spread 0.",
        "reference exp-0001 0.",
        "worse by more than the noise",
        "verdict FAIL",
        "finding [below_tier]",
    ):
        assert words in text
    assert lines[-1] == (
        "next: try another hypothesis: `harness gate reject exp-0002 --reason TEXT` (by a person)"
    )
    assert "it builds on exp-0001 (--parent names another)" in story.said["second"].stderr


def test_the_best_that_is_kept_is_the_parent(story: Story) -> None:
    rows = story.said["report as JSON"].document["experiments"]
    assert [row["parent"] for row in rows] == [None, "exp-0001"]


def test_a_pass_is_kept_in_one_word_that_says_each_step(story: Story) -> None:
    document = story.said["first"].document
    assert document["next"]["command"] == "harness keep exp-0001"
    kept = story.said["kept"]
    assert "exp-0001  looking at held-out; looks are counted" in kept.stderr
    assert "exp-0001  asking the held-out gate" in kept.stderr
    assert "asking the validation gate" not in kept.stderr
    text = " ".join(kept.stdout.split())
    assert "gate held-out: PASS" in text
    assert re.search(r"decided d-\d+ APPROVE by human:\w+ d-\d+ KEEP by human:", text)
    assert kept.stdout.splitlines()[-1].startswith("next: ")


def test_the_reason_is_what_was_measured(story: Story) -> None:
    rows = story.said["why"].document["decisions"]
    assert [row["kind"] for row in rows] == ["APPROVE", "KEEP"]
    (reason,) = {row["reason"] for row in rows}
    assert re.match(
        r"accuracy 0\.\d+ \[.*\] validation, 3 seeds, spread 0\.\d+, recomputed", reason
    )
    assert "held-out, 3 seeds, recomputed" in reason
    assert reason.endswith("; better against trivial predictor.")


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("none", "no_experiment"),
        ("below an agent", "human_verb"),
        ("again", "already_kept"),
        ("discarded", "already_discarded"),
    ],
)
def test_what_cannot_be_kept(story: Story, name: str, code: str) -> None:
    assert story.error(name)["code"] == code


def test_without_a_pass_nothing_is_kept_and_no_look_is_spent(story: Story) -> None:
    document = story.said["not kept"].document
    assert (document["kept"], document["reason"]) == (False, None)
    assert list(document["steps"]) == ["validation"]
    assert document["steps"]["validation"]["verdict"] == "FAIL"
    rows = story.said["looks"].document["experiments"]
    assert [row["status"] for row in rows] == ["kept", "judged"]
    assert story.said["report as JSON"].document["looks"]["held_out"] == 1


def test_two_experiments_side_by_side(story: Story) -> None:
    document = story.said["compared as JSON"].document
    assert document["code"]["files"] == {"train.py": "changed"}
    lines = document["code"]["diff"].splitlines()
    assert lines[:2] == ["--- exp-0001/train.py", "+++ exp-0002/train.py"]
    assert [line for line in lines if line.startswith("+  ")] == [
        next("+" + line for line in WORSE.splitlines() if "= -np" in line)
    ]
    assert document["config"]["diff"] == ""
    assert document["verdicts"]["exp-0001"]["verdict"] == "PASS"
    assert document["verdicts"]["exp-0002"]["verdict"] == "FAIL"
    assert {curve["metric"] for curve in document["curves"]["exp-0001"]} == {"loss"}
    assert len(document["curves"]["exp-0002"]) == 3
    assert document["paired"]["n"] == 200
    text = story.said["compared"].stdout
    assert "worse by more than the noise" in text
    assert "code, from B to A: train.py (changed)" in text
    assert "config.yaml: the same" in text


def test_the_report_is_a_page_of_markdown_that_fits_a_terminal(story: Story) -> None:
    page = story.said["report"].stdout
    assert max(map(len, page.splitlines())) <= 80
    parts = re.split(r"^## (.+)$", page, flags=re.MULTILINE)
    assert parts[0].startswith('# Report: toy\n\n"Classify three blobs"')
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert list(sections) == ["Kept", "Experiments", "What went wrong", "Not isolated", "Spent"]
    kept = " ".join(sections["Kept"].split())
    assert f'**exp-0001**: "{IDEA}"' in kept
    assert re.search(r"- accuracy 0\.\d+ .*\[0\.\d+, [01]\.\d+\]", kept)
    assert "held-out, 3 seeds, recomputed" in kept
    assert "KEEP by human:" in kept
    rows = [line for line in sections["Experiments"].splitlines() if line.startswith("|")]
    head = [cell.strip() for cell in rows[0].strip("|").split("|")]
    assert head == ["id", "validation", "held-out", "verdict", "decision", "hypothesis"]
    first = [cell.strip() for cell in rows[2].strip("|").split("|")]
    assert re.fullmatch(r"0\.\d+ ±0\.0\d+", first[1])
    assert re.fullmatch(r"0\.\d+", first[2])
    assert first[3:5] == ["PASS", "kept"]
    second = re.split(r"(?<!\\)\|", rows[3])
    assert [cell.strip() for cell in second[3:6]] == ["-", "FAIL", "discarded"]
    told = " ".join(sections["Experiments"].split())
    assert '(builds on exp-0001): "the other side | is &lt;b>better' in told
    assert "It is the wrong side." in told
    assert "- looks at held-out: 1 of 20" in sections["Spent"]
    assert "- experiments: 2 of 8" in sections["Spent"]
    assert re.search(r"- training: 0\.?\d* of 20 minutes", sections["Spent"])


def test_the_report_of_a_plan_without_experiments(story: Story) -> None:
    assert story.error("no plan")["code"] == "no_plan"
    page = story.said["empty"].stdout
    for words in ("Nothing is kept yet.", "None yet.", "Nothing was scored yet."):
        assert words in page


def test_a_person_writes_it_to_a_file_and_an_agent_reads_it(story: Story) -> None:
    assert story.said["written"].document["written"] == "report.md"
    page = (story.journey.root / "report.md").read_text("utf-8")
    assert page == story.said["report"].stdout
    assert story.error("by an agent")["code"] == "human_verb"
    assert not (story.journey.root / "other.md").exists()
    assert story.said["shown to an agent"].stdout == page


def test_what_was_not_isolated_is_told(tmp_path: Path) -> None:
    story = begun(tmp_path, ONE_SEED)
    story("approve", "plan", "approve")
    story("new", "experiment", "new", "--hypothesis", IDEA)
    story("train", "train", *UNSANDBOXED)
    story("evaluate", "evaluate")
    lines = story("report", "report").stdout.partition("## Not isolated")[2].splitlines()
    assert lines[2].startswith("- exp-0001: training not isolated")


def test_who_rejects_what_is_kept_is_told_so(story: Story) -> None:
    said = story.said["undone"].stdout
    assert said.startswith("exp-0001 was kept: this replaces that decision.")
    assert "replaces" not in story.said["dropped"].stdout
