"""Files that predict could leave: read as they are, refused with the reason, never executed or
believed."""

import contextlib
import io
import json
import os
import zipfile

import numpy as np
import pytest

from harness.evaluation.predictions import NAME, read_predictions
from harness.evaluation.problems import Unscorable

LIMIT = 1_000_000


def read(folder, data=None, rows=10, limit=LIMIT):
    if data is not None:
        (folder / NAME).write_bytes(data)
    return read_predictions(folder, rows=rows, limit=limit)


def refused(folder, data=None, rows=10, limit=LIMIT):
    with pytest.raises(Unscorable) as caught:
        read(folder, data, rows, limit)
    return caught.value.finding


def npz(**arrays):
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def archive(compression=zipfile.ZIP_DEFLATED, **members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as target:
        for name, data in members.items():
            target.writestr(f"{name}.npy", data)
    return stream.getvalue()


def npy(header, data=b"", version=1):
    text = header.encode() + b"\n"
    return (
        b"\x93NUMPY"
        + bytes([version, 0])
        + len(text).to_bytes(2 if version == 1 else 4, "little")
        + text
        + data
    )


HEADER = "{'descr': '<f8', 'fortran_order': False, 'shape': (1,)}"


@pytest.mark.parametrize(
    "data",
    [
        b"id,prediction\nr1,a\nr2,b\n",
        b"id,prediction\r\nr1,a\r\nr2,b\r\n",
        b"\xef\xbb\xbfid,prediction\r\nr1,a\r\n\r\nr2,b",
        b'"id", prediction \nr1,"a"\nr2,b\n\n',
    ],
)
def test_csv_with_bom_crlf_and_quotes(tmp_path, data):
    assert read(tmp_path, data) == {"id": ["r1", "r2"], "prediction": ["a", "b"]}


def test_npz_of_numbers_text_and_bytes(tmp_path):
    data = npz(
        id=np.array(["r1", "r2"]),
        prediction=np.array([1, 2], dtype=">i2"),
        p_b=np.array([b"x", b"y"]),
    )
    assert read(tmp_path, data) == {"id": ["r1", "r2"], "prediction": [1, 2], "p_b": ["x", "y"]}


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "u1", "i8", "?", "U7", "S3"])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_reads_what_numpy_writes(tmp_path, dtype, save):
    stream = io.BytesIO()
    values = np.array([0, 1, 1]).astype(dtype)
    save(stream, id=np.array(["a", "b", "c"]), prediction=values)
    expected = [v.decode() for v in values.tolist()] if dtype[0] == "S" else values.tolist()
    assert read(tmp_path, stream.getvalue())["prediction"] == expected


def test_the_name_that_savez_appends_to_is_found(tmp_path):
    np.savez(tmp_path / NAME, id=["r1"], prediction=[1.5])
    assert read(tmp_path) == {"id": ["r1"], "prediction": [1.5]}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"id,prediction\nr1\n", "line 2 has 1 fields, the header 2"),
        (b"id,prediction,prediction\nr1,a,b\n", "same name: 'prediction'"),
        (b'id,prediction\n"r1,a\n', "is not csv"),
        (b"id,prediction\nr1," + b"x" * 200_000 + b"\n", "is not csv"),
        (b"\xff\xfei\x00d\x00", "neither npz nor UTF-8"),
        (b"id,prediction\n" + b"r1,a\n" * 500, "over 120 rows"),
        (b"PK\x03\x04 not a zip", "is not an npz file, or a damaged one"),
        (npz(id=np.array(["r1"]), prediction=np.array([print], dtype=object)), "never unpickled"),
        (npz(id=np.array(["r1"]), prediction=np.array([[1.0, 2.0]])), "has the shape (1, 2)"),
        (npz(id=np.array(["r1"]), prediction=np.array(1.0)), "has the shape ()"),
        (npz(id=np.array(["r1"]), prediction=np.array([1, 2])), "different lengths"),
        (npz(id=np.array(["r1"]), prediction=np.array([1 + 2j])), "no array of numbers or text"),
        (
            npz(id=np.zeros(1, dtype=[("a", "i4")]), prediction=np.array([1])),
            "no array of numbers or text",
        ),
        (archive(id=b"\x80\x04\x95cos\nsystem\n"), "no array of numbers or text"),
        (
            archive(id=npy("{'descr': '<f8', 'fortran_order': False, 'shape': (10**12,)}")),
            "a damaged one (ValueError",
        ),
        (
            archive(id=npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,)}")),
            "not the size that",
        ),
        (
            archive(id=npy("{'descr': '<f8', 'fortran_order': False, 'shape': (9,)}", b"x" * 8)),
            "not the size that",
        ),
        (
            archive(id=npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", b"x" * 8)),
            "never unpickled",
        ),
        (
            archive(id=npy("{'descr': 'nonsense', 'fortran_order': False, 'shape': (1,)}")),
            "a damaged one (TypeError",
        ),
        (archive(id=npy("(" * 3000 + ")" * 3000)), "a damaged one"),
        *(
            (archive(method, id=npy(HEADER, b"x" * 8)), "expected stored or deflated members")
            for method in (zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2)
        ),
        (archive(**{f"c{n}": b"" for n in range(10_001)}), "has 10,001 members"),
        (
            archive(
                id=npy("{'descr': '<U1', 'fortran_order': False, 'shape': (1,)}", b"\xff" * 4)
            ),
            "text that is not Unicode",
        ),
        (
            archive(
                id=npy("{'descr': '>U1', 'fortran_order': False, 'shape': (1,)}", b"\0\0\xd8\0")
            ),
            "text that is not Unicode",
        ),
        (
            archive(id=npy("{'descr': '<f8', 'shape': (1,)}", b"x" * 8, version=9)),
            "no array of numbers or text",
        ),
    ],
)
def test_unreadable_files_say_why(tmp_path, data, words):
    finding = refused(tmp_path, data)
    assert finding.code == "predictions_unreadable"
    assert words in finding.message


