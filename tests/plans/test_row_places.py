"""Rows of held-out that stand elsewhere than in a file of the project are found: every place that
agents can read, and every encoding that is read."""

import base64
import io
import json
import marshal
import os
import pickle
import subprocess
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.artifacts.git import git_line
from harness.plans.row_search import Found, Secret, search


def drawn(seed: int, rows: int) -> dict[str, Any]:
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(rows, 6))
    return {"id": np.arange(rows) + 1000 * seed, "x": x, "y": draw.integers(0, 2, rows)}


TRAIN, HELD_OUT = drawn(1, 400), drawn(3, 200)
X, Y, IDS = HELD_OUT["x"], HELD_OUT["y"], HELD_OUT["id"]
BITS = "".join(map(str, Y))
TABLE = "\n".join(",".join(map(repr, row)) for row in X.tolist()).encode()
ROWS = ["_".join(f"{value:.4f}" for value in row) + f"__{y}" for row, y in zip(X, Y, strict=True)]
ORDER = np.random.default_rng(4).permutation(200)


def looked(root: Path, *readable: Path) -> Found:
    secret = Secret(
        name="held-out", columns=HELD_OUT, inputs=["x"], label="y", id="id", known=[TRAIN]
    )
    return search(root, [secret], readable=readable)


def told(found: Found) -> str:
    """The refusal's message."""
    (error,) = found.refusals()
    assert error.code == "held_out_elsewhere"
    return error.message


def git(root: Path, *words: str, text: str | None = None) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@localhost")
    line = git_line(*identity, *words)
    subprocess.run(line, cwd=root, check=True, capture_output=True, input=text, text=True)


def repository(root: Path) -> None:
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "-q", "-b", "main")
    git(root, "commit", "-q", "--allow-empty", "-m", "start")


# files that no walk may pass over


@pytest.mark.parametrize(
    "place",
    [
        "__pycache__/old.csv",
        ".ipynb_checkpoints/old.csv",
        "vendor/.git/old.csv",
        ".git/info/old.csv",
        ".git/objects/old.csv",
        "old.git/description",
    ],
)
def test_a_folder_that_looks_like_a_tools_own_is_looked_through(
    tmp_path: Path, place: str
) -> None:
    repository(tmp_path)
    path = tmp_path / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(TABLE)
    assert f"{place}: 200 of 200" in told(looked(tmp_path))


def test_a_readable_folder_outside_of_the_project_is_looked_through(tmp_path: Path) -> None:
    root, store = tmp_path / "project", tmp_path / "store"
    root.mkdir()
    (store / "deep").mkdir(parents=True)
    (store / "deep/all.csv").write_bytes(TABLE)
    assert looked(root).refusals() == []
    found = looked(root, store)
    assert f"{store}/deep/all.csv: 200 of 200" in told(found)
    assert "`readable`" in found.refusals()[0].hint
    assert "all.csv: 200 of 200" in told(looked(root, store / "deep/all.csv"))


def test_compiled_python_is_no_news_and_its_texts_are_looked_at(tmp_path: Path) -> None:
    folder = tmp_path / "__pycache__"
    folder.mkdir()
    head = b"\xa7\x0d\r\n" + bytes(12)
    (folder / "part.pyc").write_bytes(head + marshal.dumps({"name": "a", "numbers": [1, 2]}))
    found = looked(tmp_path)
    assert found.refusals() == found.notes() == []
    (folder / "part.pyc").write_bytes(head + marshal.dumps(TABLE.decode()))
    assert "part.pyc: 200 of 200" in told(looked(tmp_path))


# names


