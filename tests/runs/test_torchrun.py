"""`--launcher torchrun`: two ranks that share each step, on CPUs over gloo."""

import json
from pathlib import Path

import pytest
from placed_support import Placing, placing, rows_of

from harness.domain.statuses import RunStatus

CONFIG = "[launchers.torchrun]\nprocesses = 2\n"
TRAIN = """
import os, torch
import torch.distributed as dist
from harness.run_logger import RunLogger

dist.init_process_group("gloo")
rank = dist.get_rank()
with RunLogger.from_environment() as log:
    torch.manual_seed(log.seed)
    x = torch.randn(64, 4)
    y = x @ torch.tensor([1.0, -2.0, 3.0, 0.5])
    model = torch.nn.Linear(4, 1)
    WRAP
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    log.start(total_epochs=5)
    for epoch in range(5):
        own = slice(rank, None, dist.get_world_size())
        loss = (model(x[own]).squeeze(1) - y[own]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        FAULT
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        log.epoch(epoch, {"loss": mean.item() / dist.get_world_size()})
    state = STATE
    equal = [None, None]
    dist.all_gather_object(equal, [value.tolist() for value in state.values()])
    assert equal[0] == equal[1]
    path = log.checkpoint_dir / "model.pt"
    if rank == 0:
        torch.save(state, path)
    log.checkpoint_saved(path, epoch=4, final=True)
dist.destroy_process_group()
"""
DDP = TRAIN.replace("WRAP", "model = torch.nn.parallel.DistributedDataParallel(model)").replace(
    "STATE", "model.module.state_dict()"
)
FSDP2 = TRAIN.replace(
    "WRAP",
    "from torch.distributed.fsdp import fully_shard\n"
    "    from torch.distributed.device_mesh import init_device_mesh\n"
    "    fully_shard(model, mesh=init_device_mesh('cpu', (2,)))",
).replace("STATE", "{name: one.full_tensor() for name, one in model.state_dict().items()}")


def losses(placed: Placing) -> list[float]:
    rows = [json.loads(line) for line in rows_of(placed).splitlines()]
    return [row["metrics"]["loss"] for row in rows if row["event"] == "epoch"]


@pytest.mark.parametrize("code", [DDP, FSDP2], ids=["ddp", "fsdp2"])
def test_two_ranks_are_one_run_with_one_row_an_epoch(tmp_path: Path, code: str) -> None:
    pytest.importorskip("torch", reason="torch is not installed: the extra `train` brings it")
    placed = placing(tmp_path, CONFIG, seeds=1, train=code.replace("FAULT", "pass"))
    said = placed.train("exp-0001", "--launcher", "torchrun")
    assert said["ok"], said
    with placed.project(read_only=True) as project:
        (run,) = project.ledger.runs("exp-0001")
        assert run.status is RunStatus.COMPLETED
        assert list(run.argv)[:4] == ["torchrun", "--standalone", "--nproc-per-node", "2"]
    start = json.loads(rows_of(placed).splitlines()[0])
    assert (start["event"], start["ranks"]) == ("start", 2)
    shown = losses(placed)
    assert len(shown) == 5
    assert shown[-1] < shown[0]


def test_the_error_of_the_second_rank_is_told(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed: the extra `train` brings it")
    fault = "assert rank == 0 or epoch < 2, 'the second rank has a bad shard'"
    placed = placing(tmp_path, CONFIG, seeds=1, train=DDP.replace("FAULT", fault))
    said = placed.train("exp-0001", "--launcher", "torchrun")
    assert not said["ok"]
    (run,) = said["runs"]
    assert run["reason"] == "crashed: AssertionError: the second rank has a bad shard"


def test_without_a_number_it_is_one_a_gpu_and_no_program_but_python(tmp_path: Path) -> None:
    placed = placing(tmp_path, "", seeds=1)
    said = placed.train("exp-0001", "--launcher", "torchrun", CUDA_VISIBLE_DEVICES="")
    assert said["error"]["code"] == "no_ranks"
    said = placed.train(
        "exp-0001", "--launcher", "torchrun", "--", "./train.sh", CUDA_VISIBLE_DEVICES="0,1"
    )
    assert said["error"]["code"] == "no_script"
