"""Which team answers a ticket? A small transformer, trained from nothing with transformers' Trainer."""

import json
import os
from collections import Counter

import torch

EPOCHS, WIDTH, LENGTH, RATE = 12, 32, 12, 5e-3
TEAMS = ("billing", "delivery", "login")


def read(path):
    with open(path, encoding="utf-8") as stream:
        return [json.loads(line) for line in stream if line.strip()]


def encoded(rows, words):
    """Token numbers and mask; 0 is padding, 1 a word that training did not see."""
    tokens = torch.zeros(len(rows), LENGTH, dtype=torch.long)
    for place, row in enumerate(rows):
        known = [words.get(word, 1) for word in row["text"].split()[:LENGTH]]
        tokens[place, : len(known)] = torch.tensor(known)
    return tokens, (tokens > 0).long()


def main():
    # Here, and not above: predict.py imports this file too, and needs no trainer.
    from transformers import (
        BertConfig,
        BertForSequenceClassification,
        Trainer,
        TrainingArguments,
    )

    from harness.run_logger import RunLogger
    from harness.training.transformers_callback import TransformersCallback

    rows = read(os.environ.get("HARNESS_TRAIN", "data/tickets.train.jsonl"))
    counts = Counter(word for row in rows for word in row["text"].split())
    words = {word: number for number, word in enumerate(sorted(counts), start=2)}
    tokens, mask = encoded(rows, words)
    labels = torch.tensor([TEAMS.index(row["team"]) for row in rows])
    items = [
        {"input_ids": a, "attention_mask": b, "labels": c} for a, b, c in zip(tokens, mask, labels)
    ]
    with RunLogger.from_environment() as log:
        torch.manual_seed(log.seed)
        model = BertForSequenceClassification(
            BertConfig(
                vocab_size=len(words) + 2,
                hidden_size=WIDTH,
                num_hidden_layers=1,
                num_attention_heads=2,
                intermediate_size=2 * WIDTH,
                max_position_embeddings=LENGTH,
                num_labels=len(TEAMS),
            )
        )
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
        model.save_pretrained(path)
        (path / "words.json").write_text(json.dumps(words))
        log.checkpoint_saved(path, epoch=EPOCHS - 1, final=True)


if __name__ == "__main__":
    main()
