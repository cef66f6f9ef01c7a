"""`make live` with a service on loopback that plays a scenario: what it writes and refuses."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from toy_project import PLAN, builder, make_project, oracle, write_scenario

from harness.demo import data
from harness.demo.run import SCENARIO
from harness.model_gateway.scenario import read_scenario
from tests.model_gateway.upstream import Upstream

ROOT = Path(__file__).resolve().parents[2]
WITH_TRAIN = all(importlib.util.find_spec(name) for name in data.NEEDED)
needs_train = pytest.mark.skipif(not WITH_TRAIN, reason="the train extra is not installed")
SECRET = "sk-a-secret-of-a-test-0123456789"


def run(tmp_path: Path, *words: str, **extra: str) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path / "home"),
        "TMPDIR": str(tmp_path),
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": "1",
        # Never asked: the program takes its endpoint from its own variable alone.
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
        **extra,
    }
    (tmp_path / "home").mkdir(exist_ok=True)
    program = [sys.executable, str(ROOT / "bench/_live.py"), *words]
    return subprocess.run(
        program, env=environment, capture_output=True, text=True, check=False, timeout=1500
    )


def played(tmp_path: Path, upstream: Upstream, *words: str) -> tuple[Path, dict[str, Any], str]:
    """(what it wrote, its figures, what it said) of a run to its end with `upstream` as the
    service; the key is in none of it."""
    out = tmp_path / "out"
    try:
        done = run(
            tmp_path,
            *("--budget", "900", "--out", str(out), *words),
            ANTHROPIC_API_KEY=SECRET,
            HARNESS_LIVE_URL=upstream.url,
        )
    finally:
        upstream.close()
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    written = "".join(path.read_text("utf-8") for path in out.iterdir())
    assert SECRET not in written + done.stdout + done.stderr
    figures: dict[str, Any] = json.loads((out / "live.json").read_text("utf-8"))["figures"]
    assert figures["requests"] == len(upstream.asked)
    assert (figures["tokens"] > 0, 0 < figures["usd_at_list_prices"] < 900) == (True, True)
    return out, figures, done.stdout


def test_without_a_key_nothing_is_begun(tmp_path: Path) -> None:
    done = run(tmp_path, "--budget", "5", "--out", str(tmp_path / "out"))
    assert (done.returncode, "nothing was begun" in done.stderr) == (2, True)
    assert not (tmp_path / "out").exists()


@pytest.fixture
def prepared(tmp_path: Path) -> Path:
    root = make_project(tmp_path / "a project")
    plan = PLAN.replace("experiments: 3", "experiments: 1")
    (root / "plan.md").write_text(plan, "utf-8")
    return root


def test_it_plays_the_plan_and_writes_transcript_cost_and_verdicts(
    prepared: Path, tmp_path: Path
) -> None:
    scenario = write_scenario(tmp_path / "s.yaml", builder(1), oracle(1))
    upstream = Upstream(scenario, lambda _role, _number: None)
    out, figures, _ = played(tmp_path, upstream, "--project", str(prepared))
    assert (figures["reason"], figures["experiments"]) == ("target", 1)
    assert figures["verdicts"] == "held_out PASS: 1, validation PASS: 1"
    assert figures["decisions"] == "KEEP: 1"
    transcript = (out / "live-transcript.yaml").read_text("utf-8")
    assert "mcp__harness__open_experiment" in transcript


@pytest.mark.timeout(1800)
@needs_train
def test_the_demo_itself_is_played_through_it(tmp_path: Path) -> None:
    """Its data, its plan, its four experiments; the model behind the endpoint is its scenario."""
    upstream = Upstream(SCENARIO, lambda _role, _number: None, numbered=True)
    out, figures, said = played(tmp_path, upstream)
    assert (figures["reason"], figures["experiments"]) == ("target", 4)
    assert figures["decisions"] == "DISCARD: 3, KEEP: 1"
    for verdict in ("validation FAIL: 2", "validation INCONCLUSIVE: 1", "held_out PASS: 1"):
        assert verdict in figures["verdicts"]
    sessions = read_scenario(out / "live-transcript.yaml").sessions
    assert [one.key for one in sessions] == [one.key for one in read_scenario(SCENARIO).sessions]
    assert "run_logger_bypassed" in said


def test_a_budget_that_pays_no_request_is_refused(prepared: Path, tmp_path: Path) -> None:
    words = ("--budget", "0.01", "--project", str(prepared), "--out", str(tmp_path / "out"))
    done = run(tmp_path, *words, ANTHROPIC_API_KEY=SECRET, HARNESS_LIVE_URL="http://127.0.0.1:9")
    assert done.returncode == 2
    assert not (tmp_path / "out").exists()
    assert SECRET not in done.stdout + done.stderr
