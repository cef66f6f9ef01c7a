"""One replica of a small regression that keeps what each round started from, brought and became.

`CASE` in the environment says what is particular: {"die": {"1": 3}} kills replica 1 in round 3,
after the quorum and before the exchange; "hang" lets it sleep instead, while its manager's
heartbeats go on.
"""

import hashlib
import json
import os
import sys
import time
from pathlib import Path

import torch

from harness.run_logger import RunLogger
from harness.training.diloco import DiLoCo, Samples

CASE = json.loads(os.environ.get("CASE") or "{}")
ROUNDS, ROWS, BATCH, OPEN = CASE.get("rounds", 4), 48, 4, 1_000_000

WIDTH = 16 + (int(os.environ["HARNESS_REPLICA"]) if CASE.get("widths_differ") else 0)


def flat(tensors):
    return [each for tensor in tensors for each in tensor.detach().flatten().tolist()]


class Kept(DiLoCo):
    """Writes a line a round."""

    held: dict

    def measured(self, fragment):
        self.held = {
            "global": flat(fragment.original_parameters.values()),
            "local": flat(fragment._model_fragment.parameters()),
            "names": list(fragment.original_parameters),
        }
        super().measured(fragment)
        if self.is_due("die"):
            os.kill(os.getpid(), 9)

    def is_due(self, what):
        return CASE.get(what, {}).get(str(self.replica)) == self.rounds and not self.reborn

    def synced(self, *, counts):
        fragment = self._torchft._fragments[max(0, self.rounds - 1) % self.config.fragments]
        after = [each.detach() for each in fragment._model_fragment.parameters()]
        told = self.held | {
            "round": self.rounds,
            "counts": counts,
            "after": flat(after),
            "healed": self._work.healed,
            "t": time.time(),
        }
        with (self.folder / "kept.jsonl").open("a") as stream:
            stream.write(json.dumps(told) + "\n")
        super().synced(counts=counts)


def wanted():
    """How many rounds; where they are open, until a file says so."""
    try:
        return int(Path(os.environ["HARNESS_RUN_DIR"], "../../../rounds").read_text() or 0) or OPEN
    except FileNotFoundError:
        return OPEN if CASE.get("open") else ROUNDS


def main():
    mixer = torch.Generator().manual_seed(7)
    x = torch.randn(ROWS, 8, generator=mixer)
    y = x @ torch.randn(8, 1, generator=mixer)
    with RunLogger.from_environment() as log:
        replica = int(os.environ["HARNESS_REPLICA"])
        torch.manual_seed(log.seed + (replica if CASE.get("seeds_differ") else 0))
        model = torch.nn.Sequential(
            torch.nn.Linear(8, WIDTH),
            torch.nn.Tanh(),
            torch.nn.Dropout(0.1),
            torch.nn.Linear(WIDTH, 1),
        )
        kind = torch.optim.SGD if CASE.get("plain") else torch.optim.AdamW
        inner = kind(model.parameters(), lr=1e-2)
        rows = ROWS + (replica if CASE.get("rows_differ") else 0)
        samples = Samples(rows, batch=BATCH, seed=log.seed)
        torch.manual_seed(log.seed * 1000 + replica)  # dropout differs
        diloco = Kept(model, inner, log=log, samples=samples)
        diloco.reborn = (diloco.folder / "kept.jsonl").exists()
        with diloco:
            log.start(ROUNDS, resumed_at=diloco.rounds or None)
            while diloco.rounds < wanted():
                if diloco.is_due("hang"):
                    time.sleep(3600)
                rows = diloco.batch()
                if CASE.get("nan") == replica and diloco.rounds >= 2:
                    x[rows] = float("nan")
                loss = ((model(x[rows]) - y[rows]) ** 2).mean()
                inner.zero_grad()
                loss.backward()
                diloco.note(loss, tokens=len(rows) * (1 + replica))
                inner.step()
                time.sleep(CASE.get("pause", 0.0))
            path = diloco.save_model(log.checkpoint_dir / "model.pt")
            log.checkpoint_saved(path, epoch=diloco.rounds - 1, final=True)
    digest = hashlib.sha256(json.dumps(flat(model.parameters())).encode()).hexdigest()
    (diloco.folder / "digest").write_text(f"{diloco.rounds} {digest}")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
