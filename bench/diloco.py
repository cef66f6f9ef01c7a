"""DiLoCo beside one process on MNIST-1D at equal samples and steps, over three seeds, and what is
sent a step beside DDP.

One process trains on batches of 100; two replicas on 50 each, averaging every 20 steps. The
baseline's spread over its seeds is the noise that the difference is held against: exit 1 where it
is larger. Bytes are those of the loopback of a network namespace that nobody else is in.

    python bench/diloco.py [--record]
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
from _record import record
from mnist1d.data import get_dataset_args, make_dataset
from torch.nn.parallel import DistributedDataParallel

from harness.run_logger import RunLogger
from harness.training.diloco import DiLoCo, Samples
from harness.training.replicas.network import enter_own

SEEDS = (1, 2, 3)
STEPS, EVERY, BATCH, REPLICAS = 1600, 20, 100, 2
DDP_STEPS = 100


def table():
    made = make_dataset(get_dataset_args())
    rows = [torch.tensor(made[name], dtype=torch.float32) for name in ("x", "x_test")]
    return *rows, torch.tensor(made["y"]), torch.tensor(made["y_test"])


def network(seed):
    torch.manual_seed(seed)
    wide = torch.nn.Linear(100, 100)
    return torch.nn.Sequential(
        torch.nn.Linear(40, 100), torch.nn.ReLU(), wide, torch.nn.ReLU(), torch.nn.Linear(100, 10)
    )


def a_step(model, inner, x, y):
    loss = torch.nn.functional.cross_entropy(model(x), y)
    inner.zero_grad()
    loss.backward()
    return loss


def accuracy(model, x, y):
    with torch.no_grad():
        return float((model(x).argmax(1) == y).float().mean())


def adam(model):
    return torch.optim.AdamW(model.parameters(), lr=2e-3)


def sent():
    """Bytes that went over the loopback of this process's network."""
    for line in Path("/proc/net/dev").read_text().splitlines():
        name, _, told = line.partition(":")
        if name.strip() == "lo":
            return int(told.split()[8])
    raise SystemExit("there is no loopback in /proc/net/dev")


def single(seed):
    x, x_test, y, y_test = table()
    model = network(seed)
    inner = adam(model)
    samples = Samples(len(x), batch=BATCH, seed=seed)
    samples.begin(steps=STEPS, replicas=1)
    for rows in samples.batches(0):
        a_step(model, inner, x[rows], y[rows])
        inner.step()
    return {"accuracy": accuracy(model, x_test, y_test)}


def replica(seed):
    x, x_test, y, y_test = table()
    with RunLogger.from_environment() as log:
        model = network(seed)
        inner = adam(model)
        samples = Samples(len(x), batch=BATCH // REPLICAS, seed=seed)
        with DiLoCo(model, inner, log=log, samples=samples) as diloco:
            log.start(STEPS // EVERY)
            before = sent()
            while diloco.rounds < STEPS // EVERY:
                rows = diloco.batch()
                loss = a_step(model, inner, x[rows], y[rows])
                diloco.note(loss, tokens=len(rows))
                inner.step()
            passed = sent() - before
    return {"accuracy": accuracy(model, x_test, y_test), "bytes": passed / STEPS}


def rank(seed):
    torch.distributed.init_process_group("gloo")
    x, _, y, _ = table()
    model = DistributedDataParallel(network(seed))
    inner = adam(model)
    own = range(torch.distributed.get_rank() * 50, torch.distributed.get_rank() * 50 + 50)
    torch.distributed.barrier()
    before = sent()
    for _ in range(DDP_STEPS):
        a_step(model, inner, x[own], y[own])
        inner.step()
    torch.distributed.barrier()
    return {"bytes": (sent() - before) / DDP_STEPS}


def launch(role, seed, out, **more):
    return [sys.executable, __file__, "--role", role, "--seed", str(seed), "--out", str(out)], {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(Path(__file__).parents[1]),
        **more,
    }


def of_replicas(seed, folder):
    said = {"replicas": REPLICAS, "sync_every": EVERY, "save_every": STEPS}
    words, environment = launch(
        "replica", seed, folder / "{}.json", HARNESS_CONFIG=json.dumps({"distributed": said})
    )
    crew = [sys.executable, "-m", "harness.training.replicas", "--replicas", str(REPLICAS), "--"]
    done = subprocess.run([*crew, *words], env=environment, cwd=folder, capture_output=True)
    if done.returncode:
        raise SystemExit(done.stderr.decode())
    return [json.loads((folder / f"{at}.json").read_text()) for at in range(REPLICAS)]


def of_ddp(folder):
    """In a process of its own, which leaves this network."""
    started = []
    for at in range(REPLICAS):
        words, environment = launch("rank", 1, folder / f"{at}.json", RANK=str(at))
        environment |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29400"}
        environment |= {"WORLD_SIZE": str(REPLICAS), "GLOO_SOCKET_IFNAME": "lo"}
        started.append(subprocess.Popen(words, env=environment))
    if any(process.wait() for process in started):
        raise SystemExit("DDP failed")
    return json.loads((folder / "0.json").read_text())


def mean(told):
    return statistics.mean(one["accuracy"] for one in told)


def compare(recording):
    alone, two, apart, carried = [], [], set(), []
    for seed in SEEDS:
        alone.append(single(seed))
        with tempfile.TemporaryDirectory() as folder:
            got = of_replicas(seed, Path(folder))
        apart |= (
            {one["accuracy"] for one in got} if len({g["accuracy"] for g in got}) > 1 else set()
        )
        two.append(got[0])
        carried.append(statistics.mean(one["bytes"] for one in got))
    with tempfile.TemporaryDirectory() as folder:
        words, environment = launch("ddp", 1, Path(folder))
        subprocess.run(words, env=environment, check=True)
        ddp = json.loads((Path(folder) / "ddp.json").read_text())["bytes"]
    spread = statistics.stdev(one["accuracy"] for one in alone)
    figures = {
        "single_accuracy": round(mean(alone), 4),
        "replicas_accuracy": round(mean(two), 4),
        "single_spread": round(spread, 4),
        "ddp_bytes_a_step": round(ddp),
        "diloco_bytes_a_step": round(statistics.mean(carried)),
        "bytes_ratio": round(statistics.mean(carried) / ddp, 3),
        "steps": STEPS,
        "sync_every": EVERY,
        "seeds": len(SEEDS),
    }
    for name, value in figures.items():
        print(f"{name:22} {value}")
    # Of a difference of two means of three seeds each.
    noise = 2 * spread * (2 / len(SEEDS)) ** 0.5
    holds = not apart and figures["single_accuracy"] - figures["replicas_accuracy"] <= noise
    print(f"{'PASS' if holds else 'FAIL'}: not worse than one process by more than {noise:.4f}")
    if recording:
        record("diloco", "python bench/diloco.py --record", figures, seed=SEEDS[0])
    return 0 if holds else 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--role", choices=("replica", "rank", "ddp"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=str)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    if asked.role is None:
        return compare(asked.record)
    if asked.role == "ddp":
        if not enter_own():
            raise SystemExit("no network of its own here")
        told, name = of_ddp(Path(asked.out)), f"{asked.out}/ddp.json"
    elif asked.role == "rank":
        told, name = rank(asked.seed), asked.out
    else:
        told = replica(asked.seed)
        name = asked.out.format(os.environ["HARNESS_REPLICA"])
    Path(name).write_text(json.dumps(told))
    return 0


if __name__ == "__main__":
    sys.exit(main())
