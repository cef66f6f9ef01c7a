"""DiLoCo: replicas that train by themselves and average every `sync_every` steps, over torchft.

The sign, once: the pseudo-gradient is global - local, what the inner steps took away. The outer SGD
subtracts its average, so the global parameters go toward the replicas: with outer_lr 1 and no
momentum they become the replicas' mean.

    with RunLogger.from_environment() as log:
        torch.manual_seed(log.seed)  # the same weights in every replica
        model = ...
        inner = torch.optim.AdamW(model.parameters(), lr=1e-3)
        samples = Samples(len(rows), batch=32, seed=log.seed)
        with DiLoCo(model, inner, log=log, samples=samples) as diloco:
            log.start(total_epochs=20)
            while diloco.rounds < 20:
                batch = rows[diloco.batch()]
                loss = ...
                inner.zero_grad()
                loss.backward()
                diloco.note(loss, tokens=len(batch))
                inner.step()  # every sync_every steps this is a round, too
            path = diloco.save_model(log.checkpoint_dir / "model.pt")
            log.checkpoint_saved(path, epoch=diloco.rounds - 1, final=True)

It runs in a replica that `harness train EXP --replicas N -- CMD` or `python -m
harness.training.replicas` started. docs/diloco.md says what a round does and what is kept.
"""

from harness.domain.distributed import DiLoCoConfig
from harness.training.diloco.replica import DiLoCo
from harness.training.diloco.samples import Samples

__all__ = ["DiLoCo", "DiLoCoConfig", "Samples"]
