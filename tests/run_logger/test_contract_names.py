"""The run logger stands alone and names its files itself; the contract names the same ones."""

from pathlib import Path

from harness.contract.artifacts import BY_NAME
from harness.run_logger import RunLogger


def test_the_logger_writes_the_contracts_artifacts(tmp_path: Path) -> None:
    with RunLogger(
        run_dir=tmp_path, experiment="exp-0001", run="run-01", token="t", seed=0
    ) as log:
        log.start()
        (log.checkpoint_dir / "w").write_bytes(b"w")
        log.checkpoint_saved(log.checkpoint_dir / "w", final=True)
    assert {path.name for path in tmp_path.iterdir()} == {
        BY_NAME[n].path for n in ("metrics", "status", "checkpoints")
    }
