"""Killed -9 at seeded moments and started again, each kind of training is the unbroken run to the
last bit.

`make resume` does the slow ones and records them. Mid-save kills are among them: the torch loop
saves at every step.
"""

import random

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("optuna")
pytest.importorskip("transformers")
pytest.importorskip("accelerate")
pytest.importorskip("lightning")
pytest.importorskip("lightgbm")

from harness.domain.statuses import GateName, Verdict  # noqa: E402
from harness.gates.check import check_gate  # noqa: E402  a library may be missing
from harness.gates.findings import FINDINGS  # noqa: E402
from tests.training.kills import prove  # noqa: E402
from tests.training.resume_proof import FORKED, KINDS, TOLD, proved  # noqa: E402
from tests.training.supervised import TORCH, Place  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("kind", [kind for kind in FORKED if kind != "torch"])
def test_one_moment(tmp_path, kind):
    prove(FORKED[kind], tmp_path, moments=1, seed=len(kind), unbroken_lives=1)


@pytest.mark.parametrize("kind", ["average_of_weights", "loop_by_hand"])
def test_one_moment_of_what_is_told(tmp_path, kind):
    prove(TOLD[kind], tmp_path, moments=1, seed=len(kind), unbroken_lives=1, told=True)


def judged(place, experiment):
    with place.project() as project:
        verdict = check_gate(project, experiment, GateName.VALIDATION)
        return verdict.verdict, [found.code for found in verdict.findings]


def test_killed_with_its_supervisor_twice_and_the_gate_says_the_same(tmp_path):
    whole, cut = (Place.make(tmp_path / name, TORCH) for name in ("whole", "cut"))
    expected, experiment = whole.unbroken(), cut.open()
    assert cut.broken(experiment, [(8, 0.01), (4, 0.03)], random.Random(3)) == 2
    assert cut.end(experiment) == expected
    verdict, codes = judged(cut, experiment)
    assert (verdict, [code for code in codes if code != "run_restarted"]) == judged(
        whole, "exp-0001"
    )
    assert FINDINGS["run_restarted"].outcome is Verdict.PASS
    with cut.project() as project:
        assert [run.attempt for run in project.ledger.runs(experiment)] == [3]


@pytest.mark.slow
def test_three_seeds_one_of_them_killed_twice_pass_the_gate_as_the_unbroken_ones(tmp_path):
    ends, verdicts = [], []
    for name, moments in (("whole", []), ("cut", [(5, 0.01), (4, 0.02)])):
        place = Place.make(tmp_path / name, TORCH, seeds=3)
        experiment = place.open()
        assert place.broken(experiment, moments, random.Random(5)) == len(moments)
        ends.append(place.end(experiment))
        place.result(experiment)
        verdict, codes = judged(place, experiment)
        verdicts.append((verdict, [code for code in codes if code != "run_restarted"]))
    assert ends[0] == ends[1]
    assert verdicts == [(Verdict.PASS, [])] * 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_many_moments(tmp_path, kind):
    found = proved(kind, tmp_path)
    print(found.line(kind))
    assert found.kills >= 0.6 * found.moments, (
        "too few of the moments met a living process to say anything"
    )
