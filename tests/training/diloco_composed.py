"""One replica of a small composed training: LoRA by reward, distillation and DPO in one loss."""

import hashlib
import json
from dataclasses import replace

import torch

from harness.domain.composition import PreferenceChannel
from harness.run_logger import RunLogger
from harness.training.diloco import replica as diloco_replica
from harness.training.diloco.trainer_callback import DiLoCoCallback
from harness.training.trainers import composed
from harness.training.transformers_callback import TransformersCallback
from tests.training.composing import task_of, trained
from tests.training.test_composed import made

STEPS = 6
SENT = []
"""Elements of each tensor that left this replica for an average."""


class Counted(diloco_replica.ReplicaManager):
    def allreduce(self, tensor, *words, **more):
        SENT.append(tensor.numel())
        return super().allreduce(tensor, *words, **more)


class Kept(DiLoCoCallback):
    noted = ()

    def note(self, loss, *, tokens):
        self.noted = [*self.noted, (float(loss), tokens)]
        super().note(loss, tokens=tokens)


def digest(tensors):
    plain = b"".join(each.detach().numpy().tobytes() for each in tensors)
    return hashlib.sha256(plain).hexdigest()


def main():
    with RunLogger.from_environment() as log:
        folder = log.checkpoint_dir.parent
        numbers = {"max_steps": STEPS, "learning_rate": 1e-2}
        task = task_of(
            folder, log, made(dpo=PreferenceChannel(weight=0.25)), hyperparameters=numbers
        )
        replicas = Kept(log)
        task.rows = replace(task.rows, rows=replicas.share(task.rows.rows))
        task.settings |= {"save_strategy": "no"}
        trainer = composed.build(task)
        for one in (TransformersCallback(log), replicas):
            trainer.add_callback(one)
        before = digest(trained(trainer))
        torch.manual_seed(log.seed + int(folder.name))  # their rollouts differ
        trainer.train()
        adapter = trained(trainer)
        path = log.checkpoint_dir / "adapter.pt"
        torch.save([each.detach() for each in adapter], path)
        log.checkpoint_saved(path, epoch=STEPS - 1, final=True)
    told = {
        "rows": [row["id"] for row in task.rows.rows],
        "losses": [row["loss"] for row in trainer.state.log_history if "loss" in row],
        "noted": replicas.noted,
        "before": before,
        "after": digest(adapter),
        "adapter": sum(each.numel() for each in adapter),
        "model": sum(each.numel() for each in trainer.model.parameters()),
        "sent": SENT,
    }
    (folder / "told.json").write_text(json.dumps(told))


if __name__ == "__main__":
    diloco_replica.ReplicaManager = Counted
    main()
