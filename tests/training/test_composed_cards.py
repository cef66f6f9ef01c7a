"""bench/composed_cards.py on CPUs: each way trains, and the one that was killed goes on."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("trl")

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_one_card_ddp_fsdp2_and_a_resumed_training_are_measured(tmp_path: Path) -> None:
    words = ["--gpus", "2", "--tiny", "--models", "small", "--steps", "5", "--out", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, str(ROOT / "bench/composed_cards.py"), *words],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "OMP_NUM_THREADS": "1",
            "CUDA_VISIBLE_DEVICES": "",
        },
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    figures = json.loads(done.stdout.splitlines()[-1])
    assert figures["small ddp: efficiency"] > 0
    # The pairs of a step are the same; its rollouts are others.
    assert figures["small fsdp2: dpo loss apart"] == pytest.approx(0, abs=1e-3)
    assert figures["small resumed: from step"] == 2
    for channel in ("reward", "distillation", "dpo"):
        assert figures[f"small resumed: {channel} loss apart"] == pytest.approx(0, abs=1e-6)
    curves = (tmp_path / "composed-cards.csv").read_text().splitlines()
    assert len(curves) == 1 + 3 * 5
