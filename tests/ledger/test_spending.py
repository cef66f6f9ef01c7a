"""What requests to the model service cost: a line before, a line after, read back whatever was
cut."""

from pathlib import Path

import pytest

from harness.ledger.spending import SpendingLog, read_spending


def test_the_settlement_replaces_the_worst_case(tmp_path: Path) -> None:
    log = SpendingLog(tmp_path / "spending.jsonl", "p")
    first, second = (log.reserve(session="s", role="r", usd=2.0) for _ in range(2))
    log.settle(first, usd=0.5, usage={"output_tokens": 3})
    assert log.spent().usd == pytest.approx(2.5)
    log.settle(second, usd=0.0, usage={})
    assert log.spent().usd == pytest.approx(0.5)
    assert SpendingLog(tmp_path / "spending.jsonl", "q").spent().usd == 0


def test_no_file_is_nothing_spent(tmp_path: Path) -> None:
    assert read_spending(tmp_path / "absent") == {}


@pytest.mark.parametrize("kept", range(1, 60, 7))
def test_a_torn_line_never_makes_it_cheaper_nor_spoils_the_next(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "spending.jsonl"
    log = SpendingLog(path, "p")
    request = log.reserve(session="s", role="r", usd=2.0)
    whole = path.read_bytes()
    log.settle(request, usd=0.5, usage={})
    settled = path.read_bytes()[len(whole) :]
    path.write_bytes(whole + settled[: min(kept, len(settled) - 2)])
    assert log.spent().usd == pytest.approx(2.0)
    log.reserve(session="s", role="r", usd=1.0)
    assert log.spent().usd == pytest.approx(3.0)
