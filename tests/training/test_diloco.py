"""What DiLoCo decides without other processes: configuration, rows, losses, fragments, merged
rows."""

import json
import os
import socket
import subprocess
import sys

import pytest
import torch

from harness.errors import RefusedError, UsageError
from harness.training.diloco import DiLoCoConfig, Samples
from harness.training.diloco.fragments import fragments_of
from harness.training.diloco.rounds import Work, round_of, strays
from harness.training.replicas import network
from harness.training.replicas.merge import Merge, ReplicaRows


def test_the_configuration_is_that_of_the_paper_and_says_what_is_wrong():
    said = DiLoCoConfig.read({"engine": "diloco", "replicas": 4, "fragments": 2})
    assert (said.outer_lr, said.momentum, said.nesterov) == (0.7, 0.9, True)
    assert (said.replicas, said.steps) == (4, 50)
    for wrong, name in (
        ({"engine": "ddp"}, "engine"),
        ({"replicas": 0}, "replicas"),
        ({"sync_every": 5, "fragments": 2}, "sync_every"),
        ({"delay": 100}, "delay"),
        ({"minimum_replicas": 3}, "minimum_replicas"),
        ({"outer_lr": float("nan")}, "outer_lr"),
        ({"nesterov": "yes"}, "nesterov"),
        ({"momentum": 0.0}, "nesterov"),
        ({"lr": 1.0}, "lr"),
        ({"stalled_s": 0}, "stalled_s"),
    ):
        with pytest.raises(UsageError, match=rf"distributed\.{name} is"):
            DiLoCoConfig.read(wrong)
    with pytest.raises(UsageError, match="expected a mapping"):
        DiLoCoConfig.read("diloco")
    handed = {"HARNESS_CONFIG": json.dumps({"distributed": {"replicas": 3}})}
    assert DiLoCoConfig.from_environment(handed).replicas == 3
    assert DiLoCoConfig.from_environment(handed | {"HARNESS_REPLICAS": "2"}).replicas == 2


def test_rows_are_seen_equally_often_while_replicas_leave_and_return():
    """12 rows, 3 replicas; the third leaves after 2 rounds and is back after 4."""
    samples = Samples(12, batch=1, seed=0)
    samples.begin(steps=2, replicas=3)
    given: list[list[int]] = []

    def a_round(worked, members):
        given.append([row for who in worked for batch in samples.batches(who) for row in batch])
        samples.commit(worked, members)

    a_round([0, 1, 2], [0, 1, 2])
    a_round([0, 1, 2], [0, 1, 2])
    assert samples.report()["seen"] == {"1": 12}
    assert sorted(given[0] + given[1]) == list(range(12))
    a_round([0, 1], [0, 1])  # the third died with its rows
    assert samples.report()["seen"] == {"1": 8, "2": 4}
    lost = samples.state()["again"]
    a_round([0, 1], [0, 1])  # the first of them gets the lost block
    assert lost
    assert samples.state()["again"] == []
    a_round([0, 1], [0, 1, 2])  # it is healed in this one
    a_round([0, 1, 2], [0, 1, 2])
    times = samples.report()["times"]
    assert sum(times) == 6 + 6 + 4 + 4 + 4 + 6
    assert max(times) - min(times) <= 1
    assert [times.count(often) for often in (2, 3)] == [6, 6]


def test_a_return_goes_on_where_the_stream_was():
    samples, other = Samples(10, batch=2, seed=1), Samples(10, batch=2, seed=1)
    for each in (samples, other):
        each.begin(steps=1, replicas=2)
    samples.commit([0, 1], [0, 1])
    first = list(other.batches(0))
    other.load(samples.state())
    assert list(other.batches(0)) == list(samples.batches(0)) != first
    assert list(other.batches(7)) == list(samples.batches(0))  # no member yet
    stranger = Samples(11, batch=2, seed=1)
    with pytest.raises(UsageError, match="count 10 of rows; here it is 11"):
        stranger.load(samples.state())


def table(*works):
    return sum(work.table(at, len(works)) for at, work in enumerate(works) if work is not None)