def test_an_npz_cut_anywhere_is_a_finding(tmp_path):
    whole = npz(id=np.array(["r1", "r2"]), prediction=np.array([0.5, 1.5]))
    for cut in range(1, len(whole), 7):
        assert refused(tmp_path, whole[:cut]).code in {
            "predictions_unreadable",
            "predictions_wrong_columns",
        }


@pytest.mark.parametrize("mask", [0xFF, 0x01, 0x80])
def test_an_npz_with_any_byte_changed_is_read_or_refused(tmp_path, mask):
    whole = npz(id=np.array(["r1", "r2"]), prediction=np.array([0.5, 1.5]))
    refusals = 0
    for position in range(0, len(whole), 2):
        data = bytearray(whole)
        data[position] ^= mask
        (tmp_path / NAME).write_bytes(data)
        with contextlib.suppress(Unscorable):
            columns = read(tmp_path)
            assert len(columns["id"]) == 2
            json.dumps(columns).encode()
            continue
        refusals += 1
    assert refusals > 100


def test_a_long_list_of_members_is_not_read(tmp_path):
    many = archive(zipfile.ZIP_STORED, **{"n" * 60_000 + str(n): b"" for n in range(80)})
    assert "lists more than 10,000 members" in refused(tmp_path, many, limit=20 * LIMIT).message


def test_size_is_limited_for_the_file_and_for_what_it_unpacks_to(tmp_path):
    with (tmp_path / NAME).open("wb") as stream:
        stream.truncate(LIMIT + 1)
    assert refused(tmp_path).code == "predictions_too_large"
    bomb = archive(id=b"\0" * (50 * LIMIT))
    assert len(bomb) < LIMIT
    assert refused(tmp_path, bomb).code == "predictions_too_large"


def test_a_bomb_that_lies_about_its_size_is_not_unpacked(tmp_path):
    bomb = archive(id=b"\0" * (20 * LIMIT))
    lying = bomb.replace((20 * LIMIT).to_bytes(4, "little"), (8).to_bytes(4, "little"))
    assert lying != bomb
    assert refused(tmp_path, lying).code in {"predictions_too_large", "predictions_unreadable"}


def test_no_id_column_and_no_file(tmp_path):
    assert refused(tmp_path).code == "predictions_absent"
    assert refused(tmp_path, b" \n").code == "predictions_absent"
    assert refused(tmp_path, b"row,prediction\n1,a\n").code == "predictions_wrong_columns"
    assert read(tmp_path, b"id,prediction\n") == {"id": [], "prediction": []}


def test_hard_links_are_refused(tmp_path):
    secret = tmp_path / "labels.csv"
    secret.write_text("id,prediction\n")
    os.link(secret, tmp_path / NAME)
    assert refused(tmp_path).code == "predictions_unreadable"
