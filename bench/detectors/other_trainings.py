"""Real trainings that are no supervised epochs of a network: a GAN, GRPO, DPO, scikit-learn. All
small."""

from collections.abc import Iterator
from time import process_time
from typing import Any

import numpy as np
import torch
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import log_loss
from sklearn.neural_network import MLPClassifier
from torch import nn

from bench.detectors.small_data import load

_ROWS = 60
REWARD_IS_CONSTANT_FROM = 12


def gan(seed: int, fault: str = "") -> Iterator[dict[str, Any]]:
    """A mixture of four normal distributions in the plane; both losses go up and down for ever."""
    torch.manual_seed(seed)
    maker, judge = (
        nn.Sequential(nn.Linear(n, 32), nn.ReLU(), nn.Linear(32, m)) for n, m in ((4, 2), (2, 1))
    )
    ours, theirs = (
        torch.optim.Adam(m.parameters(), 2e-3, betas=(0.5, 0.999)) for m in (maker, judge)
    )
    paid = nn.functional.binary_cross_entropy_with_logits
    one, zero = torch.ones(64, 1), torch.zeros(64, 1)
    for row in range(_ROWS):
        for _ in range(8):
            real = torch.randn(64, 2) * 0.2 + (torch.randint(0, 2, (64, 2)) * 2.0 - 1)
            loss_d = paid(judge(real), one) + paid(judge(maker(torch.randn(64, 4)).detach()), zero)
            theirs.zero_grad()
            loss_d.backward()
            theirs.step()
            loss_g = paid(judge(maker(torch.randn(64, 4))), one)
            ours.zero_grad()
            loss_g.backward()
            ours.step()
        yield _row(row, {"d_loss": float(loss_d), "g_loss": float(loss_g)}, 2e-3)


def grpo(seed: int, fault: str = "") -> Iterator[dict[str, Any]]:
    """A softmax policy over 12 answers to 30 questions, groups of 8. On policy: the loss is 0 by
    construction.

    `fault`: "" | constant_reward | runaway_policy (a rate 400 times too high, no pull to the
    reference).
    """
    torch.manual_seed(seed)
    features = torch.randn(30, 16)
    policy, reference = nn.Linear(16, 12), nn.Linear(16, 12)
    reference.load_state_dict(policy.state_dict())
    worth = torch.rand(30, 12)
    rate, pull = (20.0, 0.0) if fault == "runaway_policy" else (0.05, 0.02)
    optimizer = torch.optim.Adam(policy.parameters(), rate)
    for row in range(_ROWS):
        x = torch.randint(30, (16,))
        logits = policy(features[x]).log_softmax(-1)
        picks = torch.distributions.Categorical(logits=logits).sample((8,)).T
        noise = 0.1 * torch.randn(16, 8)
        reward = (
            torch.ones(16, 8)
            if fault == "constant_reward" and row >= REWARD_IS_CONSTANT_FROM
            else worth[x].gather(1, picks) + noise
        )
        spread = reward.std(1, keepdim=True)
        advantage = (reward - reward.mean(1, keepdim=True)) / (spread + 1e-4)
        chosen = logits.gather(1, picks)
        kl = (logits.exp() * (logits - reference(features[x]).log_softmax(-1))).sum(-1).mean()
        loss = -((chosen - chosen.detach()).exp() * advantage).mean() + pull * kl
        optimizer.zero_grad()
        loss.backward()
        norm = float(nn.utils.clip_grad_norm_(policy.parameters(), float("inf")))
        optimizer.step()
        metrics = {
            "loss": float(loss.detach()),
            "grad_norm": norm,
            "reward": float(reward.mean()),
            "reward_std": float(spread.mean()),
            "frac_reward_zero_std": float((spread < 1e-6).float().mean()),
            "kl": float(kl.detach()),
            "entropy": float(-(logits.exp() * logits).sum(-1).mean().detach()),
        }
        yield _row(row, metrics, rate, by_epoch=False)


