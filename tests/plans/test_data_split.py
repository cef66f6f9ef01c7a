"""`harness data split`: what is secret never lies in the project, what is killed goes on, and
approval finds all of it."""

import csv
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from pyarrow import parquet

from harness.clock import SystemClock
from harness.errors import HarnessError, NotFoundError, RefusedError, UsageError
from harness.evaluation.split_rows import table_of
from harness.evaluation.trivial import first_tiers, trivial_score
from harness.files import sha256_file
from harness.ledger.project import Project
from harness.plans.approval import approve_plan, check_plan
from harness.plans.data_split import DataSplit, SplitOptions, split_table
from harness.plans.starting_plan import FirstPlan, first_plan, proposed_metric
from harness.plans.tables import read_table, write_table
from tests.plans.test_killed_approval import Countdown, Killed
from tests.plans.test_plans import git

OPTIONS = SplitOptions(
    label="y",
    held_out=0.2,
    validation=0.1,
    open_validation=False,
    stratify=None,
    group=None,
    time=None,
    seed=0,
)
ROWS = 300


def columns(rows: int = ROWS) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(5)
    return {
        "a": np.round(generator.normal(size=rows), 6),
        "b": generator.integers(0, 1000, rows),
        "patient": np.arange(rows) // 6,
        "day": np.array([f"2024-03-{1 + row // 12:02d}" for row in range(rows)]),
        "y": generator.choice(["no", "yes"], rows, p=[0.7, 0.3]),
    }


def table(root: Path, suffix: str = ".csv", **more: np.ndarray) -> Path:
    path = root / f"data/t{suffix}"
    write_table(path, {**columns(), **more})
    return path


def split(project: Project, path: Path, **more: Any) -> DataSplit:
    return split_table(project.layout, path, replace(OPTIONS, **more), SystemClock())


def in_project(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in (root / "data").iterdir()} - {
        "data/train.npz",
        "data/validation.npz",
        "data/held_out.npz",
    }


def filled_plan(root: Path, done: DataSplit) -> str:
    """As `harness init --data` writes it."""
    labels = read_table(root / done.data["train"]).columns[done.data["held_out"]["label"]]
    metric = proposed_metric(labels)
    trivial = trivial_score(metric, labels)
    return first_plan(
        FirstPlan(
            folder=root.name,
            table=done.table,
            data=done.data,
            metric=metric,
            tiers=first_tiers(metric, trivial),
            trivial=trivial,
            entry="python train.py",
            predict="python predict.py",
        )
    )


def approved_parts(project: Project, root: Path, done: DataSplit) -> dict[str, dict[str, Any]]:
    """The tables as the approval finds them."""
    (root / "plan.md").write_text(filled_plan(root, done))
    approved = approve_plan(project, root / "plan.md", by="ada")
    return {
        name: dict(read_table(table_of(project, approved, name).path).columns)
        for name in ("train", "validation", "held_out")
    }


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".npz", ".parquet"])
def test_a_split_is_what_approval_finds(project: Project, root: Path, suffix: str) -> None:
    path = table(root, suffix)
    before, whole = path.read_bytes(), read_table(path)
    done = split(project, path)
    assert in_project(root) == {f"data/t.train{suffix}"}
    assert done.original.read_bytes() == before
    assert done.original.is_relative_to(project.layout.vault)
    assert done.rows == {"train": 210, "held_out": 60, "validation": 30}
    assert done.how == "stratified by y"
    parts = approved_parts(project, root, done)
    assert sorted(np.concatenate([part["row"] for part in parts.values()]).tolist()) == (
        list(range(ROWS))
    )
    for name in ("a", "b", "patient", "y"):
        values = np.concatenate([part[name] for part in parts.values()])
        assert sorted(values.tolist()) == sorted(whole.columns[name].tolist())
    assert {
        name: round(float((part["y"] == "yes").mean()), 1) for name, part in parts.items()
    } == (dict.fromkeys(parts, round(float((whole.columns["y"] == "yes").mean()), 1)))
    assert in_project(root) == {f"data/t.train{suffix}"}


