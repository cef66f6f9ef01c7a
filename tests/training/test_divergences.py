"""Divergences against float64 by hand, against TRL's and SDPO's own functions, and against
themselves: padding, order, chunks, micro-batches."""

import math
from itertools import product

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")

from trl.experimental.gkd import GKDTrainer  # noqa: E402 - needs the libraries that may be missing
from trl.experimental.sdpo import loss_utils as sdpo  # noqa: E402

from harness.training.divergences import (  # noqa: E402
    Divergence,
    capped_ratio,
    distillation_loss,
    jensen_shannon,
    sampled_token,
    student_top_k,
)
from harness.training.losses import preference_margins  # noqa: E402

TOKENS, WORDS, WIDTH = 7, 11, 5
BETAS = (0, 0.3, 0.5, 1)


def drawn(seed: int = 0, dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, ...]:
    torch.manual_seed(seed)
    student, teacher = (3 * torch.randn(TOKENS, WORDS, dtype=dtype) for _ in range(2))
    return student, teacher, torch.randint(WORDS, (TOKENS,)), torch.rand(TOKENS, dtype=dtype)


def by_hand(student: list[float], teacher: list[float], beta: float, clip: float) -> float:
    def shares(logits: list[float]) -> list[float]:
        whole = sum(map(math.exp, logits))
        return [math.exp(one) / whole for one in logits]

    total = 0.0
    for q, p in zip(shares(student), shares(teacher), strict=True):
        m = beta * p + (1 - beta) * q
        if beta == 0:
            part = p * math.log(p / q)
        elif beta == 1:
            part = q * math.log(q / p)
        else:
            part = beta * p * math.log(p / m) + (1 - beta) * q * math.log(q / m)
        total += min(part, clip)
    return total


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("temperature", [1.0, 0.7])
@pytest.mark.parametrize("clip", [None, 0.05])
def test_full_is_the_sum_by_hand(beta: float, temperature: float, clip: float | None) -> None:
    student, teacher, tokens, _ = drawn()
    form = Divergence(beta=beta, temperature=temperature, clip=clip)
    exact = [
        by_hand((q / temperature).tolist(), (p / temperature).tolist(), beta, clip or math.inf)
        for q, p in zip(student, teacher, strict=True)
    ]
    assert form.values(student, teacher, tokens).tolist() == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("beta", BETAS)
def test_full_is_what_trl_computes(beta: float) -> None:
    student, teacher, tokens, _ = drawn()
    labels = torch.where(torch.arange(TOKENS) % 3 == 0, -100, 1)
    theirs = GKDTrainer.generalized_jsd_loss(
        student[None], teacher[None], labels=labels[None], beta=beta, temperature=0.9
    )
    weights = (labels != -100) / (labels != -100).sum()
    ours = Divergence(beta=beta, temperature=0.9).graded(student, teacher, tokens, weights)[0]
    assert float(ours) == pytest.approx(float(theirs), rel=1e-12)


@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("tail", [True, False])
def test_top_k_is_what_sdpo_computes(beta: float, tail: bool) -> None:
    student, teacher, tokens, _ = drawn()
    form = Divergence(objective="top_k", beta=beta, top_k=4, tail=tail)
    theirs = sdpo.compute_topk_self_distillation_loss(
        student,
        teacher,
        distillation_topk=4,
        distillation_alpha=beta,
        distillation_add_tail=tail,
    )
    torch.testing.assert_close(form.values(student, teacher, tokens), theirs, rtol=1e-10, atol=0)


def test_the_whole_vocabulary_as_top_k_is_full() -> None:
    student, teacher, tokens, _ = drawn()
    for k in (WORDS, 10 * WORDS):
        ours = Divergence(objective="top_k", top_k=k).values(student, teacher, tokens)
        torch.testing.assert_close(ours, Divergence().values(student, teacher, tokens))
    pair = student_top_k(student, teacher, 3, tail=True)
    for logps in pair:  # with the tail both are distributions
        torch.testing.assert_close(logps.exp().sum(-1), torch.ones(TOKENS, dtype=torch.float64))


def test_sampled_is_what_sdpo_computes_and_its_gradient_is_right_on_average() -> None:
    student, teacher, tokens, _ = drawn()
    theirs = sdpo.compute_sampled_token_self_distillation_loss(
        student, teacher, tokens, distillation_alpha=1.0
    )
    torch.testing.assert_close(sampled_token(student, teacher, tokens), theirs)
    leaf = student.clone().requires_grad_()
    q = leaf.softmax(-1).detach()
    every = torch.stack(
        [sampled_token(leaf, teacher, torch.full((TOKENS,), word)) for word in range(WORDS)],
        -1,
    )
    (expected,) = torch.autograd.grad((q * every).sum(), leaf)
    exact = Divergence(beta=1).values(leaf, teacher, tokens).sum()
    torch.testing.assert_close(
        expected, torch.autograd.grad(exact, leaf)[0], rtol=1e-9, atol=1e-12
    )


