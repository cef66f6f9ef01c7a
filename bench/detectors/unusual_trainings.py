"""Healthy trainings that look odd: real ones, small, and a few whose rows are made up.

A warning about any of them is a false alarm. Thresholds may be set on these; on the shapes of
`unseen` they may not.
"""

import math
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import torch
from torch import Tensor, nn

from bench.detectors.healthy_shapes import BASE
from bench.detectors.real_training import Fault, Recipe, Run
from bench.detectors.small_data import Split, load

Rows = Iterator[dict[str, Any]]


def trained(seed: int, twist: type[Fault] = Fault, **given: Any) -> Rows:
    """A recipe, with what is odd about it as a twist of the loop."""
    task = given.setdefault("task", "digits")
    return Run(Recipe(**{**BASE[task], **given, "seed": seed}), twist(seed)).rows()


def without_rate(rows: Rows) -> Rows:
    for row in rows:
        row.pop("learning_rate", None)
        yield row


class Curriculum(Fault):
    """Three classes, from row 10 on all ten."""

    def start(self, run: Run) -> None:
        self.all = run.train
        easy = self.all.y < 3
        run.train = Split(self.all.x[easy], self.all.y[easy])

    def before_row(self, run: Run, row: int) -> None:
        if row == 10:
            run.train = self.all


class Mixup(Fault):
    """Inputs are mixed half and half until row 20; the loss is of the first label."""

    def batch(self, run: Run, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        if run.row >= 20:
            return x, y
        other = torch.randperm(len(x), generator=run.order)
        return 0.6 * x + 0.4 * x[other], y


class LabelNoise(Fault):
    """Two in five training labels are wrong."""

    def start(self, run: Run) -> None:
        y = run.train.y.clone()
        wrong = torch.rand(len(y), generator=run.order) < 0.4
        y[wrong] = torch.randint(10, (int(wrong.sum()),), generator=run.order)
        run.train = Split(run.train.x, y)


class LateUnfreezing(Fault):
    """Only the head is trained until row 15."""

    def start(self, run: Run) -> None:
        self.body = list(run.model.parameters())[:-2]
        for parameter in self.body:
            parameter.requires_grad_(False)

    def before_row(self, run: Run, row: int) -> None:
        if row == 15:
            for parameter in self.body:
                parameter.requires_grad_(True)


class Imbalance(Fault):
    """Nine in ten training rows are of one class."""

    def start(self, run: Run) -> None:
        first = run.train.y == 0
        few = torch.nonzero(~first).flatten()[: int(first.sum()) // 9]
        keep = torch.cat([torch.nonzero(first).flatten(), few])
        later = run.data.later.y == 0
        some = torch.nonzero(~later).flatten()[: int(later.sum()) // 9]
        rest = torch.cat([torch.nonzero(later).flatten(), some])
        run.train = Split(run.train.x[keep], run.train.y[keep])
        data = run.data
        run.data = data._replace(later=Split(data.later.x[rest], data.later.y[rest]))


class LargeWeights(Fault):
    """Grokking's start: weights eight times as large, 100 training rows."""

    def start(self, run: Run) -> None:
        with torch.no_grad():
            for parameter in run.model.parameters():
                parameter.mul_(3)
        run.train = Split(run.train.x[:100], run.train.y[:100])


def rare_validation(seed: int) -> Rows:
    for row in trained(seed):
        if row["event"] == "epoch" and row["epoch"] % 8 != 7:
            row["metrics"] = {k: v for k, v in row["metrics"].items() if "val" not in k}
        yield row


def slow_evaluation(seed: int) -> Rows:
    """Each tenth row evaluates for three times the time of a row, in a run with steady rows."""
    r, now = Random(f"slow {seed}"), 0.0
    for row in trained(seed, rows=60, steps=3):
        if row["event"] == "epoch":
            now += 2.0 + 0.1 * r.random() + (6.0 if row["epoch"] % 10 == 9 else 0.0)
        yield {**row, "t": now}


def pauses(seed: int) -> Rows:
    """Garbage collection and other jobs: at times one or two rows take ten times as long."""
    r, now, slow = Random(f"pauses {seed}"), 0.0, 0
    for row in trained(seed, rows=60, steps=3):
        slow = slow - 1 if slow > 0 else (r.randint(1, 2) if r.random() < 0.05 else 0)
        now += 1.0 + 0.1 * r.random() + (9.0 if slow else 0.0)
        yield {**row, "t": now}


def vae(seed: int, key: str = "kl_loss", beta: float = 1.0) -> Rows:
    """A variational encoder of the digits; its KL is tens of nats."""
    torch.manual_seed(seed)
    x = load("digits").train.x
    encoder = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32))
    decoder = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64))
    both = [*encoder.parameters(), *decoder.parameters()]
    optimizer = torch.optim.Adam(both, 3e-3)
    for row in range(50):
        for _ in range(15):
            batch = x[torch.randint(len(x), (64,))]
            mean, log = encoder(batch).chunk(2, -1)
            z = mean + (0.5 * log).exp() * torch.randn_like(mean)
            paid = 50 * (decoder(z) - batch).square().sum(-1).mean()
            kl = 0.5 * (mean.square() + log.exp() - log - 1).sum(-1).mean()
            loss = paid + beta * kl
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        loss, paid, kl = loss.detach(), paid.detach(), kl.detach()
        yield told(row, {"loss": float(loss), "reconstruction": float(paid), key: float(kl)})


