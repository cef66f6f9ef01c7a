"""Files that a newcomer gives and that are not what was meant: the answer names what was found and
what leads on, exits 2, and nothing is begun."""

import gzip
from pathlib import Path

import pytest

from tests.cli.journey import Journey
from tests.cli.test_first_start import must, table

HEAD = "age,plan,spent,churned\n"
START = ("init", "--hooks", "none", "--label", "churned", "--data")


@pytest.fixture
def journey(tmp_path: Path) -> Journey:
    root, home = tmp_path / "our churn", tmp_path / "home"
    home.mkdir()
    table(root / "data/all.csv", 100, 3)
    return Journey(root, home)


def rows(journey: Journey) -> str:
    return (journey.root / "data/all.csv").read_text()


def refused(journey: Journey, *words: str) -> tuple[str, str]:
    """(what is wrong, what leads on)"""
    before = sorted(journey.root.rglob("*"))
    answer = journey.harness(*words)
    assert (answer.exit_code, answer.stdout) == (2, ""), answer.stderr
    assert "Traceback" not in answer.stderr
    assert sorted(journey.root.rglob("*")) == before
    first, *rest = answer.stderr.splitlines()
    return first, " ".join(rest)


def quoted(text: str) -> str:
    """Words in quotation marks, between semicolons."""
    return "".join(f'"{line.replace(";", chr(34) + ";", 1)}' for line in semicolons(text))


def decimals(text: str) -> str:
    """With the comma in numbers, as in much of Europe."""
    return "".join(semicolons(text)).replace(".", ",")


def semicolons(text: str) -> list[str]:
    return text.replace(",", ";").splitlines(True)


@pytest.mark.parametrize(
    ("name", "text", "found", "way"),
    [
        (
            "semicolons.csv",
            lambda text: "".join(semicolons(text)),
            "'churned'",
            "separated by ';'",
        ),
        ("tabs.csv", lambda text: text.replace(",", "\t"), "'churned'", "separated by '\\t'"),
        ("quoted.csv", quoted, "expected after", "separated by ';'"),
        ("decimals.csv", decimals, "row 1 has 3 cells", "separated by ';'"),
        ("table.xlsx", lambda text: f"PK{text}", "'.xlsx'", "csv or parquet"),
        ("model.pkl", lambda text: text, "'.pkl'", "csv or parquet"),
        ("empty.csv", lambda _text: "", "is empty", "Correct"),
        ("no-rows.csv", lambda _text: HEAD, "no rows", "rows"),
        ("bare.csv", lambda _text: "1,2,3,0\n2,3,4,1\n", "'churned'", "first line is a row"),
        ("short.csv", lambda text: f"{text}1,2\n", "row 101 has 2 cells", "Correct"),
        ("twice.csv", lambda text: text.replace("age", "plan", 1), "differ", "Correct"),
        ("few.csv", lambda text: "".join(text.splitlines(True)[:4]), "3 rows", "larger"),
    ],
)
def test_another_kind_of_table(journey: Journey, name: str, text, found: str, way: str) -> None:
    (journey.root / name).write_text(text(rows(journey)))
    first, then = refused(journey, *START, name)
    assert name in first or name == "few.csv"
    assert found in first
    assert way in then


def test_a_packed_table_is_unpacked_first(journey: Journey) -> None:
    with gzip.open(journey.root / "all.csv.gz", "wt") as stream:
        stream.write(rows(journey))
    first, then = refused(journey, *START, "all.csv.gz")
    assert ("'.gz'" in first, "Unpack it" in then) == (True, True)


@pytest.mark.parametrize(
    ("typed", "way"),
    [
        ("data/al.csv", "Did you mean data/all.csv?"),
        ("data/everything.csv", "a table is data/all.csv"),
        ("nowhere/all.csv", "Check the path"),
        ("https://example.org/all.csv", "Fetch it"),
    ],
)
def test_a_table_that_is_not_there(journey: Journey, typed: str, way: str) -> None:
    first, then = refused(journey, *START, typed)
    assert typed.rpartition("/")[2] in first
    assert way in then


@pytest.mark.parametrize(
    ("label", "way"), [("Churned", "'churned'"), ("chruned", "'churned'"), ("left", "Correct")]
)
def test_a_label_that_is_no_column(journey: Journey, label: str, way: str) -> None:
    first, then = refused(journey, "init", "--data", "data/all.csv", "--label", label)
    assert f"'{label}'" in first
    assert "age, plan, spent, churned" in first
    assert way in then


def test_a_byte_order_mark_is_no_part_of_the_first_name(journey: Journey) -> None:
    lines = [line.split(",") for line in rows(journey).splitlines()]
    text = "".join(f"{one[3]},{one[0]},{one[2]}\n" for one in lines)
    (journey.root / "data/all.csv").write_text(f"\ufeff{text}", "utf-8")
    must(journey, *START, "data/all.csv", "--metric", "accuracy")


def test_the_plan_in_the_folder_of_the_harness_is_the_plan(journey: Journey) -> None:
    must(journey, *START, "data/all.csv", "--metric", "accuracy")
    assert ".harness/plan.md can be approved" in must(journey, "plan", "check").stdout
    inner = journey.root / "data"
    approved = journey.harness("plan", "approve", cwd=inner)
    assert approved.exit_code == 0, approved.stderr
    again = journey.harness("plan", "approve")
    assert again.exit_code == 0, again.stderr
    assert must(journey, "status", "--json").document["plan"]["version"] == 1


@pytest.mark.parametrize(
    ("old", "new", "line", "way"),
    [
        ("  metric:", "\tmetric:", "this is not YAML", "in the place of the tab"),
        ("seeds: 3", "seeds: three", "oracle.seeds", "oracle.seeds"),
        ("---\n", "", "expected `---`", "between two lines `---`"),
    ],
)
def test_a_plan_with_a_fault_names_its_line(
    journey: Journey, old: str, new: str, line: str, way: str
) -> None:
    must(journey, *START, "data/all.csv", "--metric", "accuracy")
    plan = journey.root / ".harness/plan.md"
    text = plan.read_text()
    assert old in text
    plan.write_text(text.replace(old, new, 1))
    answer = journey.harness("plan", "check")
    assert answer.exit_code == 2
    assert line in answer.stderr
    assert way in answer.stderr
