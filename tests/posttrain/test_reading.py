"""An answer that nothing could record or compute with is a problem, never an error."""

import json
import os
import struct
from pathlib import Path

import pytest

from harness.files import canonical_json
from harness.posttrain.adapter import tensors_fault
from harness.posttrain.field_problems import field_problem
from harness.posttrain.untrusted_json import is_finite, read_object


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b'{"a": ' + b"9" * 400 + b"}", "64 bits"),
        (b'{"a": 9223372036854775808}', "64 bits"),
        (b'{"a": ' + b"9" * 5000 + b"}", "64 bits"),
        (rb'{"a": "\ud800"}', "surrogate"),
        (rb'{"\udfff": 1}', "surrogate"),
        (b'{"a": ' + b"[" * 700 + b"]" * 700 + b"}", "deep"),
        (b'{"a": ' * 21 + b"1" + b"}" * 21, "deep"),
        (b"[" * 100_000, "recursion"),
        (b'{"a": 1} {"b": 2}', "Extra data"),
        (b"[]", "not an object"),
        (b'{"a": "' + b"x" * 1000 + b'"}', "too much"),
    ],
)
def test_what_cannot_be_recorded_is_a_problem(tmp_path: Path, data: bytes, reason: str) -> None:
    (tmp_path / "answer").write_bytes(data)
    value, found = read_object(
        tmp_path / "answer", "answer", largest=1000 if reason == "too much" else 200_000
    )
    assert value is None
    assert found is not None
    assert reason in found.reason
    canonical_json(found.plain())


def test_what_can_be_is_read_and_nothing_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "answer").write_text('{"a": [1, -9223372036854775808, {"b": "ü"}], "c": 1e400}')
    value, found = read_object(tmp_path / "answer", "answer", largest=1000)
    assert (found, value) == (None, {"a": [1, -(2**63), {"b": "ü"}], "c": float("inf")})
    (tmp_path / "answer").write_text(" \n")
    assert read_object(tmp_path / "answer", "answer", largest=1000) == (None, None)
    assert read_object(tmp_path / "absent", "answer", largest=1000) == (None, None)


def test_a_link_and_a_pipe_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("{}")
    (tmp_path / "link").symlink_to("real")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe"):
        value, found = read_object(tmp_path / name, "answer", largest=1000)
        assert value is None
        assert found is not None
        assert found.expected == "a regular file"


def test_numbers_beyond_a_double_are_none() -> None:
    assert not is_finite(10**400)
    assert not is_finite(float("nan"))
    assert not is_finite(True)
    assert is_finite(10**300)


def test_what_a_tensor_is_called_and_how_large_it_says_it_is_can_be_told(tmp_path: Path) -> None:
    def fault(name: str, size: int) -> str | None:
        head = json.dumps(
            {name: {"dtype": "F32", "shape": [size], "data_offsets": [0, 4]}}
        ).encode()
        path = tmp_path / "some.safetensors"
        path.write_bytes(struct.pack("<Q", len(head)) + head + struct.pack("<f", float("nan")))
        return tensors_fault(path)

    assert "OverflowError" in str(fault("a", 10**400))
    told = fault("\ud800", 1)
    assert told is not None
    assert "not finite" in told
    canonical_json(field_problem("artifact", "an adapter", "\ud800", told).plain())
