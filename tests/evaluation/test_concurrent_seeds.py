"""Seeds are evaluated at once; what is told and recorded has their order, whichever ends first."""

import re
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.domain.findings import Finding
from harness.domain.sandbox import Completed
from harness.domain.statuses import Split
from harness.domain.variables import CHECKPOINT, PREDICTIONS
from harness.errors import RefusedError, SandboxError
from harness.evaluation import concurrent_seeds, problems
from harness.evaluation.experiment import evaluate_experiment
from harness.ledger.facts import Evaluation
from tests.world import InProcess, World

SEEDS = 3


@pytest.fixture
def world(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """On a machine with three cores and no GPU."""
    monkeypatch.setattr(concurrent_seeds, "_cores", lambda: SEEDS)
    monkeypatch.setattr(concurrent_seeds, "accelerators", list)
    world = World.make(tmp_path)
    world.train(world.open().id)
    yield world
    world.project.close()


@pytest.fixture
def apart(world: World) -> World:
    """Its seeds answer many rows otherwise."""
    world.train("exp-0001", (0.0, 0.4, -0.4))
    return world


class Watched(InProcess):
    """Knows how many run at once, and which seed's weights they have."""

    def __init__(self, world: World) -> None:
        points = world.project.ledger.checkpoints("exp-0001")[-SEEDS:]
        self.place = {point.id: number for number, point in enumerate(points)}
        self.now, self.most, self.calls = 0, 0, 0
        self.lock = threading.Lock()

    def run(self, argv: Sequence[str], **more: Any) -> Completed:
        name = str(more["environment"][CHECKPOINT])
        place = next((n for key, n in self.place.items() if key in name), None)
        with self.lock:
            self.now, self.calls = self.now + 1, self.calls + 1
            self.most = max(self.most, self.now)
            beside = self.now
        try:
            return self.answer(place, beside, argv, **more)
        finally:
            with self.lock:
                self.now -= 1

    def answer(
        self, place: int | None, beside: int, argv: Sequence[str], **more: Any
    ) -> Completed:
        return super().run(argv, **more)


def evaluate(
    world: World, sandbox: InProcess, split: Split = Split.VALIDATION
) -> list[Evaluation]:
    return evaluate_experiment(
        world.project,
        "exp-0001",
        split,
        sandbox,
        environment={},
        shuffle_seed=7,
        admit=lambda project, experiment: None,
    )


def test_all_are_asked_at_once_and_the_last_to_end_may_be_the_first_recorded(
    world: World,
) -> None:
    met = threading.Barrier(SEEDS, timeout=20)
    first: set[int] = set()

    class Meeting(Watched):
        def answer(self, place: int | None, beside: int, *rest: Any, **more: Any) -> Completed:
            if place is not None and place not in first:
                first.add(place)
                met.wait()  # nobody goes on before all are here
            if place == 0:
                time.sleep(0.2)
            return super().answer(place, beside, *rest, **more)

    sandbox = Meeting(world)
    made = evaluate(world, sandbox)
    assert sandbox.most >= SEEDS
    assert [one.run for one in made] == ["run-01", "run-02", "run-03"]
    recorded = world.project.ledger.evaluations("exp-0001")
    assert [one.run for one in recorded] == ["run-01", "run-02", "run-03"]
    assert all(one.scored for one in recorded)


def test_side_by_side_and_one_after_the_other_give_the_same(
    world: World, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = [(one.value, one.predictions) for one in evaluate(world, Watched(world))]
    monkeypatch.setattr(concurrent_seeds, "_cores", lambda: 1)
    other = World.make(tmp_path / "other")
    other.train(other.open().id)
    sandbox = Watched(other)
    alone = [(one.value, one.predictions) for one in evaluate(other, sandbox)]
    other.project.close()
    assert sandbox.most == 1
    assert together == alone


def test_who_lacks_memory_beside_others_is_asked_again_alone(world: World) -> None:
    class Small(Watched):
        def answer(self, place: int | None, beside: int, *rest: Any, **more: Any) -> Completed:
            time.sleep(0.05)
            if beside > 1 or self.now > 1:
                return Completed(
                    exit_code=1,
                    stdout=b"",
                    stderr=b"MemoryError",
                    timed_out=False,
                    seconds=0.1,
                )
            return super().answer(place, beside, *rest, **more)

    sandbox = Small(world)
    made = evaluate(world, sandbox)
    assert sandbox.most > 1
    assert [one.scored for one in made] == [True] * SEEDS
    assert [one.findings for one in world.project.ledger.evaluations("exp-0001")] == [()] * SEEDS


def test_what_fails_alone_too_stands_for_all_without_asking_each_again(world: World) -> None:
    class Broken(Watched):
        def answer(self, *rest: Any, **more: Any) -> Completed:
            return Completed(
                exit_code=1, stdout=b"", stderr=b"no model", timed_out=False, seconds=0.1
            )

    sandbox = Broken(world)
    made = evaluate(world, sandbox)
    assert [[found.code for found in one.findings] for one in made] == [["predict_crashed"]] * 3
    assert sandbox.calls == SEEDS + 1


def test_an_error_says_whose_seed_it_is_and_what_was_before_it_is_recorded(world: World) -> None:
    seeds = [run.seed for run in world.project.ledger.runs("exp-0001")]

    class Torn(Watched):
        def answer(self, *rest: Any, **more: Any) -> Completed:
            if threading.current_thread().name == "evaluate_1":
                raise SandboxError("It cannot be set up.", hint="Try again.")
            return super().answer(*rest, **more)

    with pytest.raises(SandboxError, match=rf"Seed {seeds[1]}: It cannot be set up\."):
        evaluate(world, Torn(world))
    assert [one.run for one in world.project.ledger.evaluations("exp-0001")] == ["run-01"]
    assert len(evaluate(world, Watched(world))) == SEEDS  # goes on with the others


def test_a_look_is_counted_once_for_all_and_before_rows_are_seen(world: World) -> None:
    ledger, seen = world.project.ledger, []

    class Late(Watched):
        def answer(self, *rest: Any, **more: Any) -> Completed:
            seen.append(threading.current_thread() is not threading.main_thread())
            return super().answer(*rest, **more)

    made = evaluate(world, Late(world), Split.HELD_OUT)
    assert {one.query for one in made} == {1}
    assert ledger.queries("signs", Split.HELD_OUT) == 1
    assert all(seen)


def test_without_a_look_left_no_seed_sees_a_row(world: World) -> None:
    for _ in range(3):
        world.project.ledger.query_held_out("exp-0001", 3)
    sandbox = Watched(world)
    with pytest.raises(RefusedError) as refused:
        evaluate(world, sandbox, Split.HELD_OUT)
    assert refused.value.code == "query_budget_spent"
    assert sandbox.calls == 0


@pytest.mark.parametrize(
    ("cores", "gpus", "memory", "places"),
    [
        (8, [], 64 << 30, 3),
        (2, [], 64 << 30, 2),
        (8, ["/dev/nvidia0"], 64 << 30, 1),
        (8, [], 1 << 30, 1),  # four copies of each would not fit twice
    ],
)
def test_how_many_run_at_once(
    tmp_path: Any,
    monkeypatch: pytest.MonkeyPatch,
    cores: int,
    gpus: list[str],
    memory: int,
    places: int,
) -> None:
    monkeypatch.setattr(concurrent_seeds, "_cores", lambda: cores)
    monkeypatch.setattr(concurrent_seeds, "accelerators", lambda: gpus)
    monkeypatch.setattr(concurrent_seeds, "machine_share", lambda: memory)
    (tmp_path / "table").write_bytes(b"rows")
    request: Any = SimpleNamespace(table=SimpleNamespace(path=tmp_path / "table"))
    assert concurrent_seeds.places([request] * SEEDS, [64 << 20] * SEEDS) == places
    assert concurrent_seeds.places([request], [0]) == 1


def test_what_stands_is_recorded_as_it_is_however_long_it_took(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Finding("predict_longer_than_training", "slow", "")
    monkeypatch.setattr(problems, "longer_than_training", lambda predict, training: slow)
    answered: dict[int | None, int] = {}

    class Lucky(Watched):
        """Each seed's first answers are its own, the second of them another; then all are alike."""

        def answer(self, place: int | None, beside: int, *rest: Any, **more: Any) -> Completed:
            made = super().answer(place, beside, *rest, **more)
            answered[place] = answered.get(place, 0) + 1
            path = Path(more["environment"][PREDICTIONS])
            if answered[place] == 2:
                text = path.read_text()
                turned = {"up": "down", "down": "up"}
                path.write_text(re.sub("up|down", lambda found: turned[found[0]], text))
            return made

    made = evaluate(world, Lucky(world))
    codes = [one.findings[0].code for one in made]
    assert codes == ["predictions_not_reproducible"] * SEEDS


class Counting(Watched):
    """How often each seed's weights were asked, and with how many rows."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.asked: dict[int | None, int] = {}

    def answer(self, place: int | None, *rest: Any, **more: Any) -> Completed:
        with self.lock:
            self.asked[place] = self.asked.get(place, 0) + 1
        return super().answer(place, *rest, **more)


def test_what_a_seed_answered_is_not_asked_again_for_anothers_probe(apart: World) -> None:
    sandbox = Counting(apart)
    made = evaluate(apart, sandbox)
    assert all(one.scored for one in made)
    assert sandbox.asked == dict.fromkeys(range(SEEDS), 2)  # all rows, and a part of them again


def test_seeds_that_answer_alike_are_asked_with_changed_weights_all_the_same(world: World) -> None:
    class Blind(Counting):
        def answer(self, *rest: Any, **more: Any) -> Completed:
            made = super().answer(*rest, **more)
            path = Path(more["environment"][PREDICTIONS])
            path.write_text(re.sub("down", "up", path.read_text()))
            return made

    sandbox = Blind(world)
    made = evaluate(world, sandbox)
    assert [[found.code for found in one.findings] for one in made] == [["weights_unused"]] * SEEDS
    assert sandbox.asked[None] >= SEEDS  # of changed weights


def test_a_seed_that_gives_no_answers_is_asked_by_the_others_probe(apart: World) -> None:
    class Torn(Counting):
        def answer(self, place: int | None, *rest: Any, **more: Any) -> Completed:
            made = super().answer(place, *rest, **more)
            if place == 1 and self.asked[1] == 1:
                Path(more["environment"][PREDICTIONS]).write_text("no predictions")
            return made

    sandbox = Torn(apart)
    made = evaluate(apart, sandbox)
    assert [one.scored for one in made] == [True, False, True]
    assert sandbox.asked == {0: 2, 1: 2, 2: 2}  # once itself, once for the first one's probe