def test_rows_stand_as_they_stood(project: Project, root: Path) -> None:
    lines = [f'00{row % 7},{row / 8:.4f},"a, ""b""",{row % 2}' for row in range(ROWS)]
    (root / "data/t.csv").write_text("zip,x,text,y\n" + "\n".join(lines) + "\n")
    split(project, root / "data/t.csv")
    with (root / "data/t.train.csv").open(newline="") as stream:
        written = list(csv.reader(stream))[1:]
    assert {tuple(row[:4]) for row in written} <= {tuple(row) for row in csv.reader(lines)}
    assert written[0][0].startswith("00")
    objects = [f'{{"x": {row / 8:.4f}, "y": {row % 2}}}' for row in range(ROWS)]
    (root / "data/j.jsonl").write_text("\n".join(objects))
    split(project, root / "data/j.jsonl")
    line = (root / "data/j.train.jsonl").read_text().splitlines()[3]
    assert line[: line.index(',"row"')] + "}" in objects
    assert set(json.loads(line)) == {"x", "y", "row"}


def test_parquet_keeps_its_types(project: Project, root: Path) -> None:
    kinds = pa.array([f"k{row % 3}" for row in range(ROWS)]).dictionary_encode()
    days = pa.array(np.arange(ROWS), pa.timestamp("ms"))
    rows = pa.table({"kind": kinds, "at": days, "y": pa.array(np.arange(ROWS) % 2, pa.int8())})
    parquet.write_table(rows, root / "data/t.parquet")
    split(project, root / "data/t.parquet", time="at")
    schema = parquet.read_schema(root / "data/t.train.parquet")
    assert [str(schema.field(name).type) for name in ("at", "y")] == ["timestamp[ms]", "int8"]
    assert pa.types.is_dictionary(schema.field("kind").type)


def test_groups_and_time_are_no_inputs_and_the_plan_knows_the_group(
    project: Project, root: Path
) -> None:
    grouped = split(project, table(root), group="patient")
    assert grouped.data["group"] == "patient"
    assert grouped.data["held_out"]["inputs"] == ["a", "b", "day"]
    parts = approved_parts(project, root, grouped)
    patients = [set(part["patient"].tolist()) for part in parts.values()]
    assert sum(map(len, patients)) == ROWS // 6
    (root / "data/t.train.csv").unlink()
    timed = split(project, table(root), time="day", seed=1)
    assert timed.data["held_out"]["inputs"] == ["a", "b", "patient"]
    parts = approved_parts(project, root, timed)
    assert max(parts["train"]["day"].tolist()) < min(parts["validation"]["day"].tolist())
    assert max(parts["validation"]["day"].tolist()) < min(parts["held_out"]["day"].tolist())


def test_groups_that_no_cut_in_time_goes_through_stay_whole(project: Project, root: Path) -> None:
    visits = np.arange(ROWS) // 5
    done = split(
        project, table(root, patient=visits, day=visits + 0.0), group="patient", time="day"
    )
    assert done.how == "by day, the newest rows held out, whole groups of patient"
    assert done.data["group"] == "patient"
    parts = approved_parts(project, root, done)
    assert max(parts["train"]["day"].tolist()) < min(parts["held_out"]["day"].tolist())
    patients = [set(part["patient"].tolist()) for part in parts.values()]
    assert sum(map(len, patients)) == len(set(visits.tolist()))
    (root / "data/t.train.csv").unlink()
    returning = table(root, patient=np.arange(ROWS) % 7, day=visits + 0.0)
    with pytest.raises(UsageError, match="7 groups of patient have rows on both sides") as refused:
        split(project, returning, group="patient", time="day", seed=2)
    assert "Give --time alone where the same patient come again" in refused.value.hint


def test_a_column_of_ids_is_used_when_it_names_rows(project: Project, root: Path) -> None:
    done = split(project, table(root, id=np.arange(ROWS) + 1000))
    assert done.data["held_out"]["id"] == "id"
    assert "row" not in read_table(root / "data/t.train.csv").columns
    (root / "data/t.train.csv").unlink()
    ids = np.arange(ROWS) // 2
    done = split(project, table(root, id=ids, row=ids))
    assert done.data["held_out"]["id"] == "row_id"
    assert "id" not in done.data["held_out"]["inputs"]


def test_new_ids_say_nothing_of_the_order(project: Project, root: Path) -> None:
    split(project, table(root))
    ids = read_table(root / "data/t.train.csv").columns["row"]
    assert abs(np.corrcoef(ids, np.arange(len(ids)))[0, 1]) < 0.2


def test_open_validation_stays_in_the_project(project: Project, root: Path) -> None:
    done = split(project, table(root), open_validation=True)
    assert done.data["validation"] == "data/t.validation.csv"
    assert in_project(root) == {"data/t.train.csv", "data/t.validation.csv"}
    (root / "plan.md").write_text(filled_plan(root, done))
    approved = approve_plan(project, root / "plan.md", by="ada")
    assert approved.splits["validation"]["path"] == "data/t.validation.csv"


