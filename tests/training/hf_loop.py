"""transformers.Trainer with dropout and a scheduler, that goes on where it was."""

import json
import os

import torch
import transformers

from harness.training.transformers_callback import TransformersCallback, whole_checkpoint
from tests.training.torch_loop import digest

os.environ.update(HF_HUB_OFFLINE="1", HF_HUB_DISABLE_TELEMETRY="1")


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(4, 8), torch.nn.Dropout(0.3), torch.nn.Linear(8, 1)
        )

    def forward(self, x, labels):
        made = self.layers(x).squeeze(1)
        return {"loss": ((made - labels) ** 2).mean(), "logits": made}


def train(log, folder):
    torch.manual_seed(7)
    rows = torch.linspace(-1, 1, 80).reshape(20, 4)
    arguments = transformers.TrainingArguments(
        output_dir=str(log.checkpoint_dir),
        num_train_epochs=3,
        per_device_train_batch_size=4,
        logging_steps=1,
        learning_rate=1e-2,
        warmup_steps=3,
        save_steps=2,
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
        seed=7,
        dataloader_pin_memory=False,
    )
    trainer = transformers.Trainer(
        model=Small(),
        args=arguments,
        train_dataset=[{"x": row, "labels": row.sum()} for row in rows],
        callbacks=[TransformersCallback(log)],
    )
    trainer.train(resume_from_checkpoint=whole_checkpoint(log.checkpoint_dir))
    made = digest(trainer.model, trainer.optimizer)
    (folder / "digest.txt").write_text(json.dumps([made, trainer.lr_scheduler.get_last_lr()]))
