"""Replicas share the cards of a run among them, and each has its own."""

from pathlib import Path

from harness.training.replicas.cards import cards_of


def visible(replica: int, replicas: int, *, said: str | None, devices: Path) -> str | None:
    environ = {} if said is None else {"CUDA_VISIBLE_DEVICES": said}
    return cards_of(replica, replicas, environ, devices).get("CUDA_VISIBLE_DEVICES")


def test_each_replica_has_cards_of_its_own(tmp_path: Path) -> None:
    for name in ("nvidia0", "nvidia1", "nvidia2", "nvidia10", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).touch()
    assert [visible(at, 4, said=None, devices=tmp_path) for at in range(4)] == [
        "0",
        "1",
        "2",
        "10",
    ]
    assert [visible(at, 2, said=None, devices=tmp_path) for at in range(2)] == ["0,1", "2,10"]


def test_only_cards_that_the_run_may_use_are_shared_out(tmp_path: Path) -> None:
    (tmp_path / "nvidia0").touch()
    assert [visible(at, 2, said="GPU-a, GPU-b", devices=tmp_path) for at in range(2)] == [
        "GPU-a",
        "GPU-b",
    ]
    assert visible(0, 2, said="3", devices=tmp_path) is None
    assert visible(0, 2, said="", devices=tmp_path) is None
    assert visible(0, 1, said=None, devices=tmp_path / "none") is None
