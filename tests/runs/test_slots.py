"""Each of several trainings at once gets its part of the machine."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.process import THREADS
from harness.runs.environment import VISIBLE, machine_slot, part


@pytest.mark.parametrize(
    ("names", "slots", "own"),
    [
        (["0", "1"], 2, ["0", "1"]),
        (["0", "1", "2", "3", "4"], 2, ["0,1", "2,3,4"]),
        (["2"], 2, ["2", "2"]),
        (["GPU-a", "GPU-b"], 3, ["GPU-a", "GPU-a", "GPU-b"]),
        ([], 2, [None, None]),
    ],
)
def test_whole_devices_are_dealt_out(names: list[str], slots: int, own: list[str | None]) -> None:
    parts = [part(place, slots, {}, names, 8) for place in range(slots)]
    assert [one.get(VISIBLE) for one in parts] == own
    assert {one[name] for one in parts for name in THREADS} == {str(8 // slots)}


def test_threads_that_a_person_set_stay_and_none_is_left_without() -> None:
    own = part(0, 4, {"OMP_NUM_THREADS": "3"}, [], 2)
    assert "OMP_NUM_THREADS" not in own
    assert own["MKL_NUM_THREADS"] == "1"


def test_a_part_is_taken_and_given_back(tmp_path: Path) -> None:
    layout = cast(Any, SimpleNamespace(state=tmp_path))
    known = {VISIBLE: "4,5"}
    with machine_slot(layout, 1, known) as alone:
        assert alone == known
    with machine_slot(layout, 2, known) as first, machine_slot(layout, 2, known) as second:
        assert (first[VISIBLE], second[VISIBLE]) == ("4", "5")
        with machine_slot(layout, 2, known) as third:
            assert third[VISIBLE] == "4"  # all are taken: it shares
    with machine_slot(layout, 2, known) as again:
        assert again[VISIBLE] == "4"
