"""Samples of logs as programs print or write them, with own numbers, and what is right of each.

A row of a sample is its template with `i` (0, 10, 20 or the number given) and `loss`.
"""

from dataclasses import dataclass, field
from typing import Any

LOSSES = (3.5, 2.75, 2.25)


@dataclass(frozen=True, kw_only=True)
class Form:
    name: str
    file: str
    line: str
    places: tuple[float, ...] = (0, 10, 20)
    head: str = ""
    tail: str = ""
    rows: int = 3
    unit: str = "step"
    place: float = 20
    total: int | None = None
    keys: set[str] = field(default_factory=set)
    last: dict[str, float] = field(default_factory=dict)
    state: str = "stopped"
    """Of a file that is old."""
    ends: str = "\n"

    def text(self) -> str:
        lines = (
            self.line.format(i=i, n=n, loss=loss, k=n + 1)
            for n, (i, loss) in enumerate(zip(self.places, LOSSES, strict=True))
        )
        return self.head + "".join(line + self.ends for line in lines) + self.tail


def form(name: str, file: str, line: str, **more: Any) -> Form:
    return Form(name=name, file=file, line=line, **more)


BY_EPOCH = {"places": (1, 2, 3), "unit": "epoch", "place": 3}
FROM_ZERO = {"places": (0, 1, 2), "unit": "epoch", "place": 2}
ESC = "\x1b"
BACK = "\b" * 30 + "\r"