def test_the_same_call_again_says_what_was_done(project: Project, root: Path) -> None:
    path = table(root)
    first = split(project, path)
    again = split(project, path)
    assert again == replace(first, again=True)
    with pytest.raises(RefusedError, match=r"with other options: .*held_out 0\.2") as error:
        split(project, path, held_out=0.3)
    assert error.value.code == "already_split"
    assert str(first.original) in error.value.hint


def test_the_block_is_the_plan_s(project: Project, root: Path) -> None:
    done = split(project, table(root))
    assert yaml.safe_load(done.block()) == {"data": done.data}
    assert "inputs: [a, b, patient, day]\n" in done.block()


@pytest.mark.parametrize("where", ["index", "history", "link", "copy", "outside", "missing"])
def test_a_table_that_agents_can_read_elsewhere_is_refused(
    project: Project, root: Path, tmp_path: Path, where: str
) -> None:
    path = table(root)
    if where in ("index", "history"):
        git(root, "init", "-q")
        git(root, "add", "data/t.csv")
    if where == "history":
        git(root, "commit", "-q", "-m", "x")
        git(root, "rm", "-q", "--cached", "data/t.csv")
        git(root, "commit", "-q", "-m", "y")
    if where in ("link", "outside"):
        path = path.rename(tmp_path / "t.csv")
    if where == "link":
        (root / "data/t.csv").symlink_to(path)
        path = root / "data/t.csv"
    if where == "copy":
        (root / "t.old").write_bytes(path.read_bytes())
    if where == "missing":
        path.unlink()
    with pytest.raises((RefusedError, UsageError, NotFoundError)) as error:
        split(project, path)
    assert {
        "index": "The table file data/t.csv is known to git: it is tracked",
        "history": "The table file data/t.csv is known to git: it was committed once",
        "link": "The table file data/t.csv is reached through a link",
        "copy": "t.old",
        "outside": "is outside the project",
        "missing": "There is no table at",
    }[where] in error.value.message
    assert where == "missing" or path.exists()
    assert not project.layout.held_out.exists()


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"label": "z"}, "has no column 'z'"),
        ({"group": "z"}, "has no column 'z'"),
        ({"time": "z"}, "has no column 'z'"),
        ({"label": "b", "stratify": True}, "b holds no classes"),
        ({"time": "day", "stratify": True}, "split by time has no classes"),
        ({"held_out": 0.01}, "less than 10"),
    ],
)
def test_options_that_give_no_split_are_refused(
    project: Project, root: Path, more: dict[str, Any], told: str
) -> None:
    path = table(root)
    before = path.read_bytes()
    with pytest.raises(UsageError, match=told):
        split(project, path, **more)
    assert path.read_bytes() == before
    assert in_project(root) == {"data/t.csv"}


def test_a_table_that_approval_would_refuse_is_not_split(project: Project, root: Path) -> None:
    path = table(root, a=np.where(np.arange(ROWS) == 7, np.nan, 1.0))
    with pytest.raises(HarnessError, match="1 values that are not finite"):
        split(project, path)
    path = table(root, y=np.full(ROWS, "same"))
    with pytest.raises(HarnessError, match="one value in all rows"):
        split(project, path)
    assert not project.layout.held_out.exists()


@pytest.mark.parametrize("name", ["t.train.csv", "t.held_out.csv", "t.train.validation.csv"])
def test_another_file_in_the_place_of_a_part_is_refused(
    project: Project, root: Path, name: str
) -> None:
    path = table(root)
    (root / "data" / name).write_text("mine\n")
    with pytest.raises(RefusedError, match=rf"data/{name} is in the way"):
        split(project, path)
    assert path.exists()
    assert (root / "data" / name).read_text() == "mine\n"


def test_copies_of_rows_stay_in_one_part(project: Project, root: Path) -> None:
    rows = columns(ROWS - 10)
    path = root / "data/t.npz"
    write_table(path, {name: np.concatenate([v, v[:10]]) for name, v in rows.items()})
    parts = approved_parts(project, root, split(project, path))
    seen = [
        set(zip(part["a"].tolist(), part["b"].tolist(), strict=True)) for part in parts.values()
    ]
    assert sum(map(len, seen)) == ROWS - 10