def test_a_loss_is_a_mean_over_the_tokens_of_those_who_worked():
    two = Work(tokens=100, loss=200.0), Work(tokens=100, loss=200.0)
    assert round_of(table(*two), 0).loss == 2.0
    alone = round_of(table(two[0], None), 1)
    assert (alone.loss, alone.worked) == (2.0, [0])
    assert round_of(table(*two), 2).loss == 2.0
    unequal = Work(tokens=100, loss=100.0), Work(tokens=300, loss=600.0)
    assert round_of(table(*unequal), 3).loss == 1.75
    healed = round_of(table(two[0], Work(tokens=900, loss=9e9, healed=True)), 4)
    assert (healed.loss, healed.members, healed.worked) == (2.0, [0, 1], [0])
    broken = round_of(table(two[0], Work(tokens=9, loss=float("nan"), broken=True)), 5)
    assert (broken.loss, broken.worked) == (2.0, [0])
    assert round_of(table(Work(), Work()), 6).loss is None


def test_replicas_that_start_from_other_weights_are_named():
    assert strays(table(Work(digest=5), Work(digest=5))) == {}
    assert strays(table(Work(digest=5), None, Work(digest=6))) == {0: 5, 2: 6}


@pytest.mark.parametrize("count", [1, 2, 3, 6])
def test_fragments_hold_each_parameter_once(count):
    layers = [torch.nn.Linear(4, 4), torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)]
    model = torch.nn.Sequential(*layers, layers[0])  # one is shared
    parts = fragments_of(model, count)
    held = [id(each) for part in parts for each in part.parameters()]
    assert len(parts) == count
    assert all(list(part.parameters()) for part in parts)
    assert held == [id(each) for each in model.parameters()]
    layers[1].requires_grad_(False)
    with pytest.raises(UsageError, match="the model has 4 trainable parameters"):
        fragments_of(model, 5)


def epoch(number, **metrics):
    return {"event": "epoch", "epoch": number, "metrics": metrics}


def test_rows_of_replicas_become_one_row_that_names_them():
    merge = Merge()
    merge.put(0, epoch(0, loss=2.0, **{"own/drift": 1.0}))
    assert merge.ready([0, 1]) == []  # the other is alive and has not logged it
    merge.put(1, epoch(0, loss=4.0, **{"own/drift": "NaN"}))
    (row,) = merge.ready([0, 1])
    assert row["metrics"].pop("replica-1/drift") != row["metrics"].pop("replica-0/drift")
    assert row["metrics"] == {"loss": 3.0, "replica-0/loss": 2.0, "replica-1/loss": 4.0}
    merge.put(0, epoch(1, loss=0.1))
    merge.put(0, epoch(2, loss=0.1))
    assert [each["epoch"] for each in merge.ready([0, 1])] == [1]  # one is further
    assert [each["epoch"] for each in merge.ready([0])] == [2]  # the other is dead
    merge.put(1, epoch(1, **{"own/loss": 7.0}))
    assert merge.ready([0, 1])[0]["metrics"] == {"replica-1/loss": 7.0}


def test_rows_are_taken_whole_and_once(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"old": 1}\n')
    rows = ReplicaRows(path)
    with path.open("a") as stream:
        stream.write('{"event": "epoch"}\n{"torn": \n{"hal')
    assert rows.take() == [{"event": "epoch"}]
    with path.open("a") as stream:
        stream.write('f": 1}\n')
    assert rows.take() == [{"half": 1}]
    assert rows.take() == []


def test_ports_that_others_reach_are_refused(monkeypatch):
    monkeypatch.setattr(network, "reachable_interfaces", lambda: ["eth0"])
    with pytest.raises(RefusedError, match="could be reached by eth0"):
        network.require_alone(accepted=False)
    network.require_alone(accepted=True)


def test_replicas_get_a_network_of_their_own():
    """Only where the system lets a process have one, as bubblewrap does."""
    words = "import sys; from harness.training.replicas import network as n;"
    words += "own = n.enter_own(); print(own, n.reachable_interfaces());"
    words += "import socket; s = socket.create_server(('127.0.0.1', 0));"
    words += "socket.create_connection(s.getsockname()).close()"
    done = subprocess.run(
        [sys.executable, "-c", words], capture_output=True, text=True, check=True, env=os.environ
    )
    own, _, left = done.stdout.strip().partition(" ")
    assert (own, left) == ("True", "[]") or own == "False"
    assert socket.if_nameindex()