FORMS = (
    form(
        "Keras, verbose=1 on a terminal",
        "k.log",
        f"Epoch {{i}}/3\n{ESC}[1m 1/40{ESC}[0m {ESC}[32m━{ESC}[0m 9s 5ms/step - loss: 9.0"
        f"{BACK}{ESC}[1m40/40{ESC}[0m {ESC}[32m━━{ESC}[0m 0s 5ms/step - loss: 8.0"
        f"{BACK}{ESC}[1m40/40{ESC}[0m {ESC}[32m━━{ESC}[0m 2s 5ms/step - loss: {{loss}}"
        " - val_loss: 4.5",
        **BY_EPOCH,
        total=3,
        keys={"loss", "val_loss"},
        last={"loss": 2.25, "val_loss": 4.5},
    ),
    form(
        "Keras, verbose=1 in a file",
        "k.log",
        "Epoch {i}/3\n 7/40 [====>.....] - ETA: 5s - loss: 9.0\n"
        "40/40 [==========] - 3s 7ms/step - loss: {loss} - acc: 0.5",
        **BY_EPOCH,
        total=3,
        keys={"loss", "acc"},
        last={"loss": 2.25, "acc": 0.5},
    ),
    form(
        "Keras, verbose=2",
        "k.log",
        "Epoch {i}/3\n40/40 - 3s - 21ms/step - loss: {loss} - val_loss: 4.5",
        **BY_EPOCH,
        total=3,
        keys={"loss", "val_loss"},
        last={"loss": 2.25, "val_loss": 4.5},
    ),
    form(
        "Keras, CSVLogger",
        "history.csv",
        "{i},0.5,{loss},NA,NA",
        head="epoch,accuracy,loss,val_accuracy,val_loss\n",
        tail="3,0.6,2.0,0.4,2.5\n4,0.6,1.9,NA,NA\n",
        rows=5,
        **(FROM_ZERO | {"place": 4}),
        keys={"accuracy", "loss", "val_accuracy", "val_loss"},
        last={"loss": 1.9, "val_loss": 2.5},
    ),
    form(
        "Keras, the history as JSON",
        "history.json",
        "{loss},",
        ends="",
        head='{"val_loss": [4, 4, 4], "loss": [',
        tail=" 2.0]}",
        rows=4,
        **(FROM_ZERO | {"place": 3}),
        keys={"loss", "val_loss"},
        last={"loss": 2.0},
    ),
    form(
        "nanoGPT",
        "train.log",
        "iter {i}: loss {loss}, time 80.25ms, mfu 31.50%",
        head="number of parameters: 10.65M\nstep 0: train loss 4.2, val loss 4.3\n",
        rows=4,
        unit="iteration",
        keys={"train loss", "val loss", "loss", "time_ms", "mfu"},
        last={"loss": 2.25, "time_ms": 80.25, "train loss": 4.2, "val loss": 4.3},
    ),
    form(
        "nanochat",
        "train.log",
        "step {i:05d}/00040 (1.00%) | loss: {loss} | lrm: 1.00 | dt: 45.5ms | tok/sec: 1,234",
        total=40,
        state="lost",
        keys={"loss", "lrm", "dt_ms", "tok/sec"},
        last={"loss": 2.25, "tok/sec": 1234},
    ),
    form(
        "llm.c",
        "train.log",
        "step {i:4d}/40 | loss {loss} (+nanz)| norm 1.5 (+nanz)| lr 6.00e-04 | 50.10 ms | 41.5% "
        "bf16 MFU | 123456 tok/s",
        head="| precision | BF16 |\n",
        total=40,
        state="lost",
        keys={"loss", "norm"},
        last={"loss": 2.25, "norm": 1.5},
    ),
    form(
        "llm.c, main.log",
        "main.log",
        "s:{i} trl:{loss} lr:0.000600 norm:1.50",
        head="s:0 tel:11.0092\n",
        tail="s:20 tel:2.5\ns:20 eval:0.29\n",
        rows=6,
        keys={"train_loss", "val_loss", "norm", "eval_accuracy"},
        last={"train_loss": 2.25, "val_loss": 2.5, "eval_accuracy": 0.29, "norm": 1.5},
    ),
    form(
        "modded-nanogpt, after its own source",
        "run.txt",
        "step:{i}/40 val_loss:{loss} train_time:1234ms step_avg:98.5ms",
        head="import os\nfor step in range(10): loss = 2.0\n# lr=0.1 at step 100\n"
        'print0(f"step:{step}/{total} val_loss:{loss:.4f}")\n' + "=" * 100 + "\n",
        total=40,
        state="lost",
        keys={"val_loss", "train_time_ms", "step_avg_ms"},
        last={"val_loss": 2.25},
    ),
    form(
        "litgpt",
        "train.log",
        "Epoch 1 | iter {i} step {n} | loss train: {loss}, val: 3.25 | iter time: 298.5 ms (step)",
        unit="iteration",
        keys={"loss train", "val", "iter time_ms"},
        last={"loss train": 2.25, "val": 3.25},
    ),
    form(
        "Megatron-LM",
        "train.log",
        " [2025-03-01 10:00:0{n}] iteration {i:8d}/      40 | consumed samples:  80 | elapsed time"
        " per iteration (ms): 512.5 | learning rate: 1.5E-04 | lm loss: {loss}E+00 | grad norm:"
        " 1.25 |",
        unit="iteration",
        total=40,
        state="lost",
        keys={"elapsed time per iteration_ms", "lm loss", "grad norm"},
        last={"lm loss": 2.25, "grad norm": 1.25},
    ),
    form(
        "torchtitan, coloured",
        "train.log",
        f"[rank0]:[titan] 2025-03-01 10:00:00,123 - root - INFO - {ESC}[31mstep: {{i:2d}}  "
        f"{ESC}[32mloss:  {{loss}}  {ESC}[33mmemory: 20.50GiB(21.5%)  {ESC}[34mtps: 5,123{ESC}[39m",
        tail="[rank0]:[titan] 2025-03-01 10:00:00,123 - root - INFO - Training completed\n",
        state="completed",
        keys={"loss", "memory_GiB", "tps"},
        last={"loss": 2.25, "memory_GiB": 20.5, "tps": 5123},
    ),
    form(
        "torchtune",
        "train.log",
        "1|{i}|Loss: {loss}:  20%|██        | {i}/40 [00:10<01:00,  1.60it/s]",
        ends="\r",
        keys={"Loss"},
        last={"Loss": 2.25},
    ),
    form(
        "OLMo",
        "train.log",
        "2025-03-01 10:00:00.1\tnode-fin-03:0\tolmo.train:979\tINFO\t[step={i}/40,epoch=0]\n"
        "    train/CrossEntropyLoss={loss}\n    train/Perplexity=55.5",
        total=40,
        state="lost",
        keys={"train/CrossEntropyLoss", "train/Perplexity"},
        last={"train/CrossEntropyLoss": 2.25, "train/Perplexity": 55.5},
    ),
    form(
        "fairseq, JSON",
        "train.log",
        '2025-03-01 10:00:00 | INFO | train_inner | {{"epoch": 1, "update": 0.5, "loss": "{loss}",'
        ' "wps": "1000", "num_updates": "{i}", "lr": "2e-05"}}',
        head='2025-03-01 10:00:00 | INFO | train_inner | {"epoch": 1, "update": 0.1, "loss": NaN,'
        ' "gnorm": NaN, "num_updates": "0", "lr": "2e-05"}\n',
        tail="2025-03-01 11:00:00 | INFO | fairseq_cli.train | done training in 36.5 seconds\n",
        places=(10, 20, 30),
        place=30,
        rows=4,
        unit="update",
        state="completed",
        keys={"loss", "wps", "gnorm"},
        last={"loss": 2.25},
    ),
    form(
        "fairseq, simple",
        "train.log",
        "2025-03-01 10:00:00 | INFO | train_inner | epoch 001:  {i} / 40 loss={loss}, ppl=11.5,"
        " wps=1000, num_updates={i}, lr=2e-05, gnorm=1.5, wall=10",
        unit="update",
        keys={"loss", "ppl", "wps", "gnorm", "wall"},
        last={"loss": 2.25, "gnorm": 1.5},
    ),
    form(
        "MLX",
        "train.log",
        "Iter {i}: Train loss {loss}, Learning Rate 1.0e-05, It/sec 1.5, Tokens/sec 500.5, Trained"
        " Tokens 3000, Peak mem 5.5 GB",
        head="Iter 1: Val loss 4.125, Val took 3.5s\n",
        tail="Saved final weights to adapters/adapters.safetensors.\n",
        places=(10, 20, 30),
        place=30,
        rows=4,
        unit="iteration",
        state="completed",
        keys={"Val loss", "Train loss", "It/sec", "Tokens/sec", "Peak mem_GB"},
        last={"Train loss": 2.25, "Val loss": 4.125},
    ),
    form(
        "transformers, printed dicts",
        "train.log",
        "{{'loss': {loss}, 'grad_norm': 1.5, 'learning_rate': 2e-05, 'epoch': 0.{n}}}",
        tail="{'train_runtime': 12.5, 'train_loss': 2.8, 'epoch': 1.0}\n",
        unit="epoch",
        place=0.2,
        state="completed",
        keys={"loss", "grad_norm"},
        last={"loss": 2.25},
    ),
    form(
        "LLaMA-Factory",
        "trainer_log.jsonl",
        '{{"current_steps": {i}, "total_steps": 25, "loss": {loss}, "eval_loss": null, "epoch":'
        ' 0.{n}, "percentage": 4.5, "elapsed_time": "0:01:00", "remaining_time": "0:05:00"}}',
        tail='{"current_steps": 25, "total_steps": 25, "loss": null, "epoch": 1.0, "percentage":'
        " 100.0}\n",
        place=25,
        total=25,
        keys={"loss"},
        last={"loss": 2.25},
    ),
    form(
        "Lightning, bars",
        "train.log",
        "Epoch {n}: 100%|██████████| 4/4 [00:01<00:00,  3.2it/s, v_num=7, train_loss={loss}]",
        ends="\r",
        tail="`Trainer.fit` stopped: `max_epochs=3` reached.\n",
        unit="epoch",
        place=2,
        state="completed",
        keys={"train_loss"},
        last={"train_loss": 2.25},
    ),
    form(
        "Lightning, metrics.csv",
        "metrics.csv",
        "{n},{loss},\n{n},,4.5",
        head="epoch,train_loss,val_loss\n",
        rows=6,
        unit="epoch",
        place=2,
        keys={"train_loss", "val_loss"},
        last={"train_loss": 2.25, "val_loss": 4.5},
    ),
    form(
        "tqdm with a description",
        "train.log",
        "Epoch {k}/3:  50%|█████     | 20/40 [00:02<00:02,  9.5it/s, loss={loss}, acc=0.5]",
        ends="\r",
        tail="\n",
        unit="epoch",
        place=3,
        total=3,
        keys={"loss", "acc"},
        last={"loss": 2.25, "acc": 0.5},
    ),
    form(
        "kohya-ss",
        "train.log",
        "steps:  25%|██▌       | {i}/40 [00:10<01:00,  1.60it/s, avr_loss={loss}]",
        head="running training / 学習開始\n  num epochs / epoch数: 1\n\nepoch 1/1\n",
        ends="\r",
        tail="\nmodel saved.\n",
        total=40,
        state="completed",
        keys={"avr_loss"},
        last={"avr_loss": 2.25},
    ),
    form(
        "PyTorch, MNIST",
        "train.log",
        "Train Epoch: {k} [640/60000 (1%)]\tLoss: {loss}\n\n"
        "Test set: Average loss: 0.0625, Accuracy: 9500/10000 (95%)\n",
        rows=6,
        unit="epoch",
        place=3,
        keys={"Loss", "Test Average loss", "Test Accuracy"},
        last={"Loss": 2.25, "Test Average loss": 0.0625, "Test Accuracy": 0.95},
    ),
    form(
        "PyTorch, ImageNet",
        "train.log",
        "Epoch: [{n}][ 10/5005]\tTime  0.5 ( 0.6)\tData  0.25 ( 0.1)\tLoss {loss}e+00 (7.0e+00)\t"
        "Acc@1   0.50 (  0.1)",
        unit="epoch",
        place=2,
        keys={"Time", "Data", "Loss", "Acc@1"},
        last={"Loss": 2.25, "Acc@1": 0.5},
    ),
    form(
        "PyTorch, quickstart",
        "train.log",
        "Epoch {k}\n-------------------------------\nloss: {loss}  [   64/60000]\n"
        "loss: 8.5  [ 6464/60000]\nTest Error: \n Accuracy: 65.5%, Avg loss: 1.125 \n",
        tail="Done!\n",
        rows=9,
        unit="epoch",
        place=3,
        keys={"loss", "Test Accuracy", "Test Avg loss"},
        last={"loss": 8.5, "Test Accuracy": 65.5, "Test Avg loss": 1.125},
    ),
    form(
        "PyTorch, CIFAR tutorial",
        "train.log",
        "[{k},  2000] loss: {loss}",
        unit="epoch",
        place=3,
        keys={"loss"},
        last={"loss": 2.25},
    ),
    form(
        "torchvision references",
        "train.log",
        "Epoch: [{n}]  [ 10/100]  eta: 0:01:00  lr: 0.010000  loss: {loss} (5.0000)  acc1: 70.5"
        " (68.0)  time: 0.5000  data: 0.0010  max mem: 3000",
        unit="epoch",
        place=2,
        keys={"loss", "acc1", "time", "data", "max mem"},
        last={"loss": 2.25, "acc1": 70.5},
    ),
    form(
        "timm",
        "train.log",
        "Train: {n} [  50/1251 (  4%)]  Loss: {loss} (6.96)  Time: 0.5s,  LR: 1.0e-06  Data: 0.25",
        unit="epoch",
        place=2,
        keys={"Loss", "Time", "Data"},
        last={"Loss": 2.25},
    ),
    form(
        "fastai",
        "train.log",
        "{n}         {loss}    3.125000    0.912300  00:05     ",
        head="epoch     train_loss  valid_loss  accuracy  time    \n",
        unit="epoch",
        place=2,
        keys={"train_loss", "valid_loss", "accuracy"},
        last={"train_loss": 2.25, "valid_loss": 3.125},
    ),
    form(
        "skorch",
        "train.log",
        "      {k}        {loss}       0.5000        3.1250  0.0512",
        head="  epoch    train_loss    valid_acc    valid_loss     dur\n"
        "-------  ------------  -----------  ------------  ------\n",
        unit="epoch",
        place=3,
        keys={"train_loss", "valid_acc", "valid_loss", "dur"},
        last={"train_loss": 2.25, "valid_loss": 3.125},
    ),
    form(
        "XGBoost",
        "train.log",
        "[{i}]\ttrain-logloss:{loss}\teval-logloss:3.12500",
        unit="iteration",
        keys={"train-logloss", "eval-logloss"},
        last={"train-logloss": 2.25, "eval-logloss": 3.125},
    ),
    form(
        "LightGBM",
        "train.log",
        "[{i}]\ttraining's auc: {loss}\tvalid_1's auc: 0.5",
        head="[LightGBM] [Info] Total Bins 2550\n[LightGBM] [Info] Number of data points: 100\n"
        "Training until validation scores don't improve for 50 rounds\n",
        tail="Early stopping, best iteration is:\n[10]\ttraining's auc: 2.75\tvalid_1's auc: 0.5\n",
        unit="iteration",
        state="completed",
        keys={"training's auc", "valid_1's auc"},
        last={"training's auc": 2.25, "valid_1's auc": 0.5},
    ),
    form(
        "CatBoost",
        "train.log",
        "{i}:\tlearn: {loss}\ttest: 3.125\tbest: 3.125 (0)\ttotal: 52ms\tremaining: 51.9s",
        head="Learning rate set to 0.05\n",
        tail="\nbestTest = 3.125\nbestIteration = 0\n",
        unit="iteration",
        state="completed",
        keys={"learn", "test", "best"},
        last={"learn": 2.25, "test": 3.125},
    ),
    form(
        "scikit-learn, GradientBoosting",
        "train.log",
        "        {k}           {loss}            0.05s",
        head="      Iter       Train Loss   Remaining Time \n",
        unit="iteration",
        place=3,
        keys={"Train Loss"},
        last={"Train Loss": 2.25},
    ),
    form(
        "scikit-learn, MLP",
        "train.log",
        "Iteration {k}, loss = {loss}",
        unit="iteration",
        place=3,
        keys={"loss"},
        last={"loss": 2.25},
    ),
    form(
        "ESPnet",
        "train.log",
        "[gpu01] 2021-06-01 10:00:00,123 (trainer:672) INFO: 3epoch:train:{i}-{i}batch: "
        "forward_time=0.123, loss_ctc=50.1, loss={loss}, acc=0.5{k}, optim0_lr0=0.002",
        unit="epoch",
        place=3,
        keys={"forward_time", "loss_ctc", "loss", "acc", "optim0_lr0"},
        last={"loss": 2.25, "acc": 0.53},
    ),
    form(
        "WeNet",
        "train.log",
        "2021-06-01 10:00:00,1 DEBUG TRAIN Batch 3/{i} loss {loss} loss_att 12.5 lr 0.0001 rank 0",
        unit="epoch",
        place=3,
        keys={"loss", "loss_att"},
        last={"loss": 2.25, "loss_att": 12.5},
    ),
    form(
        "fastText",
        "train.log",
        "Progress: {i}.0% words/sec/thread:   1234 lr:  0.05000 avg.loss:  {loss} ETA:   0h 0m 5s",
        ends="\r",
        unit="percent",
        keys={"words/sec/thread", "avg.loss"},
        last={"avg.loss": 2.25},
    ),
    form(
        "nnU-Net",
        "training_log.txt",
        "2024-05-01 10:00:00.123456: \n2024-05-01 10:00:00.123456: Epoch {n} \n"
        "2024-05-01 10:00:40.123456: train_loss -0.{k}123 \n"
        "2024-05-01 10:00:40.123456: val_loss -0.{k}345 \n"
        "2024-05-01 10:00:40.123456: Epoch time: 40.12 s ",
        unit="epoch",
        place=2,
        keys={"train_loss", "val_loss", "Epoch time"},
        last={"train_loss": -0.3123, "val_loss": -0.3345},
    ),
    form(
        "Coqui TTS",
        "trainer_0_log.txt",
        "\n   --> STEP: {i}/406 -- GLOBAL_STEP: {i}\n     | > loss: {loss}  (9.5)\n"
        "     | > grad_norm: 1.5  (1.6)",
        state="lost",
        total=406,
        keys={"loss", "grad_norm"},
        last={"loss": 2.25, "grad_norm": 1.5},
    ),
    form(
        "BasicSR",
        "train.log",
        "2021-06-01 10:00:00,123 INFO: [EDSR_][epoch:  0, iter:   {i}, lr:(1.000e-04,)] "
        "[eta: 1 day, 2:03:04, time (data): 0.512 (0.011)] l_pix: {loss}e-02 ",
        unit="iteration",
        keys={"l_pix", "time (data)"},
        last={"l_pix": 0.0225},
    ),
    form(
        "Tesseract",
        "train.log",
        "At iteration {i}/{i}/{i}, Mean rms={loss}%, delta=4.5%, char train=8{k}.5%, "
        "word train=9{k}.25%, skip ratio=0%,  New worst char error = 88.8 wrote checkpoint.",
        unit="iteration",
        keys={
            "Mean rms",
            "delta",
            "char train",
            "word train",
            "skip ratio",
            "New worst char error",
        },
        last={"Mean rms": 2.25, "char train": 83.5, "word train": 93.25},
    ),
    form(
        "conlleval",
        "train.log",
        "processed 9 tokens with 5 phrases; found: 6 phrases; correct: {k}.\n"
        "accuracy:  9{k}.50%; precision:  {loss}%; recall:  50.00%; FB1:  5{k}.00\n"
        "              ORG: precision:  77.00%; recall:  7{k}.00%; FB1:  78.00  603",
        rows=6,
        place=5,
        keys={
            "accuracy",
            "precision",
            "recall",
            "FB1",
            "ORG precision",
            "ORG recall",
            "ORG FB1",
        },
        last={"accuracy": 93.5, "precision": 2.25, "FB1": 53, "ORG recall": 73},
    ),
    form(
        "YOLOv5, results.csv",
        "results.csv",
        "                   {n},             {loss},             0.12345,             0.01234",
        head="               epoch,      train/box_loss,     metrics/mAP_0.5,"
        "metrics/mAP_0.5:0.95\n",
        unit="epoch",
        place=2,
        keys={"train/box_loss", "metrics/mAP_0.5", "metrics/mAP_0.5:0.95"},
        last={"train/box_loss": 2.25, "metrics/mAP_0.5:0.95": 0.01234},
    ),
    form(
        "YOLO, console",
        "train.log",
        "      Epoch    GPU_mem   box_loss   obj_loss   cls_loss  Instances       Size\n"
        "        {n}/2      3.35G       {loss}      0.125     0.0625        201        640: "
        "100%|██████████| 8/8 [00:05<00:00,  1.5it/s]\n"
        "                 Class     Images  Instances          P          R      mAP50   mAP50-95: "
        "100%|██████████| 4/4 [00:01<00:00]\n"
        "                   all        128        929      0.625      0.5      0.375       0.25",
        tail="\n3 epochs completed in 0.005 hours.\n",
        rows=6,
        unit="epoch",
        place=2,
        state="completed",
        total=2,
        keys={
            *("GPU_mem_GB", "box_loss", "obj_loss", "cls_loss", "Instances", "Size"),
            *("P", "R", "mAP50", "mAP50-95"),
        },
        last={"box_loss": 2.25, "mAP50": 0.375},
    ),
    form(
        "detectron2, metrics.json",
        "metrics.json",
        '{{"data_time": 0.005, "eta_seconds": 300.5, "iteration": {i}, "total_loss": {loss}}}',
        unit="iteration",
        keys={"data_time", "total_loss"},
        last={"total_loss": 2.25},
    ),
    form(
        "detectron2, console",
        "log.txt",
        "[03/01 10:00:00 d2.utils.events]:  eta: 0:01:00  iter: {i}  total_loss: {loss}  loss_cls:"
        " 1.5  time: 0.25  data_time: 0.005  lr: 0.001  max_mem: 2500M",
        tail="[03/01 11:00:00 d2.engine.hooks]: Total training time: 0:05:00 (0:00:10 on hooks)\n",
        unit="iteration",
        state="completed",
        keys={"total_loss", "loss_cls", "time", "data_time", "max_mem_MB"},
        last={"total_loss": 2.25, "loss_cls": 1.5},
    ),
    form(
        "mmengine, scalars.json",
        "scalars.json",
        '{{"lr": 0.02, "loss": {loss}, "time": 0.25, "epoch": 1, "iter": {i}, "step": {i}}}',
        keys={"loss", "time"},
        last={"loss": 2.25},
    ),
    form(
        "mmengine, console",
        "train.log",
        "2025/03/01 10:00:00 - mmengine - INFO - Epoch(train)  [{k}][ 10/1172]  lr: 1.0e-02  eta:"
        " 0:10:00  time: 0.5  data_time: 0.125  memory: 3000  loss: {loss}",
        unit="epoch",
        place=3,
        keys={"time", "data_time", "memory", "loss"},
        last={"loss": 2.25},
    ),
    form(
        "mmcv",
        "train.log.json",
        '{{"mode": "train", "epoch": {k}, "iter": 50, "lr": 0.02, "loss": {loss}}}\n'
        '{{"mode": "train", "epoch": {k}, "iter": 100, "lr": 0.02, "loss": {loss}5}}',
        rows=6,
        unit="epoch",
        place=3,
        keys={"loss"},
        last={"loss": 2.255},
    ),
    form(
        "Stable-Baselines3, monitor.csv",
        "0.monitor.csv",
        "{i}.5,50,{n}.25",
        head='#{"t_start": 1700000000.5, "env_id": "Demo-v1"}\nr,l,t\n',
        unit="episode",
        place=2,
        keys={"r", "l"},
        last={"r": 20.5, "l": 50},
    ),
    form(
        "Stable-Baselines3, progress.csv",
        "progress.csv",
        "{i}00,1,-0.01,{loss}",
        head="time/total_timesteps,time/iterations,train/policy_gradient_loss,train/loss\n",
        unit="timestep",
        place=2000,
        keys={"train/policy_gradient_loss", "train/loss"},
        last={"train/loss": 2.25},
    ),
    form(
        "Stable-Baselines3, console",
        "train.log",
        "-"
        * 36
        + "\n| rollout/                |          |\n|    ep_rew_mean          | 22.5     |\n"
        "| time/                   |          |\n|    total_timesteps      | {i}48     |\n"
        "| train/                  |          |\n|    loss                 | {loss}     |\n"
        + "-"
        * 36,
        head="Using cpu device\nWrapping the env in a DummyVecEnv.\n",
        unit="timestep",
        place=2048,
        keys={"rollout/ep_rew_mean", "train/loss"},
        last={"train/loss": 2.25, "rollout/ep_rew_mean": 22.5},
    ),
    form(
        "Spinning Up",
        "train.log",
        "-"
        * 35
        + "\n|             Epoch |               {n} |\n|      AverageEpRet |            20.5 |\n"
        "| TotalEnvInteracts |           4e+03 |\n|             LossV |            {loss} |\n"
        + "-"
        * 35,
        unit="epoch",
        place=2,
        keys={"AverageEpRet", "LossV"},
        last={"LossV": 2.25, "AverageEpRet": 20.5},
    ),
    form(
        "rsl_rl",
        "train.log",
        "#" * 40 + "\n            Learning iteration {i}/40            \n\n"
        "           Value function loss: {loss}\n                   Mean reward: 12.5\n"
        + "-" * 40
        + "\n               Total timesteps: 98304\n                Iteration time: 1.50s\n",
        rows=6,
        unit="iteration",
        total=40,
        state="lost",
        keys={"Value function loss", "Mean reward", "Iteration time"},
        last={"Value function loss": 2.25, "Mean reward": 12.5},
    ),
    form(
        "RLlib, result.json",
        "result.json",
        '{{"episode_reward_mean": 22.5, "training_iteration": {k}, "timesteps_total": {k}00, "x":'
        ' false, "config": {{"lr": 0.5}}, "info": {{"learner": {{"loss": {loss}}}}}}}',
        unit="iteration",
        place=3,
        keys={"episode_reward_mean", "info/learner/loss"},
        last={"info/learner/loss": 2.25, "episode_reward_mean": 22.5},
    ),
    form(
        "RLlib, console",
        "train.log",
        "Result for PPO_Demo_1a2b_00000:\n  done: false\n  episode_reward_mean: 22.5\n  info:\n"
        "    learner:\n      total_loss: {loss}\n  time_total_s: 12.5\n  training_iteration: {k}\n",
        unit="iteration",
        place=3,
        keys={"episode_reward_mean", "total_loss"},
        last={"total_loss": 2.25, "episode_reward_mean": 22.5},
    ),
    form(
        "CleanRL",
        "train.log",
        "global_step={i}, episodic_return={loss}",
        keys={"episodic_return"},
        last={"episodic_return": 2.25},
    ),
    form(
        "ML-Agents",
        "train.log",
        "[INFO] Ball. Step: {i}. Time Elapsed: 12.5 s. Mean Reward: {loss}. Std of Reward: 0.5."
        " Training.",
        keys={"Mean Reward", "Std of Reward"},
        last={"Mean Reward": 2.25, "Std of Reward": 0.5},
    ),
    form(
        "a DQN script by episodes",
        "train.log",
        "Ep {i} | Reward: {loss} | Epsilon: 0.25",
        unit="episode",
        keys={"Reward", "Epsilon"},
        last={"Reward": 2.25},
    ),
    form(
        "verl",
        "train.log",
        "step:{i} - actor/entropy:0.5 - actor/pg_loss:{loss} - timing_s/step:12.5",
        keys={"actor/entropy", "actor/pg_loss", "timing_s/step"},
        last={"actor/pg_loss": 2.25},
    ),
    form(
        "DVCLive, one metric",
        "loss.tsv",
        "{i}\t{loss}",
        head="step\tloss\n",
        keys={"loss"},
        last={"loss": 2.25},
    ),
    form(
        "spaCy",
        "train.log",
        "  {n}     {i}00         45.50    {loss}    0.50",
        head="E    #       LOSS TOK2VEC  LOSS NER  SCORE \n"
        "---  ------  ------------  --------  ------\n",
        unit="epoch",
        place=2,
        keys={"LOSS TOK2VEC", "LOSS NER", "SCORE"},
        last={"LOSS NER": 2.25, "SCORE": 0.5},
    ),
    form(
        "flair",
        "training.log",
        "2025-03-01 10:00:00,123 epoch {k} - iter 10/100 - loss {loss} - time (sec): 1.50 -"
        " samples/sec: 100.50 - lr: 0.100000",
        unit="epoch",
        place=3,
        keys={"loss", "time (sec)", "samples/sec"},
        last={"loss": 2.25},
    ),
    form(
        "OpenNMT-py",
        "train.log",
        "[2025-03-01 10:00:00 INFO] Step {i}/40; acc: 3.5; ppl: 123.5; xent: {loss}; lr: 0.0001;"
        " sents: 1234; bsz: 123/ 123/ 1; 1234/1234 tok/s;     10 sec;",
        total=40,
        state="lost",
        keys={"acc", "ppl", "xent", "sents"},
        last={"xent": 2.25, "ppl": 123.5},
    ),
    form(
        "Marian",
        "train.log",
        "[2025-03-01 10:00:00] Ep. 1 : Up. {i} : Sen. 64,000 : Cost {loss} : Time 12.5s",
        unit="update",
        keys={"Cost", "Time"},
        last={"Cost": 2.25},
    ),
    form(
        "Caffe",
        "train.log",
        "I0301 10:00:00.123456  1234 solver.cpp:228] Iteration {i}, loss = {loss}\n"
        "I0301 10:00:00.123456  1234 sgd_solver.cpp:106] Iteration {i}, lr = 0.01",
        tail="I0301 10:00:00.123456  1234 caffe.cpp:255] Optimization Done.\n",
        unit="iteration",
        rows=6,
        state="completed",
        keys={"loss"},
        last={"loss": 2.25},
    ),
    form(
        "TensorFlow estimators",
        "train.log",
        "INFO:tensorflow:loss = {loss}, step = {i} (1.234 sec)",
        head="INFO:tensorflow:global_step/sec: 12.5\n",
        keys={"loss"},
        last={"loss": 2.25},
    ),
    form(
        "MXNet",
        "train.log",
        "INFO:root:Epoch[{n}] Batch [20]\tSpeed: 1234.5 samples/sec\taccuracy={loss}",
        unit="epoch",
        place=2,
        keys={"Speed", "accuracy"},
        last={"accuracy": 2.25},
    ),
    form(
        "PaddlePaddle",
        "train.log",
        "[2025/03/01 10:00:00] ppcls INFO: [Train][Epoch {k}/3][Iter: 10/66]lr: 0.0125, top1: 0.5,"
        " loss: {loss}, batch_cost: 1.25s, eta: 0:01:00",
        unit="epoch",
        place=3,
        total=3,
        keys={"top1", "loss", "batch_cost"},
        last={"loss": 2.25, "top1": 0.5},
    ),
    form(
        "darknet",
        "train.log",
        " {k}: {loss}, 3.125 avg loss, 0.001 rate, 1.25 seconds, 64 images",
        unit="iteration",
        place=3,
        keys={"loss", "avg_loss"},
        last={"loss": 2.25, "avg_loss": 3.125},
    ),
    form(
        "StyleGAN",
        "train.log",
        "tick {n}     kimg {i}.5      time 1m 10s       sec/tick 30.5  sec/kimg 7.5    gpumem 20.5",
        unit="tick",
        place=2,
        keys={"sec/tick", "sec/kimg", "gpumem"},
        last={"sec/tick": 30.5},
    ),
    form(
        "CycleGAN",
        "loss_log.txt",
        "(epoch: {k}, iters: 100, time: 0.078, data: 0.094) D_A: {loss} G_A: 11.5 cycle_A: 0.5",
        unit="epoch",
        place=3,
        keys={"time", "data", "D_A", "G_A", "cycle_A"},
        last={"D_A": 2.25, "cycle_A": 0.5},
    ),
    form(
        "MaxText",
        "train.log",
        "completed step: {i}, seconds: 1.250, TFLOP/s/device: 100.5, Tokens/s/device: 1234.5,"
        " total_weights: 65536, loss: {loss}",
        keys={"seconds", "TFLOP/s/device", "Tokens/s/device", "total_weights", "loss"},
        last={"loss": 2.25},
    ),
    form(
        "Docker's JSON",
        "container-json.log",
        '{{"log":"step {i} loss: {loss}\\n","stream":"stdout","time":"2025-03-01T10:00:0{n}Z"}}',
        keys={"loss"},
        last={"loss": 2.25},
    ),
    form(
        "MAE and DINO, log.txt",
        "log.txt",
        '{{"train_lr": 0.001, "train_loss": {loss}, "epoch": {n}, "n_parameters": 23}}',
        unit="epoch",
        place=2,
        keys={"train_loss", "train_lr", "n_parameters"},
        last={"train_loss": 2.25},
    ),
    form(
        "columns between blanks",
        "loss.txt",
        "{loss:.6e} {i}",
        keys={"loss"},
        last={"loss": 2.25},
    ),
    form(
        "numpy.savetxt",
        "loss.txt",
        "{i} {loss} 3.125",
        head="# step loss val_loss\n",
        keys={"loss", "val_loss"},
        last={"loss": 2.25, "val_loss": 3.125},
    ),
    form(
        "a table by tokens",
        "curve.csv",
        "{k}000000,{loss}",
        head="tokens,loss\n",
        unit="tokens",
        place=3_000_000,
        keys={"loss"},
        last={"loss": 2.25},
    ),
    form(
        "a Markdown table",
        "run.log",
        "| {k} | {loss} | 3.125 |",
        head="| epoch | train loss | val loss |\n|-------|-----------|----------|\n",
        unit="epoch",
        place=3,
        keys={"train loss", "val loss"},
        last={"train loss": 2.25, "val loss": 3.125},
    ),
    form(
        "a list of rows as JSON",
        "log_history.json",
        '{{"step": {i}, "loss": {loss}}},',
        head="[",
        ends="",
        tail='{"step": 30, "loss": 2.0}]',
        rows=4,
        place=30,
        keys={"loss"},
        last={"loss": 2.0},
    ),
    form(
        "Swin",
        "log_rank0.txt",
        "[2021-04-09 16:31:05 swin_tiny](main.py 224): INFO Train: [{n}/300][10/30]\teta 0:10:55 "
        "lr 0.000001\t time 0.3524 (0.5288)\tloss {loss} (6.9510)\tgrad_norm 1.25 (1.3)\tmem "
        "8021MB\n"
        "[2021-04-09 16:31:59 swin_tiny](main.py 279): INFO  * Acc@1 1{n}.500 Acc@5 30.500\n"
        "[2021-04-09 16:31:59 swin_tiny](main.py 147): INFO Accuracy of the network on the 50000 "
        "test images: 1{n}.5%",
        **FROM_ZERO,
        total=300,
        state="lost",
        rows=6,
        keys={"time", "loss", "grad_norm", "mem_MB", "Acc@1", "Acc@5", "Accuracy of the network"},
        last={"loss": 2.25, "Acc@1": 12.5, "Accuracy of the network": 12.5},
    ),
    form(
        "PaddleClas",
        "train.log",
        "[2022/07/05 12:00:01] ppcls INFO: [Train][Epoch {k}/120][Iter: 20/30]lr(LinearWarmup): "
        "0.001, top1: 0.01, CELoss: {loss}, batch_cost: 1.16s, ips: 54.98 samples/s, eta: 1 day, "
        "2:03:04\n"
        "[2022/07/05 12:01:10] ppcls INFO: [Eval][Epoch {k}][Avg]CELoss: 4.5, top1: 0.0{k}",
        **BY_EPOCH,
        total=120,
        state="lost",
        rows=6,
        keys={"top1", "CELoss", "batch_cost", "ips", "Eval CELoss", "Eval top1"},
        last={"CELoss": 2.25, "Eval top1": 0.03},
    ),
    form(
        "PaddleDetection",
        "train.log",
        "[08/05 09:12:40] ppdet.engine INFO: Epoch: [{n}] [ 40/ 60] learning_rate: 0.000333 "
        "loss_xy: 0.51 loss: {loss} eta: 1 day, 2:03:04 batch_cost: 1.2345 ips: 6.4805 images/s",
        **FROM_ZERO,
        keys={"loss_xy", "loss", "batch_cost", "ips"},
        last={"loss": 2.25, "loss_xy": 0.51},
    ),
    form(
        "Flax with clu",
        "train.log",
        "I0412 10:01:22.123456 140234567890 logging_writer.py:48] [{i}] learning_rate=0.1, "
        "train_accuracy=0.12, train_loss={loss}",
        tail="I0412 10:01:23.123456 140234567890 logging_writer.py:48] [20] eval_loss=2.5\n",
        rows=4,
        keys={"train_accuracy", "train_loss", "eval_loss"},
        last={"train_loss": 2.25, "eval_loss": 2.5},
    ),
    form(
        "Sockeye",
        "train.log",
        "[2020-03-01:10:11:12:INFO:sockeye.training:log] Epoch[{n}] Batch [{i}]\tSpeed: 1000.12 "
        "samples/sec 20000.34 tokens/sec 1.25 updates/sec\tperplexity={loss}",
        **FROM_ZERO,
        keys={"Speed", "perplexity"},
        last={"perplexity": 2.25, "Speed": 1000.12},
    ),
    form(
        "DeepSpeed",
        "train.log",
        "[2023-04-12 10:00:00,130] [INFO] [timer.py:199:stop] epoch=0/micro_step={i}/"
        "global_step={i}, RunningAvgSamplesPerSec=65.53, MemAllocated=4.34GB\n"
        "Epoch: 0, Step: {i}, Rank: 0, loss = {loss}",
        head="[2023-04-12 09:59:00,123] [INFO] [config.py:957:print]   train_batch_size "
        "............. 256\n",
        rows=6,
        keys={"RunningAvgSamplesPerSec", "MemAllocated_GB", "loss"},
        last={"loss": 2.25},
    ),
    form(
        "NeMo",
        "train.log",
        "Training epoch 0, iteration {n}/99 | lr: 1.5e-05 | global_step: {i} | "
        "reduced_train_loss: {loss} | consumed_samples: {i}",
        keys={"reduced_train_loss"},
        last={"reduced_train_loss": 2.25},
    ),
    form(
        "transformers 5 and axolotl",
        "train.log",
        "\r  1%|▏         | {i}/1000 [00:01<16:30,  1.00s/it]{{'loss': '{loss}', 'grad_norm': "
        "'0.5312', 'learning_rate': '2e-05', 'epoch': '{k}'}}",
        tail="{'train_runtime': '1000.1', 'train_loss': '2.5', 'epoch': '3'}\n",
        **BY_EPOCH,
        keys={"loss", "grad_norm"},
        last={"loss": 2.25},
        state="completed",
    ),
    form(
        "Composer and LLM Foundry",
        "train.log",
        "[batch={i}/80]:\n\t Train time/batch: {i}\n\t Train time/sample: 2560\n\t Train "
        "time/epoch: 0\n\t Train loss/train/total: {loss}\n\t Train "
        "metrics/train/LanguagePerplexity: 35.75",
        unit="batch",
        total=80,
        state="lost",
        keys={"Train loss/train/total", "Train metrics/train/LanguagePerplexity"},
        last={"Train loss/train/total": 2.25},
    ),
    form(
        "SpeechBrain",
        "train_log.txt",
        "epoch: {k}, lr: 1.00e+00 - train loss: {loss} - valid loss: 2.62, valid PER: 71.63",
        tail="Epoch loaded: 3 - test loss: 1.50, test PER: 20.10\n",
        **BY_EPOCH,
        rows=4,
        keys={"train loss", "valid loss", "valid PER", "test loss", "test PER"},
        last={"train loss": 2.25, "test loss": 1.5},
    ),
    form(
        "Tianshou",
        "train.log",
        "Epoch #{k}: 10001it [00:10, 950.11it/s, env_step={k}0000, len=200, loss={loss}, "
        "rew=20.00]\nEpoch #{k}: test_reward: 2{k}.5 ± 30.123456, best_reward: 30.5 ± 30.1 in #1",
        **BY_EPOCH,
        rows=6,
        keys={"len", "loss", "rew", "test_reward", "best_reward"},
        last={"loss": 2.25, "test_reward": 23.5},
    ),
    form(
        "diffusers' bar",
        "train.log",
        "\rSteps:   1%|▏         | {i}/1000 [00:10<16:30,  1.0it/s, lr=1e-5, step_loss={loss}]",
        head="01/02/2024 10:00:00 - INFO - __main__ -   Num examples = 833\n",
        total=1000,
        ends="",
        tail="\n",
        state="lost",
        keys={"step_loss"},
        last={"step_loss": 2.25},
    ),
    form(
        "W&B, a chart as CSV",
        "wandb_export.csv",
        '"{i}","{loss}","2.0","4.0"',
        head='"Step","calm-pony-12 - train/loss","calm-pony-12 - train/loss__MIN",'
        '"calm-pony-12 - train/loss__MAX"\n',
        keys={"calm-pony-12 - train/loss"},
        last={"calm-pony-12 - train/loss": 2.25},
    ),
    form(
        "TensorBoard, a curve as CSV",
        "run-fold0-tag-train_loss.csv",
        "1700000000.5,{i},{loss}",
        head="Wall time,Step,Value\n",
        keys={"train_loss"},
        last={"train_loss": 2.25},
    ),
    form(
        "MLflow, a metric's history as CSV",
        "history.csv",
        "0a1b,train_loss,{loss},{i},170000000000{n}\n0a1b,val_loss,4.5,{i},170000000000{n}",
        head="run_id,key,value,step,timestamp\n",
        rows=6,
        keys={"train_loss", "val_loss"},
        last={"train_loss": 2.25, "val_loss": 4.5},
    ),
    form(
        "OpenCLIP",
        "out.log",
        "2022-05-01,10:00:01 | INFO | Train Epoch: {n} [ 1024/30720 (3%)] Data (t): 0.312 Batch "
        "(t): 1.024, 999.812/s, 249.9/s/gpu LR: 0.0001 Logit Scale: 14.286 Contrastive_loss: "
        "{loss} (7.1) Loss: {loss} (7.1)",
        **FROM_ZERO,
        keys={"Data (t)", "Logit Scale", "Contrastive_loss", "Loss"},
        last={"Contrastive_loss": 2.25, "Logit Scale": 14.286},
    ),
    form(
        "nanotron",
        "train.log",
        "10/03/2024 10:00:01 [INFO|DP=0|PP=0|TP=0|ip-26-0-1]: iteration: {i} / 800 | "
        "consumed_tokens: 1.05M | tokens_per_sec: 123K | lm_loss: {loss} | lr: 0.0003 | "
        "grad_norm: 1.25",
        unit="iteration",
        total=800,
        state="lost",
        keys={"tokens_per_sec", "lm_loss", "grad_norm"},
        last={"lm_loss": 2.25, "tokens_per_sec": 123_000},
    ),
    form(
        "Unsloth",
        "train.log",
        "{k}\t{loss}",
        head="   \\\\   /|    Num examples = 51,760 | Num Epochs = 1 | Total steps = 60\n"
        "O^O/ \\_/ \\    Batch size per device = 2 | Gradient accumulation steps = 4\n"
        "Step\tTraining Loss\n",
        place=3,
        keys={"Training Loss"},
        last={"Training Loss": 2.25},
    ),
    form(
        "AllenNLP, one epoch's metrics",
        "metrics_epoch_2.json",
        "",
        ends="",
        head='{"best_epoch": 0, "training_duration": "0:02:10", "epoch": 2,\n'
        ' "training_loss": 2.25, "validation_accuracy": 0.5}',
        rows=1,
        **(FROM_ZERO | {"places": (0, 1, 2)}),
        keys={"training_loss", "validation_accuracy"},
        last={"training_loss": 2.25},
    ),
    form(
        "Kaldi, nnet3",
        "train.1.log",
        "LOG (nnet3-chain-train[5.5]:PrintStatsForThisPhase():nnet-training.cc:351) Average "
        "objective function for 'output' for minibatches 0-{i} is -{loss} over 10240 frames.",
        head="LOG (nnet3-chain-train[5.5]:main():nnet3-chain-train.cc:100) Read computation\n",
        unit="minibatch",
        keys={"objective"},
        last={"objective": -2.25},
    ),
)
