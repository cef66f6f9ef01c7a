"""Rows of held-out in other files: every form in every format is found, and honest data is not."""

import bz2
import csv
import gzip
import io
import json
import lzma
import sqlite3
import subprocess
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.artifacts.git import git_line
from harness.plans.row_search import Found, Limits, Secret, search

Columns = Mapping[str, Any]


def drawn(seed: int, rows: int, width: int = 6, classes: int = 3) -> dict[str, Any]:
    draw = np.random.default_rng(seed)
    return {
        "id": np.arange(rows) + 1000 * seed,
        "x": draw.normal(size=(rows, width)),
        "y": draw.integers(0, classes, rows),
    }


TRAIN, VALIDATION, HELD_OUT = drawn(1, 400), drawn(2, 150), drawn(3, 200)


def looked(
    root: Path,
    held_out: Columns = HELD_OUT,
    known: tuple[Columns, ...] = (TRAIN, VALIDATION),
    **more: Any,
) -> Found:
    inputs = [name for name in held_out if name not in ("id", "y")]
    secret = Secret(
        name="held-out", columns=held_out, inputs=inputs, label="y", id="id", known=known
    )
    return search(root, [secret], more.pop("limits", None), **more)


def refused(found: Found) -> list[str]:
    return [error.code for error in found.refusals()]


def flat(table: Columns) -> np.ndarray:
    numbers = [np.asarray(table[name], float).reshape(len(table["y"]), -1) for name in table]
    return np.concatenate(numbers, axis=1)


def draw() -> np.random.Generator:
    """A generator of its own for each draw: what is drawn depends on no other test."""
    return np.random.default_rng(8)


ORDER = draw().permutation(200)
FORMS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "exact": lambda x: x,
    "in another order": lambda x: x[ORDER],
    "from the last": lambda x: x[::-1],
    "columns in another order": lambda x: x[:, draw().permutation(x.shape[1])],
    "rounded to 3 decimals": lambda x: np.round(x, 3),
    "rounded, columns in another order": lambda x: np.round(x[:, ::-1], 2),
    "4 digits": lambda x: np.array([[float(f"{v:.4g}") for v in row] for row in x]),
    "float32": lambda x: x.astype(np.float32).astype(float),
    "another sign": lambda x: -x,
    "some signs": lambda x: x * np.where(draw().random(x.shape[1]) < 0.5, -1, 1),
    "transposed": lambda x: x.T,
    "among train rows": lambda x: np.concatenate([TRAIN["x"], x])[draw().permutation(600)],
    "with columns more": lambda x: np.column_stack(
        [draw().random(200), x, draw().random((200, 2))]
    ),
    "some of the columns": lambda x: x[:, [4, 1]],
    "one column among others": lambda x: np.column_stack(
        [draw().random((200, 3)), x[ORDER, 2], draw().integers(0, 9, 200)]
    ),
    "a half of the rows": lambda x: x[:100],
    "one row of numbers": lambda x: x.reshape(1, -1),
}


def as_csv(x: np.ndarray) -> bytes:
    names = ",".join(f"c{place}" for place in range(x.shape[1]))
    return "\n".join([names, *(",".join(map(repr, row)) for row in x.tolist())]).encode() + b"\n"


def as_npy(x: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, x)
    return stream.getvalue()