def dpo(seed: int, fault: str = "") -> Iterator[dict[str, Any]]:
    """Preferences between two answers, of a hidden linear taste. `fault`: "" | same_reference (it
    is the policy)."""
    torch.manual_seed(seed)
    taste, beta = torch.randn(16), 0.1
    policy = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1))
    reference = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1))
    reference.load_state_dict(policy.state_dict())
    if fault == "same_reference":
        reference = policy
    optimizer = torch.optim.AdamW(policy.parameters(), 1e-2)
    for row in range(_ROWS):
        one, two = torch.randn(2, 32, 16)
        first = (one @ taste > two @ taste)[:, None]
        chosen, rejected = torch.where(first, one, two), torch.where(first, two, one)
        margin = beta * (
            (policy(chosen) - reference(chosen)) - (policy(rejected) - reference(rejected))
        )
        loss = -nn.functional.logsigmoid(margin).mean()
        optimizer.zero_grad()
        loss.backward()
        norm = float(nn.utils.clip_grad_norm_(policy.parameters(), 1.0))
        optimizer.step()
        margins = {
            "rewards/margins": float(margin.mean()),
            "rewards/accuracies": float((margin > 0).float().mean()),
        }
        yield _row(row, {"loss": float(loss), "grad_norm": norm, **margins}, 1e-2, by_epoch=False)


def sklearn_sgd(seed: int, fault: str = "") -> Iterator[dict[str, Any]]:
    """SGDClassifier.partial_fit on the digits."""
    x, y, later_x, later_y = _arrays()
    rates = ("optimal", "invscaling", "adaptive")
    model = SGDClassifier(
        loss="log_loss", random_state=seed, learning_rate=rates[seed % 3], eta0=0.05, alpha=1e-3
    )
    order = np.random.default_rng(seed)
    for row in range(30):
        pick = order.permutation(len(x))
        model.partial_fit(x[pick], y[pick], classes=np.arange(10))
        losses = (
            float(log_loss(b, model.predict_proba(a), labels=np.arange(10)))
            for a, b in ((x, y), (later_x, later_y))
        )
        train, later = losses
        yield _row(
            row,
            {
                "train_loss": train,
                "val_loss": later,
                "val_accuracy": model.score(later_x, later_y),
            },
            None,
        )


def sklearn_mlp(seed: int, fault: str = "") -> Iterator[dict[str, Any]]:
    """The loss curve of MLPClassifier with early stopping."""
    x, y, *_ = _arrays()
    model = MLPClassifier(
        (32,), random_state=seed, max_iter=60, early_stopping=True, learning_rate_init=2e-3
    )
    model.fit(x, y)
    for row, (loss, score) in enumerate(
        zip(model.loss_curve_, model.validation_scores_, strict=True)
    ):
        yield _row(row, {"loss": float(loss), "val_score": float(score)}, None)


def boosting(seed: int, fault: str = "") -> Iterator[dict[str, Any]]:
    """Stages of gradient boosting; training loss and accuracy on other rows."""
    x, y, later_x, later_y = _arrays()
    few = np.random.default_rng(seed).permutation(len(x))[:300]
    model = GradientBoostingClassifier(
        n_estimators=25, max_depth=2, random_state=seed, subsample=0.7
    )
    model.fit(x[few], y[few])
    scores = [float((p == later_y).mean()) for p in model.staged_predict(later_x)]
    for row, (loss, score) in enumerate(zip(model.train_score_, scores, strict=True)):
        yield _row(row, {"train_loss": float(loss), "val_accuracy": score}, None)


def _arrays() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    data = load("digits")
    return data.train.x.numpy(), data.train.y.numpy(), data.later.x.numpy(), data.later.y.numpy()


def _row(
    row: int, metrics: dict[str, float], rate: float | None, *, by_epoch: bool = True
) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "event": "epoch",
        "step": row,
        "t": process_time(),
        "metrics": metrics,
    }
    if rate is not None:
        plain["learning_rate"] = rate
    return {**plain, "epoch": row} if by_epoch else plain


TRAININGS = {f.__name__: f for f in (gan, grpo, dpo, sklearn_sgd, sklearn_mlp, boosting)}
