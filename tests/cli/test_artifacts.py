"""`harness artifacts push` and `pull`, as two machines use them."""

import shutil
from pathlib import Path

import pytest

from tests.fixtures import world
from tests.warm import run_warm
from tests.world import World

__all__ = ["world"]

pytest.importorskip("fsspec")


def test_a_checkpoint_goes_to_the_store_and_comes_back(world: World, tmp_path: Path) -> None:
    experiment = world.open().id
    world.train(experiment)
    points = [point for point in world.project.ledger.checkpoints(experiment) if point.final]
    config = world.root / ".harness" / "config.toml"

    def harness(*words: str) -> "tuple[int, str]":
        done = run_warm(words, cwd=world.root, env=dict(world.environment))
        return done.returncode, done.stdout + done.stderr

    code, text = harness("artifacts", "push")
    assert (code, "No store is set" in text) == (2, True)
    config.write_text(config.read_text() + f'artifacts = "file://{tmp_path}/store"\n')
    code, text = harness("artifacts", "push", experiment)
    assert code == 0, text
    assert len(list((tmp_path / "store").rglob("files/*/*"))) == len({one.id for one in points})
    code, text = harness("artifacts", "push")
    assert code == 0, text
    assert "1 were there" in text
    gone = world.root / points[0].path
    before = gone.read_bytes() if gone.is_file() else None
    shutil.rmtree(gone) if gone.is_dir() else gone.unlink()
    assert harness("artifacts", "push", experiment)[0] == 1
    code, text = harness("artifacts", "pull", experiment)
    assert code == 0, text
    assert "pulled" in text
    if before is not None:
        assert gone.read_bytes() == before
    gone.write_bytes(b"other")
    code, text = harness("artifacts", "pull", experiment)
    assert code == 1
    assert "is here with other bytes" in text
    assert gone.read_bytes() == b"other"


def test_keys_in_the_url_are_refused(world: World) -> None:
    config = world.root / ".harness" / "config.toml"
    config.write_text(config.read_text() + 'artifacts = "s3://AKIA:hush@bucket/x"\n')
    done = run_warm(("status",), cwd=world.root, env=dict(world.environment))
    assert done.returncode == 2
    assert "without keys" in done.stderr
    assert "hush" not in done.stderr
