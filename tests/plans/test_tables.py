import datetime
import io
import os
import pickle
import sys
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from harness.errors import NotFoundError, UsageError
from harness.plans.tables import read_table, write_table

COLUMNS = {
    "row": np.array([3, 1, 2]),
    "value": np.array([0.1, -2.5, 1e-300]),
    "name": np.array(["a", 'b, "c"', "é\u2028"]),
}


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".jsonl", ".parquet"])
def test_what_is_written_is_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"table{suffix}"
    write_table(path, COLUMNS)
    first = path.read_bytes()
    table = read_table(path)
    assert table.n == 3
    assert list(table.columns) == sorted(COLUMNS) if suffix == ".jsonl" else list(COLUMNS)
    for name, column in COLUMNS.items():
        assert table.columns[name].tolist() == column.tolist()
    write_table(path, COLUMNS)
    assert path.read_bytes() == first


@pytest.mark.parametrize("suffix", [".npz", ".jsonl", ".parquet"])
def test_further_axes_survive(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"table{suffix}"
    write_table(path, {"x": np.arange(12.0).reshape(3, 2, 2)})
    assert read_table(path).columns["x"].shape == (3, 2, 2)


def test_parquet_types_become_numbers_and_text(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    day = datetime.datetime(2024, 5, 1, 12)
    kinds = pa.array(["b", "a", "b"]).dictionary_encode()
    columns = {"kind": kinds, "at": [day] * 3, "ok": [True, False, True]}
    parquet.write_table(pa.table(columns), path, row_group_size=2)
    table = read_table(path)
    assert table.columns["kind"].tolist() == ["b", "a", "b"]
    assert table.columns["at"][0].startswith("2024-05-01T12:00")
    assert table.columns["ok"].tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"a": [1, None]}, "'a' has 1 cells without a value"),
        ({"a": [[1], [1, 2]]}, "lists of different lengths"),
        ({"a": [{"b": 1}]}, "holds dict"),
        ({"a": pa.array([], pa.int64())}, "has no rows"),
    ],
)
def test_parquet_that_is_no_table_is_refused(
    tmp_path: Path, columns: dict[str, object], told: str
) -> None:
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table(columns), path)
    with pytest.raises(UsageError, match=told):
        read_table(path)


def test_parquet_unpacks_to_no_more_than_is_allowed(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"a": np.zeros(1_000_000)}), path)
    assert path.stat().st_size < 100_000
    with pytest.raises(UsageError, match="unpacks to more than 1,000,000 bytes"):
        read_table(path, max_bytes=1_000_000)


def test_parquet_without_pyarrow_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.parquet"
    write_table(path, COLUMNS)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(UsageError, match="pyarrow is not installed") as error:
        read_table(path)
    assert error.value.code == "pyarrow_missing"


