"""What each process of a training takes."""

import os
from typing import Any

import pytest

pytest.importorskip("torch")

from harness.errors import UsageError
from harness.training import processes


def of(rows: int, micro: int) -> dict[str, Any]:
    return {"batch_size": rows, "gradient_accumulation": micro}


def test_the_rows_of_a_step_are_shared_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert processes.shares(of(4, 3)) == (4, 3)
    monkeypatch.setattr(processes, "count", lambda: 2)
    assert processes.shares(of(3, 4)) == (3, 2)
    assert processes.shares(of(4, 3)) == (2, 3)
    with pytest.raises(UsageError) as refused:
        processes.shares(of(3, 1))
    assert refused.value.code == "ranks_do_not_divide"


@pytest.mark.parametrize(("shown", "taken"), [(None, "0"), ("2,3", "2"), ("", "")])
def test_one_process_takes_one_card(
    monkeypatch: pytest.MonkeyPatch, shown: str | None, taken: str
) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    if shown is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", shown)
    processes.start(cpu=False)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == taken
