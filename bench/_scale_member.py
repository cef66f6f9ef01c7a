"""One process of bench/scale.py: WAY MODEL FOLDER GPUS."""

import json
import os
import signal
import sys
import time
import zlib
from pathlib import Path
from typing import Any

import torch
from _shapes import LARGE, SMALL
from torch.nn.functional import cross_entropy
from transformers import LlamaConfig, LlamaForCausalLM

TINY = bool(int(os.environ.get("SCALE_TINY", "0")))
CUDA = torch.cuda.is_available() and not TINY
STEPS = int(os.environ.get("SCALE_STEPS", "150"))
# DiLoCo has then made its first round, in which the cards find each other once.
WARM = int(os.environ.get("SCALE_WARM", "30"))
LENGTH, WORDS = (2048, 512) if not TINY else (16, 8)
BEGAN = time.monotonic()
ROWS = {"small": 8, "large": 4} if not TINY else {"small": 2, "large": 2}
LEAST = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "vocab_size": 64}
LEAST |= {"num_attention_heads": 2, "num_key_value_heads": 1}


def made(model: str) -> LlamaForCausalLM:
    shape = LEAST if TINY else {"small": SMALL, "large": LARGE}[model]
    torch.manual_seed(0)
    config = LlamaConfig(**shape, tie_word_embeddings=True, max_position_embeddings=LENGTH)
    with torch.device("cuda" if CUDA else "cpu"):
        return LlamaForCausalLM(config)


def stage(name: str) -> None:
    """In the log, of which a run that is not over shows the end."""
    print(f"{time.monotonic() - BEGAN:6.1f} s: {name}", flush=True)


def batches_of(model: torch.nn.Module, rows: int, rank: int) -> torch.Tensor:
    """(STEPS, rows, LENGTH), made before any is timed: four of five tokens follow from the one
    before."""
    device = next(model.parameters()).device
    table = torch.randperm(WORDS, generator=torch.Generator(device).manual_seed(7), device=device)
    random, follows = [], []
    for step in range(STEPS):
        draw = torch.Generator(device).manual_seed(1_000_003 * step + rank)
        random.append(torch.randint(WORDS, (rows, LENGTH), generator=draw, device=device))
        follows.append(torch.rand(rows, LENGTH, generator=draw, device=device) < 0.8)
    tokens, chained = torch.stack(random), torch.stack(follows)
    for at in range(1, LENGTH):
        after = table[tokens[..., at - 1]]
        tokens[..., at] = torch.where(chained[..., at], after, tokens[..., at])
    return tokens


def loss_of(model: torch.nn.Module, tokens: torch.Tensor, *, autocast: bool) -> torch.Tensor:
    with torch.autocast(tokens.device.type, torch.bfloat16, enabled=autocast):
        logits = model(input_ids=tokens).logits
    flat = logits[:, :-1].flatten(0, 1).float()
    return cross_entropy(flat, tokens[:, 1:].flatten())


class Watch:
    """Losses of all steps, and the time of those after WARM."""

    def __init__(self) -> None:
        self.losses: list[torch.Tensor] = []
        self.began = self.seconds = self.ready = 0.0
        self.timed = 0

    def step(self, loss: torch.Tensor) -> None:
        self.losses.append(loss.detach())
        if len(self.losses) == 1:
            self.ready = time.monotonic() - BEGAN
            stage("the first step")
        if len(self.losses) == WARM:
            wait()
            self.began = time.perf_counter()

    def stop(self) -> None:
        wait()
        self.seconds = time.perf_counter() - self.began
        self.timed = len(self.losses) - WARM


def wait() -> None:
    if CUDA:
        torch.cuda.synchronize()


def shared(model: LlamaForCausalLM, way: str) -> torch.nn.Module:
    from torch.distributed import init_process_group
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    init_process_group("nccl" if CUDA else "gloo")
    if way == "ddp":
        return torch.nn.parallel.DistributedDataParallel(model)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in model.model.layers:
        fully_shard(layer, mp_policy=policy)
    fully_shard(model, mp_policy=policy)
    return model


def train(model: torch.nn.Module, rows: int, rank: int, *, autocast: bool) -> Watch:
    inner = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=CUDA)
    watch = Watch()
    for tokens in batches_of(model, rows, rank):
        loss = loss_of(model, tokens, autocast=autocast)
        loss.backward()
        inner.step()
        inner.zero_grad()
        watch.step(loss)
    watch.stop()
    return watch


def train_apart(model: torch.nn.Module, rows: int, way: str, out: Path) -> tuple[Watch, Any]:
    from harness.run_logger import RunLogger
    from harness.training.diloco import DiLoCo

    inner = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=CUDA)
    watch = Watch()
    struck = out / "struck"
    with RunLogger.from_environment() as log, DiLoCo(model, inner, log=log) as diloco:
        log.start(total_epochs=STEPS // diloco.config.steps)
        stage("all replicas are there")
        batches = batches_of(model, rows, diloco.replica)
        # Who was killed needs time to come back.
        steps = STEPS if way == "diloco" else 3 * STEPS
        while diloco.steps < steps:
            loss = loss_of(model, batches[diloco.steps % STEPS], autocast=CUDA)
            loss.backward()
            diloco.note(loss, tokens=rows * LENGTH)
            inner.step()
            inner.zero_grad()
            watch.step(loss)
            if diloco.steps % diloco.config.steps == 0:
                stage(f"round {diloco.rounds}")
            half = diloco.rounds == 1 and diloco.steps > 1.5 * diloco.config.steps
            if way == "healed" and diloco.replica == 1 and half and not struck.exists():
                struck.touch()
                os.kill(os.getpid(), signal.SIGKILL)
        watch.stop()
    return watch, diloco


def digest(model: torch.nn.Module) -> int:
    sums = [float(each.double().sum()) for each in model.parameters()]
    return zlib.crc32(repr(sums).encode())


def main(way: str, name: str, folder: str) -> None:
    apart = way in ("diloco", "healed")
    rank = int(os.environ.get("RANK") or 0)
    if CUDA:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK") or 0))
    model, rows = made(name), ROWS[name]
    stage("weights")
    parameters = sum(each.numel() for each in model.parameters())
    more: dict[str, Any] = {}
    if apart:
        watch, diloco = train_apart(model, rows, way, Path(folder))
        rank = diloco.replica
        more = {"rounds": diloco.rounds, "digest": digest(model)}
    else:
        whole = model if way == "one" else shared(model, way)
        watch = train(whole, rows, rank, autocast=CUDA and way != "fsdp2")
    told = {
        "card": torch.cuda.get_device_name() if CUDA else "none",
        "parameters": parameters,
        "peak": torch.cuda.max_memory_allocated() if CUDA else 0,
        "seconds": watch.seconds,
        "ready": watch.ready,
        "tokens": watch.timed * rows * LENGTH,
        "losses": [float(loss) for loss in watch.losses],
        **more,
    }
    Path(folder, f"{rank}.card").write_text(json.dumps(told), "utf-8")
    if torch.distributed.is_initialized() and not apart:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:4])
