"""What is asked for? A small language model learns to answer in one word: supervised fine-tuning with TRL.

The base model has random weights, so that nothing is downloaded. Yours lies in a folder that `readable` of
.harness/config.toml names: `AutoModelForCausalLM.from_pretrained("models/base")`.
"""

import json
import os

import torch

EPOCHS, BATCH, RATE, WIDTH = 6, 16, 5e-3, 32


def read(path):
    with open(path, encoding="utf-8") as stream:
        return [json.loads(line) for line in stream if line.strip()]


def base(rows):
    """(model, tokenizer)"""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    words = sorted({word for row in rows for word in f"{row['prompt']} {row['answer']}".split()})
    names = {name: place for place, name in enumerate(["<pad>", "<unk>", "<eos>", "?", *words])}
    whole = Tokenizer(models.WordLevel(names, unk_token="<unk>"))
    whole.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=whole, pad_token="<pad>", unk_token="<unk>", eos_token="<eos>"
    )
    config = LlamaConfig(
        vocab_size=len(names),
        hidden_size=WIDTH,
        intermediate_size=2 * WIDTH,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=32,
        pad_token_id=0,
        bos_token_id=2,
        eos_token_id=2,
    )
    return LlamaForCausalLM(config), tokenizer


def main():
    from datasets import Dataset
    from trl import SFTConfig, SFTTrainer

    from harness.run_logger import RunLogger
    from harness.training.transformers_callback import TransformersCallback

    rows = read(os.environ.get("HARNESS_TRAIN", "data/requests.train.jsonl"))
    items = [{"prompt": f"{row['prompt']} ?", "completion": f" {row['answer']}"} for row in rows]
    with RunLogger.from_environment() as log:
        torch.manual_seed(log.seed)
        model, tokenizer = base(rows)
        arguments = SFTConfig(
            output_dir=str(log.checkpoint_dir),
            num_train_epochs=EPOCHS,
            learning_rate=RATE,
            per_device_train_batch_size=BATCH,
            max_length=16,
            logging_strategy="epoch",
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            seed=log.seed,
        )
        trainer = SFTTrainer(
            model,
            arguments,
            train_dataset=Dataset.from_list(items),
            processing_class=tokenizer,
            callbacks=[TransformersCallback(log)],
        )
        trainer.train()
        path = log.checkpoint_dir / "model"
        model.save_pretrained(path)
        tokenizer.save_pretrained(path)
        (path / "answers.json").write_text(json.dumps(sorted({row["answer"] for row in rows})))
        log.checkpoint_saved(path, epoch=EPOCHS - 1, final=True)


if __name__ == "__main__":
    main()
