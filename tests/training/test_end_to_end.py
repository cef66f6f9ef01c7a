"""bench/posttrain.py as it is, on a tiny random model: trained, evaluated and promoted as far as it
deserves."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("trl")

from tests.training.tiny_model import save_tiny_model

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_each_step_is_as_expected_whatever_was_learned(tmp_path: Path) -> None:
    sizes = ["--train", "24", "--held-out", "24", "--steps", "4"]
    words = ["bench/posttrain.py", "--weights", str(save_tiny_model(tmp_path / "weights")), *sizes]
    done = subprocess.run(
        [sys.executable, *words], cwd=ROOT, capture_output=True, text=True, timeout=1500
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "NOT EXPECTED" not in done.stdout
    assert "of 3 seeds" in done.stdout
