"""A plain torch loop with dropout, AdamW and a warm-up, that goes on where it was."""

import hashlib
import random

import numpy as np
import torch

from harness.domain.statuses import Direction
from harness.training.cadence import Goal
from harness.training.checkpointer import Checkpointer
from harness.training.loader import ResumableLoader

GOAL = Goal(metric="loss", direction=Direction.MINIMIZE)


class Rows(torch.utils.data.Dataset):
    """Row i is a function of i; reading it draws from Python's and NumPy's random numbers, as
    augmentation does."""

    def __init__(self, size):
        self.size = size
        self.x = torch.linspace(-1, 1, size * 4).reshape(size, 4)

    def __len__(self):
        return self.size

    def __getitem__(self, row):
        noise = random.random() * 0.01 + float(np.random.rand()) * 0.01
        return row, self.x[row] + noise, self.x[row].sum()


def parts(size, batch, seed, width=16):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    model = torch.nn.Sequential(
        torch.nn.Linear(4, width),
        torch.nn.ReLU(),
        torch.nn.Dropout(0.3),
        torch.nn.Linear(width, 1),
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 5))
    loader = ResumableLoader(Rows(size), batch_size=batch, seed=seed)
    return {"model": model, "optimizer": optimizer, "scheduler": scheduler, "loader": loader}


def train(
    log,
    *,
    epochs,
    size=10,
    batch=2,
    seed=7,
    every=2,
    in_steps=0,
    on_step=lambda step, rows: None,
    width=16,
):
    """Train to the end; `on_step` is told of each step and its rows. Returns a digest of weights
    and optimizer."""
    held = parts(size, batch, seed, width)
    model, optimizer = held["model"], held["optimizer"]
    keeper = Checkpointer(log, **held, every=every, goal=GOAL)
    at = keeper.resume()
    assert at.exact, at.missing
    log.start(epochs, {"seed": seed}, resumed_at=at.epoch if at.resumed else None)
    total = at.extra.get("total", 0.0)
    for epoch in range(at.epoch, epochs):
        for rows, x, y in held["loader"]:
            optimizer.zero_grad()
            loss = ((model(x).squeeze(1) - y) ** 2).mean()
            loss.backward()
            optimizer.step()
            held["scheduler"].step()
            keeper.step += 1
            total += loss.item()
            on_step(keeper.step, rows.tolist())
            if in_steps and keeper.step % in_steps == 0:
                keeper.save(epoch, done=False, extra={"total": total})
        log.epoch(
            epoch,
            {"loss": total},
            step=keeper.step,
            learning_rate=held["scheduler"].get_last_lr()[0],
        )
        keeper.after_epoch(epoch, epochs, value=total)
        total = 0.0
    keeper.finish()
    return digest(model, optimizer)


def digest(model, optimizer):
    found = hashlib.sha256()
    for tensor in model.state_dict().values():
        found.update(tensor.numpy().tobytes())
    for state in optimizer.state_dict()["state"].values():
        for name in sorted(state):
            found.update(torch.as_tensor(state[name]).numpy().tobytes())
    return found.hexdigest()


def run(log, folder, *, epochs, in_steps):
    """Each step's rows go into order.txt, the digest at the end into digest.txt."""
    with (folder / "order.txt").open("a") as order:

        def told(step, rows):
            order.write(f"{step} {rows}\n")
            order.flush()

        made = train(log, epochs=epochs, in_steps=in_steps, on_step=told)
    (folder / "digest.txt").write_text(made)