def wgan(seed: int) -> Rows:
    """A critic with clipped weights; both losses are scores around 0."""
    torch.manual_seed(seed)
    maker = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
    critic = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 1))
    ours = torch.optim.RMSprop(maker.parameters(), 5e-4)
    theirs = torch.optim.RMSprop(critic.parameters(), 5e-4)
    for row in range(60):
        for _ in range(4):
            real = torch.randn(64, 2) * 0.2 + (torch.randint(0, 2, (64, 2)) * 2.0 - 1)
            high, low = critic(real).mean(), critic(maker(torch.randn(64, 4)).detach()).mean()
            theirs.zero_grad()
            (low - high).backward()
            theirs.step()
            for p in critic.parameters():
                p.data.clamp_(-0.05, 0.05)
        fake = -critic(maker(torch.randn(64, 4))).mean()
        ours.zero_grad()
        fake.backward()
        ours.step()
        yield told(row, {"real_loss": -high.item(), "fake_loss": fake.item()})


def right_answer(seed: int) -> Rows:
    """A policy finds the one right answer of each question: its entropy ends at 0."""
    torch.manual_seed(seed)
    features, right = torch.randn(30, 16), torch.randint(12, (30,))
    policy = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 12))
    optimizer = torch.optim.Adam(policy.parameters(), 0.02)
    for row in range(100):
        for _ in range(3):
            logits = policy(features).log_softmax(-1)
            pick = torch.distributions.Categorical(logits=logits).sample((8,)).T
            reward = (pick == right[:, None]).float()
            advantage = reward - reward.mean(1, keepdim=True)
            loss = -(logits.gather(1, pick) * advantage).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        entropy = -(logits.exp() * logits).sum(-1).mean()
        yield told(
            row,
            {
                "loss": loss.item(),
                "reward": float(reward.mean()),
                "reward_std": float(reward.std(1).mean()),
                "entropy": entropy.item(),
            },
        )


def boosted(seed: int) -> Rows:
    """Boosting until ten rounds bring no better validation loss; the best round is kept."""
    import numpy as np
    from sklearn.ensemble import GradientBoostingClassifier
    from sklearn.metrics import log_loss

    data = load("digits")
    x, y = data.train.x.numpy(), data.train.y.numpy()
    few = np.random.default_rng(seed).permutation(len(x))[:200]
    made = GradientBoostingClassifier(
        n_estimators=60, max_depth=2, learning_rate=0.3, random_state=seed
    ).fit(x[few], y[few])
    every = [
        (
            log_loss(y[few], made_train, labels=range(10)),
            log_loss(data.later.y.numpy(), made_later, labels=range(10)),
        )
        for made_train, made_later in zip(
            made.staged_predict_proba(x[few]),
            made.staged_predict_proba(data.later.x.numpy()),
            strict=True,
        )
    ]
    best = 0
    for row, (train, later) in enumerate(every):
        best = row if later < every[best][1] else best
        yield told(row, {"train-mlogloss": train, "valid-mlogloss": later})
        if row - best >= 10:
            break
    yield {"event": "checkpoint", "path": "model.txt", "epoch": best, "final": True}


def slow_preferences(seed: int) -> Rows:
    """DPO with a rate so small that it stays near ln 2."""
    r = Random(f"dpo {seed}")
    for i in range(60):
        margin = 0.0004 * i + 0.002 * r.gauss(0, 1)
        loss = math.log1p(math.exp(-margin))
        yield told(i, {"loss": loss, "rewards/margins": margin}, by_epoch=False)


def fine_tuned(seed: int) -> Rows:
    """A language model by step: 1.9 to 1.7, with the noise of single batches."""
    r = Random(f"lm {seed}")
    for i in range(150):
        loss = 1.7 + 0.2 * math.exp(-i / 80) + 0.12 * r.gauss(0, 1)
        plain = told(i, {"loss": loss, "grad_norm": 1 + 0.2 * r.random()}, by_epoch=False)
        yield {**plain, "epoch": round(i / 50, 2), "learning_rate": 2e-5 * (1 - i / 150)}


