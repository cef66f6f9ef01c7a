"""What a replica takes over from another, over real HTTP: tensors and plain values alone."""

import os
import pickle
from datetime import timedelta

import pytest
import torch

from harness.training.diloco.healing import _Transport
from harness.training.replicas.standing import State

SECONDS = timedelta(seconds=10)


class Evil:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


def fetched(state):
    told = []
    server, client = (_Transport(SECONDS, told.append) for _ in range(2))
    try:
        server.send_checkpoint([1], 3, state, SECONDS)
        return client.recv_checkpoint(0, server.metadata(), 3, SECONDS), told
    finally:
        for each in (server, client):
            each.allow_checkpoint(3)
            each.shutdown(wait=True)


def test_weights_and_optimizers_arrive_as_they_are():
    layer = torch.nn.Linear(3, 2)
    inner = torch.optim.AdamW(layer.parameters(), lr=0.1)
    layer(torch.ones(3)).sum().backward()
    inner.step()
    sent = {
        "user": {"model": layer.state_dict(), "inner": inner.state_dict()},
        "torchft": {"n": 1},
    }
    got, told = fetched(sent)
    assert told == [State.HEALING]
    assert got["torchft"] == {"n": 1}
    assert torch.equal(got["user"]["model"]["weight"], layer.weight)
    assert got["user"]["inner"]["state"][0]["exp_avg"].equal(
        inner.state_dict()["state"][0]["exp_avg"]
    )


def test_a_pickle_that_would_run_code_is_not_loaded(tmp_path):
    made = tmp_path / "made"
    with pytest.raises(pickle.UnpicklingError):
        fetched({"user": Evil(str(made)), "torchft": {"n": 1}})
    assert not made.exists()
