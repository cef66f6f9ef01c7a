"""Which team answers a ticket? A small transformer, trained from nothing with transformers' Trainer.

With a model of yours, `AutoModelForSequenceClassification.from_pretrained`: docs/users/huggingface.md.
"""

import json
import os
from collections import Counter

import torch
from model import TEAMS, Tickets, encoded, read
from transformers import Trainer, TrainingArguments

from harness.run_logger import RunLogger
from harness.training.transformers_callback import TransformersCallback

EPOCHS, RATE = 12, 5e-3


def main():
    rows = read(os.environ.get("HARNESS_TRAIN", "data/tickets.train.jsonl"))
    counts = Counter(word for row in rows for word in row["text"].split())
    words = {word: number for number, word in enumerate(sorted(counts), start=2)}
    labels = [TEAMS.index(row["team"]) for row in rows]
    items = [
        {"input_ids": tokens, "labels": label}
        for tokens, label in zip(encoded(rows, words), labels)
    ]
    with RunLogger.from_environment() as log:
        torch.manual_seed(log.seed)
        model = Tickets(len(words))
        arguments = TrainingArguments(
            output_dir=str(log.checkpoint_dir),
            num_train_epochs=EPOCHS,
            per_device_train_batch_size=64,
            learning_rate=RATE,
            logging_strategy="epoch",
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
            seed=log.seed % 2**32,
        )
        trainer = Trainer(
            model, arguments, train_dataset=items, callbacks=[TransformersCallback(log)]
        )
        trainer.train()
        path = log.checkpoint_dir / "model"
        path.mkdir()
        torch.save(model.state_dict(), path / "weights.pt")
        (path / "words.json").write_text(json.dumps(words))
        log.checkpoint_saved(path, epoch=EPOCHS - 1, final=True)


if __name__ == "__main__":
    main()