def made(values: Callable[[int, Random], dict[str, float]], rows: int = 60) -> Any:
    def rows_of(seed: int) -> Rows:
        r = Random(
            f"{values} {seed}" if values.__name__ == "<lambda>" else f"{values.__name__} {seed}"
        )
        yield {"event": "start", "total_epochs": rows, "t": 0.0}
        for i in range(rows):
            yield told(i, values(i, r))

    return rows_of


def _large(i: int, r: Random) -> dict[str, float]:
    return {"loss": 1e4 * (math.exp(-i / 15) + 0.1) * (1 + 0.1 * r.gauss(0, 1))}


def _flow(i: int, r: Random) -> dict[str, float]:
    return {"nll": 3 - 8 * (1 - math.exp(-i / 12)) + 0.2 * r.gauss(0, 1)}


def _contrast(i: int, r: Random) -> dict[str, float]:
    return {"loss": -0.2 - 0.7 * (1 - math.exp(-i / 10)) + 0.02 * r.gauss(0, 1)}


def _noisy_rl(i: int, r: Random) -> dict[str, float]:
    return {
        "rollout/ep_rew_mean": -200 + 2 * i + 40 * r.gauss(0, 1),
        "train/loss": abs(30 * r.gauss(0, 1)),
        "train/approx_kl": 0.01 * r.random(),
    }


def _five(i: int, r: Random) -> dict[str, float]:
    return {"loss": 2.0 * 0.8**i + 0.1 * r.random(), "accuracy": 0.3 + 0.1 * i}


def _small_evaluation(i: int, r: Random) -> dict[str, float]:
    hits = sum(r.random() < 0.75 for _ in range(20))
    return {"train_loss": 2 * math.exp(-i / 10) + 0.3, "val_accuracy": hits / 20}


def told(row: int, metrics: dict[str, float], *, by_epoch: bool = True) -> dict[str, Any]:
    plain = {"event": "epoch", "step": row, "metrics": metrics}
    return {**plain, "epoch": row} if by_epoch else plain


def _cyclic(schedule: str, *, logged: bool = True, **given: Any) -> Callable[[int], Rows]:
    def rows(seed: int) -> Rows:
        made = trained(seed, schedule=schedule, **given)
        return made if logged else without_rate(made)

    return rows


def _twisted(twist: type[Fault], **given: Any) -> Callable[[int], Rows]:
    return lambda seed: trained(seed, twist, **given)


SHAPES: dict[str, Callable[[int], Rows]] = {
    "triangular_4": _cyclic("triangular:4", lr=6e-3),
    "triangular_4_silent": _cyclic("triangular:4", lr=6e-3, logged=False),
    "triangular_10": _cyclic("triangular:10", lr=1e-2),
    "triangular_20_silent": _cyclic("triangular:20", lr=1e-2, logged=False),
    "sgdr_5": _cyclic("sgdr:5", lr=1e-2),
    "sgdr_10_silent": _cyclic("sgdr:10", lr=1e-2, logged=False, task="cnn"),
    "sgdr_20": _cyclic("sgdr:20", lr=1e-2, task="cnn"),
    "sgd_triangular_rate_0.4": _cyclic("triangular:8", lr=0.4, optimizer="sgd"),
    "curriculum": _twisted(Curriculum),
    "mixup_ends": _twisted(Mixup),
    "label_noise": _twisted(LabelNoise),
    "late_unfreezing": _twisted(LateUnfreezing),
    "imbalance": _twisted(Imbalance),
    "grokking": _twisted(LargeWeights, rows=80, optimizer="adamw", decay=0.5),
    "tiny_to_zero": lambda seed: trained(seed, share=0.05, rows=60),
    "rare_validation": rare_validation,
    "slow_evaluation": slow_evaluation,
    "pauses": pauses,
    "vae_kl_loss": vae,
    "vae_kl": lambda seed: vae(seed, "kl"),
    "beta_vae": lambda seed: vae(seed, "kl", beta=0.3),
    "wgan": wgan,
    "right_answer": right_answer,
    "boosted_to_the_best_round": boosted,
    "slow_preferences": slow_preferences,
    "fine_tuned_by_step": fine_tuned,
    "regression_1e4": made(_large),
    "flow_below_0": made(_flow),
    "contrastive_below_0": made(_contrast),
    "noisy_rl": made(_noisy_rl),
    "five_rows": made(_five, 5),
    "small_evaluation": made(_small_evaluation, 40),
    "few_rows_cnn": lambda seed: trained(seed, task="cnn", share=0.1, rows=30),
}