def test_rows_in_names_of_files(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    for name in ROWS:
        (tmp_path / "cache" / name).touch()
    assert "names of files" in told(looked(tmp_path))


def test_rows_in_names_of_empty_folders(tmp_path: Path) -> None:
    for place in ORDER:
        (tmp_path / "cache" / ROWS[place].replace("__", "/")).mkdir(parents=True)
    assert "names of files" in told(looked(tmp_path))


def test_labels_in_names_beside_the_ids(tmp_path: Path) -> None:
    for name, y in zip(IDS, Y, strict=True):
        folder = tmp_path / "sorted" / ("cat", "dog")[y]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.png").touch()
    assert "the label beside the ids" in told(looked(tmp_path))


def test_labels_in_times_and_sizes_of_files(tmp_path: Path) -> None:
    for number, y in enumerate(Y):
        path = tmp_path / f"{number}.log"
        path.write_text("a")
        os.utime(path, (1e9 + y, 1e9 + y))
    assert "the label in order" in told(looked(tmp_path))
    for number, y in enumerate(Y):
        path = tmp_path / f"{number}.log"
        path.write_text("a" * (1 + int(y)))
        os.utime(path, (1e9, 1e9))
    assert "the label in order" in told(looked(tmp_path))


def test_rows_in_what_links_point_to(tmp_path: Path) -> None:
    for number, name in enumerate(ROWS):
        (tmp_path / f"link-{number}").symlink_to(f"/nowhere/{name}")
    assert "what links point to" in told(looked(tmp_path))


def test_rows_in_names_of_members_and_keys(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for name in ROWS:
            archive.writestr(name, "")
    assert "names of its members" in told(looked(tmp_path))
    (tmp_path / "all.zip").unlink()
    np.savez(
        tmp_path / "aux.npz", **{f"k{n}_{y}": np.zeros(1) for n, y in zip(IDS, Y, strict=True)}
    )
    assert "names of its members" in told(looked(tmp_path))
    (tmp_path / "aux.npz").unlink()
    keys = {str(IDS[n]): ("cat", "dog")[Y[n]] for n in ORDER}
    (tmp_path / "keys.json").write_text(json.dumps(keys))
    assert "the label beside the ids" in told(looked(tmp_path))


# git


def test_rows_in_messages_of_commits_and_tags(tmp_path: Path) -> None:
    repository(tmp_path)
    git(tmp_path, "commit", "-q", "--allow-empty", "-F", "-", text="notes\n\n" + TABLE.decode())
    found = looked(tmp_path)
    assert "git: message of " in told(found)
    assert "messages" in found.refusals()[0].hint
    other = tmp_path / "other"
    repository(other)
    git(other, "tag", "-a", "old", "-F", "-", text=TABLE.decode())
    git(other, "tag", "-d", "old")
    assert "git: message" in told(looked(other))


def test_a_label_a_message(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    stream = [
        f"commit refs/heads/main\ncommitter t <t@localhost> {1_000_000_000 + n} +0000\n"
        f"data {len(text)}\n{text}\n"
        for n, text in enumerate(("fixed it", "cleaned")[y] for y in Y)
    ]
    git(tmp_path, "fast-import", "--quiet", text="".join(stream))
    assert "git: messages of all commits" in told(looked(tmp_path))


def test_labels_and_rows_in_names_of_references_and_of_files_in_the_history(
    tmp_path: Path,
) -> None:
    repository(tmp_path)
    for start in range(0, 200, 100):
        git(tmp_path, "branch", f"b{start:03}-{BITS[start : start + 100]}")
    assert "branches and tags" in told(looked(tmp_path))
    other = tmp_path / "other"
    repository(other)
    empty = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
    git(other, "hash-object", "-w", "--stdin", text="")
    git(other, "mktree", text="".join(f"100644 blob {empty}\t{name}\n" for name in sorted(ROWS)))
    assert "git: names of files" in told(looked(other))


def test_a_repository_in_the_project_is_looked_through_like_the_projects_own(
    tmp_path: Path,
) -> None:
    inner = tmp_path / "vendor/lib"
    repository(tmp_path)
    repository(inner)
    git(inner, "hash-object", "-w", "--stdin", text=TABLE.decode())
    assert "of vendor/lib/.git: 200 of 200" in told(looked(tmp_path))
    (inner / ".git").rename(tmp_path / "vendor/store")
    assert "of vendor/store: 200 of 200" in told(looked(tmp_path))


def test_a_folder_that_git_refuses_is_named(tmp_path: Path) -> None:
    for name in ("objects", "refs"):
        (tmp_path / "vendor/.git" / name).mkdir(parents=True)
    (tmp_path / "vendor/.git/HEAD").write_text("nothing")
    found = looked(tmp_path)
    assert found.refusals() == []
    (note,) = found.notes()
    assert "the objects of git of vendor/.git" in note.message


# encodings


def npz() -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **HELD_OUT)
    return stream.getvalue()


def in_python(data: bytes) -> bytes:
    """Parts of a text over many lines, as a formatter leaves them."""
    text = base64.b64encode(data).decode()
    parts = [f'    "{text[start : start + 88]}"' for start in range(0, len(text), 88)]
    return "\n".join(["DATA = (", *parts, ")", ""]).encode()


ENCODINGS: dict[str, Callable[[bytes], bytes]] = {
    "base64": base64.b64encode,
    "base64 in lines": base64.encodebytes,
    "base64 for addresses": base64.urlsafe_b64encode,
    "base64 in python": in_python,
    "base64 in json": lambda data: json.dumps(
        {"blob": base64.encodebytes(data).decode()}
    ).encode(),
    "hex": lambda data: data.hex().encode(),
    "hex in lines": lambda data: b"\n".join(
        data[start : start + 32].hex().encode() for start in range(0, len(data), 32)
    ),
    "twice": lambda data: base64.b64encode(base64.b64encode(data)),
    "zlib in base64": lambda data: base64.b64encode(zlib.compress(data)),
    "zlib": zlib.compress,
}
TABLES: dict[str, Callable[[], bytes]] = {
    "csv": lambda: TABLE,
    "npz": npz,
    "array": X.tobytes,
    "float32": X.astype(np.float32).tobytes,
}


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("table", TABLES)
def test_what_is_encoded_is_decoded(tmp_path: Path, encoding: str, table: str) -> None:
    (tmp_path / "notes").write_bytes(b"# notes\n" * (encoding != "zlib") + b"")
    data = ENCODINGS[encoding](TABLES[table]())
    (tmp_path / "blob").write_bytes(data)
    assert "blob" in told(looked(tmp_path))


def test_each_row_encoded_by_itself(tmp_path: Path) -> None:
    rows = [line + b"," + str(y).encode() for line, y in zip(TABLE.split(b"\n"), Y, strict=True)]
    lines = [base64.b64encode(row) for row in rows]
    (tmp_path / "keys.txt").write_bytes(b"\n".join(lines))
    assert "keys.txt" in told(looked(tmp_path))
    raw = [base64.b64encode(row.tobytes()).decode() for row in X[ORDER]]
    cells = "\n".join(f"{number},{row}" for number, row in enumerate(raw))
    (tmp_path / "keys.txt").write_text(f"number,features\n{cells}")
    assert "keys.txt" in told(looked(tmp_path))


def test_bits_of_labels(tmp_path: Path) -> None:
    packed = np.packbits(Y).tobytes()
    (tmp_path / "bits.bin").write_bytes(packed)
    assert "the label in order" in told(looked(tmp_path))
    (tmp_path / "bits.bin").unlink()
    (tmp_path / "consts.py").write_text(f"Y = int('{hex(int(BITS, 2))}', 16)\n")
    assert "the label in order" in told(looked(tmp_path))


def test_arrays_as_they_stand_in_memory(tmp_path: Path) -> None:
    (tmp_path / "old.pkl").write_bytes(pickle.dumps(HELD_OUT))
    found = looked(tmp_path)
    assert "old.pkl" in told(found)
    (note,) = found.notes()
    assert note.code == "rows_not_looked_for"  # a pickle is not read as one


def test_what_is_decoded_is_bounded_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.plans.row_encoded._MOST", 2_000)
    lines = [base64.b64encode(bytes(600)) for _ in range(20)]
    (tmp_path / "long.txt").write_bytes(b",".join([*lines, base64.b64encode(TABLE)]))
    found = looked(tmp_path)
    assert found.refusals() == []
    (note,) = found.notes()
    assert "long.txt (decoded)" in note.message


# honest projects


def test_names_messages_and_code_of_an_honest_project_are_quiet(tmp_path: Path) -> None:
    """Images by class, runs by number, a history, hashes, tokens and pictures in text."""
    draw = np.random.default_rng(7)
    repository(tmp_path)
    for row, y in zip(TRAIN["id"], TRAIN["y"], strict=True):
        folder = tmp_path / "images" / ("cat", "dog")[y]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{row}.txt").write_text(f"{row}\n")
    for number in range(60):
        run = tmp_path / f"runs/run-{number:02}"
        run.mkdir(parents=True)
        values = {f"metric_{n}": draw.random() for n in range(12)}
        (run / f"epoch-{number % 7}_loss-{draw.random():.4f}.json").write_text(json.dumps(values))
        message = f"run {number}: loss {draw.random():.4f}, seed {draw.integers(9)}"
        git(tmp_path, "commit", "-q", "--allow-empty", "-m", message)
        git(tmp_path, "tag", f"v0.{number}.{draw.integers(4)}")
    hashes = "\n".join(draw.bytes(32).hex() + f"  file-{n}" for n in range(300))
    (tmp_path / "SHA256SUMS").write_text(hashes)
    picture = base64.encodebytes(draw.bytes(20_000)).decode()
    (tmp_path / "notebook.ipynb").write_text(json.dumps({"cells": [{"png": picture}]}))
    (tmp_path / "model.bin").write_bytes(draw.normal(size=5_000).astype(np.float32).tobytes())
    (tmp_path / "labels.json").write_text(
        json.dumps({str(row): int(y) for row, y in zip(TRAIN["id"], TRAIN["y"], strict=True)})
    )
    (tmp_path / "link").symlink_to("images/cat")
    found = looked(tmp_path)
    assert found.places == []
    assert list(found.missed.names.values()) == [["model.bin"]]
