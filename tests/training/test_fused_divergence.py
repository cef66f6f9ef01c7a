"""The divergences that are written over the logits, against those in float64: on a GPU, or with
TRITON_INTERPRET=1 by Triton's interpreter."""

import os
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

import pytest
import torch

from harness.domain.composition import Objective
from harness.training.divergences import Divergence

ON = "cuda" if torch.cuda.is_available() else "cpu"
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
pytestmark = pytest.mark.skipif(
    find_spec("triton") is None or not (INTERPRETED or ON == "cuda"),
    reason="needs a GPU, or Triton (pip install triton) and TRITON_INTERPRET=1",
)
TOKENS, K = 3, 10
WEIGHTS = (1.0, 0.0, 2.0)


@pytest.fixture(scope="module")
def fused() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        from harness.training import fused_divergence, fused_top_k

        patch.setattr(fused_divergence, "_BLOCK", 64)
        patch.setattr(fused_divergence, "_WARPS", 4)
        patch.setattr(fused_top_k, "_GROUPS", 32)
        patch.setattr(fused_top_k, "_ROOM", 64)
        yield fused_divergence


@pytest.fixture(scope="module")
def fused_top_k(fused: ModuleType) -> ModuleType:
    return import_module("harness.training.fused_top_k")


def logits(width: int) -> tuple[torch.Tensor, torch.Tensor]:
    maker = torch.Generator().manual_seed(width)
    pair = torch.randn(2, TOKENS, width, generator=maker) * 3
    return pair[0].to(ON), pair[1].to(ON)


def agrees(
    form: Divergence, written: torch.Tensor, loss: torch.Tensor, *pair: torch.Tensor
) -> None:
    weights = torch.tensor(WEIGHTS, device=ON)
    tokens = torch.zeros(TOKENS, dtype=torch.long, device=ON)
    student, teacher = (one.double() for one in pair)
    expected, gradient = form.graded(student, teacher, tokens, weights.double())
    assert float(loss) == pytest.approx(float(expected), rel=5e-4)
    assert float((written - gradient).norm() / gradient.norm()) < 5e-4
    assert not written[1].any()


@pytest.mark.parametrize("width", [128, 151])
@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("clip", [None, 0.02])
def test_the_whole_vocabulary(
    fused: ModuleType, width: int, beta: float, clip: float | None
) -> None:
    student, teacher = logits(width)
    form = Divergence(beta=beta, clip=clip, temperature=0.9)
    written, weights = student.clone(), torch.tensor(WEIGHTS, device=ON)
    loss, _ = fused.write_gradient(
        written, teacher, weights, beta=beta, temperature=0.9, clip=clip
    )
    agrees(form, written, loss, student, teacher)


@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("clip", [None, 0.02])
@pytest.mark.parametrize("tail", [True, False])
def test_the_likeliest_words(
    fused_top_k: ModuleType, beta: float, clip: float | None, tail: bool
) -> None:
    student, teacher = logits(151)
    form = Divergence(
        objective=Objective.TOP_K, top_k=K, tail=tail, beta=beta, clip=clip, temperature=0.9
    )
    written, weights = student.clone(), torch.tensor(WEIGHTS, device=ON)
    loss, _ = fused_top_k.write_top_k_gradient(
        written, teacher, weights, k=K, tail=tail, beta=beta, temperature=0.9, clip=clip
    )
    agrees(form, written, loss, student, teacher)


def test_of_equal_words_the_first_are_kept(fused_top_k: ModuleType) -> None:
    """More words than there is room for are as likely as the k-th."""
    _, teacher = logits(151)
    student = torch.zeros_like(teacher)
    student[:, 140:] = -0.0
    form = Divergence(objective=Objective.TOP_K, top_k=K)
    written, weights = student.clone(), torch.tensor(WEIGHTS, device=ON)
    loss, _ = fused_top_k.write_top_k_gradient(
        written, teacher, weights, k=K, tail=True, beta=0.5, temperature=1.0, clip=None
    )
    first = student - torch.arange(151, device=ON) * 1e-6
    agrees(form, written, loss, first, teacher)


@pytest.mark.parametrize("k", [None, K])
def test_a_narrow_gradient_lies_over_the_wide_logits(
    fused: ModuleType, fused_top_k: ModuleType, k: int | None
) -> None:
    student, teacher = logits(151)
    kept, weights = student.clone(), torch.tensor(WEIGHTS, device=ON)
    words = {"beta": 0.5, "temperature": 1.0, "clip": None, "kind": torch.bfloat16}
    if k is None:
        form = Divergence()
        loss, narrow = fused.write_gradient(student, teacher, weights, **words)
    else:
        form = Divergence(objective=Objective.TOP_K, top_k=k)
        loss, narrow = fused_top_k.write_top_k_gradient(
            student, teacher, weights, k=k, tail=True, **words
        )
    assert narrow.dtype == torch.bfloat16
    assert narrow.data_ptr() == student.data_ptr()
    tokens = torch.zeros(TOKENS, dtype=torch.long, device=ON)
    wide = kept.double(), teacher.double()
    expected, gradient = form.graded(*wide, tokens, weights.double())
    assert float(loss) == pytest.approx(float(expected), rel=5e-4)
    assert float((narrow - gradient).norm() / gradient.norm()) < 4e-3


def test_a_rest_that_is_nearly_one_keeps_its_loss(fused_top_k: ModuleType) -> None:
    """The kept words hold a hundredth of both rows, and rows that differ little: log(1 - mass) of
    each would lose what they differ by."""
    maker = torch.Generator().manual_seed(0)
    student = torch.randn(TOKENS, 2000, generator=maker).to(ON) * 0.2
    teacher = student + torch.randn(TOKENS, 2000, generator=maker).to(ON) * 0.05
    form = Divergence(objective=Objective.TOP_K, top_k=K)
    weights = torch.tensor(WEIGHTS, device=ON)
    loss, _ = fused_top_k.write_top_k_gradient(
        student.clone(), teacher, weights, k=K, tail=True, beta=0.5, temperature=1.0, clip=None
    )
    tokens = torch.zeros(TOKENS, dtype=torch.long, device=ON)
    expected, _ = form.graded(student.double(), teacher.double(), tokens, weights.double())
    assert float(loss) == pytest.approx(float(expected), rel=1e-4)
