"""Killed -9 at seeded moments and started again, each kind of training is the unbroken run to the last bit.

`make resume` runs the slow ones: 50 moments a kind. Mid-save kills are among them: the torch loop saves at every step.
"""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("optuna")
pytest.importorskip("transformers")
pytest.importorskip("accelerate")

from tests.training import classical, hf_loop, torch_loop  # noqa: E402 - they need the libraries that may be missing
from tests.training.kills import prove  # noqa: E402

PROGRAMS = {
    "torch": lambda log, folder: torch_loop.run(log, folder, epochs=12, in_steps=0),
    "torch, saving at every step": lambda log, folder: torch_loop.run(log, folder, epochs=4, in_steps=1),
    "transformers": hf_loop.train,
    "optuna": classical.search,
    "cross-validation": classical.folds,
}
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("kind", [kind for kind in PROGRAMS if kind != "torch"])
def test_one_moment(tmp_path, kind):
    prove(PROGRAMS[kind], tmp_path, moments=1, seed=len(kind))


@pytest.mark.slow
@pytest.mark.parametrize("kind", PROGRAMS)
def test_fifty_moments(tmp_path, kind):
    kills = prove(PROGRAMS[kind], tmp_path, moments=50, seed=2026)
    print(f"{kind}: {kills} kills at 50 moments, each the unbroken run to the last bit")
    assert kills >= 30, "too few of the moments met a living process to say anything"