def often(rows: int, values: int) -> dict[str, np.ndarray]:
    """Rows of two columns with so many values each: most inputs come again."""
    draw = np.random.default_rng(7)
    a, b = draw.integers(0, values, (2, rows))
    return {"a": a, "b": b, "shop": np.arange(rows) // 5, "y": (a + b > values).astype(int)}


def together(parts: dict[str, dict[str, Any]]) -> bool:
    seen = [
        set(zip(part["a"].tolist(), part["b"].tolist(), strict=True)) for part in parts.values()
    ]
    return sum(map(len, seen)) == len(set.union(*seen))


def test_equal_rows_stay_in_one_part_where_they_are_usual_and_it_is_told(
    project: Project, root: Path, environment: dict[str, str]
) -> None:
    path = root / "data/t.npz"
    write_table(path, {name: v for name, v in often(600, 16).items() if name != "shop"})
    done = split(project, path)
    copies = 600 - len(set(zip(*(often(600, 16)[name].tolist() for name in "ab"), strict=True)))
    assert done.how == f"stratified by y, rows with equal inputs in one part ({copies} are copies)"
    assert 100 < done.rows["held_out"] < 140
    parts = approved_parts(project, root, done)
    assert together(parts)
    assert {len(set(part["y"].tolist())) for part in parts.values()} == {2}
    checked = check_plan(root, root / "plan.md", environment, by_person=True)
    assert "splits_overlap" not in [found.code for found in checked.findings]


def test_where_too_few_rows_differ_it_is_told_how_many_stand_apart(
    project: Project, root: Path
) -> None:
    path = root / "data/t.npz"
    write_table(path, {name: v for name, v in often(600, 3).items() if name != "shop"})
    done = split(project, path)
    assert done.how.endswith("600 rows with equal inputs in several parts (9 rows differ)")


def test_groups_with_equal_rows_stay_together(project: Project, root: Path) -> None:
    rows = often(600, 400)
    for name in "ab":  # two groups share a row
        rows[name][7] = rows[name][101]
    path = root / "data/t.npz"
    write_table(path, rows)
    done = split(project, path, group="shop", label="y")
    assert "whole groups of shop" in done.how
    parts = approved_parts(project, root, done)
    assert together(parts)
    of = {shop: name for name, part in parts.items() for shop in part["shop"].tolist()}
    assert of[7 // 5] == of[101 // 5]


def test_the_filled_plan_can_be_approved_for_numbers_too(
    project: Project, root: Path, environment: dict[str, str]
) -> None:
    done = split(project, table(root), label="a")
    text = filled_plan(root, done)
    assert "metric: mae\n" in text
    assert "TODO" not in text
    (root / "plan.md").write_text(text)
    assert check_plan(root, root / "plan.md", environment, by_person=True).problems == ()


STEPS = 10
"""The vault's key and its draft, held-out, its note, the hidden validation, its note, train, the original and its note are renamed
into place; the original is unlinked."""


def cut(
    project: Project, path: Path, at: int, after: bool, monkeypatch: pytest.MonkeyPatch
) -> bool:
    countdown = Countdown(at, after=after, below=project.layout.root.parent)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", countdown.wrap(os.replace))
        patch.setattr(Path, "unlink", countdown.wrap(Path.unlink))
        try:
            split(project, path)
        except Killed:
            return True
    return False


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", range(1, STEPS + 1))
def test_any_cut_loses_nothing_and_the_next_call_goes_on(
    project: Project, root: Path, at: int, after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = table(root)
    expected = sha256_file(path)
    assert cut(project, path, at, after, monkeypatch) is True
    kept = [one for one in project.layout.originals.glob("*.csv") if sha256_file(one) == expected]
    assert path.exists() or kept
    assert in_project(root) <= {"data/t.csv", "data/t.train.csv"}, "no secret part in the project"
    done = split(project, path)
    assert in_project(root) == {"data/t.train.csv"}
    assert sha256_file(done.original) == expected
    parts = approved_parts(project, root, done)
    assert {name: len(part["y"]) for name, part in parts.items()} == done.rows
    assert sum(done.rows.values()) == ROWS


def test_there_are_as_many_steps_as_are_cut(
    project: Project, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cut(project, table(root), STEPS + 1, False, monkeypatch) is False


def test_the_numbers_of_a_split_before_are_no_input_of_the_next(
    project: Project, root: Path
) -> None:
    path = table(root, row=np.random.default_rng(1).permutation(ROWS), row_2=np.arange(ROWS) // 2)
    done = split(project, path)
    assert done.data["held_out"]["inputs"] == ["a", "b", "patient", "day", "row_2"]
    assert done.data["held_out"]["id"] == "row_id"
    assert "without row, which numbers rows" in done.how
    approved_parts(project, root, done)