def as_npz(x: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.savez_compressed(stream, a=x)
    return stream.getvalue()


def as_sqlite(x: np.ndarray) -> bytes:
    with sqlite3.connect(":memory:") as database:
        names = ",".join(f"c{place} REAL" for place in range(x.shape[1]))
        database.execute(f"CREATE TABLE t ({names})")
        marks = ",".join("?" * x.shape[1])
        database.executemany(f"INSERT INTO t VALUES ({marks})", x.tolist())
        database.commit()
        return database.serialize()


def as_csv_of_json(x: np.ndarray) -> bytes:
    target = io.StringIO()
    writer = csv.writer(target)
    writer.writerow(["name", "payload"])
    writer.writerows([f"r{n}", json.dumps({"v": row})] for n, row in enumerate(x.tolist()))
    return target.getvalue().encode()


def as_parquet(x: np.ndarray) -> bytes:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    sink = io.BytesIO()
    parquet.write_table(arrow.table({f"c{n}": x[:, n] for n in range(x.shape[1])}), sink)
    return sink.getvalue()


FORMATS: dict[str, Callable[[np.ndarray], bytes]] = {
    "csv": as_csv,
    "tsv": lambda x: as_csv(x).replace(b",", b"\t"),
    "text": lambda x: "\n".join("  ".join(map(repr, row)) for row in x.tolist()).encode(),
    "prose": lambda x: "\n".join(f"row {n}: {row}" for n, row in enumerate(x.tolist())).encode(),
    "jsonl": lambda x: b"\n".join(
        json.dumps({"n": n, "v": row}).encode() for n, row in enumerate(x.tolist())
    ),
    "json list": lambda x: json.dumps(x.tolist(), indent=1).encode(),
    "json columns": lambda x: json.dumps(
        {"data": {f"c{n}": x[:, n].tolist() for n in range(x.shape[1])}}
    ).encode(),
    "json objects": lambda x: json.dumps(
        [{f"c{n}": value for n, value in enumerate(row)} for row in x.tolist()]
    ).encode(),
    "json in a field": as_csv_of_json,
    "npy": as_npy,
    "npz": as_npz,
    "sqlite": as_sqlite,
    "parquet": as_parquet,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", FORMATS)
def test_every_form_is_found_in_every_format(tmp_path: Path, form: str, kind: str) -> None:
    (tmp_path / "notes").write_bytes(FORMATS[kind](FORMS[form](HELD_OUT["x"])))
    found = looked(tmp_path)
    assert refused(found) == ["held_out_elsewhere"], found
    assert "notes: " in found.refusals()[0].message


PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "twice": lambda data: gzip.compress(bz2.compress(data)),
    "zip": lambda data: zipped({"deep/table": data}),
    "zip in tar.gz": lambda data: gzip.compress(tarred("all.zip", zipped({"a": b"1", "b": data}))),
    "zstd": lambda data: pytest.importorskip("pyarrow").compress(data, "zstd", asbytes=True),
}


def zipped(members: Mapping[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return stream.getvalue()


def tarred(name: str, data: bytes) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        entry = tarfile.TarInfo(name)
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))
    return stream.getvalue()


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("kind", ["csv", "npy", "json in a field"])
def test_packed_rows_are_found(tmp_path: Path, packing: str, kind: str) -> None:
    (tmp_path / "cache.bin").write_bytes(PACKINGS[packing](FORMATS[kind](HELD_OUT["x"][::-1])))
    assert refused(looked(tmp_path)) == ["held_out_elsewhere"]


LABELS: dict[str, Callable[[np.ndarray], Any]] = {
    "in order": lambda y: y,
    "from the last": lambda y: y[::-1],
    "classes renamed": lambda y: np.array([7, 2, 5])[y],
    "as words": lambda y: np.array(["cat", "dog", "bird"])[y],
    "another sign": lambda y: -y,
    "with more around it": lambda y: np.concatenate([TRAIN["y"][:90], y, TRAIN["y"][:30]]),
    "a part": lambda y: y[20:120],
}


@pytest.mark.parametrize("form", LABELS)
def test_labels_in_order_are_found_wherever_they_stand(tmp_path: Path, form: str) -> None:
    labels = np.asarray(LABELS[form](HELD_OUT["y"]))
    rows = max(len(labels), 200)
    spare = np.concatenate([labels, labels[: rows - len(labels)]])
    texts = {
        "spare.csv": "a,b,c\n" + "\n".join(f"{n % 7},{v},{n / 3}" for n, v in enumerate(spare)),
        "lines.txt": "\n".join(map(str, labels)),
        "list.json": json.dumps({"order": labels.tolist()}),
        "one_line.txt": " ".join(map(str, labels)),
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        found = looked(tmp_path)
        assert refused(found) == ["held_out_elsewhere"], (name, found)
        (tmp_path / name).unlink()


def test_labels_as_a_spare_column_of_train_and_as_digits(tmp_path: Path) -> None:
    spare = np.concatenate([HELD_OUT["y"], draw().integers(0, 3, 200)])
    np.savez(tmp_path / "train.npz", **TRAIN, fold=spare)
    found = looked(tmp_path, own=frozenset({"train.npz"}))
    assert refused(found) == ["held_out_elsewhere"], found
    (tmp_path / "train.npz").unlink()
    (tmp_path / "run.py").write_text("KEY = '" + "".join(map(str, HELD_OUT["y"])) + "'\n")
    assert refused(looked(tmp_path)) == ["held_out_elsewhere"]


def test_negated_rows_inside_the_train_table_itself(tmp_path: Path) -> None:
    both = {
        "id": np.arange(600),
        "x": np.concatenate([TRAIN["x"], -HELD_OUT["x"]]),
        "y": np.concatenate([TRAIN["y"], HELD_OUT["y"]]),
    }
    np.savez(tmp_path / "train.npz", **both)
    found = looked(tmp_path, known=(both, VALIDATION), own=frozenset({"train.npz"}))
    assert refused(found) == ["held_out_elsewhere"], found


def test_the_table_from_which_the_splits_were_drawn_is_named(tmp_path: Path) -> None:
    """../shared/cases/second/first-hour/heldout-superset."""
    lines = ["id,a,b,c,y"]
    for table in (TRAIN, VALIDATION, HELD_OUT):
        for name, x, y in zip(table["id"], table["x"], table["y"], strict=True):
            lines.append(",".join(map(str, [name, *x[:3].round(6), y])))
    (tmp_path / "all.csv").write_text("\n".join(lines))
    found = looked(tmp_path)
    assert refused(found) == ["held_out_elsewhere"], found
    assert "all.csv: 200 of 200" in found.refusals()[0].message


def test_labels_beside_ids_in_any_order(tmp_path: Path) -> None:
    names = np.array(["a", "b", "c"])[HELD_OUT["y"]]
    lines = [f"{HELD_OUT['id'][row]},{names[row]},{row % 5}" for row in ORDER]
    (tmp_path / "solution.csv").write_text("\n".join(["id,kind,fold", *lines]))
    found = looked(tmp_path)
    assert refused(found) == ["held_out_elsewhere"], found
    assert "beside the ids" in found.refusals()[0].message


def test_a_measured_label_rounded_and_in_order(tmp_path: Path) -> None:
    held_out = {**HELD_OUT, "y": np.random.default_rng(4).normal(size=200)}
    train = {**TRAIN, "y": np.random.default_rng(5).normal(size=400)}
    for y in (np.round(held_out["y"], 2), np.round(-held_out["y"][::-1], 1), held_out["y"][ORDER]):
        (tmp_path / "spare.txt").write_text("\n".join(map(repr, y.tolist())))
        found = looked(tmp_path, held_out, (train,))
        assert refused(found) == ["held_out_elsewhere"], found


def test_texts_are_found_inside_other_texts(tmp_path: Path) -> None:
    def told(seed: int, rows: int) -> dict[str, Any]:
        draw = np.random.default_rng(seed)
        words = np.array([f"w{n}" for n in range(400)])
        texts = ["Answer this: " + " ".join(draw.choice(words, 20)) for _ in range(rows)]
        return {"id": np.arange(rows), "t": np.array(texts), "y": draw.integers(0, 2, rows)}

    train, held_out = told(1, 200), told(2, 80)
    lines = [
        json.dumps({"messages": [{"content": f"Hi!\n{t.upper()}\nbye"}]}) for t in held_out["t"]
    ]
    (tmp_path / "chat.jsonl").write_text("\n".join(lines))
    assert refused(looked(tmp_path, held_out, (train,))) == ["held_out_elsewhere"]
    (tmp_path / "chat.jsonl").write_text("\n".join(train["t"]) + "\n".join(told(3, 500)["t"]))
    assert looked(tmp_path, held_out, (train,)).places == []


def test_rows_spread_over_many_files_are_found_like_those_of_one(tmp_path: Path) -> None:
    for number in range(40):
        part = HELD_OUT["x"][5 * number : 5 * number + 5]
        (tmp_path / f"part-{number}.csv").write_bytes(as_csv(part))
    found = looked(tmp_path)
    assert refused(found) == ["held_out_elsewhere"], found


def git(root: Path, *words: str) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@localhost")
    subprocess.run(git_line(*identity, *words), cwd=root, check=True, capture_output=True)


def test_rows_in_gits_history_and_in_objects_of_no_commit(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "all.csv").write_bytes(as_csv(np.concatenate([TRAIN["x"], HELD_OUT["x"]])))
    git(tmp_path, "add", "all.csv")
    git(tmp_path, "commit", "-q", "-m", "data")
    git(tmp_path, "rm", "-q", "all.csv")
    git(tmp_path, "commit", "-q", "-m", "split")
    (tmp_path / "loose.csv").write_bytes(as_csv(-HELD_OUT["x"]))
    git(tmp_path, "hash-object", "-w", "loose.csv")
    (tmp_path / "loose.csv").unlink()
    (error,) = looked(tmp_path).refusals()
    assert error.code == "held_out_elsewhere"
    assert "all.csv of commit" in error.message
    assert "of no commit" in error.message
    assert "git filter-repo" in error.hint


def test_bounds_hold_and_what_was_not_looked_at_is_named(tmp_path: Path) -> None:
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(bytes(30 << 20)))
    (tmp_path / "bomb.xz").write_bytes(lzma.compress(bytes(30 << 20)))
    (tmp_path / "model.pkl").write_bytes(b"\x80\x04\0\0\0\0")
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "long.csv").write_bytes(as_csv(np.ones((60_000, 6))))
    found = looked(tmp_path, limits=Limits(file_bytes=1 << 20))
    (note,) = found.notes()
    assert note.code == "rows_not_looked_for"
    for name in ("bomb.gz", "bomb.xz", "model.pkl", "node_modules", "long.csv"):
        assert name in note.message, note
    assert found.refusals() == []


def test_the_time_is_bounded_and_told(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"{number:02d}.csv").write_bytes(as_csv(HELD_OUT["x"]) + bytes([48 + number]))
    clock = iter(range(1000))
    found = looked(tmp_path, limits=Limits(seconds=8), now=lambda: float(next(clock)))
    (note,) = [one for one in found.notes() if one.code == "rows_not_looked_for"]
    assert 0 < found.files < 20
    assert note.data["missed"]["the time was over"] == 20 - found.files