def test_npz_columns_may_have_any_name(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    write_table(path, {"file": np.arange(2), "allow_pickle": np.arange(2)})
    assert sorted(read_table(path).columns) == ["allow_pickle", "file"]


@pytest.mark.parametrize(
    "data",
    [b"\xef\xbb\xbfid,y\n1,a\n2,b\n", b"id,y\r\n1,a\r\n2,b", "id,y\n1,a\n2,b\n".encode("utf-16")],
    ids=["bom", "crlf", "utf16"],
)
def test_csv_encodings(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(data)
    assert read_table(path).columns["id"].tolist() == [1, 2]
    assert read_table(path).columns["y"].tolist() == ["a", "b"]


def test_csv_types_are_decided_by_the_whole_column(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b,c,d\n1,1,007,99999999999999999999\n-2,nan,1,1\n")
    kinds = {name: column.dtype.kind for name, column in read_table(path).columns.items()}
    assert kinds == {"a": "i", "b": "f", "c": "f", "d": "f"}
    path.write_text("a\n1\nx1\n")
    assert read_table(path).columns["a"].tolist() == ["1", "x1"]


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (Path.touch, (Path("evil-was-here"),))  # type: ignore[return-value]


def test_pickles_are_never_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez(tmp_path / "t.npz", x=np.array([Evil()], dtype=object))
    (tmp_path / "raw.npz").write_bytes(pickle.dumps(Evil()))
    for name in ("t.npz", "raw.npz"):
        with pytest.raises(UsageError):
            read_table(tmp_path / name)
    assert not (tmp_path / "evil-was-here").exists()
    with pytest.raises(UsageError, match="never unpickled"):
        read_table(tmp_path / "t.npz")


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    np.savez_compressed(path, x=np.zeros(1_000_000))
    assert path.stat().st_size < 100_000
    with pytest.raises(UsageError, match="unpacks to 8,000,"):
        read_table(path, max_bytes=1_000_000)


def test_an_archive_with_other_things_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    shape = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000,), }\n"
    huge = b"\x93NUMPY\x01\x00" + len(shape).to_bytes(2, "little") + shape
    structured = io.BytesIO()
    np.save(structured, np.zeros(2, dtype=[("a", "i4")]))
    for content in (b"not an array", b"", huge, structured.getvalue()):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("x.npy", content)
        with pytest.raises(UsageError):
            read_table(path)


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("t.csv", "", "is empty"),
        ("t.csv", "a,a\n1,2\n", "that are not empty and differ"),
        ("t.csv", "a,b\n1\n", "row 1 has 1 cells; expected 2"),
        ("t.csv", 'a\n"1\n', "line"),
        ("t.csv", "a\n1\x00\n", "NUL"),
        ("t.jsonl", "", "has no rows"),
        ("t.jsonl", '{"a": 1}\n{"b": 1}\n', "line 2 has the keys"),
        ("t.jsonl", '{"a": 1}\n[1]\n', "line 2 is not an object"),
        ("t.jsonl", '{"a": NaN}\n', "line 1 is not JSON"),
        ("t.jsonl", '{"a": 1}\n{"a": "x"}\n', "mixes or holds int, str"),
        ("t.jsonl", '{"a": null}\n', "NoneType"),
        ("t.jsonl", '{"a": [1, 2]}\n{"a": [1]}\n', "lists of different lengths"),
        ("t.txt", "a\n", "expected one of .npz, .csv, .jsonl"),
        ("t.npz", "PK", "is not an npz file"),
    ],
)
def test_what_is_no_table_says_why(tmp_path: Path, name: str, text: str, told: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(UsageError) as error:
        read_table(tmp_path / name)
    assert told in error.value.message


def test_columns_of_different_lengths_and_single_values_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.arange(2), y=np.arange(3))
    np.savez(tmp_path / "b.npz", x=np.array(1.0))
    np.savez(tmp_path / "c.npz")
    for name, told in (("a", "x 2, y 3"), ("b", "single value"), ("c", "no columns")):
        with pytest.raises(UsageError, match=told):
            read_table(tmp_path / f"{name}.npz")


def test_a_missing_file_a_folder_and_a_pipe_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(NotFoundError):
        read_table(tmp_path / "none.csv")
    for name in ("pipe.csv", "folder.csv"):
        with pytest.raises(UsageError, match="not a regular file"):
            read_table(tmp_path / name)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None
)
@given(
    st.sampled_from([".npz", ".csv", ".jsonl", ".parquet"]), st.binary(max_size=300), st.booleans()
)
def test_any_bytes_are_a_table_or_a_usage_error(
    tmp_path: Path, suffix: str, data: bytes, cut: bool
) -> None:
    path = tmp_path / f"t{suffix}"
    if cut and suffix == ".npz":
        whole = io.BytesIO()
        np.savez(whole, x=np.arange(3))
        data = whole.getvalue()[: len(data) * 2] + data
    path.write_bytes(data)
    try:
        rows = read_table(path).n
    except UsageError:
        rows = 0
    assert rows >= 0
