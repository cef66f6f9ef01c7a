"""Frozen scripts: verified, run apart from us, limited in time; their failure is not the
experiment's."""

import os
import time

import psutil
import pytest

from harness.artifacts.objects import store_bytes
from harness.evaluation.problems import Unscorable
from harness.evaluation.scoring import FrozenScorer, ScoreJob, score

from .workplace import HONEST, PREDICT

SCRIPT = """
from lib.rates import rate

def score(labels, predictions):
    return rate(label == guess["prediction"] for label, guess in zip(labels, predictions))
"""
LIBRARY = "def rate(hits):\n    hits = list(hits)\n    return sum(hits) / len(hits)\n"


def frozen(objects, script, **others):
    files = {
        "scorers/mine.py": script,
        **{name.replace("__", "/") + ".py": text for name, text in others.items()},
    }
    hashes = {name: store_bytes(text.encode(), objects) for name, text in files.items()}
    return FrozenScorer(name="mine", entry="scorers/mine.py", files=hashes)


def job(**changes):
    fields = {
        "labels": ["a", "b"],
        "ids": ["x", "y"],
        "predictions": {"prediction": ["a", "a"]},
        "baseline": None,
    }
    return ScoreJob(**{**fields, "seed": 1, **changes})


def run(tmp_path, scorer, the_job=None, seconds=30.0):
    return score(
        scorer,
        the_job or job(),
        objects=tmp_path / "objects",
        work=tmp_path / "work",
        seconds=seconds,
    )


def failure(tmp_path, script, seconds=30.0, **others):
    with pytest.raises(Unscorable) as caught:
        run(tmp_path, frozen(tmp_path / "objects", script, **others), seconds=seconds)
    return caught.value.finding


def test_a_script_with_its_closure_scores_baseline_and_resamples(tmp_path):
    scorer = frozen(tmp_path / "objects", SCRIPT, lib__rates=LIBRARY)
    scored = run(tmp_path, scorer, job(baseline={"prediction": ["b", "b"]}))
    assert scored.value == 0.5
    assert scored.baseline == 0.5
    assert scored.rows is None
    assert len(scored.resampled) == 200
    assert scored.resampled == run(tmp_path, scorer).resampled
    assert list((tmp_path / "work").iterdir()) == []


def test_a_script_through_the_whole_evaluation(workplace, unsandboxed):
    scorer = frozen(workplace.objects, SCRIPT, lib__rates=LIBRARY)
    outcome = workplace.evaluate(HONEST, unsandboxed, scorer=scorer, metric="rate")
    assert outcome.value == pytest.approx(0.9)
    assert outcome.interval[0] < 0.9 < outcome.interval[1]
    assert outcome.metric == "rate"
    assert outcome.scorer == scorer.hash()


def test_a_script_on_probabilities_has_no_trivial_baseline_of_another_form(workplace, unsandboxed):
    script = (
        "def score(labels, predictions):\n    return sum(p['p_' + l] for l, p in zip(labels,"
        " predictions))\n"
    )
    body = "write([(row['id'], 0.25 + cut, 0.75 - cut) for row in rows], ('id', 'p_a', 'p_b'))\n"
    outcome = workplace.evaluate(
        PREDICT + body, unsandboxed, scorer=frozen(workplace.objects, script), metric="mass"
    )
    assert outcome.findings == ()
    assert outcome.value > 0
    assert outcome.baseline is None


def test_the_script_sees_neither_site_packages_nor_our_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "x")
    monkeypatch.setenv("PYTHONPATH", os.getcwd())
    script = (
        "import os, sys, importlib.util\ndef score(labels, predictions):\n    assert 'SECRET_TOKEN'"
        " not in os.environ\n    assert importlib.util.find_spec('numpy') is None and"
        " importlib.util.find_spec('harness') is None\n    return 1.0\n"
    )
    assert run(tmp_path, frozen(tmp_path / "objects", script)).value == 1.0


@pytest.mark.parametrize(
    ("script", "code", "words"),
    [
        (
            "def score(labels, predictions):\n    raise KeyError('speaker')\n",
            "scorer_failed",
            "KeyError: 'speaker'",
        ),
        ("def score(labels, predictions):\n    return None\n", "scorer_failed", "returned None"),
        ("def score(labels, predictions):\n    return True\n", "scorer_failed", "returned True"),
        ("value = 1\n", "scorer_failed", "no function `score"),
        ("def score(:\n", "scorer_failed", "SyntaxError"),
        ("import numpy\n", "scorer_failed", "No module named 'numpy'"),
        ("import os\nos._exit(0)\n", "scorer_failed", "left no result"),
        ("def score(labels, predictions):\n    return float('nan')\n", "score_not_finite", "nan"),
        ("def score(labels, predictions):\n    return -1e400\n", "score_not_finite", "-inf"),
    ],
)
def test_a_script_that_fails_is_a_finding(tmp_path, script, code, words):
    finding = failure(tmp_path, script)
    assert finding.code == code
    assert words in finding.message


def test_a_script_that_hangs_is_ended_with_its_children(tmp_path):
    pid_file = tmp_path / "pid"
    script = (
        "import os, subprocess, sys, time\n"
        "def score(labels, predictions):\n"
        "    child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"    open({str(pid_file)!r}, 'w').write(str(child.pid))\n"
        "    time.sleep(600)\n"
    )
    finding = failure(tmp_path, script, seconds=4.0)
    assert finding.code == "scorer_failed"
    assert "limit of 4 s" in finding.message
    pid = int(pid_file.read_text())
    for _ in range(250):
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return
        time.sleep(0.02)
    pytest.fail(f"process {pid} is still running")


def test_a_slow_script_has_a_score_without_an_interval(tmp_path):
    script = "import time\ndef score(labels, predictions):\n    time.sleep(0.1)\n    return 2.5\n"
    scored = run(tmp_path, frozen(tmp_path / "objects", script), seconds=3.0)
    assert (scored.value, scored.resampled) == (2.5, None)


def test_a_changed_or_lost_file_of_the_closure_is_never_run(tmp_path):
    objects = tmp_path / "objects"
    scorer = frozen(objects, SCRIPT, lib__rates=LIBRARY)
    blob = objects / scorer.files["lib/rates.py"]
    blob.chmod(0o644)
    blob.write_text("def rate(hits):\n    return 1.0\n")
    with pytest.raises(Unscorable) as caught:
        run(tmp_path, scorer)
    assert caught.value.finding.code == "scorer_changed"
    assert "lib/rates.py" in caught.value.finding.message
    blob.unlink()
    with pytest.raises(Unscorable) as caught:
        run(tmp_path, scorer)
    assert caught.value.finding.code == "scorer_changed"


@pytest.mark.parametrize("name", ["../out.py", "/etc/out.py", "a/../../out.py"])
def test_a_frozen_path_never_leaves_its_folder(tmp_path, name):
    digest = store_bytes(b"x = 1\n", tmp_path / "objects")
    with pytest.raises(Unscorable) as caught:
        run(tmp_path, FrozenScorer(name="mine", entry=name, files={name: digest}))
    assert "outside its folder" in caught.value.finding.message


def test_the_scorers_hash_changes_with_what_decides_the_score(tmp_path):
    objects = tmp_path / "objects"
    hashes = {
        FrozenScorer(name="accuracy").hash(),
        FrozenScorer(name="mse").hash(),
        frozen(objects, SCRIPT, lib__rates=LIBRARY).hash(),
        frozen(objects, SCRIPT, lib__rates=LIBRARY + "\n").hash(),
    }
    assert len(hashes) == 4
