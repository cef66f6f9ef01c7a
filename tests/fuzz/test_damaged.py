"""Damaged and hostile files, the same each time; 10,000 a form where slow, and in `make fuzz`."""

import zipfile
from io import BytesIO
from pathlib import Path

import pytest

from tests.fuzz.damaged import FORMS, MANY, inputs, read_all

FEW = 300


@pytest.mark.parametrize("form", FORMS)
def test_a_few(form: str, tmp_path: Path) -> None:
    read_all(form, FEW, tmp_path)


@pytest.mark.slow
@pytest.mark.parallel
@pytest.mark.parametrize("form", FORMS)
def test_very_many(form: str, tmp_path: Path) -> None:
    read_all(form, MANY, tmp_path)


def test_the_inputs_are_repeatable_and_of_both_kinds() -> None:
    """Some are whole, most are not; every way to pack is among the archives."""
    assert list(inputs("npz", 50)) == list(inputs("npz", 50))
    methods = set()
    for data in inputs("npz", FEW):
        try:
            with zipfile.ZipFile(BytesIO(data)) as archive:
                methods |= {member.compress_type for member in archive.infolist()}
        except (zipfile.BadZipFile, NotImplementedError, ValueError, OverflowError, OSError):
            continue
    assert {0, 8, 12, 14} <= methods
    assert len(set(inputs("csv", FEW))) > FEW // 2


def test_what_breaks_a_reader_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(folder: Path, data: bytes) -> None:
        raise EOFError

    monkeypatch.setitem(FORMS, "csv", (lambda chance: b"a,b\n", broken))
    with pytest.raises(AssertionError, match="csv, input 0: b'"):
        read_all("csv", 1, tmp_path)
