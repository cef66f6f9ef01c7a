"""How likely is each of the answers that it was taught to be the next word? With a checkpoint of train.py."""

import csv
import json
import os
from pathlib import Path

import torch
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from train import read

folder = Path(os.environ["HARNESS_CHECKPOINT"])
tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
model = LlamaForCausalLM.from_pretrained(folder).eval()
answers = json.loads((folder / "answers.json").read_text())
places = [tokenizer.convert_tokens_to_ids(answer) for answer in answers]
rows = read(os.environ["HARNESS_INPUTS"])
with open(os.environ["HARNESS_PREDICTIONS"], "w", encoding="utf-8", newline="") as stream:
    writer = csv.writer(stream)
    writer.writerow(["id", *(f"p_{answer}" for answer in answers)])
    for row in rows:
        asked = tokenizer(f"{row['prompt']} ?", return_tensors="pt")["input_ids"]
        with torch.no_grad():
            last = model(asked).logits[0, -1]
        writer.writerow([row["id"], *last[places].double().softmax(0).tolist()])
