"""One replica of a small language model under transformers.Trainer; replica 1 kills itself once."""

import hashlib
import os
import time

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainerCallback, TrainingArguments

from harness.run_logger import RunLogger
from harness.training.diloco.trainer_callback import DiLoCoCallback
from harness.training.transformers_callback import TransformersCallback

STEPS = 160


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, row):
        ids = torch.arange(row % 8, row % 8 + 12) % 16
        return {"input_ids": ids, "labels": ids}


class Once(TrainerCallback):
    """Replica 1 dies in its second round; replica 0 waits, in a later one, until it is back."""

    def __init__(self, folder):
        self.died, self.back = folder.parent / "died", folder.parent / "back"

    def on_step_end(self, args, state, control, **more):
        if os.environ["HARNESS_REPLICA"] == "1":
            if self.died.exists():
                self.back.touch()
            elif state.global_step == 7:
                self.died.touch()
                os.kill(os.getpid(), 9)
        elif state.global_step == 41:
            while not self.back.exists():
                time.sleep(0.1)
        time.sleep(0.02)


def main():
    with RunLogger.from_environment() as log:
        torch.manual_seed(log.seed)
        sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1}
        sizes |= {"num_attention_heads": 2, "num_key_value_heads": 2, "vocab_size": 16}
        model = LlamaForCausalLM(LlamaConfig(**sizes))
        replicas = DiLoCoCallback(log)
        folder = log.checkpoint_dir.parent
        trainer = Trainer(
            model,
            TrainingArguments(
                output_dir=str(log.checkpoint_dir),
                max_steps=STEPS,
                per_device_train_batch_size=4,
                learning_rate=1e-2,
                logging_steps=4,
                save_strategy="no",
                report_to="none",
                use_cpu=True,
                disable_tqdm=True,
            ),
            train_dataset=replicas.shard(Rows()),
            callbacks=[TransformersCallback(log), replicas, Once(folder)],
        )
        trainer.train()
        path = log.checkpoint_dir / "model.pt"
        torch.save(model.state_dict(), path)
        log.checkpoint_saved(path, epoch=STEPS - 1, final=True)
    plain = b"".join(each.detach().numpy().tobytes() for each in model.parameters())
    (folder / "digest").write_text(hashlib.sha256(plain).hexdigest())


if __name__ == "__main__":
    main()
