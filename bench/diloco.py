"""DiLoCo beside one process at equal samples and steps, over three seeds, and what is sent a step
beside DDP: on MNIST-1D, or LoRA on SmolLM2-135M (`make smollm2` first).

One process trains on a batch; two replicas on half of it each, and average every `every` steps.
The baseline's spread over its seeds is the noise that the difference is held against: exit 1 where
it is larger. Bytes are those of the loopback of a network namespace that nobody else is in.

    python bench/diloco.py [--task smollm2] [--record]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
import torch.distributed
from _diloco_tasks import TASKS
from _record import record
from torch.nn.parallel import DistributedDataParallel

from harness.run_logger import RunLogger
from harness.training.diloco import DiLoCo, Samples
from harness.training.replicas.network import enter_own

REPLICAS, DDP_STEPS = 2, 100


def a_step(task, model, inner, rows):
    loss = task.loss(model, rows)
    inner.zero_grad()
    loss.backward()
    return loss


def sent():
    """Bytes that went over the loopback of this process's network."""
    for line in Path("/proc/net/dev").read_text().splitlines():
        name, _, told = line.partition(":")
        if name.strip() == "lo":
            return int(told.split()[8])
    raise SystemExit("there is no loopback in /proc/net/dev")


def single(task, seed):
    model = task.model(seed)
    inner = task.inner(model)
    samples = Samples(task.count, batch=task.batch, seed=seed)
    samples.begin(steps=task.steps, replicas=1)
    for rows in samples.batches(0):
        a_step(task, model, inner, rows)
        inner.step()
    return {"score": task.score(model)}


def replica(task, seed):
    with RunLogger.from_environment() as log:
        model = task.model(seed)
        inner = task.inner(model)
        samples = Samples(task.count, batch=task.batch // REPLICAS, seed=seed)
        with DiLoCo(model, inner, log=log, samples=samples) as diloco:
            log.start(task.steps // task.every)
            before = sent()
            while diloco.rounds < task.steps // task.every:
                rows = diloco.batch()
                loss = a_step(task, model, inner, rows)
                diloco.note(loss, tokens=len(rows))
                inner.step()
            passed = sent() - before
    return {"score": task.score(model), "bytes": passed / task.steps}


def rank(task, seed):
    torch.distributed.init_process_group("gloo")
    model = DistributedDataParallel(task.model(seed))
    inner = task.inner(model)
    half, at = task.batch // REPLICAS, torch.distributed.get_rank()
    own = range(at * half, at * half + half)
    steps = min(DDP_STEPS, task.steps // 4)
    torch.distributed.barrier()
    before = sent()
    for _ in range(steps):
        a_step(task, model, inner, own)
        inner.step()
    torch.distributed.barrier()
    return {"bytes": (sent() - before) / steps}


def launch(task, role, seed, out, **more):
    words = ["--task", task, "--role", role, "--seed", str(seed), "--out", str(out)]
    return [sys.executable, __file__, *words], {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(Path(__file__).parents[1]),
        **more,
    }


def of_single(name, seed, folder):
    words, environment = launch(name, "single", seed, folder / "single.json")
    subprocess.run(words, env=environment, check=True)
    return json.loads((folder / "single.json").read_text())


def of_replicas(name, seed, folder):
    task = TASKS[name]
    said = {"replicas": REPLICAS, "sync_every": task.every, "save_every": task.steps}
    said |= {"join_s": 60, **task.outer}
    words, environment = launch(
        name,
        "replica",
        seed,
        folder / "{}.json",
        HARNESS_CONFIG=json.dumps({"distributed": said}),
    )
    crew = [sys.executable, "-m", "harness.training.replicas", "--replicas", str(REPLICAS), "--"]
    done = subprocess.run([*crew, *words], env=environment, cwd=folder, capture_output=True)
    if done.returncode:
        raise SystemExit(done.stderr.decode())
    return [json.loads((folder / f"{at}.json").read_text()) for at in range(REPLICAS)]


def of_ddp(name, folder):
    """In a process of its own, which leaves this network."""
    started = []
    for at in range(REPLICAS):
        words, environment = launch(name, "rank", 1, folder / f"{at}.json", RANK=str(at))
        environment |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29400"}
        environment |= {"WORLD_SIZE": str(REPLICAS), "GLOO_SOCKET_IFNAME": "lo"}
        started.append(subprocess.Popen(words, env=environment))
    if any(process.wait() for process in started):
        raise SystemExit("DDP failed")
    return json.loads((folder / "0.json").read_text())


def mean(told):
    return statistics.mean(one["score"] for one in told)


def compare(name, recording):
    task = TASKS[name]
    task.prepare()
    alone, two, apart, carried = [], [], False, []
    for seed in task.seeds:
        with tempfile.TemporaryDirectory() as folder:
            alone.append(of_single(name, seed, Path(folder)))
        with tempfile.TemporaryDirectory() as folder:
            got = of_replicas(name, seed, Path(folder))
        apart |= len({one["score"] for one in got}) > 1
        two.append(got[0])
        carried.append(statistics.mean(one["bytes"] for one in got))
        print(f"seed {seed}: one {alone[-1]['score']:.4f}, two {got[0]['score']:.4f}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        words, environment = launch(name, "ddp", 1, Path(folder))
        subprocess.run(words, env=environment, check=True)
        ddp = json.loads((Path(folder) / "ddp.json").read_text())["bytes"]
    spread = statistics.stdev(one["score"] for one in alone)
    figures = {
        f"single_{task.score_name}": round(mean(alone), 4),
        f"replicas_{task.score_name}": round(mean(two), 4),
        "single_spread": round(spread, 4),
        "ddp_bytes_a_step": round(ddp),
        "diloco_bytes_a_step": round(statistics.mean(carried)),
        "bytes_ratio": round(statistics.mean(carried) / ddp, 3),
        "steps": task.steps,
        "sync_every": task.every,
        "outer_lr": task.outer["outer_lr"],
        "momentum": task.outer["momentum"],
        "seeds": len(task.seeds),
    }
    for figure, value in figures.items():
        print(f"{figure:22} {value}")
    # Of a difference of two means of three seeds each.
    noise = 2 * spread * (2 / len(task.seeds)) ** 0.5
    holds = not apart and task.worse * (mean(two) - mean(alone)) <= noise
    print(f"{'PASS' if holds else 'FAIL'}: not worse than one process by more than {noise:.4f}")
    if recording:
        kept, more = ("diloco", "") if name == "mnist1d" else (f"diloco_{name}", f" --task {name}")
        record(kept, f"python bench/diloco.py{more} --record", figures, seed=task.seeds[0])
    return 0 if holds else 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--task", choices=TASKS, default="mnist1d")
    parser.add_argument("--role", choices=("single", "replica", "rank", "ddp"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=str)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    if asked.role is None:
        return compare(asked.task, asked.record)
    if asked.role == "ddp":
        if not enter_own():
            raise SystemExit("no network of its own here")
        told, name = of_ddp(asked.task, Path(asked.out)), f"{asked.out}/ddp.json"
    else:
        roles = {"single": single, "replica": replica, "rank": rank}
        told = roles[asked.role](TASKS[asked.task](), asked.seed)
        name = asked.out.format(os.environ.get("HARNESS_REPLICA"))
    Path(name).write_text(json.dumps(told))
    return 0


if __name__ == "__main__":
    sys.exit(main())
