"""Which arm of the spiral? A small network."""

import csv
import os

import torch

EPOCHS, WIDTH, RATE = 40, 48, 0.02


def read(path):
    """(ids, points, arms); the arms are missing in the rows that predict gets."""
    with open(path, newline="") as stream:
        rows = list(csv.DictReader(stream))
    points = torch.tensor([[float(row["x"]), float(row["y"])] for row in rows])
    return [row["id"] for row in rows], points, [int(row["arm"]) for row in rows if "arm" in row]


def network():
    return torch.nn.Sequential(
        torch.nn.Linear(2, WIDTH),
        torch.nn.Tanh(),
        torch.nn.Linear(WIDTH, WIDTH),
        torch.nn.Tanh(),
        torch.nn.Linear(WIDTH, 3),
    )


def main():
    from harness.run_logger import RunLogger

    _, x, arms = read(os.environ.get("HARNESS_TRAIN", "data/spirals.train.csv"))
    y = torch.tensor(arms)
    with RunLogger.from_environment() as log:
        torch.manual_seed(log.seed)  # the harness chooses the seed
        order = torch.randperm(len(y))
        own, kept = order[: len(y) // 5], order[len(y) // 5 :]  # validation is hidden
        model = network()
        optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
        log.start(total_epochs=EPOCHS, config={"width": WIDTH, "rate": RATE})
        for epoch in range(EPOCHS):
            for batch in kept[torch.randperm(len(kept))].split(64):
                loss = torch.nn.functional.cross_entropy(model(x[batch]), y[batch])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            with torch.no_grad():
                right = (model(x[own]).argmax(1) == y[own]).float().mean()
            log.epoch(epoch, {"loss": loss.item(), "own_accuracy": right})
        path = log.checkpoint_dir / "model.pt"
        torch.save(model.state_dict(), path)
        log.checkpoint_saved(path, epoch=EPOCHS - 1, final=True)


if __name__ == "__main__":
    main()