def test_a_small_beta_is_not_the_forward_divergence() -> None:
    student, teacher, _, _ = drawn()
    pair = student.log_softmax(-1), teacher.log_softmax(-1)
    forward = jensen_shannon(*pair, 0)
    small = jensen_shannon(*pair, 1e-6)
    assert float((small / forward).max()) < 1e-5
    torch.testing.assert_close(small / 1e-6, forward, rtol=1e-3, atol=0)


def test_ratios_are_capped_and_constant() -> None:
    now = torch.tensor([0.0, -1.0, -90.0], requires_grad=True)
    then = torch.tensor([-9.0, -1.0, 0.0])
    ratio = capped_ratio(now, then, 2.0)
    assert ratio.tolist() == pytest.approx([2.0, 1.0, math.exp(-20)])
    assert not ratio.requires_grad
    theirs = sdpo.apply_importance_sampling_clipping(torch.ones(3), now, then, 2.0)
    torch.testing.assert_close(ratio, theirs)


FORMS = [
    *(
        Divergence(beta=b, temperature=t, clip=c)
        for b, t, c in product(BETAS, (1.0, 2.0), (None, 0.05))
    ),
    *(Divergence(objective="top_k", top_k=3, beta=beta) for beta in BETAS),
    Divergence(objective="sampled"),
]


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("chunk", [1, 3, 100])
def test_chunks_of_hidden_states_give_loss_and_gradients_of_the_whole(
    form: Divergence, chunk: int
) -> None:
    torch.manual_seed(1)
    make = [
        torch.randn(size, WIDTH, dtype=torch.float64) for size in (TOKENS, WORDS, TOKENS, WORDS)
    ]
    hidden, head, teacher_hidden, teacher_head = (one.requires_grad_() for one in make)
    _, _, tokens, weights = drawn()
    weights[2] = 0.0
    whole = (form.values(hidden @ head.T, teacher_hidden @ teacher_head.T, tokens) * weights).sum()
    wanted = torch.autograd.grad(whole, (hidden, head))
    ours = distillation_loss(
        (hidden, head), (teacher_hidden, teacher_head), tokens, weights, form, chunk=chunk
    )
    torch.testing.assert_close(ours, whole)
    (2 * ours).backward()
    for leaf, gradient in zip((hidden, head), wanted, strict=True):
        torch.testing.assert_close(leaf.grad, 2 * gradient, rtol=1e-9, atol=1e-12)
    assert teacher_hidden.grad is None
    assert teacher_head.grad is None
    assert float(hidden.grad[2].abs().max()) == 0  # masked


def test_parts_of_a_batch_add_up_to_it_and_a_frozen_head_has_no_gradient() -> None:
    torch.manual_seed(1)
    hidden, other = (torch.randn(TOKENS, WIDTH, dtype=torch.float64) for _ in range(2))
    head = torch.randn(WORDS, WIDTH, dtype=torch.float64)
    hidden.requires_grad_()
    _, _, tokens, weights = drawn()
    form = Divergence()
    whole = distillation_loss((hidden, head), (other, head), tokens, weights, form)
    parts = [
        distillation_loss(
            (hidden[part], head), (other[part], head), tokens[part], weights[part], form
        )
        for part in (slice(0, 2), slice(2, 7))
    ]
    torch.testing.assert_close(parts[0] + parts[1], whole)
    gradients = [torch.autograd.grad(one, hidden)[0] for one in (whole, parts[0] + parts[1])]
    torch.testing.assert_close(*gradients)
    assert head.grad is None


@pytest.mark.parametrize("beta", BETAS)
def test_a_sure_student_and_a_sure_teacher_stay_finite(beta: float) -> None:
    student = torch.tensor([[200.0, 0.0, -200.0]])
    teacher = torch.tensor([[-200.0, 0.0, 200.0]])
    tokens, weights = torch.tensor([0]), torch.ones(1)
    loss, gradient = Divergence(beta=beta).graded(student, teacher, tokens, weights)
    assert torch.isfinite(loss)
    assert torch.isfinite(gradient).all()
    same = Divergence(beta=beta).graded(student, student, tokens, weights)
    assert float(same[0]) == pytest.approx(0, abs=1e-6)
    assert float(same[1].abs().max()) == pytest.approx(0, abs=1e-6)


def test_preference_margins_are_dpos() -> None:
    torch.manual_seed(0)
    policy, reference = (-50 * torch.rand(6, dtype=torch.float64) for _ in range(2))
    reference.requires_grad_()
    loss, margin = preference_margins(policy.requires_grad_(), reference, 0.1)
    delta = (policy - reference)[:3] - (policy - reference)[3:]
    exact = [math.log1p(math.exp(-0.1 * one)) for one in delta.tolist()]
    assert loss.tolist() == pytest.approx(exact, rel=1e-12)
    torch.testing.assert_close(margin, 0.1 * delta)
    loss.sum().backward()
    assert reference.grad is None
