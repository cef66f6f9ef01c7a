"""The measurement on other people's logs: its table, and what it calls right, named and false."""

import dataclasses
import hashlib
from pathlib import Path

import pytest

from bench.detectors import others
from bench.detectors.others import Label, Reading

LABEL = Label(
    id="a",
    half="mend",
    repository="someone/something",
    commit="0" * 40,
    path="runs/train.log",
    licence="MIT",
    sha256=hashlib.sha256(b"step 1 loss 2.5\nstep 2 loss 1.5\n").hexdigest(),
    kind="training",
    positions="step:2",
    rows="2",
    values="1.5",
    states="stopped",
    health="healthy",
)


def kept(folder: Path, text: str) -> Path:
    (folder / "a").mkdir()
    (folder / "a" / "train.log").write_text(text, "utf-8")
    return folder


def test_each_log_is_named_once_and_in_one_half() -> None:
    labels = others.labels()
    assert len(labels) == len({label.id for label in labels}) >= 60
    assert {label.half for label in labels} == {"mend", "unseen"}
    assert {label.kind for label in labels} == {"training", "ledger", "unreadable"}
    for label in labels:
        assert len(label.commit) == 40
        assert len(label.sha256) == 64
        assert label.url.startswith("https://raw.githubusercontent.com/")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({}, ""),
        ({"positions": "iteration:2,epoch:1"}, "step 2, not iteration:2,epoch:1"),
        ({"rows": "3"}, "2 rows of 3"),
        ({"values": "1.5;9,8"}, "no 9,8"),
        ({"states": "completed,lost"}, "stopped, not completed,lost"),
        ({"kind": "ledger"}, "it is ledger, not stopped"),
        ({"kind": "unreadable"}, "2 rows were read"),
    ],
)
def test_what_is_not_as_labelled_is_told(
    tmp_path: Path, change: dict[str, str], told: str
) -> None:
    folder = kept(tmp_path, "step 1 loss 2.5\nstep 2 loss 1.5\n")
    label = dataclasses.replace(LABEL, **change)
    assert others.lacks(label, folder) == ""
    assert others.read(label, folder).wrong == told


def test_a_log_of_other_bytes_is_not_measured(tmp_path: Path) -> None:
    assert "--get" in others.lacks(LABEL, tmp_path)
    assert "SHA-256" in others.lacks(LABEL, kept(tmp_path, "step 1 loss 2.5\n"))


@pytest.mark.parametrize(
    ("health", "standing", "said"),
    [
        ("healthy", (), "quiet"),
        ("healthy", ("overfit",), "false"),
        ("overfit,divergence", ("overfit",), "named"),
        ("overfit", ("stall",), "missed"),
        ("-", ("stall",), ""),
    ],
)
def test_a_fault_is_named_by_its_code_and_a_healthy_log_leaves_no_alarm(
    health: str, standing: tuple[str, ...], said: str
) -> None:
    label = dataclasses.replace(LABEL, health=health)
    got = Reading(wrong="", standing=standing)
    assert others.verdict(label, got) == said
    figures = others.figures({"a": (label, got)})
    assert figures["mend_read_right"] == "1 of 1"
    assert figures["mend_false"] == f"{int(said == 'false')} of {int(health == 'healthy')}"
    assert ("faults named by one" in others.page(figures)) is (health not in ("healthy", "-"))
